"""Infers files that the kernel has refused, which it does not report.

sigwrap infers them when a process ends. It then writes a line to the standard error that it took at
the exec of a suspect command. It closes that after a while, because the process may close its own,
and the reader of a pipe must not wait for the process's end.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Sequence

from sigwrap.approve.requests import TO_AN_AGENT, refused_file
from sigwrap.bare import TYPE_CHECKING
from sigwrap.files.judge import Found, Refusals, Suspicion
from sigwrap.kernel.file_state import (
    AT_EMPTY_PATH,
    AT_STATX_DONT_SYNC,
    OWNER,
    STATX_BASIC_STATS,
    ask,
    read_state,
)
from sigwrap.kernel.paths import open_known, path_of
from sigwrap.kernel.terminals import Line
from sigwrap.policy.judge.request import Operation
from sigwrap.session.lineage import Process
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.mediation import Asking
    from sigwrap.session.session import Session

_KEPT_FOR_S = 5.0
_LINES_KEPT = 64
_PROCESSES_KEPT = 1024
_SUSPICIONS_KEPT = 8  # of one process
_WRITTEN_WITHIN_S = 0.005
_STEPS_UP = 4  # from git-receive-pack to the git that runs it
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR)
_TRIES = 3  # a rename by another process can end a lookup in the caches
_IN_A_FOLDER = frozenset({Operation.CREATE, Operation.DELETE})


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
    def __init__(self, session: Session, refusals: Refusals, asking: Asking) -> None:
        self._refusals = refusals
        self._policy = session.policy.name
        self._recorder = session.recorder
        self._loop = session.loop
        self._asking = asking
        self._suspects: dict[Process, _Suspect] = {}

    def suspects(self, argv: Sequence[str], folder: str) -> bool:
        return self._refusals.suspects(argv, folder) is not None

    def note_exec(self, process: Process, argv: Sequence[str], folder: str) -> None:
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
            for found, is_new in self._refusals.inferred(suspicion, status or 0, known_file):
                if is_new:
                    payload = {
                        "operation": found.operation.value,
                        "path": found.path,
                        "rule_name": found.rule,
                        "comm": process.last_name,
                        "command": suspicion.command,
                        "exit_code": status,
                    }
                    self._recorder.record("file_refused_likely", process.pid, payload)
                lines.append(refused_file(*self._refusals.shown(found), found.rule, self._policy))
        if lines:
            self._tell(process, suspect, list(dict.fromkeys(lines)))
        suspect.let_go()

    def _tell(self, process: Process, suspect: _Suspect, lines: list[str]) -> None:
        line, suspect.line = suspect.line, None
        if line is None:
            if process.parent is None or process.parent.has_ended:
                return
            pid = process.parent.pid
            line = Line(pid, "", off_terminals=TO_AN_AGENT, spares_screens=True)
        line.say("\n".join(map(printable, lines)))
        written = self._asking.write(line, lambda _outcome: None)
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


def known_file(path: str) -> Found | None:
    """Return what is at a path, as far as the kernel's caches know; None if nothing is there.

    No file system is asked, so nothing blocks. A process that has just tried the path has put it
    into the caches. OSError where they do not know.
    """
    for left in reversed(range(_TRIES)):
        try:
            fd = open_known(path)
            break
        except OSError as refusal:
            if refusal.errno in _NOTHING_THERE:
                return None
            if refusal.errno != errno.EAGAIN or not left:
                raise
    try:
        found = ask(fd, b"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS)
        mode = read_state(found).mode
        uid, gid = OWNER.unpack_from(found)
        return Found(path_of(fd), stat.S_ISDIR(mode), frozenset(_permitted(mode, uid, gid)))
    finally:
        os.close(fd)


def _permitted(mode: int, uid: int, gid: int) -> set[Operation]:
    """What the mode permits to this user, and so to the process tree. It ignores access lists."""
    if os.geteuid() == 0:
        bits = 0o7
    elif uid == os.geteuid():
        bits = mode >> 6
    elif gid in (os.getegid(), *os.getgroups()):
        bits = mode >> 3
    else:
        bits = mode
    may = {Operation.READ} if bits & 0o4 else set()
    if bits & 0o2:
        may |= _IN_A_FOLDER | {Operation.WRITE}
    return may
