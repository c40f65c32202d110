"""A trial in a process of its own: what it does to that process (a filter can't be dropped) or to
its limits stays there, and it ends within bounded time, with all that it started."""

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
from sigwrap.linux.sigfd import SignalFd
from sigwrap.linux.waits import seconds_until

_ENDS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_SWEEP_S = 5.0


class NotTold(Exception):
    """Why a trial has no answer."""


class Interrupted(Exception):
    """Leave: the signal waits, and ends this process as soon as it may."""


@contextmanager
def tidily() -> Iterator[None]:
    """An interrupt comes when nothing is left that would have to be removed."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    libc.set_child_subreaper()
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def aside(trial: Callable[[], Any], *, within_s: float, to_its_end: bool = False) -> Any:
    """What it returns, as JSON has it; NotTold where it doesn't. One that goes `to_its_end` would
    leave something behind, and an interrupt waits for it."""
    ours, theirs = os.pipe()
    above = os.getpid()
    try:
        pid = linux_process.fork()
    except SigwrapError:
        os.close(ours)
        os.close(theirs)
        raise
    if pid == 0:
        _answer(trial, theirs, above)
    os.close(theirs)
    try:
        said = _read_all(ours, time.monotonic() + within_s, frozenset() if to_its_end else _ENDS)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        os.close(ours)
        os.waitpid(pid, 0)
        _end_all_below()
    answer = json.loads(said) if said else {"failure": "the process that ran this check died"}
    if "failure" in answer:
        raise NotTold(answer["failure"])
    return answer["told"]


def _answer(trial: Callable[[], Any], fd: int, above: int) -> None:
    """Ends this process."""
    try:
        libc.set_parent_death_signal(signal.SIGKILL)
        if os.getppid() == above:
            os.write(fd, json.dumps(_told(trial)).encode())
    finally:
        os._exit(0)


def _told(trial: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"told": trial()}
    except Exception as failure:  # whatever this machine has in store
        why = str(failure) if isinstance(failure, SigwrapError | OSError) else repr(failure)
        return {"failure": printable(why) or type(failure).__name__}


def _read_all(fd: int, until_s: float, ends: frozenset[int]) -> bytes:
    said = b""
    interrupts = SignalFd(ends)  # never read: it stays pending
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.register(interrupts.fd, select.POLLIN)
    try:
        while ready := poll.poll(seconds_until(until_s) * 1000):
            if any(each == interrupts.fd for each, _ in ready):
                raise Interrupted
            data = os.read(fd, 1 << 16)
            if not data:
                return said
            said += data
    finally:
        interrupts.close()
    raise NotTold("took too long")


def _end_all_below() -> None:
    with suppress(OSError):  # there is no /proc, by which its children would be found
        linux_process.Sweep(lambda _pid, _status: None).run(timeout_s=_SWEEP_S)
