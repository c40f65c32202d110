"""Resolve paths as another process sees them.

A process has its own root, working folder, descriptors and /proc/self. Usually it shares our root
mount. Then one openat2(2) is enough, which refuses the links of /proc that differ for each process.
Any other path is walked part by part, from the caller's root and as the caller.

An O_PATH descriptor keeps the found file, so no other file gets its inode.

The loop never waits here. First it asks for what the kernel has cached (RESOLVE_CACHED, Linux
5.12). Otherwise it walks the path, and asks local file systems only. A lookup on a file system that
a program serves raises WouldBlock. A worker then repeats it with a `Caller` that may wait.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from sigwrap.bare import NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import (
    AT_EMPTY_PATH,
    AT_STATX_DONT_SYNC,
    OWNER,
    STATX_BASIC_STATS,
    STATX_BTIME,
    Born,
    Inode,
    LocalMounts,
    Place,
    State,
    ask,
    inode_of,
    known_state_in,
    lies_on_a_disk,
    magic_of,
    place_of,
    read_born,
    read_state,
)
from sigwrap.kernel.libc import last_failure, libc, raw_syscall, syscall
from sigwrap.machine import NUMBERS

AT_FDCWD = -100

_SYS_OPENAT2 = NUMBERS["openat2"]
_SYS_FACCESSAT2 = NUMBERS["faccessat2"]
_RESOLVE_NO_XDEV = 0x01
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_CACHED = 0x20
_AT_EACCESS_EMPTY = 0x200 | AT_EMPTY_PATH
_PATH_FLAGS = os.O_PATH | os.O_CLOEXEC
_LINK_FLAGS = _PATH_FLAGS | os.O_NOFOLLOW
_HOW = struct.Struct("<QQQ")
_NOT_CACHED = frozenset({errno.EAGAIN, errno.EINVAL})  # EINVAL: this kernel lacks RESOLVE_CACHED
_TO_BE_WALKED = _NOT_CACHED | {errno.ELOOP}

_LOOKS = 10
OTHER_MOUNT = "another file system is mounted on it"
_MISSING = (errno.ENOENT, errno.ENOTDIR)
_WE_MAY_SEARCH_ALL = os.geteuid() == 0
_SEARCHED_BY_ALL = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_MAY_SEARCH_ALL = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

_PROC_SUPER_MAGIC = 0x9FA0
_MAX_LINKS = 40
_MAX_PARTS = 4096

_openat2 = raw_syscall(ctypes.c_long, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)


class WouldBlock(Exception):
    """A read in the loop could wait for another program: a worker repeats it with `may_wait`.

    The message says for which kind of program.
    """


class _OurView(NamedTuple):
    """The supervisor's own view of the file system."""

    root: Place
    mounts: LocalMounts


_views: list[_OurView] = []  # one, once it was read


def our_view() -> _OurView:
    if not _views:
        _views.append(_OurView(place_of(b"/"), LocalMounts()))
    return _views[0]


def path_of(fd: int) -> str:
    return link_target(f"/proc/self/fd/{fd}")


def link_target(path: str) -> str:
    """Return the target of a procfs link, empty if it is longer than PATH_MAX.

    Such a file can still be reached, from a folder nearby.
    """
    try:
        return procfs.link(path)
    except OSError as failure:
        if failure.errno != errno.ENAMETOOLONG:
            raise
        return ""


def demand_openat2() -> None:
    """Raise KernelError before Linux 5.6, and in a container runtime older than that.

    Without openat2, every exec would fail with a misleading errno.
    """
    how = _HOW.pack(_PATH_FLAGS, 0, 0)
    refused = "the kernel refused openat2(2)"
    os.close(syscall(refused, _SYS_OPENAT2, AT_FDCWD, b"/", how, len(how)))


def refuse_magic_links(path: str) -> None:
    """Raise OSError if the path contains a link of /proc, which differs for each process."""
    try:
        os.close(_open(AT_FDCWD, os.fsencode(path)))
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            why = "the path has a link loop, or a link that differs per process"
            raise OSError(errno.ELOOP, why) from failure


def open_without_links(path: str) -> int:
    """Return an O_PATH descriptor. Raises OSError if any part of the path is a link."""
    return _open(AT_FDCWD, os.fsencode(path), resolve=_RESOLVE_NO_SYMLINKS)


def open_on_one_mount(folder_fd: int, path: str, flags: int = 0) -> int:
    """Return an O_PATH descriptor; raise OSError if a link or a mount point is on the way.

    A link at the end of the path is opened itself.
    """
    resolve = _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_XDEV
    return _open(folder_fd, os.fsencode(path), _LINK_FLAGS | flags, resolve=resolve)


