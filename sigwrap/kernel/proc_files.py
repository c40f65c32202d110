"""Read files below a /proc that no process in a session can mount over.

Root in a session can mount anything over /proc, and over each directory in it. So the run opens its
own before the command starts. For root it is a new mount without a path, on which no process can
mount. For root of a user namespace, which may not make a new one, it is a copy of the mount. For an
ordinary user, whose session cannot mount there, it is the directory. Paths are written as usual,
`/proc/…`.
"""

from __future__ import annotations

import os
import struct

from sigwrap.bare import AnyStr
from sigwrap.errors import DOCTOR, KernelError, SessionError
from sigwrap.kernel.libc import syscall
from sigwrap.machine import NUMBERS

_SYS_OPEN_TREE = NUMBERS["open_tree"]
_SYS_MOUNT_SETATTR = NUMBERS["mount_setattr"]
_CLONE = 1
_ITSELF = 0x1000  # AT_EMPTY_PATH
_ALL_OF_IT = 0x8000  # AT_RECURSIVE: includes mounts of containers over parts of it
_PRIVATE = struct.pack("<QQQQ", 0, 0, 1 << 18, 0)  # mounts made elsewhere do not appear there

_SYS_FSOPEN = NUMBERS["fsopen"]
_SYS_FSCONFIG = NUMBERS["fsconfig"]
_SYS_FSMOUNT = NUMBERS["fsmount"]
_CLOEXEC = 1  # for both descriptors
_CREATE = 6
_THIS_FOLDER = -100  # AT_FDCWD
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_held: int | None = None
_is_a_mount_of_ours = False
_skipped = 0  # bytes to skip in a path, once /proc is open


def hold() -> None:
    """Open /proc, once, before the command runs."""
    global _held, _skipped, _is_a_mount_of_ours
    for make in (_new_mount, _copied_mount):
        try:
            folder = make()
        except (KernelError, OSError):
            continue
        if _can_be_read(folder):
            _held, _is_a_mount_of_ours = folder, True
            break
        os.close(folder)
    else:
        try:
            _held = os.open("/proc", _FOLDER)
        except OSError:
            return  # there is no /proc
    _skipped = len("/proc/")


def _can_be_read(folder: int) -> bool:
    """Return False if file rules of another session forbid to read it."""
    try:
        os.close(os.open("self/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder))
    except OSError:
        return False
    return True


def require() -> None:
    """Check that there is a /proc, and that it belongs to this pid namespace."""
    way_out = f"mount it: mount -t proc proc /proc; {DOCTOR}"
    if not os.path.exists("/proc/self"):
        raise SessionError("/proc is missing, and sigwrap needs it", way_out)
    if link("/proc/self") != str(os.getpid()):
        raise SessionError("/proc belongs to another pid namespace", way_out)


def is_ours() -> bool:
    """Return whether no process in the session can mount over it."""
    return _is_a_mount_of_ours


def _new_mount() -> int:
    context = syscall("fsopen", _SYS_FSOPEN, b"proc\0", _CLOEXEC)
    try:
        syscall("fsconfig", _SYS_FSCONFIG, context, _CREATE, 0, 0, 0)
        mounted = syscall("fsmount", _SYS_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    return _folder_of(mounted)


def _copied_mount() -> int:
    flags = _CLONE | os.O_CLOEXEC | _ALL_OF_IT
    mounted = syscall("open_tree", _SYS_OPEN_TREE, _THIS_FOLDER, b"/proc\0", flags)
    try:
        flags = _ITSELF | _ALL_OF_IT
        size = len(_PRIVATE)
        syscall("mount_setattr", _SYS_MOUNT_SETATTR, mounted, b"\0", flags, _PRIVATE, size)
    except KernelError:
        os.close(mounted)
        raise
    return _folder_of(mounted)


def _folder_of(mounted: int) -> int:
    """Open the directory of a mount, whose own descriptor is usable only for paths."""
    try:
        return os.open(".", _FOLDER, dir_fd=mounted)
    finally:
        os.close(mounted)


def held() -> tuple[int, ...]:
    """Return the descriptor of /proc, for a thread with its own table."""
    return () if _held is None else (_held,)


def at(path: bytes) -> tuple[int, bytes]:
    """Return a directory's descriptor and a path from there, also for paths outside /proc."""
    if _held is None or not path.startswith(b"/proc/"):
        return _THIS_FOLDER, path
    return _held, path[_skipped:]


def open_file(path: str | bytes, flags: int = os.O_RDONLY) -> int:
    return os.open(path[_skipped:], flags | os.O_CLOEXEC, dir_fd=_held)


def contents(path: str) -> bytes | None:
    """Read a file that the kernel writes at once; None if it is unreadable or the process ended."""
    try:
        fd = open_file(path)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
        if len(data) < 4096:
            return data
        parts = [data]
        while data := os.read(fd, 1 << 16):
            parts.append(data)
        return b"".join(parts)
    except OSError:  # ESRCH: the process ended between open and read
        return None
    finally:
        os.close(fd)


def all_contents(path: str) -> bytes:
    """Read a list in several read(2) calls, each of which returns whole lines. Raises OSError."""
    with os.fdopen(open_file(path), "rb") as file:
        return file.read()


def link(path: AnyStr) -> AnyStr:
    return os.readlink(path[_skipped:], dir_fd=_held)


def linked(path: str) -> str:
    """Return a link's target; "" if it is unreadable or missing."""
    try:
        return link(path)
    except OSError:
        return ""


def file_status(path: str) -> os.stat_result:
    return os.stat(path[_skipped:], dir_fd=_held)


def names(path: str) -> list[str]:
    folder = open_file(path, _FOLDER)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def exists(path: str) -> bool:
    try:
        file_status(path)
    except OSError:
        return False
    return True


def all_pids() -> list[int]:
    """Return the pids of all processes.

    Opens /proc anew: processes forked from this one share the position in the held directory, and
    would take entries from each other's lists.
    """
    return [int(name) for name in names("/proc/.") if name.isdigit()]
