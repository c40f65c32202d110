"""Which file a path means to another process.

Its root, working folder and descriptors are its own, and so is /proc/self. The common case, a
caller that shares our root mount, is one openat2(2) that refuses to follow the links of /proc by
which a name means something else to each process. Everything else is walked part by part, from
the caller's root and as the caller.

Whatever is found is held by an O_PATH descriptor: its inode can't be given to another file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from sigwrap.linux import procfs
from sigwrap.linux.libc import libc

AT_FDCWD = -100

_SYS_OPENAT2 = 437
_SYS_STATX = 332
_RESOLVE_NO_MAGICLINKS = 0x02
_STATX_INO = 0x100
_STATX_MNT_ID = 0x1000
_PATH_FLAGS = os.O_PATH | os.O_CLOEXEC
_HOW = struct.pack("<QQQ", _PATH_FLAGS, 0, _RESOLVE_NO_MAGICLINKS)

_PROC_SUPER_MAGIC = 0x9FA0
_SERVED_BY_OTHERS = frozenset(  # FUSE, NFS, CIFS, SMB2, 9P, Ceph
    {0x65735546, 0x6969, 0xFF534D42, 0xFE534D42, 0x01021997, 0x00C36400}
)
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
_statx = libc["syscall"]
_statx.argtypes = (
    ctypes.c_long,
    ctypes.c_long,
    ctypes.c_char_p,
    ctypes.c_long,
    ctypes.c_long,
    ctypes.c_void_p,
)
_statx.restype = ctypes.c_long
_fstatfs = libc["fstatfs"]
_fstatfs.argtypes = (ctypes.c_int, ctypes.c_void_p)

_statx_buffer = ctypes.create_string_buffer(256)
_statx_buffer_at = ctypes.addressof(_statx_buffer)
_INODE_AND_DEVICE = struct.Struct("<32xQ96xIIQ")  # stx_ino, stx_dev_major, _minor, stx_mnt_id

Place = tuple[int, int, int, int]


def place_of(path: bytes, folder_fd: int = AT_FDCWD) -> Place:
    """Inode, device and mount: two mount namespaces never share a mount."""
    result = _statx(_SYS_STATX, folder_fd, path, 0, _STATX_INO | _STATX_MNT_ID, _statx_buffer_at)
    if result < 0:
        raise _failure()
    inode, major, minor, mount = _INODE_AND_DEVICE.unpack_from(_statx_buffer)
    return inode, major, minor, mount


class Caller:
    """A thread's view of the file system, to be asked while it waits in a notification."""

    __slots__ = ("_pid", "_tid", "shares_our_root")

    def __init__(self, tid: int, pid: int, our_root: Place) -> None:
        self._tid = tid
        self._pid = pid
        folder_fd, root = procfs.at(b"/proc/%d/root" % tid)
        self.shares_our_root = place_of(root, folder_fd) == our_root

    def open(self, path: bytes, folder_fd: int = AT_FDCWD) -> int:
        """An O_PATH descriptor; OSError with what the kernel would say to the caller."""
        if not path:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
        if b"\0" in path:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if not self.shares_our_root:
            return self._walk(path, folder_fd)
        if path.startswith(b"/"):
            found = _openat2(_SYS_OPENAT2, AT_FDCWD, path, _HOW, len(_HOW))
        else:
            folder = self._open_folder(folder_fd)
            try:
                found = _openat2(_SYS_OPENAT2, folder, path, _HOW, len(_HOW))
            finally:
                os.close(folder)
        if found >= 0:
            return int(found)
        failure = _failure()
        if failure.errno == errno.ELOOP or self._may_be_its_own(path, failure):
            return self._walk(path, folder_fd)
        raise failure

    def open_descriptor(self, fd: int) -> int:
        try:
            return procfs.open_file(b"/proc/%d/fd/%d" % (self._tid, fd), _PATH_FLAGS)
        except FileNotFoundError as missing:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF)) from missing

    def _may_be_its_own(self, path: bytes, failure: OSError) -> bool:
        """What isn't there for us may be there for the caller, by /proc/self."""
        if failure.errno not in (errno.ENOENT, errno.ENOTDIR):
            return False
        if path.startswith((b"/proc/", b"/dev/")) or b"/../" in path:
            return True
        if not path.startswith(b"/"):
            return procfs.link(b"/proc/%d/cwd" % self._tid).startswith(b"/proc/")
        try:
            os.readlink(path)
        except OSError:
            return False
        return True  # a link that leads nowhere, for us

    def _open_folder(self, folder_fd: int) -> int:
        if folder_fd != AT_FDCWD:
            return self.open_descriptor(folder_fd)
        return procfs.open_file(b"/proc/%d/cwd" % self._tid, _PATH_FLAGS)

    def _walk(self, path: bytes, folder_fd: int) -> int:
        root = procfs.open_file(b"/proc/%d/root" % self._tid, _PATH_FLAGS)
        try:
            here = os.dup(root) if path.startswith(b"/") else self._open_folder(folder_fd)
            return _Walk(self._pid, self._tid, root, here).to(path)
        finally:
            os.close(root)


