"""Handle calls that change audited files, and infer the files that the kernel has refused.

Audited calls: a call's paths are copied out of the caller's memory, once. The folder of a path is
opened as the caller sees it, with links resolved; its last name is looked up in that folder. If a
path cannot be opened, the event has it as the caller wrote it: the kernel will refuse the call.

Refused files: the kernel does not report them. sigwrap infers them when a process ends. It then
writes a line to the standard error that it took at the exec of a suspect command. It closes that
after a while, because the process may close its own, and the reader of a pipe must not wait for the
process's end.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import time
from collections.abc import Sequence

from sigwrap import calls
from sigwrap.approve.requests import TO_AN_AGENT, refused_file
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.files.judge import (
    FileAim,
    FileFacts,
    FileMediator,
    Found,
    Refusals,
    Suspicion,
    Touched,
    Unseen,
)
from sigwrap.files.tree import as_they_lie
from sigwrap.kernel.file_state import (
    AT_EMPTY_PATH,
    AT_STATX_DONT_SYNC,
    OWNER,
    STATX_BASIC_STATS,
    ask,
    known_state_in,
    read_state,
)
from sigwrap.kernel.memory import PATH_MAX, Memory
from sigwrap.kernel.paths import AT_FDCWD, SERVED, Caller, WouldBlock, open_known, path_of
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.kernel.terminals import Line
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.request import Operation
from sigwrap.policy.judge.rules import default_of
from sigwrap.session.effects import Continue, Unrecorded, would_fail
from sigwrap.session.lineage import Process
from sigwrap.session.perform import Request
from sigwrap.session.processes import refresh_comm
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.mediation import Asking, Mediation
    from sigwrap.session.session import Session

_RESOLVE_IN_ROOT = 0x10
_AT_SYMLINK_FOLLOW = 0x400
_RENAME_EXCHANGE = 2
_CREAT = calls.O_CREAT | calls.O_WRONLY | calls.O_TRUNC
_OPENS = frozenset({"open", "openat", "openat2", "creat"})
_HOW = struct.Struct("<QQQ")  # flags, mode, resolve

# Where the folder and the path are among a call's arguments; None: the current folder.
_AT: dict[str, tuple[tuple[int | None, int], ...]] = {
    **dict.fromkeys(("open", "creat", "truncate", "truncate64"), ((None, 0),)),
    **dict.fromkeys(("unlink", "rmdir", "mkdir", "mknod"), ((None, 0),)),
    **dict.fromkeys(("openat", "openat2", "unlinkat", "mkdirat", "mknodat"), ((0, 1),)),
    **dict.fromkeys(("rename", "link"), ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
}

_NOT_A_NAME = (b"", b".", b"..")
_LONGER_THAN_TOLD = "..."
_UNREADABLE = "cannot read its memory"
_NOT_IN_TIME = "the file could not be identified in time"
_BY_A_QUEUE = "sigwrap does not see what io_uring does"

_KEPT_FOR_S = 5.0
_LINES_KEPT = 64
_PROCESSES_KEPT = 1024
_SUSPICIONS_KEPT = 8  # of one process
_WRITTEN_WITHIN_S = 0.005
_STEPS_UP = 4  # from git-receive-pack to the git that runs it
_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR)
_TRIES = 3  # a rename by another process can end a lookup in the caches
_IN_A_FOLDER = frozenset({Operation.CREATE, Operation.DELETE})


class _Name(NamedTuple):
    folder_fd: int  # the caller's
    path: bytes


_Place = tuple[str, bool]  # a real path, and whether a file is there


class _FileCall(NamedTuple):
    """What a call asks for."""

    syscall: str
    names: tuple[_Name, ...]
    flags: int = 0  # of a call that opens a file
    follows: bool = False  # a link at the end of the path

    @property
    def opens(self) -> bool:
        return self.syscall in _OPENS

    @property
    def changes_nothing(self) -> bool:
        """Return whether its flags say so. With O_PATH the kernel ignores the others."""
        return self.opens and (bool(self.flags & os.O_PATH) or not self.flags & calls.O_CHANGES)


class Files:
    """The handler of audited calls."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        policy = session.policy
        default = default_of(policy, "file", policy.default_file)
        rules = FileRules(as_they_lie(policy.file_rules, session.engine.files), default)
        self._performer = mediation.performer
        self._mediator = FileMediator(rules)

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        steps = self._mediator.mediate()
        self._performer.begin(Request(notification, process, syscall, steps, handler=self))

    def look(self, request: Request, *, may_wait: bool) -> FileAim:
        """Find which files the call would change, and how. Raises WouldBlock."""
        if request.syscall == "io_uring_setup":
            return Unseen(_BY_A_QUEUE)
        try:
            call = _read_call(request.notification, request.syscall, may_wait=may_wait)
            if call.changes_nothing:
                return Continue(Unrecorded.NO_RULE)
            caller = Caller(request.tid, request.process.pid, may_wait=may_wait)
            places = [_place(caller, each, follows=call.follows) for each in call.names]
        except OSError as refusal:
            if refusal.errno in (errno.EPERM, errno.EACCES):
                return Unseen(_UNREADABLE)
            return would_fail(refusal.errno or errno.EBADF)
        if not places[0][0].startswith("/"):
            return Continue(Unrecorded.NO_RULE)  # a pipe or the like, by a link of /proc
        return _touched(call, request.notification[6:], places)

    def facts(self, request: Request, aim: FileAim) -> FileFacts:
        refresh_comm(request.process)
        return FileFacts(request.process, request.syscall, aim)

    def stalled(self, request: Request, _why: str) -> FileFacts:
        return self.facts(request, Unseen(_NOT_IN_TIME))

    def drop(self, aim: FileAim) -> None:
        pass


