"""Check a long log in a child process, while this one works on the events that it has checked.

The child passes events through a pipe, many at once, and at the end its verification. A child that
ends before that has checked nothing.
"""

from __future__ import annotations

import marshal
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import IO, Any

from sigwrap.errors import InternalError, SigwrapError, StoreError
from sigwrap.events import Event
from sigwrap.log.reader import Session
from sigwrap.report.check.verify import Outcome, Verification, verify_session

LONG_BYTES = 4 << 20  # to read less takes a tenth of a second
_LENGTH_BYTES = 8
_as_event = partial(tuple.__new__, Event)


def verify_long_session(
    session: Session,
    key: bytes | None,
    expected_head: str,
    and_also: Callable[[Event], object],
    *,
    meanwhile: Callable[[int], object],
    exact_json: bool,
) -> Verification:
    """Do what verify_session does, in a child process if the log is long."""
    check = partial(verify_session, session, key, expected_head, exact_json=exact_json)
    child = None
    is_worth_it = session.size > LONG_BYTES and len(os.sched_getaffinity(0)) > 1
    # A child's traceback would be lost; if SIGCHLD is ignored, the kernel gives its pid away.
    must_not_be = (
        os.environ.get("SIGWRAP_DEBUG") or signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN
    )
    if is_worth_it and not must_not_be:
        child = _start(check)
    if child is None:
        return check(and_also, meanwhile=meanwhile)
    pid, pipe = child
    try:
        for fields, events, found, failure in _received(pipe):
            for each in zip(*[iter(fields)] * len(Event._fields), strict=True):
                and_also(_as_event(each))
            if failure:
                raise StoreError(*failure)
            if found:
                return Verification(**found | {"outcome": Outcome(found["outcome"])})
            meanwhile(events)
    finally:
        pipe.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    ended = "the process that checks it ended too early"
    raise StoreError(f"can't read {session.path}: {ended}", "was it killed, or is memory short?")


def _start(check: Callable[..., Verification]) -> tuple[int, IO[bytes]] | None:
    """Return the pid of a child that checks, and the pipe from it; None if it can't start."""
    reading_fd, writing_fd = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading_fd)
        os.close(writing_fd)
        return None
    if pid:
        os.close(writing_fd)
        return pid, open(reading_fd, "rb")
    try:
        os.close(reading_fd)
        with open(writing_fd, "wb") as pipe:
            _send(check, pipe)
    finally:
        os._exit(0)


def _send(check: Callable[..., Verification], pipe: IO[bytes]) -> None:
    fields: list[Any] = []  # of events, one after the other

    def send(events: int, found: Any = None, failure: Any = None) -> None:
        message = marshal.dumps((fields, events, found, failure))
        pipe.write(len(message).to_bytes(_LENGTH_BYTES) + message)
        pipe.flush()
        fields.clear()

    try:
        checked = check(fields.extend, meanwhile=send)
    except (BrokenPipeError, MemoryError):
        return
    except OSError as failure:
        send(0, failure=(f"a system call failed: {failure}", ""))
    except Exception as error:
        known = error if isinstance(error, SigwrapError) else InternalError.of(error)
        send(0, failure=(known.message, known.hint))
    else:
        send(checked.events, asdict(checked) | {"outcome": checked.outcome.value})


def _received(pipe: IO[bytes]) -> Iterator[Any]:
    while length := int.from_bytes(pipe.read(_LENGTH_BYTES)):
        message = pipe.read(length)
        if len(message) < length:
            return
        yield marshal.loads(message)
