"""Decodes a call on a socket, and makes it on a duplicate of the socket, in the caller's place.

sigwrap copies the call from the caller's memory once, and the supervisor makes it from that copy:
the caller can change the address in its memory at any time.

connect can block, and other calls can wait for the socket's lock: workers of network/handler.py
make those. O_NONBLOCK and SO_SNDTIMEO belong to the caller's open file, so sigwrap does not rely on
them. Addresses are bytes in the kernel's format. OSError has the kernel's errno.

Descriptors in a message become duplicates of sigwrap's. Credentials in it must be the caller's own.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Iterator, Sequence

from sigwrap import calls
from sigwrap.bare import NamedTuple
from sigwrap.calls import (
    AF_INET,
    AF_INET6,
    AF_UNIX,
    IPPROTO_MPTCP,
    IPPROTO_TCP,
    IPPROTO_UDP,
    SOCK_DGRAM,
    SOCK_STREAM,
)
from sigwrap.errors import KernelError
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import duplicate, let_go
from sigwrap.kernel.libc import libc
from sigwrap.kernel.memory import Memory
from sigwrap.kernel.peer import SO_PEERPIDFD
from sigwrap.kernel.seccomp import Notification, int32, take_a_filter
from sigwrap.kernel.signals import has_ended
from sigwrap.policy.judge.network import LOOPBACK_ADDRESS, Direction, Endpoint, Protocol, plain

MOST_BYTES = 128  # of a sockaddr_storage; a longer address fails the call
_AF_UNSPEC = 0
_FAMILY = struct.Struct("=H")
_PORT = struct.Struct("!H")
_INET_BYTES, _INET6_BYTES = 16, 24
_IN_UNIX = 2  # where the path begins
_MOST_UNIX_BYTES = 110
_MAPPED = bytes(10) + b"\xff\xff"

MOST_DATA = 1 << 20  # for one call; a stream takes a part of it
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

_SOL_SOCKET = 1
_SO_TYPE, _SO_PROTOCOL, _SO_DOMAIN = 3, 38, 39
_SO_PEERCRED = 17
_SO_SNDTIMEO = 21
_MSG_DONTWAIT, _MSG_NOSIGNAL = 0x40, 0x4000
_TIMEVAL = struct.Struct("qq")
_INT = struct.Struct("i")
_UCRED = struct.Struct("=iII")  # pid, uid, gid

_connect, _sendmsg, _listen = libc.connect, libc.sendmsg, libc.listen
_getsockopt, _getsockname = libc.getsockopt, libc.getsockname

_SCM_RIGHTS, _SCM_CREDENTIALS = 1, 2
_MOST_DESCRIPTORS = 253  # SCM_MAX_FD
_MAY_NAME_OTHERS = 1 << 21  # CAP_SYS_ADMIN


class SocketKind(NamedTuple):
    domain: int
    type: int
    protocol: int

    @property
    def transport(self) -> Protocol:
        if self.domain == AF_UNIX:
            return Protocol.UNIX
        if self.type == SOCK_STREAM and self.protocol in (IPPROTO_TCP, IPPROTO_MPTCP):
            return Protocol.TCP
        if self.type == SOCK_DGRAM and self.protocol == IPPROTO_UDP:
            return Protocol.UDP
        return Protocol.OTHER


def endpoint(
    address: bytes, kind: SocketKind, direction: Direction, *, sends: bool = False
) -> Endpoint | None:
    """Return what an address means to an IP or unix socket. `sends`: the call sends to it, and does
    not connect. None if it reaches no socket: the kernel fails the call, or ends a connection."""
    if len(address) < _FAMILY.size:
        return None
    (family,) = _FAMILY.unpack_from(address)
    if kind.domain == AF_UNIX:
        if family != AF_UNIX or len(address) > _MOST_UNIX_BYTES:
            return None
        return Endpoint(direction, Protocol.UNIX, socket=_name(address[_IN_UNIX:]))
    if family == _AF_UNSPEC and sends and kind.type != SOCK_STREAM:
        family = AF_INET  # the kernel sends a datagram there, but ends a stream's connection
    if family == AF_INET and len(address) >= _INET_BYTES:
        packed = address[4:8]
    elif family == AF_INET6 and kind.domain == AF_INET6 and len(address) >= _INET6_BYTES:
        packed = plain(address[8:24])
    else:
        return None
    if direction is Direction.CONNECT and not any(packed):
        packed = LOOPBACK_ADDRESS[len(packed)]  # as the kernel does
    (port,) = _PORT.unpack_from(address, 2)
    return Endpoint(direction, kind.transport, packed, port)


def concrete(address: bytes, kind: SocketKind) -> bytes:
    """Return the address with the loopback address for 0.0.0.0 and ::. The one that the kernel
    would use depends on the socket's own address, which can change before the call is made."""
    if kind.domain not in (AF_INET, AF_INET6) or len(address) < _INET_BYTES:
        return address
    (family,) = _FAMILY.unpack_from(address)
    at, size = (8, 16) if family == AF_INET6 else (4, 4)
    asked = address[at : at + size]
    if len(asked) != size or any(plain(asked)):
        return address
    found = _MAPPED + LOOPBACK_ADDRESS[4] if any(asked) else LOOPBACK_ADDRESS[size]
    return address[:at] + found + address[at + size :]


