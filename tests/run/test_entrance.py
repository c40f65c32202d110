"""A socket that listens: who comes is let in, whatever goes wrong meanwhile."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sigwrap.bare import socket as bare
from sigwrap.run.entrance import Entrance
from sigwrap.run.loop import Loop


class Door:
    """An entrance, and who has come by it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.end = bare.socket(bare.AF_UNIX, bare.SOCK_STREAM | bare.SOCK_NONBLOCK)
        self.end.bind(self.path)
        self.end.listen(64)
        self.loop = Loop()
        self.arrived: list[bare.socket] = []
        self.entrance = Entrance(self.loop, lambda end, _peer: self.arrived.append(end))

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
    subject.entrance.close()
    for each in (subject.end, *subject.arrived):
        each.close()


def test_where_no_watch_is_left_it_is_tried_again(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(door.loop, "watch", full)
        door.entrance.open(door.end)
    with door.connect():
        door.turn_until(lambda: bool(door.arrived))


def test_who_comes_in_a_pause_is_let_in_after_it(door: Door) -> None:
    door.entrance.open(door.end)
    door.entrance.pause()
    with door.connect():
        door.turn_until(lambda: bool(door.arrived))


def test_nobody_is_let_in_once_it_is_closed(door: Door) -> None:
    door.entrance.open(door.end)
    door.entrance.pause()
    door.entrance.close()
    with door.connect():
        door.turn_until(lambda: door.loop.next_deadline_s is None)
        door.loop.turn(0.0)
    assert not door.arrived


def test_after_many_refusals_there_is_a_pause(door: Door) -> None:
    door.entrance.open(door.end)
    for number in range(10):
        with door.connect() as caller:
            assert door.loop.next_deadline_s is None
            door.turn_until(lambda already=number: len(door.arrived) > already)  # type: ignore[misc]
            door.entrance.refuse(door.arrived[-1], b"no")
            assert caller.recv(10) == b"no"
    assert door.loop.next_deadline_s is not None
