"""The facts for the decision about an exec."""

from __future__ import annotations

import errno

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.request import Program
from sigwrap.policy.judge.rules import Crowd
from sigwrap.session.lineage import Process

_NOT_DUMPABLE = "sigwrap may not read the caller: it, or its program file, is not readable"
_NOWHERE = "its arguments point to unmapped memory"


class ExecFacts(NamedTuple):
    process: Process
    syscall: str
    path: str  # as the caller wrote it
    cwd: str
    truncated: bool  # its arguments are longer than sigwrap reads
    programs: tuple[Program, ...]  # the file, its interpreters, and wrapped commands
    here: tuple[Program, ...]  # programs that this exec runs itself
    readable: bool  # sigwrap may read the files, so it can verify them
    crowd: Crowd
    stub_rule: str | None  # the rule that allowed a stub's command
    scripts: tuple[str, ...] = ()  # the file and interpreters that are scripts, as called
    script_wraps: Program | None = None  # the only command that their interpreter executes


class Unseen(NamedTuple):
    """An exec whose arguments or files sigwrap cannot read."""

    process: Process
    syscall: str
    reason: str
    errno: int
    rule: str = "builtin:unreadable"


def not_dumpable(process: Process, syscall: str) -> Unseen:
    return Unseen(process, syscall, _NOT_DUMPABLE, errno.EACCES)


def pointing_nowhere(process: Process, syscall: str) -> Unseen:
    return Unseen(process, syscall, _NOWHERE, errno.EFAULT)


def stalled(process: Process, syscall: str, reason: str) -> Unseen:
    """Return the facts of an exec that could block the supervisor."""
    return Unseen(process, syscall, reason, errno.EACCES, "builtin:stalled")
