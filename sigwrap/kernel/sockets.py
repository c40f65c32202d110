"""Ask the kernel about sockets: their peers, and which process listens at a local port."""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Iterator

from sigwrap.bare import NamedTuple, socket
from sigwrap.kernel import procfs
from sigwrap.kernel.peer import is_supervised

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
_NUMBERS = struct.Struct("=II")  # an inode's number and its device


class Named(NamedTuple):
    """A socket. The kernel can reuse its number, but not its cookie."""

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
    """Return the number of a socket's file and its device, as the kernel has them; some file
    systems show another device. None if there is no file, or no answer."""
    told = told_of(asked, SHOW_FILE)
    numbers = told.get(FILE, b"") if told is not None else b""
    if len(numbers) != _NUMBERS.size:
        return None
    number, device = _NUMBERS.unpack(numbers)
    return number, device


def told_of(asked: Named, show: int) -> dict[int, bytes] | None:
    """Return attributes of a socket. None if it is gone, or there is no answer."""
    told = _told(asked.number, show, asked.cookie)
    return None if told is None else _attributes(told[_TOLD.size :])


def listening_at(number: int) -> str:
    """Return the path or `@name` of a unix socket that accepts connections; empty for others."""
    told = _told(number, SHOW_NAME, _ANY_COOKIE)
    if told is None or _TOLD.unpack_from(told)[2] != _LISTENS:
        return ""
    name = os.fsdecode(_attributes(told[_TOLD.size :]).get(NAME, b""))
    return f"@{name[1:]}" if name.startswith("\0") else name.rstrip("\0")


def peer_of(number: int) -> int:
    """Return the number of the unix socket that this one is connected to. 0: none; -1: no answer,
    for example because it is in another network namespace."""
    told = _told(number, SHOW_PEER, _ANY_COOKIE)
    if told is None:
        return -1
    return int.from_bytes(_attributes(told[_TOLD.size :]).get(PEER, b"")[:4], sys.byteorder)


def _told(number: int, show: int, cookie: int) -> bytes | None:
    request = _ASKED.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, number, show, cookie)
    return _answered(request, _TOLD.size)


def _answered(request: bytes, size: int) -> bytes | None:
    """Return the kernel's answer if it has at least this size, or None."""
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


# TCP connections

_ASKED_INET = struct.Struct("=BBBBI")  # family, protocol, extensions, nothing, states
_PORTS = struct.Struct("!HH")
_ADDRESSES = struct.Struct("=4s12x4s12x")
_NO_COOKIE = struct.pack("=IQ", 0, 0xFFFFFFFFFFFFFFFF)  # for any interface
_INET_TOLD_BYTES = 72  # struct inet_diag_msg
_IDENTITY = slice(4, 40)  # its ports and addresses, as requested
_OWNER = struct.Struct("=II")  # at the end: uid, inode
_ANY_STATE = 0xFFFFFFFF


class Owner(NamedTuple):
    uid: int  # the user that made the socket
    inode: int


def owner_of(local: tuple[str, int], remote: tuple[str, int]) -> Owner | None:
    """Return the owner of the socket whose own address is `local`. None if it is gone, there is no
    answer, or no process has it open. The kernel may answer for a listener at that port instead."""
    identity = _PORTS.pack(local[1], remote[1]) + _ADDRESSES.pack(
        socket.inet_aton(local[0]), socket.inet_aton(remote[0])
    )
    asked = _ASKED_INET.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY_STATE)
    told = _answered(asked + identity + _NO_COOKIE, _INET_TOLD_BYTES)
    if told is None or told[_IDENTITY] != identity:
        return None
    uid, inode = _OWNER.unpack_from(told, _INET_TOLD_BYTES - _OWNER.size)
    return Owner(uid, inode) if inode else None


# Which process listens at a local port. A supervised process could take the place of the expected
# server there, and give its own answers.

_LISTENS_HEX = b"0A"  # TCP_LISTEN
_READ_BYTES = 1 << 16
_MOST_BYTES = 8 << 20  # of the table; its listeners come first


