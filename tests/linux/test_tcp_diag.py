"""Whose a connection is, by its addresses."""

from __future__ import annotations

import os
import socket

import pytest

from sigwrap.watch.page.peers import owner_of


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("0.0.0.0", 0))


def test_it_is_that_of_the_end_that_is_asked_for(listener: socket.socket) -> None:
    with socket.create_connection(("127.0.0.1", listener.getsockname()[1])) as end:
        served, theirs = listener.accept()
        owner = owner_of(theirs, served.getsockname())
        assert owner is not None
        assert (owner.uid, owner.inode) == (os.geteuid(), os.fstat(end.fileno()).st_ino)
        served.close()
    listener.close()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "10.99.0.2"])
def test_who_listens_at_that_port_is_not_who_came_from_it(
    listener: socket.socket, address: str
) -> None:
    """From another network namespace somebody can come from any address and port."""
    ours = ("127.0.0.1", 9)
    assert owner_of((address, listener.getsockname()[1]), ours) is None
    listener.close()
