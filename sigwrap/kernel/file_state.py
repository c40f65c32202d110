"""The state of files by statx(2), and which file systems are local and answer at once."""

from __future__ import annotations

import _thread
import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Iterator

from sigwrap.bare import NamedTuple, re
from sigwrap.kernel import procfs
from sigwrap.kernel.libc import last_failure, libc, raw_syscall
from sigwrap.machine import NUMBERS

STATX_MNT_ID = 0x1000  # Linux 5.8
STATX_MNT_ID_UNIQUE = 0x4000  # Linux 6.8

_SYS_STATX = NUMBERS["statx"]
AT_EMPTY_PATH = 0x1000
_AT_SYMLINK_NOFOLLOW = 0x100
AT_STATX_DONT_SYNC = 0x4000  # only what the kernel knows
STATX_BASIC_STATS = 0x7FF
_STATX_TYPE = 0x1
_STATX_INO = 0x100
STATX_BTIME = 0x800

_statx = raw_syscall(
    *(ctypes.c_long, ctypes.c_char_p, ctypes.c_long, ctypes.c_long, ctypes.c_void_p)
)

OWNER = struct.Struct("<20xII")
_MODE_AND_CHANGE = struct.Struct("<28xH66xqI")  # mode, ctime
_BORN = struct.Struct("<28xH2xQ40xqI44xII")  # mode, inode, birth, device
_INODE_AND_DEVICE = struct.Struct("<32xQ96xIIQ")  # stx_ino, stx_dev_major, _minor, stx_mnt_id
_STATE = struct.Struct("<28xH2xQQ48xqI28xIIQ")  # mode, inode, size, ctime, device, mount
_DEVICE = struct.Struct("<28xH98xII")  # mode, rdev_major, rdev_minor
_ATTRIBUTES = struct.Struct("<8xQ")
_IMMUTABLE = 0x10

Buffer = ctypes.Array[ctypes.c_char]
Place = tuple[int, int, int, int]
Inode = tuple[int, int]  # device, number
Born = tuple[Inode, tuple[int, int]]
"""An inode and its birth time, if the file system knows that: inode numbers are reused at once."""

_DEVICELESS = frozenset(
    b"bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs hugetlbfs mqueue proc pstore "
    b"ramfs rootfs securityfs sysfs tmpfs tracefs".split()
)
_LOCAL = _DEVICELESS | frozenset(
    b"bcachefs btrfs cramfs erofs exfat ext2 ext3 ext4 f2fs hfsplus iso9660 jfs msdos nilfs2 ntfs3 "
    b"overlay reiserfs squashfs ubifs udf vfat xfs zfs".split()
)

# f_type of local types that are on a disk or in memory themselves, unlike an overlay.
_LOCAL_MAGIC = frozenset(
    {0xEF53, 0x01021994, 0x58465342, 0x9123683E, 0x858458F6, 0x73717368, 0xE0F5E1E2, 0x2FC12FC1}
    | {0xF2F52010, 0xCA451A4E, 0x9FA0}
)

_OVERLAY_MAGIC = 0x794C7630

_SYS_STATMOUNT = NUMBERS["statmount"]
_SYS_LISTMOUNT = NUMBERS["listmount"]
_THE_ROOT = 0xFFFFFFFFFFFFFFFF
_TYPE = 0x20
_REQUEST = struct.Struct("<IIQQ")
_LISTED_AT_ONCE = 512
_MAX_BYTES = 16 * 1024
_STRINGS_AT = 512
_TYPE_AT = struct.Struct("<36xI")

_ask_mount = raw_syscall(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_long)

_fstatfs = libc["fstatfs"]
_fstatfs.argtypes = (ctypes.c_int, ctypes.c_void_p)

_first_devices: frozenset[bytes] = frozenset()  # of local file systems, when the session began


class MountLine(NamedTuple):
    """A line of mountinfo."""

    number: int
    device: bytes  # the file system's
    point: bytes  # the path that it is mounted at, escaped
    kind: bytes


class LocalMounts:
    """The local mounts of our own mount namespace when this object was made.

    From Linux 6.8 on, no other mount gets their numbers. The cache of repeated execs relies on it.
    """

    __slots__ = ("_local", "id_bit", "same_for_all")

    def __init__(self) -> None:
        found = _listed()
        self.id_bit = STATX_MNT_ID_UNIQUE  # the bit to request from statx
        if not found:
            found = [(each.number, each.kind) for each in _mountinfo("self")]
            self.id_bit = STATX_MNT_ID
        self._local = frozenset(number for number, kind in found if kind in _LOCAL)
        procfs = {number for number, kind in found if kind == b"proc"}
        self.same_for_all = self._local - procfs  # where a path is the same for every process

    def are_local(self, number: int) -> bool:
        return number in self._local


