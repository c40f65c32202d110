"""Listening sockets, while the kernel refuses a watch, peers flood them, or another process gives
their names to other files."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.approve.control_socket import ControlSocket, GuardedListener
from sigwrap.bare import socket as bare
from sigwrap.errors import StoreError
from sigwrap.log.folder import HeldFolder
from sigwrap.session.loop import Loop
from tests.support.stand_in import session_of


class Door:
    """A listener, and the connections that it accepted."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.end = bare.socket(bare.AF_UNIX, bare.SOCK_STREAM | bare.SOCK_NONBLOCK)
        self.end.bind(self.path)
        self.end.listen(64)
        self.loop = Loop()
        self.arrived: list[bare.socket] = []

    def open(self) -> None:
        self.listener = GuardedListener(
            self.loop, self.end, lambda end, _peer: self.arrived.append(end)
        )

    def connect(self) -> socket.socket:
        end = socket.socket(socket.AF_UNIX)
        end.connect(self.path)
        return end

    def turn_until(self, is_so: Callable[[], bool]) -> None:
        ends_s = time.monotonic() + 10.0
        while not is_so():
            assert time.monotonic() < ends_s
            self.loop.turn(0.05)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    subject = Door(tmp_path / "door")
    yield subject
    subject.listener.close()
    for each in (subject.end, *subject.arrived):
        each.close()


def test_a_refused_watch_is_tried_again(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(door.loop, "watch", full)
        door.open()
    with door.connect():
        door.turn_until(lambda: bool(door.arrived))


def test_a_connection_in_a_pause_is_accepted_after_it(door: Door) -> None:
    door.open()
    door.listener.pause()
    with door.connect():
        door.turn_until(lambda: bool(door.arrived))


def test_a_closed_listener_accepts_nothing(door: Door) -> None:
    door.open()
    door.listener.pause()
    door.listener.close()
    with door.connect():
        door.turn_until(lambda: door.loop.next_deadline_s is None)
        door.loop.turn(0.0)
    assert not door.arrived


def test_after_many_refusals_there_is_a_pause(door: Door) -> None:
    door.open()
    for number in range(10):
        with door.connect() as caller:
            assert door.loop.next_deadline_s is None
            door.turn_until(lambda already=number: len(door.arrived) > already)  # type: ignore[misc]
            door.listener.refuse(door.arrived[-1], b"no")
            assert caller.recv(10) == b"no"
    assert door.loop.next_deadline_s is not None


def test_another_file_is_not_taken_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may replace the file before the listener looks at it."""
    status = HeldFolder.status

    def after_another_process(folder: HeldFolder, name: str) -> os.stat_result | None:
        if ".new-" in name:
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(str(tmp_path / "other"))
            (tmp_path / "other").rename(tmp_path / "store" / "control" / name)
        return status(folder, name)

    store = tmp_path / "store"
    folder = store / "control"

    def socket_of(session_id: str) -> ControlSocket:
        recorder = SimpleNamespace(log=SimpleNamespace(session_id=session_id))
        approvals: Any = SimpleNamespace(store=str(store))
        return ControlSocket(session_of(recorder=recorder, loop=Loop()), approvals)

    named = socket_of("first")
    assert named.objection() == ""
    monkeypatch.setattr(HeldFolder, "status", after_another_process)
    with pytest.raises(StoreError, match="another process removes or replaces it"):
        named.restore()
    with pytest.raises(StoreError, match="another process removes or replaces it"):
        socket_of("second")
    assert [path.name for path in folder.iterdir()] == ["first.sock"]
    monkeypatch.undo()
    assert named.objection() == ""
    named.close()
    assert not list(folder.iterdir())
