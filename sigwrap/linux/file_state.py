"""What statx(2) tells of a file, without asking who serves it: what it is, where it lies, when it
was changed."""

from __future__ import annotations

import _thread
import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator

from sigwrap.linux import proc_files
from sigwrap.linux.libc import libc
from sigwrap.linux.mounts import STATX_MNT_ID
from sigwrap.machine import NUMBERS
from sigwrap.tuples import NamedTuple

_SYS_STATX = NUMBERS["statx"]
AT_EMPTY_PATH = 0x1000
_AT_SYMLINK_NOFOLLOW = 0x100
AT_STATX_DONT_SYNC = 0x4000  # what is known of it, without asking whoever serves it
STATX_BASIC_STATS = 0x7FF
_STATX_TYPE = 0x1
_STATX_INO = 0x100
_STATX_BTIME = 0x800

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


class _Buffers(_thread._local):
    """A helper's look must not overwrite what the loop has just been told."""

    def __init__(self) -> None:
        self.own = ctypes.create_string_buffer(256)


_buffers = _Buffers()
OWNER = struct.Struct("<20xII")
_MODE_AND_CHANGE = struct.Struct("<28xH66xqI")  # mode, ctime
_BORN = struct.Struct("<80xqI")
_INODE_AND_DEVICE = struct.Struct("<32xQ96xIIQ")  # stx_ino, stx_dev_major, _minor, stx_mnt_id
_STATE = struct.Struct("<28xH2xQQ48xqI28xIIQ")  # mode, inode, size, ctime, device, mount
_DEVICE = struct.Struct("<28xH98xII")  # mode, rdev_major, rdev_minor

Buffer = ctypes.Array[ctypes.c_char]
Place = tuple[int, int, int, int]
Inode = tuple[int, int]  # device, number
Born = tuple[Inode, tuple[int, int]]
"""And when the file was made, where its file system knows: a number comes again once its file is
gone, often at once."""


class State(NamedTuple):
    """What statx tells of a file."""

    mode: int
    inode: Inode
    size: int
    changed: tuple[int, int]
    mount: int

    @property
    def place(self) -> Place:
        """By the mount's id as it was asked for."""
        device, number = self.inode
        return number, device >> 32, device & 0xFFFFFFFF, self.mount


def place_of(path: bytes, mount_id: int = STATX_MNT_ID) -> Place:
    """Inode, device and mount: two mount namespaces never share a mount. Whoever serves the file is
    not asked. `mount_id`: which one, where there are two."""
    folder, path = proc_files.at(path)
    return _place(ask(folder, path, AT_STATX_DONT_SYNC, _STATX_INO | mount_id))


def place_of_descriptor(fd: int) -> Place:
    flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC
    return _place(ask(fd, b"", flags, _STATX_INO | STATX_MNT_ID))


def _place(found: Buffer) -> Place:
    inode, major, minor, mount = _INODE_AND_DEVICE.unpack_from(found)
    return inode, major, minor, mount


def mount_of(fd: int) -> int:
    """By the number that /proc/PID/mountinfo has."""
    found = ask(fd, b"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID)
    mount: int = _INODE_AND_DEVICE.unpack_from(found)[3]
    return mount


def known_state_in(folder: int, name: bytes) -> State:
    """Of what has this name, a link itself. Nobody but the kernel is asked."""
    flags = _AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC
    return told_state(ask(folder, name, flags, STATX_BASIC_STATS | STATX_MNT_ID))


def may_be_later_in(folder: int, names: Iterable[str], time_ns: int) -> Iterator[str]:
    """Those that were changed since then, links, and those of which the kernel can't tell at once:
    in a quarter of the time that each of them by itself takes."""
    buffer = _buffers.own
    address = ctypes.addressof(buffer)
    flags, mask = _AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_BASIC_STATS
    told = _MODE_AND_CHANGE.unpack_from
    for name in names:
        if _statx(_SYS_STATX, folder, os.fsencode(name), flags, mask, address) < 0:
            yield name
            continue
        mode, seconds, nanoseconds = told(buffer)
        if seconds * 1_000_000_000 + nanoseconds > time_ns or stat.S_ISLNK(mode):
            yield name


def told_state(found: Buffer) -> State:
    mode, number, size, seconds, nanoseconds, major, minor, mount = _STATE.unpack_from(found)
    return State(mode, (major << 32 | minor, number), size, (seconds, nanoseconds), mount)


def kind_of(path: bytes) -> tuple[int, int]:
    """Its type, and of a device its major number: for links of /proc as well."""
    kind, major, _minor = device_of(path)
    return kind, major


def device_of(path: bytes) -> tuple[int, int, int]:
    """Its type, and of a device both numbers. Like kind_of."""
    folder, path = proc_files.at(path)
    found = ask(folder, path, AT_STATX_DONT_SYNC, _STATX_TYPE)
    mode, major, minor = _DEVICE.unpack_from(found)
    return stat.S_IFMT(mode), major, minor


def inode_of(path: bytes) -> Inode:
    """As State has it: for links of /proc, whose files somebody may serve."""
    return _inode(place_of(path))


def inode_of_descriptor(fd: int) -> Inode:
    return _inode(place_of_descriptor(fd))


def _inode(place: Place) -> Inode:
    number, major, minor, _ = place
    return major << 32 | minor, number


def born_at(path: bytes) -> Born:
    folder, path = proc_files.at(path)
    return _born(ask(folder, path, AT_STATX_DONT_SYNC, _STATX_INO | _STATX_BTIME))


def born_of(fd: int) -> Born:
    return _born(ask(fd, b"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, _STATX_INO | _STATX_BTIME))


def _born(found: Buffer) -> Born:
    number, major, minor, _ = _place(found)
    seconds, nanoseconds = _BORN.unpack_from(found)
    return (major << 32 | minor, number), (seconds, nanoseconds)


def ask(folder: int, path: bytes, flags: int, mask: int) -> Buffer:
    """Good until the thread asks again."""
    buffer = _buffers.own
    if _statx(_SYS_STATX, folder, path, flags, mask, ctypes.addressof(buffer)) < 0:
        raise last_failure()
    return buffer


def last_failure() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))
