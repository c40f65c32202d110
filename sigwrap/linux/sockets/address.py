"""What an address means to the socket that it is for. It was copied, and what is done is done with
the copy: the caller can write another one in its place at any time."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

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
from sigwrap.policy.judge.network import LOOPBACK_ADDRESS, Direction, Endpoint, Protocol, plain
from sigwrap.tuples import NamedTuple

MOST_BYTES = 128  # of a sockaddr_storage; with more a call fails
_AF_UNSPEC = 0
_FAMILY = struct.Struct("=H")
_PORT = struct.Struct("!H")
_INET_BYTES, _INET6_BYTES = 16, 24
_IN_UNIX = 2  # where the path begins
_MOST_UNIX_BYTES = 110
_NOBODY, _MAPPED = bytes(16), bytes(10) + b"\xff\xff"


class Kind(NamedTuple):
    """Of a socket."""

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


class Nowhere(Exception):
    """It stands for nobody: the kernel fails the call, or undoes a connection."""


class Elsewhere(Exception):
    """Of a family that no rule is about."""

    def __init__(self, family: int) -> None:
        super().__init__(family)
        self.family = family


def endpoint(address: bytes, kind: Kind, direction: Direction, *, sends: bool = False) -> Endpoint:
    """`sends`: with the address, instead of connecting to it. Raises Nowhere and Elsewhere."""
    if len(address) < _FAMILY.size:
        raise Nowhere
    (family,) = _FAMILY.unpack_from(address)
    if kind.domain == AF_UNIX:
        if family != AF_UNIX or len(address) > _MOST_UNIX_BYTES:
            raise Nowhere
        return Endpoint(direction, Protocol.UNIX, socket=_name(address[_IN_UNIX:]))
    if kind.domain not in (AF_INET, AF_INET6):
        raise Elsewhere(kind.domain)
    if family == _AF_UNSPEC and sends and kind.type != SOCK_STREAM:
        family = AF_INET  # a datagram goes there all the same; a connection is undone by it
    if family == AF_INET and len(address) >= _INET_BYTES:
        packed = address[4:8]
    elif family == AF_INET6 and kind.domain == AF_INET6 and len(address) >= _INET6_BYTES:
        packed = plain(address[8:24])
    else:
        raise Nowhere
    if direction is Direction.CONNECT and not any(packed):
        packed = LOOPBACK_ADDRESS[len(packed)]  # so the kernel takes it
    (port,) = _PORT.unpack_from(address, 2)
    return Endpoint(direction, kind.transport, packed, port)


def concrete(address: bytes, kind: Kind, own: Callable[[], bytes]) -> bytes:
    """With what the kernel puts in the place of 0.0.0.0 and ::, which depends on what the socket
    itself is bound to (`own`): so this is judged and done, also where it is bound meanwhile."""
    if kind.domain not in (AF_INET, AF_INET6) or len(address) < _INET_BYTES:
        return address
    (family,) = _FAMILY.unpack_from(address)
    at, size = (8, 16) if family == AF_INET6 else (4, 4)
    asked = address[at : at + size]
    if len(asked) != size or any(plain(asked)):
        return address
    bound = own()[8:24] if kind.domain == AF_INET6 else _MAPPED + own()[4:8]
    is_mapped = bound.startswith(_MAPPED)
    if asked == _NOBODY:
        found = _MAPPED + LOOPBACK_ADDRESS[4] if is_mapped else LOOPBACK_ADDRESS[16]
    else:
        packed = bound[12:] if is_mapped and any(bound[12:]) else LOOPBACK_ADDRESS[4]
        found = packed if size == 4 else _MAPPED + packed
    return address[:at] + found + address[at + size :]


def _name(path: bytes) -> str:
    """A path, `@` and a name without a file, or nothing where the kernel makes one up."""
    if not path:
        return ""
    if path[0] == 0:
        return f"@{os.fsdecode(path[1:])}"
    return os.fsdecode(path.partition(b"\0")[0])


def unix_path(address: bytes) -> bytes:
    """Where it leads to a file; else empty."""
    return address[_IN_UNIX:].partition(b"\0")[0]


def of_file(fd: int) -> bytes:
    """An address by which we connect to the socket file that we hold by `fd`."""
    return _FAMILY.pack(AF_UNIX) + b"/proc/self/fd/%d\0" % fd
