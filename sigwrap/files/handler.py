"""Gather facts for files/judge.py, infer refused files, and make folders that rules want.

The kernel reports no refused file. So sigwrap infers it when a process ends. It then writes a line
to the standard error that it took at the exec of a suspect command. It closes that after a while,
because the process may close its own, and the reader of a pipe must not wait for the process's end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from sigwrap.approve.questions import TO_AN_AGENT, refused_file
from sigwrap.bare import TYPE_CHECKING
from sigwrap.files.call import known_file, look
from sigwrap.files.judge import (
    FileAim,
    FileFacts,
    FileMediator,
    Inferred,
    Refusals,
    Suspicion,
    Unseen,
    payload_of,
)
from sigwrap.files.tree import as_they_lie
from sigwrap.kernel.paths import our_view
from sigwrap.kernel.seccomp import Notification
from sigwrap.kernel.terminals import Line
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import BENEATH, FileRules
from sigwrap.policy.judge.globs import is_glob
from sigwrap.policy.judge.request import Operation
from sigwrap.policy.judge.rules import default_of
from sigwrap.session.lineage import Process
from sigwrap.session.perform import Performer, Request
from sigwrap.session.processes import refresh_comm
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_NOT_IN_TIME = "the file could not be identified in time"
_KEPT_FOR_S = 5.0
_LINES_KEPT = 64
_PROCESSES_KEPT = 1024
_SUSPICIONS_KEPT = 8  # of one process
_WRITTEN_WITHIN_S = 0.005
_STEPS_UP = 4  # from git-receive-pack to the git that runs it

_FOR_ITS_OWNER = 0o700


class Files:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        policy = session.policy
        default = default_of(policy, "file", policy.default_file)
        rules = FileRules(as_they_lie(policy.file_rules, session.engine.files), default)
        self._performer = mediation.performer
        self._mediator = FileMediator(rules)
        self._view = our_view()

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        steps = self._mediator.mediate()
        self._performer.begin(Request(notification, process, syscall, steps, family=self))

    def look(self, request: Request, *, may_wait: bool) -> FileAim:
        return look(
            request.notification, request.process, request.syscall, self._view, may_wait=may_wait
        )

    def facts(self, request: Request, aim: FileAim) -> FileFacts:
        refresh_comm(request.process)
        return FileFacts(request.process, request.syscall, aim)

    def stalled(self, request: Request, _why: str) -> FileFacts:
        return self.facts(request, Unseen(_NOT_IN_TIME))

    def drop(self, aim: FileAim) -> None:
        pass


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
        """Note a suspect exec. The process has its final standard error by now."""
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
        """Report what `status` suggests; None if a signal killed the process, or if unknown."""
        suspect = self._suspects.pop(process, None)
        if suspect is None:
            return
        lines = []
        for suspicion in suspect.suspicions if status else ():
            for found in self._refusals.inferred(suspicion, status or 0, known_file):
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
        written.acquire(timeout=_WRITTEN_WITHIN_S)  # then the shell goes on, or the run is over

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


def make_missing(engine: Engine) -> list[str]:
    """Make the missing folders of rules with `make_missing`, such as caches, which programs need.
    Only below a folder of this user, and only where the command cannot make them. Return them, each
    after its parent."""
    made: list[str] = []
    for rule in engine.policy.file_rules:
        for path in rule.paths if rule.make_missing else ():
            folder = path.removesuffix(f"/{BENEATH}")
            if not is_glob(folder) and not os.path.lexists(folder):
                made += _make(folder, engine.files)
    return made


def remove_unused(made: list[str]) -> None:
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # it was used, or was removed


def _make(folder: str, files: FileRules) -> Iterator[str]:
    missing: list[str] = []
    if not folder.startswith("/"):
        return
    try:
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        if (
            folder == "/"
            or files.holds_for_all(Operation.CREATE, folder)
            or os.stat(folder).st_uid != os.geteuid()
        ):
            return
        for each in reversed(missing):
            os.mkdir(each, _FOR_ITS_OWNER)
            yield each
    except OSError:
        return  # the command gets the error if it needs the folder