def open_known(path: str, folder_fd: int = AT_FDCWD) -> int:
    """Return an O_PATH descriptor if the kernel has the path in its caches. Follows links.

    Raises OSError otherwise, EAGAIN if it is not cached.
    """
    return _open(folder_fd, os.fsencode(path), resolve=_RESOLVE_CACHED)


def open_used(path: str, folder_fd: int = AT_FDCWD) -> int:
    """Do the same for a file in use, which the kernel has in its caches.

    A rename or a mount anywhere on the machine can disturb a search of the caches.
    """
    for _ in range(_LOOKS - 1):
        try:
            return open_known(path, folder_fd)
        except BlockingIOError:
            os.sched_yield()
    return open_known(path, folder_fd)


def is_found_at(path: str, fd: int, *, may_wait: bool) -> bool:
    """Return whether sigwrap finds an open file at its path, on the same mount.

    It does not in another root or mount namespace, nor below another mount. Raises WouldBlock.
    """
    try:
        found = _open(AT_FDCWD, os.fsencode(path)) if may_wait else open_used(path)
    except BlockingIOError as not_cached:
        raise WouldBlock(SERVED) from not_cached
    except OSError:
        return False
    try:
        return place_of(found) == place_of(fd)
    finally:
        os.close(found)


def lies_at(path: str, inode: Inode) -> bool:
    """Return whether the kernel's caches have this inode at the path, without links."""
    resolve = _RESOLVE_NO_SYMLINKS | _RESOLVE_CACHED
    try:
        found = _open(AT_FDCWD, os.fsencode(path), resolve=resolve)
    except OSError:
        return False
    try:
        return inode_of(found) == inode
    finally:
        os.close(found)


def _open(folder: int, path: bytes, flags: int = _PATH_FLAGS, *, resolve: int = 0) -> int:
    """Open without the links of /proc that differ for each process."""
    how = _HOW.pack(flags, 0, _RESOLVE_NO_MAGICLINKS | resolve)
    found: int = _openat2(_SYS_OPENAT2, folder, path, how, len(how))
    if found < 0:
        raise last_failure()
    return found


class Passed(NamedTuple):
    """A folder on the path to a file, or a link of /proc that the kernel follows by itself."""

    folder: int
    link: bytes = b""

    def demand(self) -> None:
        """Raise OSError if the calling thread may not pass it."""
        if self.link:
            os.readlink(self.link, dir_fd=self.folder)
        elif libc.syscall(_SYS_FACCESSAT2, self.folder, b"", os.X_OK, _AT_EACCESS_EMPTY) < 0:
            raise last_failure()