def _name(path: bytes) -> str:
    """Return a path, or `@` and a name without a file; empty if the kernel chooses a name.

    A path never begins with `@`: that could be the name of another process's socket.
    """
    if not path:
        return ""
    if path[0] == 0:
        return f"@{os.fsdecode(path[1:])}"
    found = os.fsdecode(path.partition(b"\0")[0])
    return f"./{found}" if found.startswith("@") else found


def unix_path(address: bytes) -> bytes:
    """Return the path of a socket file; empty if there is none."""
    return address[_IN_UNIX:].partition(b"\0")[0]


def address_of_file(fd: int) -> bytes:
    """Return an address of the socket file that sigwrap has open as `fd`."""
    return _FAMILY.pack(AF_UNIX) + b"/proc/self/fd/%d\0" % fd


class Control(NamedTuple):
    """Control data of a message: descriptors, credentials, options."""

    level: int
    kind: int
    data: bytes


class SocketCall(NamedTuple):
    syscall: str  # its own name, also inside socketcall
    fd: int = -1  # the caller's
    address: bytes | None = None  # None: the call has no address
    data: bytes = b""
    is_cut: bool = False  # there was more data
    control: tuple[Control, ...] = ()
    flags: int = 0
    backlog: int = 0
    socket: tuple[int, int, int] = (0, 0, 0)  # family, type and protocol of a new socket
    count_at: int = 0  # where the caller wants the size of its first sent message


def read_call(notification: Notification, syscall: str, *, may_wait: bool = False) -> SocketCall:
    """Copy a call from the caller's memory.

    Raises WouldBlock, and the OSError with which the kernel would fail the call.
    """
    arguments: tuple[int, ...] = notification[6:]
    if syscall == "socketcall":
        syscall, count = _SOCKETCALLS[arguments[0] & 0xFFFFFFFF]
        with Memory(notification.tid, may_wait=may_wait) as memory:
            arguments = struct.unpack(f"<{count}I", memory.block(arguments[1], 4 * count))
    fd = int32(arguments[0])
    match syscall:
        case "io_uring_setup":
            return SocketCall(syscall)
        case "listen":
            return SocketCall(syscall, fd, backlog=int32(arguments[1]))
        case "socket":
            return SocketCall(syscall, socket=(fd, int32(arguments[1]), int32(arguments[2])))
    with Memory(notification.tid, may_wait=may_wait) as memory:
        if syscall == "connect":
            return SocketCall(syscall, fd, _address(memory, arguments[1], int32(arguments[2])))
        if syscall == "sendto":
            data, is_cut = _data(memory, [(arguments[1], arguments[2])])
            address = None
            if arguments[4]:
                address = _address(memory, arguments[4], int32(arguments[5]))
            flags = arguments[3] & 0xFFFFFFFF
            return SocketCall(syscall, fd, address, data, is_cut, flags=flags)
        layout = _I386 if notification.arch == calls.I386 else _NATIVE
        flags_at, count_at = 2, 0
        if syscall == "sendmmsg":  # send only the first message, as the kernel may do
            if arguments[2] & 0xFFFFFFFF == 0:
                return SocketCall(syscall, fd)
            flags_at, count_at = 3, arguments[1] + layout.header.size
        return _message(memory, arguments[1], layout)._replace(
            syscall=syscall, fd=fd, flags=arguments[flags_at] & 0xFFFFFFFF, count_at=count_at
        )