def magic_of(fd: int) -> int:
    """Return the f_type of a file. This asks its file system."""
    buffer = ctypes.create_string_buffer(256)
    if _fstatfs(fd, ctypes.addressof(buffer)) != 0:
        raise last_failure()
    return int.from_bytes(buffer.raw[:8], "little")


def lies_on_a_disk(fd: int) -> bool:
    """Return whether a file is on a disk or in memory. This asks its file system."""
    return _has_magic(fd, _LOCAL_MAGIC)


def sets_times_at_once(fd: int) -> bool:
    """Return whether each write sets the file's times by the clock of this machine.

    A network file system sets them later, by the clock of its server.
    """
    return _has_magic(fd, _LOCAL_MAGIC | {_OVERLAY_MAGIC})


def _has_magic(fd: int, among: frozenset[int]) -> bool:
    try:
        return magic_of(fd) in among
    except OSError:
        return False


def file_system_of(fd: int) -> tuple[str, bool]:
    """Return the type of a file's file system, and whether it is local, without asking it."""
    number = _mount_of(os.getpid(), fd)
    kinds = [each.kind for each in _mountinfo("self") if each.number == number]
    return (kinds[-1].decode("ascii", "replace"), kinds[-1] in _LOCAL) if kinds else ("", False)


def note_first_devices() -> None:
    """Note the local file systems, before the command runs."""
    global _first_devices
    local = (each for each in _mountinfo("self") if each.kind in _LOCAL)
    _first_devices = frozenset(each.device for each in local)


def is_on_local_device(pid: int, holder: int, fd: int) -> bool:
    """Return whether a file that `holder` has open is on a local mount that `pid` sees, or only in
    memory (memfd_create), without asking its file system."""
    number = _mount_of(holder, fd)
    found = [each for each in _mountinfo(pid) if each.number == number]
    if found and all(map(_is_local, found)):
        return True
    memory = os.memfd_create("")
    try:
        return number is not None and number == _mount_of(os.getpid(), memory)
    finally:
        os.close(memory)


def _is_local(mount: MountLine) -> bool:
    """Return whether the mount is local. A disk or overlay must be known from the start."""
    return mount.kind in _DEVICELESS or (mount.kind in _LOCAL and mount.device in _first_devices)


def _mount_of(holder: int, fd: int) -> int | None:
    number = procfs.descriptor_field(holder, fd, b"mnt_id")
    return None if number is None else int(number)


def _listed() -> list[tuple[int, bytes]]:
    """Return the ids and types of all mounts; none before Linux 6.8, or if a container refuses."""
    found: list[tuple[int, bytes]] = []
    buffer = ctypes.create_string_buffer(_MAX_BYTES)
    ids = (ctypes.c_uint64 * _LISTED_AT_ONCE)()
    last = 0
    while True:
        request = _REQUEST.pack(_REQUEST.size, 0, _THE_ROOT, last)
        count = _ask_mount(_SYS_LISTMOUNT, request, ctypes.addressof(ids), _LISTED_AT_ONCE, 0)
        if count <= 0:
            return found
        last = ids[count - 1]
        for number in ids[:count]:
            request = _REQUEST.pack(_REQUEST.size, 0, number, _TYPE)
            if _ask_mount(_SYS_STATMOUNT, request, ctypes.addressof(buffer), _MAX_BYTES, 0) == 0:
                data = buffer.raw
                start = _STRINGS_AT + _TYPE_AT.unpack_from(data)[0]
                found.append((number, data[start : data.index(b"\0", start)]))


def _mountinfo(pid: int | str) -> list[MountLine]:
    return read_mountinfo(procfs.all_contents(f"/proc/{pid}/mountinfo"))


def read_mountinfo(text: bytes) -> list[MountLine]:
    lines = (line.split(b" ") for line in text.split(b"\n") if line)
    return [
        MountLine(int(words[0]), words[2], words[4], words[words.index(b"-", 6) + 1])
        for words in lines
    ]


def unescaped(point: bytes) -> bytes:
    """Return a path of mountinfo, where spaces, tabs, line ends and backslashes are escaped."""
    if b"\\" not in point:
        return point
    return re.sub(rb"\\([0-7]{3})", lambda escaped: bytes([int(escaped[1], 8)]), point)


class _Buffers(_thread._local):
    """A buffer for each thread, because a worker must not overwrite the loop's."""

    def __init__(self) -> None:
        self.own = ctypes.create_string_buffer(256)


