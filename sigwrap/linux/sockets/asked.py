"""What a call asks of a socket, copied out of its caller's memory once. Nothing is read again."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator

from sigwrap import calls
from sigwrap.linux.memory import Memory
from sigwrap.linux.seccomp import Notification, int32
from sigwrap.linux.sockets.address import MOST_BYTES
from sigwrap.tuples import NamedTuple

MOST_DATA = 1 << 20  # of one call: a stream takes a part of what it is given
_MOST_CONTROL = 1 << 16
_MOST_PARTS = 1024  # UIO_MAXIOV

_SOCKETCALLS = {
    calls.SYS_SOCKET: ("socket", 3),
    calls.SYS_CONNECT: ("connect", 3),
    calls.SYS_LISTEN: ("listen", 2),
    calls.SYS_SENDTO: ("sendto", 6),
    calls.SYS_SENDMSG: ("sendmsg", 3),
    calls.SYS_SENDMMSG: ("sendmmsg", 4),
}


class Control(NamedTuple):
    """What goes with the data: descriptors, credentials, options."""

    level: int
    kind: int
    data: bytes


class Asked(NamedTuple):
    syscall: str  # by its own name, where it was asked for by socketcall
    fd: int = -1  # the caller's
    address: bytes | None = None  # None: it names none
    data: bytes = b""
    is_cut: bool = False  # there was more data
    control: tuple[Control, ...] = ()
    flags: int = 0
    backlog: int = 0
    socket: tuple[int, int, int] = (0, 0, 0)  # the family, type and protocol of one to be made
    count_at: int = 0  # where the caller is told how much of its first message was sent


def asked(notification: Notification, syscall: str, *, may_wait: bool = False) -> Asked:
    """Raises Unreadable, MayWait, and OSError as the kernel fails the call."""
    arguments: tuple[int, ...] = notification[6:]
    if syscall == "listen":
        return _asked_to_listen(arguments)
    if syscall == "socket":
        return _socket(arguments)
    if syscall == "io_uring_setup":
        return Asked(syscall)
    with Memory(notification.tid, may_wait=may_wait) as memory:
        if syscall == "socketcall":
            syscall, count = _SOCKETCALLS[arguments[0] & 0xFFFFFFFF]
            arguments = struct.unpack(f"<{count}I", memory.block(arguments[1], 4 * count))
            if syscall == "listen":
                return _asked_to_listen(arguments)
            if syscall == "socket":
                return _socket(arguments)
        fd = int32(arguments[0])
        if syscall == "connect":
            return Asked(syscall, fd, _address(memory, arguments[1], int32(arguments[2])))
        if syscall == "sendto":
            data, is_cut = _data(memory, [(arguments[1], arguments[2])])
            address = None
            if arguments[4]:
                address = _address(memory, arguments[4], int32(arguments[5]))
            flags = arguments[3] & 0xFFFFFFFF
            return Asked(syscall, fd, address, data, is_cut, flags=flags)
        layout = _I386 if notification.arch == calls.I386 else _X86_64
        flags_at, count_at = 2, 0
        if syscall == "sendmmsg":  # the first one is sent: no caller may rely on more
            if arguments[2] & 0xFFFFFFFF == 0:
                return Asked(syscall, fd)
            flags_at, count_at = 3, arguments[1] + layout.header.size
        return _message(memory, arguments[1], layout)._replace(
            syscall=syscall, fd=fd, flags=arguments[flags_at] & 0xFFFFFFFF, count_at=count_at
        )


def _asked_to_listen(arguments: tuple[int, ...]) -> Asked:
    return Asked("listen", int32(arguments[0]), backlog=int32(arguments[1]))


def _socket(arguments: tuple[int, ...]) -> Asked:
    family, kind, protocol = map(int32, arguments[:3])
    return Asked("socket", socket=(family, kind, protocol))


def _address(memory: Memory, at: int, size: int) -> bytes:
    if not 0 <= size <= MOST_BYTES:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return memory.block(at, size) if size else b""


class _Layout(NamedTuple):
    """How a message lies in memory."""

    header: struct.Struct  # the name and its size, the parts and their number, the control data
    part: struct.Struct
    control: struct.Struct
    alignment: int
    most: int  # of a size


_X86_64 = _Layout(
    struct.Struct("<Qi4xQQQQ4x4x"), struct.Struct("<QQ"), struct.Struct("<Qii"), 8, (1 << 63) - 1
)
_I386 = _Layout(
    struct.Struct("<IiIIII4x"), struct.Struct("<II"), struct.Struct("<Iii"), 4, (1 << 31) - 1
)


def _message(memory: Memory, at: int, layout: _Layout) -> Asked:
    name, name_size, parts_at, count, control_at, control_size = layout.header.unpack(
        memory.block(at, layout.header.size)
    )
    address = None
    if name:
        if name_size < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        address = _address(memory, name, min(name_size, MOST_BYTES)) or None
    if count > _MOST_PARTS:
        raise OSError(errno.EMSGSIZE, os.strerror(errno.EMSGSIZE))
    parts: list[tuple[int, int]] = []
    if count:
        packed = memory.block(parts_at, count * layout.part.size)
        parts = [(start, size) for start, size in layout.part.iter_unpack(packed)]
    if any(size > layout.most for _, size in parts):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    data, is_cut = _data(memory, parts)
    control: tuple[Control, ...] = ()
    if control_at and control_size:
        if control_size > _MOST_CONTROL:
            raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))
        control = tuple(_controls(memory.block(control_at, control_size), layout))
    return Asked("", -1, address, data, is_cut, control)


def _data(memory: Memory, parts: list[tuple[int, int]]) -> tuple[bytes, bool]:
    found: list[bytes] = []
    room = MOST_DATA
    for start, size in parts:
        if size > room:
            found.append(memory.block(start, room) if room else b"")
            return b"".join(found), True
        if size:
            found.append(memory.block(start, size))
            room -= size
    return b"".join(found), False


def _controls(packed: bytes, layout: _Layout) -> Iterator[Control]:
    at, head = 0, layout.control.size
    while len(packed) - at >= head:
        size, level, kind = layout.control.unpack_from(packed, at)
        if not head <= size <= len(packed) - at:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        yield Control(level, kind, packed[at + _aligned(head, layout) : at + size])
        at += _aligned(size, layout)


def _aligned(size: int, layout: _Layout) -> int:
    return -(-size // layout.alignment) * layout.alignment