class ListenerCheck:
    def __init__(self) -> None:
        self._last_holder: tuple[int, int] | None = None  # a process and its descriptor

    def objection(self, address: str, port: int, deadline_s: float) -> str:
        """Return why an answer from there must not be trusted, or "". Raises TimeoutError if there
        are too many processes to look through by then."""
        found = _listeners(address, port)
        if not found:
            return "the listening process is gone"
        for listener in found:
            if objection := self._objection_to(listener, deadline_s):
                return objection
        return ""

    def _objection_to(self, listener: Owner, deadline_s: float) -> str:
        """Processes of another user are not supervised by this one, and cannot be inspected."""
        if os.geteuid() not in (0, listener.uid):
            return ""
        if self._still_holds(listener):
            return ""
        has_supervised = False
        for pid in procfs.all_pids():
            if time.monotonic() > deadline_s:
                raise TimeoutError
            try:
                fd = _descriptor_of(pid, listener.inode)
            except OSError:
                continue  # it ended, or cannot be inspected
            if fd is None:
                continue
            if not is_supervised(pid):
                self._last_holder = pid, fd
                return ""
            has_supervised = True
        if has_supervised:
            return "a supervised process listens there"
        return "cannot find the listening process"  # it may pass the socket on meanwhile

    def _still_holds(self, listener: Owner) -> bool:
        if self._last_holder is None:
            return False
        pid, fd = self._last_holder
        return _socket_inode(pid, fd) == listener.inode and not is_supervised(pid)


def _listeners(address: str, port: int) -> list[Owner]:
    """Return those that the kernel chooses from: of this address, or else of any address."""
    is_v6 = ":" in address
    exact = _shown(socket.AF_INET6 if is_v6 else socket.AF_INET, address)
    choices: list[tuple[str, bytes]] = [("tcp6", exact), ("tcp6", _shown(socket.AF_INET6, "::"))]
    if not is_v6:
        mapped = _shown(socket.AF_INET6, f"::ffff:{address}")
        choices = [
            ("tcp", exact),
            ("tcp6", mapped),
            ("tcp", _shown(socket.AF_INET, "0.0.0.0")),
            choices[1],
        ]
    listed = {table: list(_listed(table, port)) for table in {table for table, _ in choices}}
    for table, shown in choices:
        found = [listener for there, listener in listed[table] if there == shown]
        if found:
            return found
    return []


def _listed(table: str, port: int) -> Iterator[tuple[bytes, Owner]]:
    end = b":%04X" % port
    for line in _lines(f"/proc/self/net/{table}"):
        fields = line.split()
        if len(fields) < 10 or not fields[0].endswith(b":"):
            continue  # the heading
        if fields[3] != _LISTENS_HEX:
            return
        if fields[1].endswith(end):
            yield fields[1].removesuffix(end), Owner(int(fields[7]), int(fields[9]))


def _lines(path: str) -> Iterator[bytes]:
    """Read only as far as the caller iterates: there may be a million connections."""
    try:
        fd = procfs.open_file(path)
    except OSError:
        return
    try:
        rest, total = b"", 0
        while total < _MOST_BYTES and (data := os.read(fd, _READ_BYTES)):
            total += len(data)
            *lines, rest = (rest + data).split(b"\n")
            yield from lines
    finally:
        os.close(fd)


def _shown(family: int, address: str) -> bytes:
    """Format an address as the kernel does: words of 32 bits, each in the machine's order."""
    packed = socket.inet_pton(family, address)
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return b"".join(b"%08X" % int.from_bytes(word, sys.byteorder) for word in words)


def _descriptor_of(pid: int, inode: int) -> int | None:
    for name in procfs.names(f"/proc/{pid}/fd"):
        if _socket_inode(pid, int(name)) == inode:
            return int(name)
    return None


def _socket_inode(pid: int, fd: int) -> int | None:
    try:
        kind, _, number = procfs.link(f"/proc/{pid}/fd/{fd}").partition(":[")
    except OSError:
        return None
    return int(number[:-1]) if kind == "socket" else None
