"""A part of a command's work in a process beside it, where there is a second processor."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any


class Beside:
    """`work` gives something that JSON can hold. It is done in a fork, which shares nothing with
    this process but what was there before."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._fd, write_fd = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._fd)
            _do(work, write_fd)
        os.close(write_fd)

    def result(self) -> Any:
        """None where it failed: then it has to be done here."""
        with open(self._fd, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(self._pid, 0)
        return json.loads(data) if status == 0 else None

    def stop(self) -> None:
        os.close(self._fd)
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def has_room() -> bool:
    return len(os.sched_getaffinity(0)) > 1


def _do(work: Callable[[], Any], write_fd: int) -> None:
    """Never comes back to what the fork has on its stack."""
    status = 1
    try:
        with open(write_fd, "wb") as pipe:
            pipe.write(json.dumps(work()).encode())
        status = 0
    finally:
        os._exit(status)