def _read_call(notification: Notification, syscall: str, *, may_wait: bool) -> _FileCall:
    """Copy a call. Raises WouldBlock, and OSError as the kernel fails the call."""
    arguments: tuple[int, ...] = notification[6:]
    flags = resolve = 0
    with Memory(notification.tid, may_wait=may_wait) as memory:
        match syscall:
            case "open":
                flags = arguments[1]
            case "openat":
                flags = arguments[2]
            case "creat":
                flags = _CREAT
            case "openat2":
                if arguments[3] < _HOW.size:
                    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
                flags, _mode, resolve = _HOW.unpack(memory.block(arguments[2], _HOW.size))
        names = tuple(_name(memory, arguments, *at) for at in _AT[syscall])
    if resolve & _RESOLVE_IN_ROOT:
        names = tuple(each._replace(path=each.path.lstrip(b"/") or b".") for each in names)
    return _FileCall(syscall, names, flags, _follows(syscall, arguments, flags))


def _name(memory: Memory, arguments: tuple[int, ...], folder: int | None, path: int) -> _Name:
    text, is_cut = memory.string(arguments[path], PATH_MAX)
    if is_cut:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return _Name(AT_FDCWD if folder is None else int32(arguments[folder]), text)


def _follows(syscall: str, arguments: tuple[int, ...], flags: int) -> bool:
    if syscall in _OPENS:
        exclusively = os.O_CREAT | os.O_EXCL
        return not flags & os.O_NOFOLLOW and flags & exclusively != exclusively
    if syscall == "linkat":
        return bool(arguments[4] & (_AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
    return syscall in ("truncate", "truncate64")


def _touched(call: _FileCall, arguments: tuple[int, ...], places: Sequence[_Place]) -> Touched:
    (path, exists), to = places[0], places[-1][0]
    written, created = (Operation.WRITE, path), (Operation.CREATE, path)
    deleted = (Operation.DELETE, path)
    match call.syscall:
        case "truncate" | "truncate64":
            return Touched("write", (written,), path)
        case "unlink" | "unlinkat" | "rmdir":
            return Touched("delete", (deleted,), path)
        case "link" | "linkat":
            return Touched("create", ((Operation.CREATE, to),), path, to)
        case "rename" | "renameat" | "renameat2":
            asks = [deleted, (Operation.CREATE, to)]
            if call.syscall == "renameat2" and arguments[4] & _RENAME_EXCHANGE:
                asks += [(Operation.DELETE, to), created]
            return Touched("rename", tuple(asks), path, to)
        case _ if not call.opens:
            return Touched("create", (created,), path)
    is_without_name = call.flags & os.O_TMPFILE == os.O_TMPFILE
    makes = bool(call.flags & os.O_CREAT) and (not exists or bool(call.flags & os.O_EXCL))
    if is_without_name or not makes:
        return Touched("write", (written,), path)
    writes = call.flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC)
    return Touched("create", (created, written) if writes else (created,), path)


def _place(caller: Caller, name: _Name, *, follows: bool) -> _Place:
    """Return where a path leads, and whether there is a file."""
    try:
        return _resolved(caller, name, follows=follows)
    except OSError:
        return _as_called(caller, name), False


def _resolved(caller: Caller, name: _Name, *, follows: bool) -> _Place:
    folder, _, last = name.path.rstrip(b"/").rpartition(b"/")
    if last in _NOT_A_NAME:
        return _whole(caller, name, follows=follows)
    if folder or name.path.startswith(b"/"):
        held = caller.open(folder or b"/", name.folder_fd)
    else:
        held = caller.open_folder(name.folder_fd)
    try:
        mode = _mode_in(caller, held, last)
        if mode is not None and follows and stat.S_ISLNK(mode):
            return _whole(caller, name, follows=follows)
        path = path_of(held) or _LONGER_THAN_TOLD
        return f"{path.rstrip('/')}/{os.fsdecode(last)}", mode is not None
    finally:
        os.close(held)


def _whole(caller: Caller, name: _Name, *, follows: bool) -> _Place:
    if not name.path and name.folder_fd != AT_FDCWD and follows:
        held = caller.open_descriptor(name.folder_fd)  # AT_EMPTY_PATH
    else:
        held = caller.open(name.path, name.folder_fd)
    try:
        return path_of(held) or _LONGER_THAN_TOLD, True
    finally:
        os.close(held)


def _mode_in(caller: Caller, folder: int, name: bytes) -> int | None:
    """Return the mode of the file, None if there is no such name."""
    if not caller.may_wait and not caller.is_local(caller.known_state(folder)):
        raise WouldBlock(SERVED)
    try:
        return known_state_in(folder, name).mode
    except FileNotFoundError:
        return None


def _as_called(caller: Caller, name: _Name) -> str:
    """Return the path as the caller wrote it. Raises OSError if its folder is not open."""
    path = name.path
    if not path.startswith(b"/"):
        held = caller.open_folder(name.folder_fd)
        try:
            path = os.path.join(os.fsencode(path_of(held) or _LONGER_THAN_TOLD), path)
        finally:
            os.close(held)
    return os.fsdecode(os.path.normpath(path))


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
        self.forget(process)
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

    def forget(self, process: Process) -> None:
        suspect = self._suspects.pop(process, None)
        if suspect is not None:
            suspect.let_go()

    def close(self) -> None:
        for process in tuple(self._suspects):
            self.forget(process)


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
