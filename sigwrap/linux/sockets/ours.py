"""A duplicate of a caller's socket: what it is, and calls on it. connect waits, and others do for
the socket's lock: run/network.py leaves those to workers. O_NONBLOCK and SO_SNDTIMEO belong to the
caller's open file, so nothing relies on them.

The addresses are bytes as the kernel takes them, so it makes of them what it would have made of the
caller's. OSError with the kernel's errno.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Sequence

from sigwrap.errors import KernelError
from sigwrap.linux.libc import libc
from sigwrap.linux.memory import write_memory
from sigwrap.linux.seccomp import take_a_filter
from sigwrap.linux.sockets.address import Kind
from sigwrap.linux.sockets.asked import Control

_SOL_SOCKET = 1
_SO_TYPE, _SO_PROTOCOL, _SO_DOMAIN = 3, 38, 39
_SO_PEERCRED = 17
_SO_SNDTIMEO = 21
_MSG_DONTWAIT, _MSG_NOSIGNAL = 0x40, 0x4000
_TIMEVAL = struct.Struct("qq")
_INT = struct.Struct("i")
_UCRED = struct.Struct("=iII")
_CONTROL = struct.Struct("Qii")
_HEADER = struct.Struct("QI4xQQQQi4x")
_PART = struct.Struct("QQ")

_connect, _sendmsg, _listen = libc.connect, libc.sendmsg, libc.listen
_getsockopt, _getsockname = libc.getsockopt, libc.getsockname


def kind_of(fd: int) -> Kind:
    return Kind(_option(fd, _SO_DOMAIN), _option(fd, _SO_TYPE), _option(fd, _SO_PROTOCOL))


def own_address(fd: int) -> bytes:
    buffer = ctypes.create_string_buffer(128)
    size = ctypes.c_uint(128)
    _check(_getsockname(fd, buffer, ctypes.byref(size)))
    return buffer.raw[: size.value]


def listener(fd: int) -> tuple[int, int]:
    """The pid and the user of who has called listen(2) at the other end of a unix socket; 0 for a
    pid in a namespace that isn't below ours, and of a socket that takes datagrams."""
    pid, uid, _gid = _UCRED.unpack(_option_bytes(fd, _SO_PEERCRED, _UCRED.size))
    return pid, uid


def waits(fd: int) -> bool:
    """A call on it does, unless it says otherwise."""
    return not fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK


def waits_for_s(fd: int) -> float | None:
    """How long at most, to send or to connect."""
    seconds, microseconds = _TIMEVAL.unpack(_option_bytes(fd, _SO_SNDTIMEO, _TIMEVAL.size))
    return seconds + microseconds / 1e6 if seconds or microseconds else None


def connect(fd: int, address: bytes) -> None:
    """Waits where the caller's own connect would. EINPROGRESS and EALREADY: it goes on; EAGAIN:
    there is no room at the other end."""
    _check(_connect(fd, address, len(address)))


def make(family: int, kind: int, protocol: int) -> int:
    return _check(libc.socket(family, kind | os.O_CLOEXEC, protocol))


def listen(fd: int, backlog: int) -> None:
    _check(_listen(fd, backlog))


def listen_as_nobody(fd: int, backlog: int) -> None:
    """For a unix socket, the kernel tells whoever connects which process called listen(2). If that
    were this one, a socket of the session would pass for sigwrap's own. So a child calls it, and
    ends; as long as it is there, it is under a filter as those are who are in a session."""
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


def _listen_in_child(fd: int, backlog: int, told: int) -> None:
    if os.fork() == 0:
        try:
            take_a_filter()
            failed = _listen(fd, backlog) != 0
            os.write(told, _INT.pack(ctypes.get_errno() if failed else 0))
        except KernelError as refusal:
            os.write(told, _INT.pack(refusal.errno))
        finally:
            os._exit(0)


def send(
    fd: int, data: bytes, flags: int, address: bytes | None, control: Sequence[Control]
) -> int:
    """How much of it was. EPIPE: the caller would get a signal."""
    name = ctypes.create_string_buffer(address, len(address)) if address is not None else None
    text = ctypes.create_string_buffer(data, len(data) or 1)
    part = ctypes.create_string_buffer(_PART.pack(ctypes.addressof(text), len(data)))
    packed = _packed(control)
    with_it = ctypes.create_string_buffer(packed, len(packed) or 1)
    header = _HEADER.pack(
        ctypes.addressof(name) if name is not None else 0,
        len(address or b""),
        ctypes.addressof(part),
        1,
        ctypes.addressof(with_it) if packed else 0,
        len(packed),
        0,
    )
    return _check(_sendmsg(fd, header, flags | _MSG_DONTWAIT | _MSG_NOSIGNAL))


def tell_count(tid: int, at: int, count: int) -> None:
    """Into the caller's memory, where it asked for that."""
    write_memory(tid, at, _INT.pack(count))


def _packed(control: Iterable[Control]) -> bytes:
    found = b""
    for level, kind, data in control:
        found += bytes(-len(found) % 8)
        found += _CONTROL.pack(_CONTROL.size + len(data), level, kind) + data
    return found


def _option(fd: int, name: int) -> int:
    (value,) = _INT.unpack(_option_bytes(fd, name, _INT.size))
    return int(value)


def _option_bytes(fd: int, name: int, size: int) -> bytes:
    buffer = ctypes.create_string_buffer(size)
    got = ctypes.c_uint(size)
    _check(_getsockopt(fd, _SOL_SOCKET, name, buffer, ctypes.byref(got)))
    return buffer.raw


def _check(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
