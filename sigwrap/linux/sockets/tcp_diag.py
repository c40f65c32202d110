"""Whose a TCP connection is, asked for by its addresses (sock_diag(7)). The kernel tells of those
in our own network namespace alone."""

from __future__ import annotations

import struct

from sigwrap.bare import socket
from sigwrap.linux.sockets.diag import answered
from sigwrap.tuples import NamedTuple

_ASKED = struct.Struct("=BBBBI")  # family, protocol, extensions, nothing, states
_PORTS = struct.Struct("!HH")
_ADDRESSES = struct.Struct("=4s12x4s12x")
_NO_COOKIE = struct.pack("=IQ", 0, 0xFFFFFFFFFFFFFFFF)  # of any interface
_TOLD_SIZE = 72  # struct inet_diag_msg
_IDENTITY = slice(4, 40)  # of it: ports and addresses, as they are asked for
_OWNER = struct.Struct("=II")  # at its end: uid, inode
_ANY_STATE = 0xFFFFFFFF


class Owner(NamedTuple):
    uid: int  # of whoever made the socket
    inode: int


def owner_of(local: tuple[str, int], remote: tuple[str, int]) -> Owner | None:
    """Of the socket that calls `local` its own. None where it isn't there, nothing is told, or no
    process has it open any more. In its place the kernel tells of one that listens at that port."""
    identity = _PORTS.pack(local[1], remote[1]) + _ADDRESSES.pack(
        socket.inet_aton(local[0]), socket.inet_aton(remote[0])
    )
    asked = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    told = answered(asked + identity + _NO_COOKIE, _TOLD_SIZE)
    if told is None or told[_IDENTITY] != identity:
        return None
    uid, inode = _OWNER.unpack_from(told, _TOLD_SIZE - _OWNER.size)
    return Owner(uid, inode) if inode else None
