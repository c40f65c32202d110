"""Which files a call would change, and what it would do with them.

The folder of a path is opened as the caller sees it, links on the way resolved; its last name is
looked at beneath that. What isn't there, or not for the caller, is told as the caller calls it: the
kernel will refuse the call, and what was tried is told all the same.
"""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.linux.file_state import known_state_in
from sigwrap.linux.files.asked import RESOLVE_IN_ROOT, Asked, Name, asked
from sigwrap.linux.memory import Unreadable
from sigwrap.linux.paths import AT_FDCWD, SERVED, Caller, MayWait, OurView, path_of
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.file_facts import Change, FileAim, Nothing, Touched, Unseen
from sigwrap.mediate.lineage import Process
from sigwrap.tuples import NamedTuple

_RENAME_EXCHANGE = 2
_NOT_A_NAME = (b"", b".", b"..")
_LONGER_THAN_TOLD = "..."
_UNREADABLE = "cannot read its memory"
_BY_A_QUEUE = "sigwrap does not see what io_uring does"


class _Found(NamedTuple):
    path: str
    exists: bool


def look(
    notification: Notification,
    process: Process,
    syscall: str,
    ours: OurView,
    *,
    may_wait: bool = False,
) -> FileAim:
    """Raises MayWait, and Unreadable where memory is to be read by who may wait."""
    if syscall == "io_uring_setup":
        return Unseen(_BY_A_QUEUE)
    try:
        found = asked(notification, syscall, may_wait=may_wait)
    except Unreadable as unreadable:
        if isinstance(unreadable.__cause__, PermissionError):
            return Unseen(_UNREADABLE)
        return WouldFail(errno.EFAULT)
    except OSError as refusal:
        return WouldFail(refusal.errno or errno.EPERM)
    if found.changes_nothing:
        return Nothing()
    try:
        caller = Caller(notification.tid, process.pid, ours, may_wait=may_wait)
        first, *others = [_Place(caller, found, each).find() for each in found.names]
    except PermissionError:
        return Unseen(_UNREADABLE)
    except OSError as refusal:
        return WouldFail(refusal.errno or errno.EBADF)
    if not first.path.startswith("/"):
        return Nothing()  # a pipe or the like, by a link of /proc
    return _aim(found, notification[6:], first, *others)


def _aim(
    found: Asked, arguments: tuple[int, ...], first: _Found, second: _Found | None = None
) -> Touched:
    match found.syscall:
        case "truncate" | "truncate64":
            return Touched(Change.WRITE, first.path)
        case "unlink" | "unlinkat" | "rmdir":
            return Touched(Change.DELETE, first.path)
        case "rename" | "renameat" | "renameat2" if second is not None:
            swaps = found.syscall == "renameat2" and bool(arguments[4] & _RENAME_EXCHANGE)
            return Touched(Change.RENAME, first.path, second.path, is_exchange=swaps)
        case "link" | "linkat" if second is not None:
            return Touched(Change.CREATE, first.path, second.path)
        case _ if not found.opens:
            return Touched(Change.CREATE, first.path)
    flags = found.flags
    is_without_name = flags & os.O_TMPFILE == os.O_TMPFILE
    makes = bool(flags & os.O_CREAT) and (not first.exists or bool(flags & os.O_EXCL))
    if is_without_name or not makes:
        return Touched(Change.WRITE, first.path)
    writes = bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_TRUNC))
    return Touched(Change.CREATE, first.path, is_written=writes)


class _Place:
    """Of one path of a call."""

    def __init__(self, caller: Caller, found: Asked, name: Name) -> None:
        self._caller = caller
        self._folder_fd = name.folder_fd
        self._follows = found.follows
        self._path = name.path
        if found.resolve & RESOLVE_IN_ROOT:
            self._path = self._path.lstrip(b"/") or b"."

    def find(self) -> _Found:
        try:
            return self._really()
        except OSError:
            return _Found(self._as_called(), exists=False)

    def _really(self) -> _Found:
        folder, _, name = self._path.rstrip(b"/").rpartition(b"/")
        if name in _NOT_A_NAME:
            return self._whole()
        if not folder:
            folder = b"/" if self._path.startswith(b"/") else b"."
        held = self._open(folder)
        try:
            state = self._state_in(held, name)
            if state is not None and self._follows and stat.S_ISLNK(state):
                return self._whole()
            path = path_of(held) or _LONGER_THAN_TOLD
            return _Found(f"{path.rstrip('/')}/{os.fsdecode(name)}", state is not None)
        finally:
            os.close(held)

    def _open(self, path: bytes) -> int:
        if path == b".":
            return self._caller.open_folder(self._folder_fd)
        return self._caller.open(path, self._folder_fd)

    def _whole(self) -> _Found:
        if not self._path and self._folder_fd != AT_FDCWD and self._follows:
            held = self._caller.open_descriptor(self._folder_fd)  # AT_EMPTY_PATH
        else:
            held = self._caller.open(self._path, self._folder_fd)
        try:
            return _Found(path_of(held) or _LONGER_THAN_TOLD, exists=True)
        finally:
            os.close(held)

    def _state_in(self, folder: int, name: bytes) -> int | None:
        """Its mode; None: there is none."""
        if not self._caller.may_wait and not self._caller.is_local(
            self._caller.known_state(folder)
        ):
            raise MayWait(SERVED)
        try:
            return known_state_in(folder, name).mode
        except FileNotFoundError:
            return None

    def _as_called(self) -> str:
        """OSError where it begins at a descriptor that isn't open."""
        path = self._path
        if not path.startswith(b"/"):
            held = self._caller.open_folder(self._folder_fd)
            try:
                path = os.path.join(os.fsencode(path_of(held) or _LONGER_THAN_TOLD), path)
            finally:
                os.close(held)
        return os.fsdecode(os.path.normpath(path))
