"""Whoever joins a pid namespace outside has its init for a parent, and outlives the session."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.linux.process import children
from tests.support.signal_lab import Lab, python
from tests.support.waiting import await_that

_AT_EMPTY_PATH = 0x1000
_HANDLE = struct.Struct("Ii128s")


@contextlib.contextmanager
def _namespaces_outside(lab: Lab) -> Iterator[list[int]]:
    """Of a process of the same user: a browser's sandbox, a rootless container."""
    line = [*lab.subject.as_user(), "unshare", "-U", "-r", "-p", "-f", "sleep", "1000"]
    process = lab.subject.start_line(line)
    await_that(lambda: bool(process.poll() is not None or children(process.pid)))
    if process.poll() is not None:
        pytest.skip("needs user namespaces for everybody")
    (inside,) = children(process.pid)
    opened = [os.open(f"/proc/{inside}/ns/{kind}", os.O_RDONLY) for kind in ("user", "pid")]
    try:
        yield opened
    finally:
        for fd in opened:
            os.close(fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(inside, 9)


def _handle(fd: int) -> str:
    """Empty where the kernel has none for namespaces."""
    buffer = ctypes.create_string_buffer(_HANDLE.pack(128, 0, b""))
    mount = ctypes.c_int()
    libc = ctypes.CDLL(None)
    libc.name_to_handle_at(fd, b"", buffer, ctypes.byref(mount), _AT_EMPTY_PATH)
    return buffer.raw.hex()


def test_no_namespace_of_anybody_outside_is_joined(users_lab: Lab, programs: Path) -> None:
    with _namespaces_outside(users_lab) as (user, pid):
        program = programs / "joins_namespaces.py"
        line = python(program, user, pid, _handle(user), _handle(pid))
        natively = json.loads(users_lab.subject.native(*line, pass_fds=(user, pid)).stdout)
        done = users_lab.subject.run("--", *line, pass_fds=(user, pid))
    told = json.loads(done.stdout)
    assert natively["native"]["pid"] == 0
    assert told.pop("of its own") == natively.pop("of its own") == 0
    for abi, found in told.items():
        assert found.pop("nobody's network") == "EBADF"
        assert found.pop("by handle") == ["EPERM"] * 2
        assert set(found.values()) == {"EPERM"}, (abi, found)