def _address(memory: Memory, at: int, size: int) -> bytes:
    if not 0 <= size <= MOST_BYTES:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    return memory.block(at, size) if size else b""


class _Layout(NamedTuple):
    """The layout of a message in memory."""

    header: struct.Struct  # name and its size, parts and their number, control data
    part: struct.Struct
    control: struct.Struct
    alignment: int
    most: int  # of a size


_NATIVE = _Layout(
    struct.Struct("<Qi4xQQQQ4x4x"), struct.Struct("<QQ"), struct.Struct("<Qii"), 8, (1 << 63) - 1
)
_I386 = _Layout(
    struct.Struct("<IiIIII4x"), struct.Struct("<II"), struct.Struct("<Iii"), 4, (1 << 31) - 1
)


def _message(memory: Memory, at: int, layout: _Layout) -> SocketCall:
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
    return SocketCall("", -1, address, data, is_cut, control)


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


def kind_of(fd: int) -> SocketKind:
    value, size = ctypes.c_int(), ctypes.c_uint(_INT.size)
    at, size_at = ctypes.byref(value), ctypes.byref(size)
    found = []
    for option in (_SO_DOMAIN, _SO_TYPE, _SO_PROTOCOL):
        _check(_getsockopt(fd, _SOL_SOCKET, option, at, size_at))
        found.append(value.value)
    return SocketKind._make(found)


def own_address(fd: int) -> bytes:
    buffer = ctypes.create_string_buffer(128)
    size = ctypes.c_uint(128)
    _check(_getsockname(fd, buffer, ctypes.byref(size)))
    return buffer.raw[: size.value]


def listener(fd: int) -> tuple[int, int]:
    """Return the pid and user of the process that called listen(2) at a unix socket's other end.
    The pid is 0 in a namespace that is not below ours, and for a datagram socket."""
    pid, uid, _gid = _option(fd, _SO_PEERCRED, _UCRED)
    return pid, uid


def identity_of_listener(fd: int) -> tuple[int, bool]:
    """Return the number that tells this listener from others of its pid, and whether it has ended.

    The number is 0 if the kernel does not say, and before Linux 6.9 it is the same for all.
    """
    try:
        (pidfd,) = _option(fd, SO_PEERPIDFD)
    except OSError:
        return 0, False
    try:
        return os.fstat(pidfd).st_ino, has_ended(pidfd)
    finally:
        os.close(pidfd)


def waits(fd: int) -> bool:
    """Return whether calls on the socket block by default."""
    return not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK


def waits_for_s(fd: int) -> float | None:
    """Return the limit of SO_SNDTIMEO, which also applies to connect; None: no limit."""
    seconds, microseconds = _option(fd, _SO_SNDTIMEO, _TIMEVAL)
    return seconds + microseconds / 1e6 if seconds or microseconds else None


def connect(fd: int, address: bytes) -> None:
    """Connect as the caller would, blocking or not. EINPROGRESS and EALREADY: the kernel continues;
    EAGAIN: the other end has no room."""
    _check(_connect(fd, address, len(address)))


def make(family: int, kind: int, protocol: int) -> int:
    return _check(libc.socket(family, kind | os.O_CLOEXEC, protocol))


def listen(fd: int, backlog: int) -> None:
    _check(_listen(fd, backlog))


