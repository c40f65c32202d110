"""Whose a TCP connection is, asked for by its addresses (sock_diag(7)). The kernel tells of those
in our own network namespace alone."""

from __future__ import annotations

import struct

from sigwrap.bare import socket
from sigwrap.tuples import NamedTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_HEAD = struct.Struct("=IHHII")
_ASKED = struct.Struct("=BBBBI")  # family, protocol, extensions, nothing, states
_PORTS = struct.Struct("!HH")
_ADDRESSES = struct.Struct("=4s12x4s12x")
_NO_COOKIE = struct.pack("=IQ", 0, 0xFFFFFFFFFFFFFFFF)  # of any interface
_TOLD_SIZE = 72  # struct inet_diag_msg
_OWNER = struct.Struct("=II")  # at its end: uid, inode
_ANY_STATE = 0xFFFFFFFF


class Owner(NamedTuple):
    uid: int  # of whoever made the socket
    inode: int


def owner_of(local: tuple[str, int], remote: tuple[str, int]) -> Owner | None:
    """Of the socket that calls `local` its own. None where it isn't there, nothing is told, or no
    process has it open any more."""
    asked = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE) + b"".join(
        (
            _PORTS.pack(local[1], remote[1]),
            _ADDRESSES.pack(socket.inet_aton(local[0]), socket.inet_aton(remote[0])),
            _NO_COOKIE,
        )
    )
    head = _HEAD.pack(_HEAD.size + len(asked), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as line:
            line.send(head + asked)
            told = line.recv(4096, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if len(told) < _HEAD.size + _TOLD_SIZE or _HEAD.unpack_from(told)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    uid, inode = _OWNER.unpack_from(told, _HEAD.size + _TOLD_SIZE - _OWNER.size)
    return Owner(uid, inode) if inode else None
