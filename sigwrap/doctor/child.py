"""Run a check in a child process.

What the check does to the process (a seccomp filter stays) or its limits ends with the child, which
ends within a bounded time, with all processes that it started.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sigwrap.bare import json, signal
from sigwrap.bare.contextlib import suppress
from sigwrap.errors import SigwrapError
from sigwrap.escape import printable
from sigwrap.linux import libc
from sigwrap.linux import process as linux_process
from sigwrap.linux.waits import seconds_until

_ENDS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_SWEEP_S = 5.0


class NoResult(Exception):
    """Says why a check has no result."""


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Block interrupts until all checks are cleaned up, which takes a moment."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    libc.set_child_subreaper()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_child(check: Callable[[], Any], *, within_s: float) -> Any:
    """Return the check's result, passed as JSON, or raise NoResult."""
    read_fd, write_fd = os.pipe()
    parent = os.getpid()
    try:
        pid = linux_process.fork()
    except SigwrapError:
        os.close(read_fd)
        os.close(write_fd)
        raise
    if pid == 0:
        _answer(check, write_fd, parent)
    os.close(write_fd)
    try:
        output = _read_all(read_fd, time.monotonic() + within_s)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(read_fd)
        os.waitpid(pid, 0)
        _kill_descendants()
    answer = json.loads(output) if output else {"failure": "the process that ran this check died"}
    if "failure" in answer:
        raise NoResult(answer["failure"])
    return answer["result"]


def _answer(check: Callable[[], Any], fd: int, parent: int) -> None:
    """Write the result and end this process."""
    try:
        libc.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() == parent:
            os.write(fd, json.dumps(_result(check)).encode())
    finally:
        os._exit(0)


def _result(check: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"result": check()}
    except Exception as failure:  # an unknown machine can fail in any way
        why = str(failure) if isinstance(failure, SigwrapError | OSError) else repr(failure)
        return {"failure": printable(why) or type(failure).__name__}


def _read_all(fd: int, until_s: float) -> bytes:
    output = b""
    while select.select([fd], [], [], seconds_until(until_s))[0]:
        data = os.read(fd, 1 << 16)
        if not data:
            return output
        output += data
    raise NoResult("took too long")


def _kill_descendants() -> None:
    with suppress(OSError):  # without /proc, they cannot be found
        linux_process.Sweep(lambda _pid, _status: None).run(timeout_s=_SWEEP_S)
