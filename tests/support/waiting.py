"""Everything is awaited by its event: a line, a pidfd, the end of a pipe. Never by time."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigwrap.kernel import procfs

PATIENCE_S = float(os.environ.get("SIGWRAP_TEST_PATIENCE_S", "30"))
"""How long a loaded machine may take for what should be at once."""


_PF_EXITING = 4  # linux/sched.h


class Late(AssertionError):
    """What a test waited for did not come."""


@dataclass(slots=True)
class Watched:
    """A process as of now: its end can be awaited, and no other is taken for it."""

    pid: int
    pidfd: int
    start_time: int
    name: str

    @property
    def remains(self) -> bool:
        """Alive, or a zombie."""
        found = procfs.stat(self.pid)
        return found is not None and found.start_time == self.start_time

    @property
    def is_ending(self) -> bool:
        """Gone, or killed, however long the machine takes over it."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{self.pid}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True
        pending = re.findall(r"^(?:Sig|Shd)Pnd:\t(\w+)$", status, re.MULTILINE)
        killed = any(int(mask, 16) >> (signal.SIGKILL - 1) & 1 for mask in pending)
        return killed or bool(int(stat[6]) & _PF_EXITING) or not self.remains


class Watch:
    """Processes whose end is awaited together."""

    def __init__(self, pids: Iterable[int]) -> None:
        self.processes: list[Watched] = []
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                pidfd = os.pidfd_open(pid)
                found = procfs.stat(pid)
                if found is None:
                    os.close(pidfd)
                    continue
                name = procfs.command_line(pid) or found.comm
                self.processes.append(Watched(pid, pidfd, found.start_time, name))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        for process in self.processes:
            os.close(process.pidfd)

    def await_ends(self, within_s: float = PATIENCE_S) -> None:
        started = time.monotonic()
        for process in self.processes:
            left = started + within_s - time.monotonic()
            poll = select.poll()
            poll.register(process.pidfd, select.POLLIN)
            if not poll.poll(max(0.0, left) * 1000):
                raise Late(f"still there after {within_s} s: {process.pid} {process.name}")

    @property
    def unharmed(self) -> list[Watched]:
        return [process for process in self.processes if not process.is_ending]

    @property
    def zombies(self) -> list[Watched]:
        return [process for process in self.processes if process.remains]


def await_end(pid: int) -> None:
    with Watch([pid]) as watch:
        watch.await_ends()


class Reader:
    """Reads a descriptor until something has been said."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.seen = b""
        self._taken = 0
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)

    def line(self, within_s: float = PATIENCE_S) -> bytes:
        return self.until(rb"[^\n]*\n", within_s).strip()

    def until(self, pattern: bytes, within_s: float = PATIENCE_S) -> bytes:
        """The first match behind the one before."""
        return self._await(pattern, within_s).group()

    def through(self, pattern: bytes, within_s: float = PATIENCE_S) -> bytes:
        """That match with all before it that no match has had."""
        start = self._taken
        end = self._await(pattern, within_s).end()
        return self.seen[start:end]

    def _await(self, pattern: bytes, within_s: float) -> re.Match[bytes]:
        deadline = time.monotonic() + within_s
        while True:
            match = re.compile(pattern).search(self.seen, self._taken)
            if match:
                self._taken = match.end()
                return match
            if not self._more(deadline):
                rest = self.seen[self._taken :]
                raise Late(f"{pattern!r} was not said within {within_s} s, but {rest!r}")

    def rest(self, within_s: float = PATIENCE_S) -> bytes:
        """Everything up to the end, from the last match on."""
        deadline = time.monotonic() + within_s
        while self._more(deadline):
            pass
        if time.monotonic() >= deadline:
            raise Late(f"no end within {within_s} s, after {self.seen[-500:]!r}")
        rest, self._taken = self.seen[self._taken :], len(self.seen)
        return rest

    def _more(self, deadline: float) -> bool:
        if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:  # EIO: the last one on a terminal is gone
            data = b""
        self.seen += data
        return bool(data)


def reader(stream: Any) -> Reader:
    return Reader(stream.fileno())


def await_state(pid: int, states: str, within_s: float = PATIENCE_S) -> None:
    """A stop tells only the parent; everybody else has to look."""
    await_that(lambda: (s := procfs.stat(pid)) is not None and s.state in states, within_s)


def await_that(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """For what announces itself to nobody. Yields the processor between looks."""
    deadline = time.monotonic() + within_s
    pause = select.poll()
    while not holds():
        if time.monotonic() > deadline:
            raise Late(f"did not become true within {within_s} s")
        pause.poll(2)


class Pipe:
    """Both ends are ours until they are let go."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self._open = {self.reading, self.writing}

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *exc: object) -> None:
        for fd in tuple(self._open):
            self._close(fd)

    def let_go(self) -> None:
        """Of the end to write to: somebody else has it now."""
        self._close(self.writing)

    def rest(self) -> bytes:
        return Reader(self.reading).rest()

    def _close(self, fd: int) -> None:
        self._open.remove(fd)
        os.close(fd)