def listen_from_child(fd: int, backlog: int) -> None:
    """Call listen(2) on a unix socket in a child, which exits.

    The kernel tells each client which process called listen(2). If that were this process, a socket
    of the session would look like sigwrap's own. The child is under a filter, like processes in a
    session.
    """
    readable, writable = os.pipe()
    try:
        try:
            _listen_in_child(fd, backlog, writable)
        finally:
            os.close(writable)
        (error,) = _INT.unpack(os.read(readable, _INT.size) or _INT.pack(errno.EAGAIN))
    finally:
        os.close(readable)
    if error:
        raise OSError(error, os.strerror(error))


def _listen_in_child(fd: int, backlog: int, writable: int) -> None:
    if os.fork() == 0:
        try:
            take_a_filter()
            failed = _listen(fd, backlog) != 0
            os.write(writable, _INT.pack(ctypes.get_errno() if failed else 0))
        except KernelError as refusal:
            os.write(writable, _INT.pack(refusal.errno))
        finally:
            os._exit(0)


def send(
    fd: int, data: bytes, flags: int, address: bytes | None, control: Sequence[Control]
) -> int:
    """Send a message, and return the number of bytes. EPIPE: the caller would get a signal."""
    name = ctypes.create_string_buffer(address, len(address)) if address is not None else None
    text = ctypes.create_string_buffer(data, len(data) or 1)
    part = ctypes.create_string_buffer(_NATIVE.part.pack(ctypes.addressof(text), len(data)))
    packed = _packed(control)
    with_it = ctypes.create_string_buffer(packed, len(packed) or 1)
    header = _NATIVE.header.pack(
        ctypes.addressof(name) if name is not None else 0,
        len(address or b""),
        ctypes.addressof(part),
        1,
        ctypes.addressof(with_it) if packed else 0,
        len(packed),
    )
    return _check(_sendmsg(fd, header, flags | _MSG_DONTWAIT | _MSG_NOSIGNAL))


def _packed(control: Iterable[Control]) -> bytes:
    found = b""
    for level, kind, data in control:
        found += bytes(-len(found) % 8)
        found += _NATIVE.control.pack(_NATIVE.control.size + len(data), level, kind) + data
    return found


def _option(fd: int, name: int, layout: struct.Struct = _INT) -> tuple[int, ...]:
    buffer = ctypes.create_string_buffer(layout.size)
    got = ctypes.c_uint(layout.size)
    _check(_getsockopt(fd, _SOL_SOCKET, name, buffer, ctypes.byref(got)))
    return layout.unpack(buffer.raw)


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


class Carried:
    """The control data of a caller's message, `ready` for a message from sigwrap."""

    __slots__ = ("_taken", "ready")

    def __init__(self, tid: int, pid: int, control: Sequence[Control]) -> None:
        """Convert the data. Raises OSError as the caller's call would fail."""
        self._taken: list[int] = []
        self.ready: list[Control] = []
        try:
            for level, kind, data in control:
                if (level, kind) == (_SOL_SOCKET, _SCM_RIGHTS):
                    data = self._duplicates(tid, data)
                elif (level, kind) == (_SOL_SOCKET, _SCM_CREDENTIALS):
                    data = _own(pid, data)
                self.ready.append(Control(level, kind, data))
        except BaseException:
            self.close()
            raise

    def _duplicates(self, tid: int, data: bytes) -> bytes:
        count = len(data) // 4
        if len(self._taken) + count > _MOST_DESCRIPTORS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        for number in struct.unpack_from(f"={count}i", data):
            self._taken.append(duplicate(tid, number))
        return struct.pack(f"={count}i", *self._taken[len(self._taken) - count :])

    def close(self) -> None:
        while self._taken:
            let_go(self._taken.pop())


def _own(pid: int, data: bytes) -> bytes:
    """Return credentials that may be sent. A supervisor that runs as root could claim any, and
    another one only its own."""
    if len(data) != _UCRED.size:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    claimed, uid, gid = _UCRED.unpack(data)
    rights = procfs.rights(pid)
    numbers = procfs.numbers(pid, "NSpid")
    if rights is None or claimed not in numbers[-1:] or (uid, gid) != (rights.uid, rights.gid):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
    ours = procfs.rights("thread-self")
    may_name_it = ours is not None and ours.capabilities & _MAY_NAME_OTHERS
    return _UCRED.pack(pid if may_name_it else os.getpid(), uid, gid)
