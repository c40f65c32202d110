"""The process that connected to a socket, listens at it or sent a signal; is it in a session?

A process in a session has at least one seccomp filter more than its supervisor. Children inherit
filters and cannot drop them, so no fork, exec, setsid or new namespace hides the process. This test
works for supervisors with as many filters as this process. The ancestry works for all of them: no
process leaves the tree of a subreaper.

A socket's peer is the process that called connect(2). A process outside that passes its connection
into a session lends its own rights, which is out of scope.
"""

from __future__ import annotations

import errno
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice

from sigwrap.bare import NamedTuple, socket
from sigwrap.kernel import procfs
from sigwrap.kernel.signals import SignalInfo, has_ended

_SO_PEERPIDFD = 77  # Linux 6.5; also after the peer has ended
_UCRED = struct.Struct("=iII")
SUPERVISOR_NAME = "sigwrap-super"
FORK_SERVER_NAME = "sigwrap-forks"
_IS_INSIDE = "it is in a supervised session"
_DEEPEST = 1_000  # which takes 20 ms


class Peer(NamedTuple):
    """A process at the other end. `objection`: why sigwrap must not serve it, or empty."""

    pid: int
    uid: int
    command: str
    objection: str
    inside_session: bool


def pid_and_uid(connection: socket.socket) -> tuple[int, int]:
    """Return pid and uid of the process that called connect(2), or listen(2) for a listener.

    The pid is 0 if the process is in a pid namespace that is not below this one.
    """
    pid, uid, _gid = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return pid, uid


def we_connect_for(find: Callable[[socket.socket], int]) -> None:
    """Set the function that returns the pid for which this process made a connection, or 0."""
    global _connected_for
    _connected_for = find


def _no_process(_connection: socket.socket) -> int:
    return 0


_connected_for = _no_process


def examine(connection: socket.socket) -> Peer:
    pid, uid = pid_and_uid(connection)
    if pid == os.getpid():
        pid = _connected_for(connection) or pid
        return Peer(pid, uid, procfs.command_line(pid), _IS_INSIDE, True)
    if uid not in (os.geteuid(), 0):
        return Peer(pid, uid, "", "it belongs to another user", False)
    pinned = _pin(connection, pid)
    if pinned is None:
        return Peer(pid, uid, "", "cannot identify the process", False)
    return _examined(pid, uid, pinned[0])


def examine_sender(info: SignalInfo) -> Peer:
    """Return the process that sent a signal.

    A sender in an outer pid namespace has no pid here, and is outside all sessions of this one. A
    supervisor that sends a signal for a process in its session does not use kill(2).
    """
    pid, uid = info.sender_pid, info.sender_uid
    if not info.is_by_kill:
        return Peer(pid, uid, procfs.command_line(pid), "it may not be the sender", True)
    if pid == 0:
        return Peer(pid, uid, "", "", False)
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return Peer(pid, uid, "", "cannot identify the process", False)
    return _examined(pid, uid, pidfd)


def _examined(pid: int, uid: int, pidfd: int) -> Peer:
    try:
        command = procfs.command_line(pid)
        inside = is_supervised(pid)
        if has_ended(pidfd):  # the pid may belong to another process by now
            return Peer(pid, uid, "", "it ended before it was identified", False)
    finally:
        os.close(pidfd)
    return Peer(pid, uid, command, _IS_INSIDE if inside else "", inside)


def objection_to_listener(connection: socket.socket) -> str:
    """Return why a client must not trust the listener, or "".

    A process in a session can put its own socket in a session's place. The process that called
    listen(2) must still run: after its end, another process may have its pid. Before Linux 6.5 only
    the pid is known: then it must be that of a supervisor, by its name.
    """
    pid, _uid = pid_and_uid(connection)
    pinned = _pin(connection, pid)
    if pinned is None:
        return "cannot identify the process"
    pidfd, is_by_number = pinned
    try:
        is_a_supervisor = procfs.comm(pid) == SUPERVISOR_NAME
        may_be_supervised = carries_more_filters_than_us(pid)
        if has_ended(pidfd):  # the pid may belong to another process by now
            return "it has ended"
    finally:
        os.close(pidfd)
    if is_by_number and not is_a_supervisor:
        return "cannot identify the process"
    return "it may be a supervised process itself" if may_be_supervised else ""


def is_supervised(pid: int) -> bool:
    """Return whether a process is in any session. True if that is unknown."""
    return carries_more_filters_than_us(pid) or has_supervisor_above(pid)


def carries_more_filters_than_us(pid: int) -> bool:
    """Return whether it has more seccomp filters. True if that is unknown.

    The first thread counts for all: each thread inherits the filters of its creator.
    """
    ours, theirs = _filters("self"), _filters(pid)
    return ours is None or theirs is None or theirs > ours


def _filters(pid: int | str) -> int | None:
    """Return how many seccomp filters it has; before Linux 5.9, 1 for any number.

    None if it has ended, and also for an exited leader, which may have dropped them.
    """
    status = procfs.contents(f"/proc/{pid}/status")
    return None if status is None else filters_in(status)


def filters_in(status: bytes) -> int | None:
    """Read a status file. In the process name, the kernel escapes line ends and nothing else."""
    if procfs.status_field(status, b"State")[:1] in b"ZX":
        return None
    if b"\nSeccomp_filters:" in status:
        return int(procfs.status_field(status, b"Seccomp_filters"))
    return int(b"\nSeccomp:\t2\n" in status and b"\nNoNewPrivs:\t1\n" in status)


