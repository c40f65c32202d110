"""Files below a /proc that nobody can put another one over.

Root inside a session can mount what it likes over /proc, and over each folder in it. So the run
holds one from before COMMAND: as root a mount of its own, which is at no path and gets nothing
mounted on it; as root of a user namespace, who may not have a new one, a copy of the mount that is
there; as an ordinary user, in whose mounts nobody inside may meddle, the folder. Paths are written
as everybody knows them, `/proc/…`.
"""

from __future__ import annotations

import os
import struct

from sigwrap.errors import DOCTOR, KernelError, SessionError
from sigwrap.hints import AnyStr
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

_SYS_OPEN_TREE = NUMBERS["open_tree"]
_SYS_MOUNT_SETATTR = NUMBERS["mount_setattr"]
_CLONE = 1
_ITSELF = 0x1000  # AT_EMPTY_PATH
_ALL_OF_IT = 0x8000  # AT_RECURSIVE: what is mounted over parts of it, as containers do
_PRIVATE = struct.pack("<QQQQ", 0, 0, 1 << 18, 0)  # what is mounted elsewhere doesn't get there

_SYS_FSOPEN = NUMBERS["fsopen"]
_SYS_FSCONFIG = NUMBERS["fsconfig"]
_SYS_FSMOUNT = NUMBERS["fsmount"]
_CLOEXEC = 1  # of both descriptors
_CREATE = 6
_THIS_FOLDER = -100  # AT_FDCWD
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_held: int | None = None
_is_a_mount_of_ours = False
_skipped = 0  # of a path, where it is held


def hold() -> None:
    """Once, before COMMAND runs."""
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
            return  # nothing is there that could be held
    _skipped = len("/proc/")


def _can_be_read(folder: int) -> bool:
    """Not where another session's file rules keep reading to the folders that they name."""
    try:
        os.close(os.open("self/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder))
    except OSError:
        return False
    return True


def require() -> None:
    """That there is one, and that the one that is held has our own numbers."""
    way_out = f"mount it: mount -t proc proc /proc; {DOCTOR}"
    if not os.path.exists("/proc/self"):
        raise SessionError("/proc is missing, and sigwrap needs it", way_out)
    if link("/proc/self") != str(os.getpid()):
        raise SessionError("/proc belongs to another pid namespace", way_out)


def is_ours() -> bool:
    """Whoever may mount inside can't cover it."""
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
    """That one is good for a path only."""
    try:
        return os.open(".", _FOLDER, dir_fd=mounted)
    finally:
        os.close(mounted)


def held() -> tuple[int, ...]:
    """Its descriptor, for a thread that has a table of its own."""
    return () if _held is None else (_held,)


def at(path: bytes) -> tuple[int, bytes]:
    """A folder's descriptor and a path from there, for calls of the kernel's own; also for a path
    that leads elsewhere."""
    if _held is None or not path.startswith(b"/proc/"):
        return _THIS_FOLDER, path
    return _held, path[_skipped:]


def open_file(path: str | bytes, flags: int = os.O_RDONLY) -> int:
    return os.open(path[_skipped:], flags | os.O_CLOEXEC, dir_fd=_held)


def contents(path: str) -> bytes | None:
    """Of what the kernel writes in one piece. None where it can't be read, or what it tells of has
    ended."""
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
    except OSError:  # ESRCH: it ended between the open and the read
        return None
    finally:
        os.close(fd)


def all_contents(path: str) -> bytes:
    """Of a list: each read gets as many of its lines as fit. OSError where it can't be read."""
    with os.fdopen(open_file(path), "rb") as file:
        return file.read()


def link(path: AnyStr) -> AnyStr:
    return os.readlink(path[_skipped:], dir_fd=_held)


def linked(path: str) -> str:
    """Empty where it may not be read, or there is no such link."""
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
    return [int(name) for name in os.listdir("/proc" if _held is None else _held) if name.isdigit()]
