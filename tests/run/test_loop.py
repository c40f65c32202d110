"""What is watched, also where the kernel refuses."""

from __future__ import annotations

import os
import select
from pathlib import Path

import pytest

from sigwrap.run.loop import Loop


def test_what_can_t_be_watched_is_not(tmp_path: Path) -> None:
    """A file can't, as nothing can when a user's watches are used up."""
    loop = Loop()
    with open(tmp_path / "file", "wb") as file:
        with pytest.raises(PermissionError):
            loop.watch(file.fileno(), lambda _: None)
        loop.unwatch(file.fileno())


def test_what_is_watched_can_be_watched_for_something_else() -> None:
    loop, happened = Loop(), list[int]()
    reading, writing = os.pipe()
    loop.watch(writing, happened.append, 0)
    loop.turn(0)
    loop.change(writing, select.EPOLLOUT)
    loop.turn(0)
    loop.unwatch(writing)
    loop.turn(0)
    assert happened == [select.EPOLLOUT]
    os.close(reading)
    os.close(writing)