_buffers = _Buffers()


class State(NamedTuple):
    """The result of statx."""

    mode: int
    inode: Inode
    size: int
    changed: tuple[int, int]
    mount: int

    @property
    def place(self) -> Place:
        """Return the place, with the requested mount id."""
        device, number = self.inode
        return number, device >> 32, device & 0xFFFFFFFF, self.mount


def place_of(file: bytes | int, mount_id: int = STATX_MNT_ID) -> Place:
    """Return inode, device and mount. Two mount namespaces never share a mount.

    `mount_id` chooses between the two kinds of mount ids.
    """
    inode, major, minor, mount = _INODE_AND_DEVICE.unpack_from(
        _ask_about(file, _STATX_INO | mount_id)
    )
    return inode, major, minor, mount


def mount_of(fd: int) -> int:
    """Return the mount's number, as in /proc/PID/mountinfo."""
    return place_of(fd)[3]


def inode_of(file: bytes | int) -> Inode:
    """Return the inode. Follows links of /proc, even to files that a program serves."""
    number, major, minor, _ = place_of(file)
    return major << 32 | minor, number


def born_at(file: bytes | int) -> Born:
    return read_born(_ask_about(file, _STATX_INO | STATX_BTIME))[1]


def born_sockets(paths: Iterable[str]) -> Iterator[tuple[str, Born]]:
    """Yield the paths of sockets; there may be thousands."""
    buffer = _buffers.own
    address = ctypes.addressof(buffer)
    flags, mask = AT_STATX_DONT_SYNC, _STATX_TYPE | _STATX_INO | STATX_BTIME
    for path in paths:
        if _statx(_SYS_STATX, 0, os.fsencode(path), flags, mask, address) == 0:
            mode, born = read_born(buffer)
            if stat.S_ISSOCK(mode):
                yield path, born


def read_born(found: Buffer) -> tuple[int, Born]:
    mode, number, seconds, nanoseconds, major, minor = _BORN.unpack_from(found)
    return mode, ((major << 32 | minor, number), (seconds, nanoseconds))


def kind_of(path: bytes) -> tuple[int, int, int]:
    """Return the type, and a device's numbers. Follows links of /proc."""
    mode, major, minor = _DEVICE.unpack_from(_ask_about(path, _STATX_TYPE))
    return stat.S_IFMT(mode), major, minor


def known_state_in(folder: int, name: bytes) -> State:
    """Return what the kernel knows about a name, without following a link."""
    flags = _AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC
    return read_state(ask(folder, name, flags, STATX_BASIC_STATS | STATX_MNT_ID))


def may_be_later_in(folder: int, names: Iterable[str], time_ns: int) -> Iterator[str]:
    """Yield the names that changed since then, links, and names that the kernel does not know.

    It takes a quarter of the time of single looks.
    """
    buffer = _buffers.own
    address = ctypes.addressof(buffer)
    flags, mask = _AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, STATX_BASIC_STATS
    read = _MODE_AND_CHANGE.unpack_from
    for name in names:
        if _statx(_SYS_STATX, folder, os.fsencode(name), flags, mask, address) < 0:
            yield name
            continue
        mode, seconds, nanoseconds = read(buffer)
        if seconds * 1_000_000_000 + nanoseconds > time_ns or stat.S_ISLNK(mode):
            yield name


def read_state(found: Buffer) -> State:
    mode, number, size, seconds, nanoseconds, major, minor, mount = _STATE.unpack_from(found)
    return State(mode, (major << 32 | minor, number), size, (seconds, nanoseconds), mount)


def is_immutable(folder: int, name: bytes) -> bool:
    """Return whether no user can change or remove it, as after chattr(1) +i."""
    found = ask(folder, name, _AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC, _STATX_TYPE)
    attributes: int = _ATTRIBUTES.unpack_from(found)[0]
    return bool(attributes & _IMMUTABLE)


def _ask_about(file: bytes | int, mask: int) -> Buffer:
    """Ask for a path, or an open file, without a question to its file system."""
    if isinstance(file, int):
        return ask(file, b"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask)
    folder, path = procfs.at(file)
    return ask(folder, path, AT_STATX_DONT_SYNC, mask)


def ask(folder: int, path: bytes, flags: int, mask: int) -> Buffer:
    """Call statx(2). The result is valid until the thread's next call."""
    buffer = _buffers.own
    if _statx(_SYS_STATX, folder, path, flags, mask, ctypes.addressof(buffer)) < 0:
        raise last_failure()
    return buffer
