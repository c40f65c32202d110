"""Which file a path means to another process.

Its root, working folder and descriptors are its own, and so is /proc/self. The common case, a
caller that shares our root mount, is one openat2(2) that refuses to follow the links of /proc by
which a name means something else to each process. Everything else is walked part by part, from
the caller's root and as the caller.

Whatever is found is held by an O_PATH descriptor: its inode can't be given to another file.

The loop never waits here. First the kernel is asked for what its caches know (RESOLVE_CACHED, Linux
5.12), which reaches no file system. Where they don't have it, the path is walked part by part, and
only local file systems are asked. What can only be known by asking somebody who may take his time
raises MayWait, and is to be done aside, by a `Caller` that may wait.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from sigwrap.errors import KernelError
from sigwrap.linux import proc_files, procfs
from sigwrap.linux.file_state import (
    AT_EMPTY_PATH,
    AT_STATX_DONT_SYNC,
    OWNER,
    STATX_BASIC_STATS,
    Inode,
    Place,
    State,
    ask,
    inode_of,
    known_state_in,
    last_failure,
    place_of,
    told_state,
)
from sigwrap.linux.libc import libc, syscall
from sigwrap.linux.mounts import Mounts, lies_on_a_disk, magic_of
from sigwrap.machine import NUMBERS
from sigwrap.tuples import NamedTuple

AT_FDCWD = -100

_SYS_OPENAT2 = NUMBERS["openat2"]
_SYS_FACCESSAT2 = NUMBERS["faccessat2"]
_RESOLVE_NO_XDEV = 0x01
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_CACHED = 0x20
_AT_EACCESS_EMPTY = 0x200 | AT_EMPTY_PATH
_PATH_FLAGS = os.O_PATH | os.O_CLOEXEC


def _how(flags: int, resolve: int) -> bytes:
    return struct.pack("<QQQ", flags, 0, _RESOLVE_NO_MAGICLINKS | resolve)


class _Hows(NamedTuple):
    waiting: bytes
    cached: bytes
    on_one_mount: bytes


_FOLLOWED = _Hows(
    _how(_PATH_FLAGS, 0),
    _how(_PATH_FLAGS, _RESOLVE_CACHED),
    _how(_PATH_FLAGS, _RESOLVE_NO_XDEV),
)
_UNFOLLOWED = _Hows(
    _how(_PATH_FLAGS | os.O_NOFOLLOW, 0),
    _how(_PATH_FLAGS | os.O_NOFOLLOW, _RESOLVE_CACHED),
    _how(_PATH_FLAGS | os.O_NOFOLLOW, _RESOLVE_NO_XDEV),
)
_NOT_CACHED = frozenset({errno.EAGAIN, errno.EINVAL})  # EINVAL: this kernel can't be asked so
_TO_BE_WALKED = _NOT_CACHED | {errno.ELOOP}

OTHER_MOUNT = "another file system is mounted on it"
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_WE_MAY_SEARCH_ALL = os.geteuid() == 0
_SEARCHED_BY_ALL = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_MAY_SEARCH_ALL = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

_PROC_SUPER_MAGIC = 0x9FA0
_MAX_LINKS = 40
_MAX_PARTS = 4096

_openat2 = libc["syscall"]
_openat2.argtypes = (
    ctypes.c_long,
    ctypes.c_long,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_size_t,
)
_openat2.restype = ctypes.c_long


class MayWait(Exception):
    """How long that takes is for somebody else to say. The message says who."""


class OurView(NamedTuple):
    """Where the supervisor sees files from."""

    root: Place
    mounts: Mounts


def our_view() -> OurView:
    return OurView(place_of(b"/"), Mounts())


def path_of(fd: int) -> str:
    return told_link(f"/proc/self/fd/{fd}")


def told_link(path: str) -> str:
    """Where a link of procfs leads. Empty where that is longer than the kernel tells (PATH_MAX). A
    file can lie there all the same, and is reached from a folder nearby."""
    try:
        return proc_files.link(path)
    except OSError as failure:
        if failure.errno != errno.ENAMETOOLONG:
            raise
        return ""


def demand_openat2() -> None:
    """Before Linux 5.6, and in a container that is older than it, no path could be followed: each
    exec would be refused with an errno that says nothing."""
    how = _FOLLOWED.waiting
    refused = "the kernel refused openat2(2)"
    os.close(syscall(refused, _SYS_OPENAT2, AT_FDCWD, b"/", how, len(how)))


def has_openat2() -> bool:
    try:
        demand_openat2()
    except KernelError:
        return False
    return True


def refuse_magic_links(path: str) -> None:
    """OSError where a link of /proc, which leads each process elsewhere, is on the way to what is
    there."""
    how = _how(os.O_PATH | os.O_CLOEXEC, 0)
    found = _openat2(_SYS_OPENAT2, AT_FDCWD, os.fsencode(path), how, len(how))
    if found >= 0:
        os.close(found)
    elif ctypes.get_errno() == errno.ELOOP:
        raise OSError(errno.ELOOP, "the path has a link loop, or a link that differs per process")


def open_without_links(path: str) -> int:
    """An O_PATH descriptor; OSError where a link is on the way, or it is one."""
    how = _how(_PATH_FLAGS, _RESOLVE_NO_SYMLINKS)
    found = _openat2(_SYS_OPENAT2, AT_FDCWD, os.fsencode(path), how, len(how))
    if found < 0:
        raise last_failure()
    return int(found)


def open_on_one_mount(folder_fd: int, path: str, flags: int = 0) -> int:
    """Return an O_PATH descriptor; raise OSError if a link or a mount point is on the way.

    A link at the end of the path is opened itself.
    """
    how = _how(_PATH_FLAGS | os.O_NOFOLLOW | flags, _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_XDEV)
    found = _openat2(_SYS_OPENAT2, folder_fd, os.fsencode(path), how, len(how))
    if found < 0:
        failure = last_failure()
        if failure.errno == errno.EXDEV:
            raise OSError(errno.EXDEV, OTHER_MOUNT)
        raise failure
    return int(found)


def open_known(path: str, folder_fd: int = AT_FDCWD) -> int:
    """An O_PATH descriptor of what the kernel has in its caches, links followed: no file system is
    asked. OSError, EAGAIN where it is not there."""
    how = _FOLLOWED.cached
    found = _openat2(_SYS_OPENAT2, folder_fd, os.fsencode(path), how, len(how))
    if found < 0:
        raise last_failure()
    return int(found)


def lies_at(path: str, inode: Inode) -> bool:
    """For us, as far as the kernel knows without asking anybody, and no link on the way."""
    how = _how(_PATH_FLAGS, _RESOLVE_NO_SYMLINKS | _RESOLVE_CACHED)
    found = _openat2(_SYS_OPENAT2, AT_FDCWD, os.fsencode(path), how, len(how))
    if found < 0:
        return False
    try:
        return inode_of(b"/proc/self/fd/%d" % found) == inode
    finally:
        os.close(found)


class Passed(NamedTuple):
    """On the way to a file: a folder, or a link of /proc that leads by itself."""

    folder: int
    link: bytes = b""

    def demand(self) -> None:
        """OSError where the thread that calls it may not pass."""
        if self.link:
            os.readlink(self.link, dir_fd=self.folder)
        elif libc.syscall(_SYS_FACCESSAT2, self.folder, b"", os.X_OK, _AT_EACCESS_EMPTY) < 0:
            raise last_failure()


class Caller:
    """A thread's view of the file system, to be asked while it waits in a notification."""

    __slots__ = (
        "_mounts",
        "_pid",
        "_tid",
        "found_below_our_root",
        "may_wait",
        "root",
        "shares_our_root",
    )

    def __init__(self, tid: int, pid: int, ours: OurView, *, may_wait: bool = False) -> None:
        self._tid = tid
        self._pid = pid
        self._mounts = ours.mounts
        self.may_wait = may_wait
        self.root = place_of(b"/proc/%d/root" % tid)
        self.shares_our_root = self.root == ours.root
        self.found_below_our_root = False  # what was opened last: by sigwrap's own mounts alone

    def open(self, path: bytes, folder_fd: int = AT_FDCWD) -> int:
        """An O_PATH descriptor; OSError with what the kernel would say to the caller. Raises
        MayWait."""
        self.found_below_our_root = False
        if not path:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if b"\0" in path:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if not self.shares_our_root:
            return self._walk(path, folder_fd)
        is_absolute = path.startswith(b"/")
        folder = AT_FDCWD if is_absolute else self.open_folder(folder_fd)
        try:
            found = self._open_at_once(folder, path, _FOLLOWED)
            self.found_below_our_root = is_absolute
            return found
        except OSError as failure:
            if failure.errno not in _TO_BE_WALKED and self._is_the_same_for_it(
                folder, path, failure
            ):
                raise
        finally:
            if not is_absolute:
                os.close(folder)
        return self._walk(path, folder_fd)

    def open_for_it(self, path: bytes, way: list[Passed]) -> int:
        """As `open`, where we do in its place what the kernel would else ask it for the right to.
        `way` gets what not everybody may pass; its descriptors are the receiver's to close."""
        if not _WE_MAY_SEARCH_ALL or not path:
            return self.open(path)
        return self._walk(path, AT_FDCWD, way)

    def open_descriptor(self, fd: int) -> int:
        self.found_below_our_root = False
        try:
            return proc_files.open_file(b"/proc/%d/fd/%d" % (self._tid, fd), _PATH_FLAGS)
        except FileNotFoundError as missing:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from missing

    def open_part(self, folder: int, part: bytes) -> int:
        """One name, a link itself."""
        try:
            return self._open_at_once(folder, part, _UNFOLLOWED)
        except OSError as not_known:
            if self.may_wait or not_known.errno not in _NOT_CACHED:
                raise
        if not self.is_local(self.state_of(folder)):
            raise MayWait(SERVED)
        one = _UNFOLLOWED.on_one_mount
        found = _openat2(_SYS_OPENAT2, folder, part, one, len(one))
        if found >= 0:
            return int(found)
        failure = last_failure()
        if failure.errno == errno.EXDEV:
            raise MayWait(SERVED)
        raise failure

    def _open_at_once(self, folder: int, path: bytes, how: _Hows) -> int:
        """As we see it, and without the links of /proc that lead anywhere."""
        first = how.waiting if self.may_wait else how.cached
        found = _openat2(_SYS_OPENAT2, folder, path, first, len(first))
        if found < 0:
            raise last_failure()
        return int(found)

    def state_of(self, fd: int) -> State:
        return self._state(fd, 0 if self.may_wait else AT_STATX_DONT_SYNC)

    def known_state(self, fd: int) -> State:
        """As the kernel has it: nobody else is asked."""
        return self._state(fd, AT_STATX_DONT_SYNC)

    def _state(self, fd: int, sync: int) -> State:
        return told_state(
            ask(fd, b"", AT_EMPTY_PATH | sync, STATX_BASIC_STATS | self._mounts.id_bit)
        )

    def place_of(self, link: bytes) -> Place:
        """By the same mount id as State has."""
        return place_of(link, self._mounts.id_bit)

    def is_local(self, state: State) -> bool:
        return self._mounts.are_local(state.mount)

    def is_plain(self, fd: int, state: State) -> bool:
        """Whether each who reads it is shown the same."""
        return self.is_local(state) or (self.may_wait and lies_on_a_disk(fd))

    def _is_the_same_for_it(self, folder: int, path: bytes, failure: OSError) -> bool:
        """What isn't there for us may be there for the caller, by /proc/self; and who may not go
        through a folder on the way is not told what isn't there."""
        if failure.errno not in _MISSING:
            return True
        while path := path.rstrip(b"/"):
            try:
                found = self._open_at_once(folder, path, _UNFOLLOWED)
            except OSError as nothing:
                if nothing.errno not in _MISSING:
                    return False
                path = path.rpartition(b"/")[0]
                continue
            try:
                is_the_same = not self._leads_elsewhere(found)
            finally:
                os.close(found)
            return is_the_same and (not _WE_MAY_SEARCH_ALL or _everybody_may_search(path))
        if folder == AT_FDCWD:
            return True  # it is in the root
        return not (_WE_MAY_SEARCH_ALL or self._leads_elsewhere(folder))

    def _leads_elsewhere(self, fd: int) -> bool:
        """For the caller: a link that leads nowhere for us, or a folder of procfs."""
        state = self.known_state(fd)
        if stat.S_ISLNK(state.mode):
            return True
        return self.is_local(state) and magic_of(fd) == _PROC_SUPER_MAGIC

    def may_search(self, folder: int) -> bool:
        """By its mode. Where we may search no more than our callers, the kernel has said so."""
        if not _WE_MAY_SEARCH_ALL:
            return True
        flags, mask = AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | self._mounts.id_bit
        found = ask(folder, b"", flags, mask)
        uid, gid = OWNER.unpack_from(found)
        state = told_state(found)
        mode = state.mode
        if _everybody_searches(mode):
            return True
        if not self.is_local(state) or magic_of(folder) == _PROC_SUPER_MAGIC:
            return True  # who serves it decides, or procfs by itself
        rights = procfs.rights(self._tid)
        if rights is None:
            return False
        if rights.capabilities & _MAY_SEARCH_ALL and procfs.is_in_our_user_namespace(self._tid):
            return True
        if uid == rights.uid:
            return bool(mode & stat.S_IXUSR)
        return bool(mode & (stat.S_IXGRP if gid in {rights.gid, *rights.groups} else stat.S_IXOTH))

    def open_folder(self, folder_fd: int = AT_FDCWD) -> int:
        if folder_fd != AT_FDCWD:
            return self.open_descriptor(folder_fd)
        return proc_files.open_file(b"/proc/%d/cwd" % self._tid, _PATH_FLAGS)

    def _walk(self, path: bytes, folder_fd: int, way: list[Passed] | None = None) -> int:
        root = proc_files.open_file(b"/proc/%d/root" % self._tid, _PATH_FLAGS)
        try:
            here = os.dup(root) if path.startswith(b"/") else self.open_folder(folder_fd)
            return _Walk(self, self._pid, self._tid, root, here, way).to(path)
        finally:
            os.close(root)


