"""What the kernel tells of a unix socket, asked for by its number (sock_diag(7)). It knows of those
in our own network namespace alone."""

from __future__ import annotations

import os
import struct
import sys

from sigwrap.bare import socket
from sigwrap.tuples import NamedTuple

SHOW_NAME, SHOW_FILE, SHOW_PEER = 1, 2, 4
NAME, FILE, PEER = 0, 1, 2  # UNIX_DIAG_NAME, UNIX_DIAG_VFS, UNIX_DIAG_PEER
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_SO_COOKIE = 57
_ANY_COOKIE = (1 << 64) - 1
_LISTENS = 10  # TCP_LISTEN, for unix sockets as well
_ASKED = struct.Struct("=BBHIIIQ")
_HEAD = struct.Struct("=IHHII")
_TOLD = struct.Struct("=BBBBIQ")
_ATTRIBUTE = struct.Struct("=HH")
_NUMBERS = struct.Struct("=II")  # of an inode, and its device


class Named(NamedTuple):
    """A socket. Its number can be another's later, its cookie can't."""

    number: int
    cookie: int


def named(fd: int) -> Named:
    return Named(number_of(fd), _cookie(fd))


def number_of(fd: int) -> int:
    return os.fstat(fd).st_ino & 0xFFFFFFFF


def _cookie(fd: int) -> int:
    end = socket.socket(fileno=fd)
    try:
        return int.from_bytes(end.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8), "little")
    finally:
        end.detach()


def file_of(asked: Named) -> tuple[int, int] | None:
    """The number of its file, and of that one's device, which some file systems call otherwise.
    None where it has none, or nothing is told."""
    told = told_of(asked, SHOW_FILE)
    numbers = told.get(FILE, b"") if told is not None else b""
    if len(numbers) != _NUMBERS.size:
        return None
    number, device = _NUMBERS.unpack(numbers)
    return number, device


def told_of(asked: Named, show: int) -> dict[int, bytes] | None:
    """None where it isn't there, or nothing is told."""
    told = _told(asked.number, show, asked.cookie)
    return None if told is None else _attributes(told[_TOLD.size :])


def listening_at(number: int) -> str:
    """The path or `@name` of a unix socket that accepts connections; empty for any other."""
    told = _told(number, SHOW_NAME, _ANY_COOKIE)
    if told is None or _TOLD.unpack_from(told)[2] != _LISTENS:
        return ""
    name = os.fsdecode(_attributes(told[_TOLD.size :]).get(NAME, b""))
    return f"@{name[1:]}" if name.startswith("\0") else name.rstrip("\0")


def peer_of(number: int) -> int:
    """The number of the unix socket that this one is connected to; 0 for none, -1 where nothing is
    told, as of one in another network namespace."""
    told = _told(number, SHOW_PEER, _ANY_COOKIE)
    if told is None:
        return -1
    return int.from_bytes(_attributes(told[_TOLD.size :]).get(PEER, b"")[:4], sys.byteorder)


def _told(number: int, show: int, cookie: int) -> bytes | None:
    request = _ASKED.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, number, show, cookie)
    return answered(request, _TOLD.size)


def answered(request: bytes, size: int) -> bytes | None:
    """What the kernel tells, of at least this size; None where it tells nothing."""
    head = _HEAD.pack(_HEAD.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as line:
            line.send(head + request)
            told = line.recv(4096, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if len(told) < _HEAD.size + size or _HEAD.unpack_from(told)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    return told[_HEAD.size :]


def _attributes(packed: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(packed) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(packed)
        if size < _ATTRIBUTE.size:
            break
        found[kind] = packed[_ATTRIBUTE.size : size]
        packed = packed[-(-size // 4) * 4 :]
    return found
