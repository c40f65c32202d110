"""Gather the facts that an exec is judged by: what the caller asks for, and what that would run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence

from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.exec.asked import Asked, Environment, ExecRefused
from sigwrap.exec.commands import DEFAULT_PATH, Ours
from sigwrap.exec.executable import Executable
from sigwrap.exec.facts import ExecFacts, Unseen, not_dumpable, pointing_nowhere
from sigwrap.exec.tracing import tracer_of
from sigwrap.exec.verify import Tracee
from sigwrap.kernel import proc_files
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.paths import Caller, MayWait, path_of
from sigwrap.kernel.restage import Variables
from sigwrap.kernel.seccomp import Notification
from sigwrap.policy.judge.match import UNTOLD_BELOW
from sigwrap.record.recording import Recording
from sigwrap.record.recordings import Expected
from sigwrap.session.effects import (
    ReadContent,
    ReadEnvironment,
    ReadLoaded,
    ReadWhereabouts,
    Whereabouts,
)
from sigwrap.session.lineage import Process, WouldFail
from sigwrap.session.perform import Handler, Request

if TYPE_CHECKING:
    from sigwrap.exec.handler import Execs

_OUR_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_MOST_UNTOLD = 256


class Seen(NamedTuple):
    asked: Asked
    executable: Executable  # holds descriptors, and has to be closed


def look(
    notification: Notification,
    process: Process,
    syscall: str,
    ours: Ours,
    *,
    may_wait: bool = False,
) -> Seen | Unseen | WouldFail:
    """Look at an exec. Raises MayWait, unless it may wait, in a worker."""
    try:
        tid = notification.tid
        with Memory(tid, may_wait=may_wait) as memory:
            asked = Asked(notification, syscall, memory)
            found = resolve(tid, process.pid, asked, memory, ours, may_wait=may_wait)
            return Seen(asked, found)
    except Unreadable as unreadable:
        if isinstance(unreadable.__cause__, PermissionError):
            return not_dumpable(process, syscall)
        return pointing_nowhere(process, syscall)
    except (ExecRefused, OSError) as refusal:
        error = refusal.errno or errno.EACCES
        if error in _OUR_SHORTAGE:
            return Unseen(process, syscall, f"sigwrap: {os.strerror(error)}", errno.EACCES)
        return WouldFail(error)


def cwd_of(tid: int) -> str:
    try:
        return proc_files.link(f"/proc/{tid}/cwd")
    except OSError:
        return ""


def folder_of(tid: int, pid: int, ours: Ours) -> str:
    """Return the working directory; "" if it can't be read without waiting.

    The kernel returns no path longer than a page. Then it is the path of a directory above, with
    UNTOLD_BELOW for each one below that.
    """
    if told := cwd_of(tid):
        return told
    try:
        caller = Caller(tid, pid, ours.view)
        folder = caller.open_folder()
    except OSError:
        return ""
    try:
        for untold in range(_MOST_UNTOLD):
            if told := path_of(folder):
                return told + UNTOLD_BELOW * untold
            above = caller.open_part(folder, b"..")
            os.close(folder)
            folder = above
    except (OSError, MayWait):
        pass
    finally:
        os.close(folder)
    return ""


def resolve(
    tid: int, pid: int, asked: Asked, memory: Memory, ours: Ours, *, may_wait: bool
) -> Executable:
    """Find what an exec would run. Raises Unreadable if the caller's memory is, and MayWait."""

    def search_path() -> bytes:
        path = asked.variable(tid, b"PATH", may_wait=may_wait)
        return DEFAULT_PATH if path is None else path

    def variables_asked() -> list[bytes] | None:
        try:
            return asked.environment(tid, may_wait=may_wait)
        except MayWait:
            return None  # a rule asks for them too late for a worker

    variables = Environment(variables_asked, ours.variables)
    if may_wait:
        variables.read()  # later a rule asks for them in the loop, which must not wait
    return Executable(
        _caller(tid, pid, ours, may_wait=may_wait),
        asked.path,
        lambda: asked.read_argv(memory),
        folder_fd=asked.folder_fd,
        flags=asked.flags,
        search_path=search_path,
        environment=variables,
        ours=ours,
    )