def is_served_by_others(fd: int) -> bool:
    """Its file system may answer late, or never."""
    return _file_system(fd) in _SERVED_BY_OTHERS


class _Walk:
    def __init__(self, pid: int, tid: int, root: int, here: int) -> None:
        self._pid = pid
        self._tid = tid
        self._root = root
        self._here = here

    def to(self, path: bytes) -> int:
        """Owns `here` from the start: it is closed or returned."""
        try:
            self._follow(path)
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
            if part == b".":
                self._must_be_folder()
                continue
            if part == b"..":
                self._must_be_folder()
                if not os.path.samestat(os.fstat(self._here), os.fstat(self._root)):
                    self._move(os.open(b"..", _PATH_FLAGS, dir_fd=self._here))
                continue
            found = os.open(part, _PATH_FLAGS | os.O_NOFOLLOW, dir_fd=self._here)
            if not stat.S_ISLNK(os.fstat(found).st_mode):
                self._move(found)
                continue
            links += 1
            os.close(found)
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            parts += self._through_link(part)

    def _through_link(self, part: bytes) -> list[bytes]:
        """Parts that are still to be walked."""
        if _is_procfs(self._here):
            if part == b"self":
                self._move(procfs.open_file(b"/proc/%d" % self._pid, _PATH_FLAGS))
                return []
            if part == b"thread-self":
                self._move(
                    procfs.open_file(b"/proc/%d/task/%d" % (self._pid, self._tid), _PATH_FLAGS)
                )
                return []
            if part not in (
                b"mounts",
                b"net",
            ):  # those two are texts; the others lead by themselves
                self._move(os.open(part, _PATH_FLAGS, dir_fd=self._here))
                return []
        target = os.readlink(part, dir_fd=self._here)
        if target.startswith(b"/"):
            self._move(os.dup(self._root))
        return _parts(target)

    def _must_be_folder(self) -> None:
        if not stat.S_ISDIR(os.fstat(self._here).st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _move(self, fd: int) -> None:
        os.close(self._here)
        self._here = fd


def _parts(path: bytes) -> list[bytes]:
    """Last first. A slash at the end demands a folder, as `/.` does."""
    parts = [part for part in path.split(b"/") if part]
    if path.endswith(b"/"):
        parts.append(b".")
    parts.reverse()
    return parts


def _is_procfs(fd: int) -> bool:
    return _file_system(fd) == _PROC_SUPER_MAGIC


def _file_system(fd: int) -> int:
    buffer = ctypes.create_string_buffer(256)
    if _fstatfs(fd, ctypes.addressof(buffer)) != 0:
        raise _failure()
    (kind,) = struct.unpack_from("<q", buffer)
    return int(kind)


def _failure() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
