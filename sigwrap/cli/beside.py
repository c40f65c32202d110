"""A part of a command's work in a process beside it, where there is a second processor."""

from __future__ import annotations

import marshal
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from sigwrap.linux.pipes import widen

_LENGTH_BYTES = 8
_PIPE_BYTES = 1 << 20  # as much as anybody may have: neither often waits for the other

Tell = Callable[[Any], None]


class Beside:
    """`work` is done in a fork, which shares nothing with this process but what was there before,
    and tells what marshal can hold: that reads in half the time of JSON, and is from ourselves."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        self._fd, write_fd = os.pipe()
        widen(write_fd, _PIPE_BYTES)
        try:
            self._pid = os.fork()
        except OSError:
            os.close(self._fd)
            os.close(write_fd)
            raise
        if self._pid == 0:
            os.close(self._fd)
            _do(work, write_fd)
        os.close(write_fd)

    def told(self) -> Iterator[Any]:
        """As it comes; it ends early where the work fails."""
        with open(self._fd, "rb", closefd=False) as pipe:
            while len(head := pipe.read(_LENGTH_BYTES)) == _LENGTH_BYTES:
                length = int.from_bytes(head, "little")
                if len(data := pipe.read(length)) < length:
                    return
                yield marshal.loads(data)

    def stop(self) -> None:
        """Also where it has ended."""
        os.close(self._fd)
        try:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # whoever ignores SIGCHLD has no children to wait for


def has_room() -> bool:
    return len(os.sched_getaffinity(0)) > 1


def _do(work: Callable[[Tell], None], write_fd: int) -> None:
    """Never comes back to what the fork has on its stack."""
    status = 1
    try:
        with open(write_fd, "wb") as pipe:

            def tell(what: Any) -> None:
                data = marshal.dumps(what)
                pipe.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
                pipe.write(data)

            work(tell)
        status = 0
    finally:
        os._exit(status)