def resolve_replacement(
    tid: int, pid: int, command: str, argv: list[bytes], ours: Ours, *, may_wait: bool
) -> tuple[bytes, Executable]:
    """Find a replacement along sigwrap's own PATH, and return its path as well.

    The caller can change its own PATH, and its mounts, which the call uses as well.
    """
    caller = _caller(tid, pid, ours, may_wait=may_wait)
    word = os.fsencode(command)
    folders = [b""] if b"/" in word else os.environb.get(b"PATH", DEFAULT_PATH).split(b":")
    failure: OSError | ExecRefused = ExecRefused(errno.ENOENT)
    for folder in folders:
        path = os.path.join(folder, word)
        try:
            return path, Executable(caller, path, lambda: (argv, False), ours=ours)
        except (OSError, ExecRefused) as missing:
            failure = missing
    raise failure


def _caller(tid: int, pid: int, ours: Ours, *, may_wait: bool) -> Caller:
    try:
        return Caller(tid, pid, ours.view, may_wait=may_wait)
    except OSError as refusal:
        raise Unreadable from refusal


# Read what an approval request about an exec needs besides its facts.


def readings() -> dict[type, Handler]:
    return {
        ReadContent: _content,
        ReadEnvironment: _environment,
        ReadLoaded: _loaded,
        ReadWhereabouts: _whereabouts,
    }


def _content(request: Request, effect: ReadContent) -> tuple[str, ...]:
    return _executable(request).read_content(effect.besides)


def _environment(request: Request, effect: ReadEnvironment) -> str:
    environment = _executable(request).environment
    return "" if environment is None else environment.digest(stays=effect.stays)


def _loaded(request: Request, effect: ReadLoaded) -> tuple[str, ...] | None:
    environment = _executable(request).environment
    return None if environment is None else environment.loaded(effect.names)


def _whereabouts(request: Request, effect: ReadWhereabouts) -> Whereabouts:
    del effect
    is_traced = tracer_of(request.tid) not in (0, os.getpid())
    return _executable(request).where.read()._replace(traced=is_traced)


def _executable(request: Request) -> Executable:
    executable: Executable | None = request.holdings.executable
    assert executable is not None, "judged before"
    return executable


# The state and resources of one exec until it is over.

Looked = Seen | Unseen | WouldFail  # the result of a look
Found = tuple[bytes, Executable]  # the path of a replacement, and its executable


class ExecHoldings:
    """The state and resources of one exec."""

    __slots__ = (
        "asked",
        "at_exec_stop",
        "descriptor",
        "execs",
        "executable",
        "expected",
        "facts",
        "found",
        "holds_secret",
        "is_continued",
        "let_tracer_go",
        "name",
        "path",
        "recording",
        "replacement",
        "replacement_argv",
        "sets_environment",
        "tracee",
        "variables",
    )

    def __init__(self, execs: Execs) -> None:
        self.execs = execs
        self.asked: Asked | None = None
        self.executable: Executable | None = None
        self.facts: ExecFacts | None = None  # which the mediator judges
        self.tracee: Tracee | None = None
        self.let_tracer_go: Callable[[], None] | None = None  # if sigwrap stopped the caller's
        self.is_continued = False
        # For a replacement
        self.replacement: Executable | None = None
        self.found: dict[str, Found | None] = {}  # by a worker, for each command
        self.name = ""
        self.path = b""
        self.descriptor = -1  # of the waiting program, in the caller's table
        self.replacement_argv: Sequence[bytes] = ()
        self.sets_environment = False  # the whole of it, at the exec stop
        self.variables: Variables = ()
        self.holds_secret = False
        self.at_exec_stop: Callable[[int], str] | None = None
        # For a stub's command
        self.expected: Expected | None = None
        self.recording: Recording | None = None

    def free_tracer(self) -> None:
        """Let the caller's tracer go on, if sigwrap stopped it."""
        if self.let_tracer_go is not None:
            let_go, self.let_tracer_go = self.let_tracer_go, None
            let_go()

    def failed(self) -> None:
        if self.tracee is not None:
            self.execs.tracer.refused(self.tracee)

    def close(self) -> None:
        found = (each[1] for each in self.found.values() if each is not None)
        for each in (self.executable, self.replacement, *found):
            if each is not None:
                each.close()
        self.free_tracer()
        # A tracee and its request refer to each other, and both to this object.
        self.asked = self.facts = self.executable = self.replacement = None
        self.replacement_argv = ()
        if self.recording is not None and not self.is_continued:
            self.recording.drop("the command was refused")
        self.execs.turns.ended(self)
