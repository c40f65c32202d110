"""Closing a duplicate of another process's descriptor never blocks the caller."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from sigwrap.kernel import descriptors


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_if_too_many_closes_wait_no_socket_is_duplicated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors._closers, "threads", 16)
    us = os.getpid()
    one, end = socket.socketpair()
    reading, writing = os.pipe()
    with one, end:
        with pytest.raises(PermissionError) as refusal:
            descriptors.duplicate(us, one.fileno())
        assert refusal.value.errno == errno.EPERM
    descriptors.let_go(descriptors.duplicate(us, reading))
    os.close(reading)
    os.close(writing)


def test_what_cannot_block_is_closed_at_once() -> None:
    for path in ["/dev/null", "/dev/zero", "/", __file__]:
        fd = os.open(path, os.O_RDONLY)
        descriptors.let_go(fd)
        assert not _is_open(fd), path


@pytest.mark.parametrize("is_local", [True, False])
def test_a_file_whose_path_is_too_long_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_local: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(24):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    monkeypatch.setattr(descriptors, "is_on_local_device", lambda *_: is_local)
    us = os.getpid()
    with Path("file").open("w") as file:
        assert descriptors.could_stall(us, us, file.fileno()) is not is_local