def is_inside_a_session() -> bool:
    """Return whether this process seems to be in a session.

    That is for a clear message only. The kernel and the supervisors enforce the rest.
    """
    return _finds_supervisor_above(os.getppid()) is True


def has_supervisor_above(pid: int) -> bool:
    """Return whether it or an ancestor is a supervisor. True if that is unknown."""
    return _finds_supervisor_above(pid) is not False


def _finds_supervisor_above(pid: int) -> bool | None:
    """Return None if that is unknown: an ancestor has ended, or is this process."""
    us = os.getpid()
    for _ in range(_DEEPEST):
        found = procfs.stat(pid)
        if found is None or pid == us:
            return None
        if found.comm == SUPERVISOR_NAME:
            return True
        if found.ppid <= 1:
            return False
        pid = found.ppid
    return None


def _pin(connection: socket.socket, pid: int) -> tuple[int, bool] | None:
    """Return a pidfd, and whether it is by number: then its process may be another one by now."""
    if pid <= 0:  # it is in a pid namespace that is not below this one
        return None
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD), False
    except OSError as refusal:
        if refusal.errno != errno.ENOPROTOOPT:
            return None
    try:
        return os.pidfd_open(pid), True
    except OSError:
        return None


# Ask the kernel about sockets: their peers, files and names.

_NAME, _FILE, _PEER = 0, 1, 2  # UNIX_DIAG_NAME, UNIX_DIAG_VFS, UNIX_DIAG_PEER
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_SO_COOKIE = 57
_ANY_COOKIE = (1 << 64) - 1
_LISTENS = 10  # TCP_LISTEN, for unix sockets as well
_ASKED = struct.Struct("=BBHIIIQ")
_HEAD = struct.Struct("=IHHII")
_ANSWER = struct.Struct("=BBBBIQ")
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
    found = _attribute(asked.number, _FILE, asked.cookie)
    if found is None or len(found) != _NUMBERS.size:
        return None
    number, device = _NUMBERS.unpack(found)
    return number, device


def is_there(asked: Named) -> bool:
    """Return whether a unix socket is still there. False if there is no answer."""
    return _attribute(asked.number, _FILE, asked.cookie) is not None


def listening_at(number: int) -> str:
    """Return the path or `@name` of a unix socket that accepts connections; empty for others."""
    answer = _asked(number, _NAME, _ANY_COOKIE)
    if answer is None or _ANSWER.unpack_from(answer)[2] != _LISTENS:
        return ""
    name = os.fsdecode(_attributes(answer[_ANSWER.size :]).get(_NAME, b""))
    return f"@{name[1:]}" if name.startswith("\0") else name.rstrip("\0")


def peer_of(number: int) -> int:
    """Return the number of the unix socket that this one is connected to. 0: none; -1: no answer,
    for example because it is in another network namespace."""
    found = _attribute(number, _PEER, _ANY_COOKIE)
    return -1 if found is None else int.from_bytes(found[:4], sys.byteorder)


def _attribute(number: int, kind: int, cookie: int) -> bytes | None:
    """Return an attribute of a unix socket, empty if it has none. None if there is no answer."""
    answer = _asked(number, kind, cookie)
    return None if answer is None else _attributes(answer[_ANSWER.size :]).get(kind, b"")


def _asked(number: int, kind: int, cookie: int) -> bytes | None:
    request = _ASKED.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, number, 1 << kind, cookie)
    return _answered(request, _ANSWER.size)


def _answered(request: bytes, size: int) -> bytes | None:
    """Return the kernel's answer if it has at least this size, or None."""
    head = _HEAD.pack(_HEAD.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as line:
            line.send(head + request)
            answer = line.recv(4096, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if len(answer) < _HEAD.size + size or _HEAD.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    return answer[_HEAD.size :]


def _attributes(packed: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while len(packed) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(packed)
        if size < _ATTRIBUTE.size:
            break
        found[kind] = packed[_ATTRIBUTE.size : size]
        packed = packed[-(-size // 4) * 4 :]
    return found


# The owner of a TCP connection.

_ASKED_INET = struct.Struct("=BBBBI")  # family, protocol, extensions, nothing, states
_PORTS = struct.Struct("!HH")
_ADDRESSES = struct.Struct("=4s12x4s12x")
_NO_COOKIE = struct.pack("=IQ", 0, 0xFFFFFFFFFFFFFFFF)  # for any interface
_INET_ANSWER_BYTES = 72  # struct inet_diag_msg
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
    answer = _answered(asked + identity + _NO_COOKIE, _INET_ANSWER_BYTES)
    if answer is None or answer[_IDENTITY] != identity:
        return None
    uid, inode = _OWNER.unpack_from(answer, _INET_ANSWER_BYTES - _OWNER.size)
    return Owner(uid, inode) if inode else None


# Which process listens at a local port. A supervised process could take the place of the expected
# server there, and give its own answers.

_LISTENS_HEX = b"0A"  # TCP_LISTEN
_MOST_LISTENERS = 50_000


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
    """Read only the listeners, which come first: there may be a million connections."""
    end = b":%04X" % port
    try:
        file = os.fdopen(procfs.open_file(f"/proc/self/net/{table}"), "rb")
    except OSError:
        return
    with file:
        next(file, b"")  # the heading
        for line in islice(file, _MOST_LISTENERS):
            fields = line.split()
            if fields[3] != _LISTENS_HEX:
                return
            if fields[1].endswith(end):
                yield fields[1].removesuffix(end), Owner(int(fields[7]), int(fields[9]))


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
