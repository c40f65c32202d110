"""A thread's memory is read in chunks, which no string may be seen through."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.paths import WouldBlock

TEXT = b"first\0second\0\0" + b"x" * 600 + b"\0last\0" + b"y" * 300 + b"\0"


def read_whole(at: int, limit: int) -> tuple[bytes, bool]:
    end = TEXT.index(b"\0", at)
    return (TEXT[at:end], False) if end - at < limit else (TEXT[at : at + limit], True)


def test_a_string_is_the_same_whatever_was_read_before() -> None:
    for limit in [1, 5, 6, 7, 255, 256, 257, 600, 601, 4096]:
        buffer = ctypes.create_string_buffer(TEXT)
        places = [0, 6, 5, 13, 14, 3, 614, 615, 358, 270, 619, 620, 0, 919, 900, 7, 12]
        with Memory(os.getpid()) as memory:
            for place in places:
                found = memory.string(ctypes.addressof(buffer) + place, limit)
                assert found == read_whole(place, limit), place


def test_strings_on_many_pages_are_for_who_may_wait() -> None:
    """A page of a file may have to be read from a disk."""
    count = 300
    pages = mmap.mmap(-1, count * mmap.PAGESIZE)
    pages.write(b"word".ljust(mmap.PAGESIZE, b"\0") * count)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    addresses = [start + number * mmap.PAGESIZE for number in range(count)]
    argv = (ctypes.c_void_p * (count + 1))(*addresses, None)
    with Memory(os.getpid()) as memory, pytest.raises(WouldBlock):
        memory.strings(ctypes.addressof(argv), 8, 4096)
    with Memory(os.getpid(), may_wait=True) as memory:
        found, cut = memory.strings(ctypes.addressof(argv), 8, 4096)
    assert (found, cut) == ([b"word"] * count, False)


def test_a_string_may_end_where_the_memory_does(tmp_path: Path) -> None:
    size = mmap.PAGESIZE
    with open(tmp_path / "pages", "w+b") as file:
        file.truncate(2 * size)
        pages = mmap.mmap(file.fileno(), 2 * size)
        file.truncate(size)
    pages[size - 12 : size] = b"short\0ending"
    end = ctypes.addressof(ctypes.c_char.from_buffer(pages)) + size
    with Memory(os.getpid()) as memory:
        assert memory.string(end - 12) == (b"short", False)
        assert memory.string(end - 6, 6) == (b"ending", True)
        with pytest.raises(Unreadable):
            memory.string(end - 6)
