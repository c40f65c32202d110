"""The edge of mediate/refused_files.py: the words of an exec, and the end of its process.

The line is written when the process is gone. So the supervisor takes its standard error at the exec
of a suspect command. It lets go of it after a while: the process may close its own, and then the
reader of the pipe must not wait for the end of the process.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sigwrap.escape import printable
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux.files.known import look
from sigwrap.linux.stderr_lines import Line
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.refused_files import Inferred, Refusals, Suspicion, payload_of
from sigwrap.mediate.wording import TO_AN_AGENT, refused_file

if TYPE_CHECKING:
    from sigwrap.run.perform import Performer
    from sigwrap.run.session import Session

_KEPT_FOR_S = 5.0
_LINES_KEPT = 64
_PROCESSES_KEPT = 1024
_SUSPICIONS_KEPT = 8  # of one process
_WRITTEN_WITHIN_S = 0.005
_STEPS_UP = 4  # from git-receive-pack to the git that runs it


class _Suspect:
    __slots__ = ("line", "suspicions")

    def __init__(self) -> None:
        self.suspicions: list[Suspicion] = []
        self.line: Line | None = None

    def let_go(self) -> None:
        if self.line is not None:
            self.line.close()
            self.line = None


class RefusedFiles:
    def __init__(self, session: Session, refusals: Refusals, performer: Performer) -> None:
        self._refusals = refusals
        self._policy = session.policy.name
        self._recorder = session.recorder
        self._loop = session.loop
        self._performer = performer
        self._suspects: dict[Process, _Suspect] = {}

    def suspects(self, argv: Sequence[str], folder: str) -> bool:
        return self._refusals.suspects(argv, folder) is not None

    def goes_on(self, process: Process, argv: Sequence[str], folder: str) -> None:
        """Its exec does. It still has the standard error that it will have."""
        self._forget(process)
        suspicion = self._refusals.suspects(argv, folder)
        if suspicion is None:
            return
        if suspicion.is_passed_on:
            process = _git_above(process) or process
        suspect = self._suspects.get(process)
        if suspect is None:
            if len(self._suspects) >= _PROCESSES_KEPT:
                return
            suspect = self._suspects[process] = _Suspect()
            if sum(each.line is not None for each in self._suspects.values()) < _LINES_KEPT:
                suspect.line = Line(process.pid, "", off_terminals=TO_AN_AGENT)
                self._loop.call_at(time.monotonic() + _KEPT_FOR_S, suspect.let_go)
        if len(suspect.suspicions) < _SUSPICIONS_KEPT:
            suspect.suspicions.append(suspicion)

    def ended(self, process: Process, status: int | None) -> None:
        """`status`: its exit status; None where a signal killed it, or it is unknown."""
        suspect = self._suspects.pop(process, None)
        if suspect is None:
            return
        lines = []
        for suspicion in suspect.suspicions if status else ():
            for found in self._refusals.inferred(suspicion, status or 0, look):
                if self._refusals.is_new(found):
                    payload = payload_of(found, suspicion, process.last_name, status or 0)
                    self._recorder.record("file_refused_likely", process.pid, payload)
                lines.append(self._line(found))
        if lines:
            self._tell(process, suspect, list(dict.fromkeys(lines)))
        suspect.let_go()

    def _line(self, found: Inferred) -> str:
        return refused_file(*self._refusals.shown(found), found.rule, self._policy)

    def _tell(self, process: Process, suspect: _Suspect, lines: list[str]) -> None:
        line, suspect.line = suspect.line, None
        if line is None:
            if process.parent is None or process.parent.has_ended:
                return
            pid = process.parent.pid
            line = Line(pid, "", off_terminals=TO_AN_AGENT, spares_screens=True)
        line.say("\n".join(map(printable, lines)))
        written = self._performer.write(line, lambda _outcome: None)
        written.acquire(timeout=_WRITTEN_WITHIN_S)  # its shell goes on, or the run is over

    def _forget(self, process: Process) -> None:
        suspect = self._suspects.pop(process, None)
        if suspect is not None:
            suspect.let_go()

    def close(self) -> None:
        for process in tuple(self._suspects):
            self._forget(process)


def _git_above(process: Process) -> Process | None:
    above = process.parent
    for _ in range(_STEPS_UP):
        if above is None or above.has_ended:
            return None
        if above.argv and above.argv[0].rpartition("/")[2] == "git":
            return above
        above = above.parent
    return None
