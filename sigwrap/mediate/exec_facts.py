"""What an exec is decided by."""

from __future__ import annotations

import errno

from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.limits import Crowd
from sigwrap.policy.judge.request import Program
from sigwrap.tuples import NamedTuple

_NOT_DUMPABLE = "sigwrap may not read the caller: it, or its program file, is not readable"
_NOWHERE = "its arguments point to unmapped memory"


class ExecFacts(NamedTuple):
    process: Process
    syscall: str
    path: str  # as the caller wrote it
    cwd: str
    truncated: bool  # its arguments were longer than what was read
    programs: tuple[Program, ...]  # the file, its interpreters, and what wrappers are to run
    here: tuple[Program, ...]  # those of them that this very exec would run
    readable: bool  # what would be loaded may be read, so it can be verified
    crowd: Crowd
    stub_rule: str | None  # of a stub's child at the exec that was decided for its stub
    scripts: tuple[str, ...] = ()  # the file and the interpreters that are scripts, as called
    script_wraps: Program | None = None  # what their interpreter is to exec, and no more


class Unseen(NamedTuple):
    """What it asks for is not known, or not what that would run."""

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
    """The facts of an exec that could not be read in time."""
    return Unseen(process, syscall, reason, errno.EACCES, "builtin:stalled")
