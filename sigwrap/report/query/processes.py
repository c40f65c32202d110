"""A process from its first event to its last.

Pids are used again: an end closes a process, and what comes under its pid then is another. Those
whose end was never seen are given out at the end of the log, or where there are too many of them,
the one that was silent for longest first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sigwrap.escape import shell_words
from sigwrap.events import EXEC_TYPES, Event, texts
from sigwrap.outcomes import DENIED, REDIRECTED, how_many, outcome

PROCESS_TYPES = EXEC_TYPES | {"exec_failed", "process_exited"}

_OPEN_LIMIT = 65_536


@dataclass(slots=True, kw_only=True)
class Process:
    session: str
    pid: int
    started_ns: int
    ppid: object = None
    depth: object = None
    comm: object = None
    command: str | None = None
    path: object = None
    execs: int = 0
    denied: int = 0
    ended_ns: int | None = None
    exit_code: object = None
    signal: object = None
    signal_name: object = None
    before: tuple[str | None, object] = (None, None)  # its last exec, for one that fails


class ProcessesFold:
    def __init__(self, session: str) -> None:
        self._session = session
        self._open: dict[int, Process] = {}

    def add(self, event: Event) -> Iterator[Process]:
        """Those that are over by it."""
        payload = event.payload
        process = self._open.pop(event.pid, None) or Process(
            session=self._session, pid=event.pid, started_ns=event.time_ns
        )
        for name in ("ppid", "depth", "comm"):
            if payload.get(name) is not None:
                setattr(process, name, payload[name])
        if event.type == "process_exited":
            process.ended_ns = event.time_ns
            process.exit_code = payload.get("exit_code")
            process.signal = payload.get("signal")
            process.signal_name = payload.get("signal_name")
            yield process
            return
        if event.type == "exec_failed":
            process.command, process.path = process.before
            process.execs = max(process.execs - 1, 0)
        else:
            self._execute(process, event)
        self._open[event.pid] = process
        if len(self._open) > _OPEN_LIMIT:
            yield self._open.pop(next(iter(self._open)))

    def rest(self) -> Iterator[Process]:
        yield from self._open.values()

    def _execute(self, process: Process, event: Event) -> None:
        payload, became = event.payload, outcome(event)
        if became == DENIED:
            process.denied += how_many(event.type, payload)
            return
        process.execs += 1
        process.before = process.command, process.path
        replaced = became == REDIRECTED
        words = payload.get("replacement_argv" if replaced else "argv")
        process.command = shell_words(texts(words))
        process.path = payload.get("replacement" if replaced else "path")
