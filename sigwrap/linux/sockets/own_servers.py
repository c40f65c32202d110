"""Servers of the session itself, which are no way out of it, whatever their sockets are called.

Each is noted as it begins to listen, and the kernel is asked whether it is still there before
somebody is told to be connecting to it: a file's number can be another file's later.
"""

from __future__ import annotations

import os
import struct

from sigwrap.bare import socket
from sigwrap.linux.paths import Inode
from sigwrap.linux.sockets import ours
from sigwrap.tuples import NamedTuple

_MOST = 1000
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_SHOW_FILE = 2
_FILE = 1  # UNIX_DIAG_VFS
_ASKED = struct.Struct("=IHHII" + "BBHIIIQ")  # the head, and what is asked
_HEAD = struct.Struct("=IHHII")
_TOLD = struct.Struct("=BBBBIQ")
_ATTRIBUTE = struct.Struct("=HH")
_NUMBERS = struct.Struct("=II")  # of an inode, and its device

_File = tuple[int, int]


class _Server(NamedTuple):
    number: int
    cookie: int


class OwnServers:
    def __init__(self) -> None:
        self._by_file: dict[_File, _Server] = {}
        self._by_name: dict[str, _Server] = {}

    def note(self, fd: int, name: str) -> None:
        """It listens. `name`: one without a file, or empty."""
        server = _Server(os.fstat(fd).st_ino & 0xFFFFFFFF, ours.cookie(fd))
        file = _file_of(server)
        if name.startswith("@"):
            self._by_name[name] = server
        elif file is not None:
            self._by_file[file] = server
        if len(self._by_name) > _MOST:
            del self._by_name[next(iter(self._by_name))]
        if len(self._by_file) > _MOST:
            del self._by_file[next(iter(self._by_file))]

    def has_file(self, inode: Inode) -> bool:
        device, number = inode
        major, minor = device >> 32, device & 0xFFFFFFFF
        file = number & 0xFFFFFFFF, major << 20 | minor
        server = self._by_file.get(file)
        return server is not None and _file_of(server) == file

    def has_name(self, name: str) -> bool:
        server = self._by_name.get(name)
        return server is not None and _is_there(server)


def _file_of(server: _Server) -> _File | None:
    told = _ask(server)
    at = _HEAD.size + _TOLD.size
    while told is not None and len(told) - at >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(told, at)
        if kind == _FILE and size >= _ATTRIBUTE.size + _NUMBERS.size:
            number, device = _NUMBERS.unpack_from(told, at + _ATTRIBUTE.size)
            return number, device
        if size < _ATTRIBUTE.size:
            break
        at += -(-size // 4) * 4
    return None


def _is_there(server: _Server) -> bool:
    return _ask(server) is not None


def _ask(server: _Server) -> bytes | None:
    """Of our own network namespace alone: of others nothing is known."""
    request = _ASKED.pack(
        _ASKED.size, _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0,
        socket.AF_UNIX, 0, 0, 0xFFFFFFFF, server.number, _SHOW_FILE, server.cookie,
    )  # fmt: skip
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as line:
            line.send(request)
            told = line.recv(4096, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if len(told) < _HEAD.size + _TOLD.size or _HEAD.unpack_from(told)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    return told