class Caller:
    """A thread's view of the file system, while it waits in a notification."""

    __slots__ = (
        "_mounts",
        "found_below_our_root",
        "may_wait",
        "pid",
        "root",
        "shares_our_root",
        "tid",
    )

    def __init__(self, tid: int, pid: int, *, may_wait: bool = False) -> None:
        ours = our_view()
        self.tid = tid
        self.pid = pid
        self._mounts = ours.mounts
        self.may_wait = may_wait
        self.root = place_of(b"/proc/%d/root" % tid)
        self.shares_our_root = self.root == ours.root
        self.found_below_our_root = False  # for the last opened path

    def open(self, path: bytes, folder_fd: int = AT_FDCWD) -> int:
        """Return an O_PATH descriptor.

        Raises WouldBlock, and OSError with the errno that the caller would get.
        """
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
            found = self._open_at_once(folder, path)
            self.found_below_our_root = is_absolute
            return found
        except OSError as failure:
            if failure.errno not in _TO_BE_WALKED and self.is_the_same_for_it(
                folder, path, failure
            ):
                raise
        finally:
            if not is_absolute:
                os.close(folder)
        return self._walk(path, folder_fd)

    def open_with_links(self, path: bytes) -> tuple[int, list[State]]:
        """Walk the path; return also the states of the links on it."""
        links: list[State] = []
        return self._walk(path, AT_FDCWD, links=links), links

    def open_for_it(self, path: bytes, way: list[Passed]) -> int:
        """Open a path on which sigwrap acts for the caller, with the caller's rights to search.

        `way` gets the folders and links that not every user may pass. The receiver closes them.
        """
        if not _WE_MAY_SEARCH_ALL or not path:
            return self.open(path)
        return self._walk(path, AT_FDCWD, way)

    def open_descriptor(self, fd: int) -> int:
        self.found_below_our_root = False
        try:
            return procfs.open_file(b"/proc/%d/fd/%d" % (self.tid, fd), _PATH_FLAGS)
        except FileNotFoundError as missing:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from missing

    def open_part(self, folder: int, part: bytes) -> int:
        """Open one name, without following a link."""
        try:
            return self._open_at_once(folder, part, _LINK_FLAGS)
        except OSError as not_known:
            if self.may_wait or not_known.errno not in _NOT_CACHED:
                raise
        if not self.is_local(self.state_of(folder)):
            raise WouldBlock(SERVED)
        try:
            return _open(folder, part, _LINK_FLAGS, resolve=_RESOLVE_NO_XDEV)
        except OSError as failure:
            if failure.errno == errno.EXDEV:
                raise WouldBlock(SERVED) from failure
            raise

    def _open_at_once(self, folder: int, path: bytes, flags: int = _PATH_FLAGS) -> int:
        return _open(folder, path, flags, resolve=0 if self.may_wait else _RESOLVE_CACHED)

    def state_of(self, fd: int) -> State:
        return self._state(fd, 0 if self.may_wait else AT_STATX_DONT_SYNC)

    def known_state(self, fd: int) -> State:
        """Return what the kernel knows of the file."""
        return self._state(fd, AT_STATX_DONT_SYNC)

    def known_state_and_birth(self, fd: int) -> tuple[State, Born]:
        mask = STATX_BASIC_STATS | STATX_BTIME | self._mounts.id_bit
        found = ask(fd, b"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask)
        return read_state(found), read_born(found)[1]

    def _state(self, fd: int, sync: int) -> State:
        return read_state(
            ask(fd, b"", AT_EMPTY_PATH | sync, STATX_BASIC_STATS | self._mounts.id_bit)
        )

    def place_of(self, link: bytes) -> Place:
        """Return the place, with a mount id of the same kind as in State."""
        return place_of(link, self._mounts.id_bit)

    def is_local(self, state: State) -> bool:
        return self._mounts.are_local(state.mount)

    def is_plain(self, fd: int, state: State) -> bool:
        """Return whether all readers see the same content."""
        return self.is_local(state) or (self.may_wait and lies_on_a_disk(fd))

    def is_the_same_for_it(self, folder: int, path: bytes, failure: OSError) -> bool:
        """Return whether the caller would get the same errno.

        A file that is missing for us may exist for the caller, through /proc/self. And a caller
        that may not search a folder gets EACCES instead of ENOENT.
        """
        if failure.errno not in _MISSING:
            return True
        while path := path.rstrip(b"/"):
            try:
                found = self._open_at_once(folder, path, _LINK_FLAGS)
            except OSError as nothing:
                if nothing.errno not in _MISSING:
                    return False
                path = path.rpartition(b"/")[0]
                continue
            try:
                is_the_same = not self._leads_elsewhere(found)
            finally:
                os.close(found)
            if not _WE_MAY_SEARCH_ALL:
                return is_the_same
            return is_the_same and folder == AT_FDCWD and self._may_search_all_of(path)
        if folder == AT_FDCWD:
            return True  # it is in the root
        return not (_WE_MAY_SEARCH_ALL or self._leads_elsewhere(folder))

    def _leads_elsewhere(self, fd: int) -> bool:
        """Return whether the caller may find another file: at a broken link, or below procfs."""
        state = self.known_state(fd)
        if stat.S_ISLNK(state.mode):
            return True
        return self.is_local(state) and magic_of(fd) == _PROC_SUPER_MAGIC

    def may_search(self, folder: int) -> bool:
        """Return whether the caller may search a folder, by its mode.

        Unless sigwrap has more rights than its callers, the kernel has checked that.
        """
        if not _WE_MAY_SEARCH_ALL:
            return True
        flags, mask = AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | self._mounts.id_bit
        found = ask(folder, b"", flags, mask)
        uid, gid = OWNER.unpack_from(found)
        state = read_state(found)
        mode = state.mode
        if _all_users_search(mode):
            return True
        if not self.is_local(state) or magic_of(folder) == _PROC_SUPER_MAGIC:
            return True  # its server decides, or procfs
        rights = procfs.rights(self.tid)
        if rights is None:
            return False
        if rights.capabilities & _MAY_SEARCH_ALL:
            ours = procfs.user_namespace("self")
            if procfs.user_namespace(self.tid) == ours:
                return True
        if uid == rights.uid:
            return bool(mode & stat.S_IXUSR)
        return bool(mode & (stat.S_IXGRP if gid in {rights.gid, *rights.groups} else stat.S_IXOTH))

    def _may_search_all_of(self, path: bytes) -> bool:
        """Return whether the caller may search an absolute path and each folder on it. False with
        links."""
        while True:
            try:
                mode = known_state_in(AT_FDCWD, path or b"/").mode
                if stat.S_ISLNK(mode) or not (_all_users_search(mode) or self._searches(path)):
                    return False
            except OSError:
                return False
            if not path:
                return True
            path = path.rpartition(b"/")[0]

    def _searches(self, path: bytes) -> bool:
        folder = self._open_at_once(AT_FDCWD, path or b"/", _LINK_FLAGS)
        try:
            return self.may_search(folder)
        finally:
            os.close(folder)

    def open_folder(self, folder_fd: int = AT_FDCWD) -> int:
        if folder_fd != AT_FDCWD:
            return self.open_descriptor(folder_fd)
        return procfs.open_file(b"/proc/%d/cwd" % self.tid, _PATH_FLAGS)

    def _walk(
        self,
        path: bytes,
        folder_fd: int,
        way: list[Passed] | None = None,
        links: list[State] | None = None,
    ) -> int:
        root = procfs.open_file(b"/proc/%d/root" % self.tid, _PATH_FLAGS)
        try:
            here = os.dup(root) if path.startswith(b"/") else self.open_folder(folder_fd)
            return _Walk(self, root, here, way, [] if links is None else links).to(path)
        finally:
            os.close(root)


SERVED = "its file system may be served by another program or machine"


class _Walk:
    def __init__(
        self, caller: Caller, root: int, here: int, way: list[Passed] | None, links: list[State]
    ) -> None:
        self._caller = caller
        self._links = links
        self._root = root
        self._here = here
        self._known: State | None = None  # of `here`
        self._way = way
        self._may_search = True  # so far; the kernel still checks the found file

    def to(self, path: bytes) -> int:
        """Walk a path. This closes or returns `here`."""
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
        while parts:
            if len(parts) > _MAX_PARTS:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            part = parts.pop()
            if _WE_MAY_SEARCH_ALL and not _all_users_search(self._state_here().mode):
                self._may_search = self._may_search and self._caller.may_search(self._here)
                if self._way is not None:
                    self._way.append(Passed(os.dup(self._here)))
            if part in (b".", b".."):
                here = self._state_here()
                if not stat.S_ISDIR(here.mode):
                    raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
                if part == b".." and here.inode != self._state(self._root).inode:
                    self._move(self._caller.open_part(self._here, b".."))
                continue
            found = self._caller.open_part(self._here, part)
            state = self._state(found)
            if not stat.S_ISLNK(state.mode):
                self._move(found, state)
                continue
            os.close(found)
            self._links.append(state)
            if len(self._links) > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            parts += self._through_link(part)

    def _through_link(self, part: bytes) -> list[bytes]:
        """Follow a link, and return the remaining parts."""
        if not self._caller.may_wait and not self._caller.is_local(self._state_here()):
            raise WouldBlock(SERVED)
        if magic_of(self._here) == _PROC_SUPER_MAGIC:
            if part == b"self":  # for the thread's process, in whatever folder the link is
                pid = procfs.tgid(self._caller.tid) or self._caller.pid
                self._move(procfs.open_file(b"/proc/%d" % pid, _PATH_FLAGS))
                return []
            if part == b"thread-self":
                thread = b"/proc/%d/task/%d" % (self._caller.pid, self._caller.tid)
                self._move(procfs.open_file(thread, _PATH_FLAGS))
                return []
            if part not in (b"mounts", b"net"):  # the kernel follows all others by itself
                if self._way is not None:
                    self._way.append(Passed(os.dup(self._here), part))
                self._move(os.open(part, _PATH_FLAGS, dir_fd=self._here))
                return []
        target = os.readlink(part, dir_fd=self._here)
        if target.startswith(b"/"):
            self._move(os.dup(self._root))
        return _parts(target)

    def _state(self, fd: int) -> State:
        return self._caller.state_of(fd)

    def _state_here(self) -> State:
        if self._known is None:
            self._known = self._state(self._here)
        return self._known

    def _move(self, fd: int, state: State | None = None) -> None:
        os.close(self._here)
        self._here, self._known = fd, state


def _all_users_search(mode: int) -> bool:
    return not stat.S_ISDIR(mode) or mode & _SEARCHED_BY_ALL == _SEARCHED_BY_ALL


def _parts(path: bytes) -> list[bytes]:
    """Split a path, last part first. A slash at the end demands a folder, as `/.` does."""
    parts = [part for part in path.split(b"/") if part]
    if path.endswith(b"/"):
        parts.append(b".")
    parts.reverse()
    return parts