SERVED = "its file system may be served by another program or machine"


class _Walk:
    def __init__(
        self,
        caller: Caller,
        pid: int,
        tid: int,
        root: int,
        here: int,
        way: list[Passed] | None = None,
    ) -> None:
        self._caller = caller
        self._pid = pid
        self._tid = tid
        self._root = root
        self._here = here
        self._way = way
        self._may_search = True  # so far; what is there is still for the kernel to say

    def to(self, path: bytes) -> int:
        """Owns `here` from the start: it is closed or returned."""
        try:
            self._follow(path)
        except OSError as failure:
            os.close(self._here)
            if failure.errno in _MISSING and not self._may_search:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from failure
            raise
        except BaseException:
            os.close(self._here)
            raise
        return self._here

    def _follow(self, path: bytes) -> None:
        parts = _parts(path)
        links = 0
        while parts:
            if len(parts) > _MAX_PARTS:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            part = parts.pop()
            self._may_search = self._may_search and self._caller.may_search(self._here)
            if self._way is not None and not _everybody_searches(self._state(self._here).mode):
                self._way.append(Passed(os.dup(self._here)))
            if part == b".":
                self._must_be_folder()
                continue
            if part == b"..":
                self._must_be_folder()
                if self._state(self._here).inode != self._state(self._root).inode:
                    self._move(self._caller.open_part(self._here, b".."))
                continue
            found = self._caller.open_part(self._here, part)
            if not stat.S_ISLNK(self._state(found).mode):
                self._move(found)
                continue
            links += 1
            os.close(found)
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            parts += self._through_link(part)

    def _through_link(self, part: bytes) -> list[bytes]:
        """Parts that are still to be walked."""
        if not self._caller.may_wait and not self._caller.is_local(self._state(self._here)):
            raise MayWait(SERVED)
        if magic_of(self._here) == _PROC_SUPER_MAGIC:
            if part == b"self":  # the thread's own folder may be another than its leader's
                pid = procfs.tgid(self._tid) or self._pid
                self._move(proc_files.open_file(b"/proc/%d" % pid, _PATH_FLAGS))
                return []
            if part == b"thread-self":
                thread = b"/proc/%d/task/%d" % (self._pid, self._tid)
                self._move(proc_files.open_file(thread, _PATH_FLAGS))
                return []
            if part not in (
                b"mounts",
                b"net",
            ):  # those two are texts; the others lead by themselves
                if self._way is not None:
                    self._way.append(Passed(os.dup(self._here), part))
                self._move(os.open(part, _PATH_FLAGS, dir_fd=self._here))
                return []
        target = os.readlink(part, dir_fd=self._here)
        if target.startswith(b"/"):
            self._move(os.dup(self._root))
        return _parts(target)

    def _must_be_folder(self) -> None:
        if not stat.S_ISDIR(self._state(self._here).mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _state(self, fd: int) -> State:
        return self._caller.state_of(fd)

    def _move(self, fd: int) -> None:
        os.close(self._here)
        self._here = fd


def _everybody_may_search(path: bytes) -> bool:
    """And every folder on the way; False where a link is on it, which can lead through others."""
    while True:
        try:
            mode = known_state_in(AT_FDCWD, path or b"/").mode
        except OSError:
            return False
        if stat.S_ISLNK(mode) or not _everybody_searches(mode):
            return False
        if not path:
            return True
        path = path.rpartition(b"/")[0]


def _everybody_searches(mode: int) -> bool:
    return not stat.S_ISDIR(mode) or mode & _SEARCHED_BY_ALL == _SEARCHED_BY_ALL


def _parts(path: bytes) -> list[bytes]:
    """Last first. A slash at the end demands a folder, as `/.` does."""
    parts = [part for part in path.split(b"/") if part]
    if path.endswith(b"/"):
        parts.append(b".")
    parts.reverse()
    return parts
