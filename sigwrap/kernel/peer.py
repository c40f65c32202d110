"""The process that connected to a socket, listens at it or sent a signal; is it in a session?
What the kernel says about sockets.

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
from sigwrap.kernel.signals import SI_USER, SignalInfo, has_ended

SO_PEERPIDFD = 77  # Linux 6.5; also after the peer has ended
_SO_COOKIE = 57
_UCRED = struct.Struct("=iII")
SUPERVISOR_NAME = "sigwrap-super"
FORK_SERVER_NAME = "sigwrap-forks"
_IS_INSIDE = "it is in a supervised session"
_DEEPEST = 1_000  # which takes 20 ms

_NAME, _FILE, _PEER = 0, 1, 2  # UNIX_DIAG_NAME, UNIX_DIAG_VFS, UNIX_DIAG_PEER
_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST = 1
_ANY_COOKIE = (1 << 64) - 1
_LISTENS = 10  # TCP_LISTEN, for unix sockets as well
_LISTENS_HEX = b"0A"
_ASKED = struct.Struct("=BBHIIIQ")
_HEAD = struct.Struct("=IHHII")
_ANSWER = struct.Struct("=BBBBIQ")
_ATTRIBUTE = struct.Struct("=HH")
_NUMBERS = struct.Struct("=II")  # an inode's number and its device
_MOST_LISTENERS = 50_000


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


_connected_for: Callable[[socket.socket], int] | None = None


def examine(connection: socket.socket) -> Peer:
    pid, uid = pid_and_uid(connection)
    if pid == os.getpid():
        if _connected_for is not None:
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
    if info.code != SI_USER:  # no process can send this code in the name of another
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
    ours, theirs = (filters_in(procfs.contents(f"/proc/{of}/status")) for of in ("self", pid))
    return ours is None or theirs is None or theirs > ours


def filters_in(status: bytes | None) -> int | None:
    """Return how many seccomp filters a status file shows; before Linux 5.9, 1 for any number.

    None if the process has ended, and also for an exited leader, which may have dropped them.
    """
    if status is None or procfs.status_field(status, b"State")[:1] in b"ZX":
        return None
    if b"\nSeccomp_filters:" in status:
        return int(procfs.status_field(status, b"Seccomp_filters"))
    return int(b"\nSeccomp:\t2\n" in status and b"\nNoNewPrivs:\t1\n" in status)


def is_inside_a_session() -> bool:
    """Return whether this process seems to be in a session.

    That is for a clear message only. The kernel and the supervisors enforce the rest.
    """
    return has_supervisor_above(os.getppid(), if_unknown=False)


def has_supervisor_above(pid: int, *, if_unknown: bool = True) -> bool:
    """Return whether it or an ancestor is a supervisor.

    That is unknown if an ancestor has ended, or is this process.
    """
    us = os.getpid()
    for _ in range(_DEEPEST):
        found = procfs.stat(pid)
        if found is None or pid == us:
            break
        if found.comm == SUPERVISOR_NAME:
            return True
        if found.ppid <= 1:
            return False
        pid = found.ppid
    return if_unknown


def _pin(connection: socket.socket, pid: int) -> tuple[int, bool] | None:
    """Return a pidfd, and whether it is by number: then its process may be another one by now."""
    if pid <= 0:  # it is in a pid namespace that is not below this one
        return None
    try:
        return connection.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD), False
    except OSError as refusal:
        if refusal.errno != errno.ENOPROTOOPT:
            return None
    try:
        return os.pidfd_open(pid), True
    except OSError:
        return None


class Named(NamedTuple):
    """A socket. The kernel can reuse its number, but not its cookie."""

    number: int
    cookie: int


def named(fd: int) -> Named:
    with socket.socket(fileno=os.dup(fd)) as end:
        cookie = end.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)
    return Named(number_of(fd), int.from_bytes(cookie, "little"))


def number_of(fd: int) -> int:
    return os.fstat(fd).st_ino & 0xFFFFFFFF


def file_of(asked: Named) -> tuple[int, int] | None:
    """Return the number of a socket's file and its device, as the kernel has them; some file
    systems show another device. None if there is no file, or no answer."""
    _, found = _asked(asked.number, _FILE, asked.cookie)
    return _NUMBERS.unpack(found) if found else None


def is_there(asked: Named) -> bool:
    """Return whether a unix socket is still there. False if there is no answer."""
    return _asked(asked.number, _FILE, asked.cookie)[1] is not None


def listening_at(number: int) -> str:
    """Return the path or `@name` of a unix socket that accepts connections; empty for others."""
    state, found = _asked(number, _NAME)
    name = os.fsdecode(found or b"") if state == _LISTENS else ""
    return f"@{name[1:]}" if name.startswith("\0") else name.rstrip("\0")


def peer_of(number: int) -> int:
    """Return the number of the unix socket that this one is connected to. 0: none; -1: no answer,
    for example because it is in another network namespace."""
    found = _asked(number, _PEER)[1]
    return -1 if found is None else int.from_bytes(found[:4], sys.byteorder)


def _asked(number: int, kind: int, cookie: int = _ANY_COOKIE) -> tuple[int, bytes | None]:
    """Return the state and an attribute of a unix socket, empty if it has none. The attribute is
    None if there is no answer."""
    request = _ASKED.pack(socket.AF_UNIX, 0, 0, 0xFFFFFFFF, number, 1 << kind, cookie)
    answer = sock_diag(request, _ANSWER.size)
    if answer is None:
        return 0, None
    state = answer[2]
    answer = answer[_ANSWER.size :]
    while len(answer) >= _ATTRIBUTE.size:
        size, its_kind = _ATTRIBUTE.unpack_from(answer)
        if its_kind == kind:
            return state, answer[_ATTRIBUTE.size : size]
        answer = answer[max(-(-size // 4) * 4, _ATTRIBUTE.size) :]
    return state, b""


def sock_diag(request: bytes, size: int) -> bytes | None:
    """Return what the kernel says about a socket if it has at least this size, or None."""
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


class ListenerCheck:
    """Finds which process listens at a local port. A supervised process could take the place of the
    expected server there, and give its own answers."""

    def __init__(self) -> None:
        self._last_holder = 0

    def objection(self, address: str, port: int, deadline_s: float) -> str:
        """Return why an answer from there must not be trusted, or "". Raises TimeoutError if there
        are too many processes to look through by then."""
        found = _listeners(address, port)
        if not found:
            return "the listening process is gone"
        for uid, inode in found:
            # Processes of another user are not supervised by this one, and cannot be inspected.
            if os.geteuid() in (0, uid) and (objection := self._objection_to(inode, deadline_s)):
                return objection
        return ""

    def _objection_to(self, inode: int, deadline_s: float) -> str:
        wanted, has_supervised = f"socket:[{inode}]", False
        for pid in (self._last_holder, *procfs.all_pids()):
            if time.monotonic() > deadline_s:
                raise TimeoutError
            if all(link != wanted for _fd, link in procfs.open_files(pid)):
                continue
            if not is_supervised(pid):
                self._last_holder = pid
                return ""
            has_supervised = True
        if has_supervised:
            return "a supervised process listens there"
        return "cannot find the listening process"  # it may pass the socket on meanwhile


def _listeners(address: str, port: int) -> list[tuple[int, int]]:
    """Return user and inode of those that the kernel chooses from: of this address, or else of any
    address."""
    choices = [("tcp6", address), ("tcp6", "::")]
    if ":" not in address:
        choices = [("tcp", address), ("tcp6", f"::ffff:{address}"), ("tcp", "0.0.0.0"), choices[1]]
    for table, chosen in choices:
        wanted = _shown(chosen) + b":%04X" % port
        if found := [owner for place, *owner in _listed(table) if place == wanted]:
            return [(int(uid), int(inode)) for uid, inode in found]
    return []


def _listed(table: str) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield place, user and inode of the listeners. They come first: there may be a million
    connections."""
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
            yield fields[1], fields[7], fields[9]


def _shown(address: str) -> bytes:
    """Format an address as the kernel does: words of 32 bits, each in the machine's order."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return b"".join(b"%08X" % int.from_bytes(word, sys.byteorder) for word in words)
