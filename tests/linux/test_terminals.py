"""What is said on a terminal that others write to as well, or that nobody reads."""

from __future__ import annotations

import os
import threading
import tty
from collections.abc import Iterator

import pytest

from sigwrap.kernel import terminals

TEXT = b"x" * 50_000


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    master, slave = os.openpty()
    tty.setraw(slave)
    os.set_blocking(slave, False)
    yield master, slave
    os.close(slave)
    os.close(master)


def _read(master: int, read: list[bytes]) -> None:
    while b"end" not in b"".join(read[-2:]):
        read.append(os.read(master, 65_536))


def _write(path: str, stopped: threading.Event) -> None:
    with open(path, "wb", buffering=0) as terminal:
        while not stopped.is_set():
            terminal.write(b"." * 1_000)


def test_more_than_it_takes_at_once_while_another_writes(ends: tuple[int, int]) -> None:
    master, slave = ends
    read: list[bytes] = []
    stopped = threading.Event()
    reading = threading.Thread(target=_read, args=(master, read))
    writing = threading.Thread(target=_write, args=(os.ttyname(slave), stopped))
    reading.start()
    writing.start()
    assert all(terminals.write_all(slave, TEXT, within_s=30) for _ in range(5))
    stopped.set()
    writing.join()
    assert terminals.write_all(slave, b"end", within_s=30)
    reading.join()
    assert b"".join(read).count(b"x") == 5 * len(TEXT)


def test_nobody_waits_for_a_terminal_that_nobody_reads(ends: tuple[int, int]) -> None:
    assert terminals.write_all(ends[1], b"short", within_s=0.01)
    assert not terminals.write_all(ends[1], TEXT, within_s=0.01)
