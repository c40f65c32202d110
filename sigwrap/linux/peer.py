"""Who is at the other end of a unix socket, and whether it is supervised.

A supervised process carries at least one seccomp filter more than its supervisor: filters are
inherited by every child and can't be dropped, so no fork, exec, setsid or new namespace hides it.
That speaks of supervisors with as many filters as we have; the ancestry speaks of all of them,
since nothing leaves the tree of a subreaper.

The pid is the one that called connect(2). Somebody outside who connects and passes the descriptor
into a session lends out their own right: that is persuasion, and out of scope.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable

from sigwrap.bare import socket
from sigwrap.linux import proc_files, procfs
from sigwrap.linux.pidfd import has_ended
from sigwrap.linux.sigfd import SignalInfo
from sigwrap.tuples import NamedTuple

_SO_PEERPIDFD = 77
_UCRED = struct.Struct("=iII")
SUPERVISOR_NAME = "sigwrap-super"
FORK_SERVER_NAME = "sigwrap-forks"
_FILTER_MODE = 2
_IS_INSIDE = "it is in a supervised session"
_DEEPEST = 1_000  # a walk of 20 ms


class Peer(NamedTuple):
    """`objection` says why it must not be served; empty where it may."""

    pid: int
    uid: int
    command: str
    objection: str
    inside_session: bool


class _Pinned(NamedTuple):
    """A pidfd; `by_number`: of whoever has the peer's number now."""

    fd: int
    by_number: bool


class Filters(NamedTuple):
    mode: int
    installed: int | None  # None before Linux 5.9
    no_new_privileges: bool


def pid_and_uid(connection: socket.socket) -> tuple[int, int]:
    """Of who called connect(2), or, for who did, listen(2); 0 for a pid in a namespace that isn't
    below ours."""
    pid, uid, _gid = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return pid, uid


def pidfd_of(connection: socket.socket) -> int:
    """Of that very process, whatever has its pid by now. OSError before Linux 6.5."""
    pidfd: int = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    return pidfd


def we_connect_for(find: Callable[[socket.socket], int]) -> None:
    """`find`: the pid of the process in whose place we have made a connection; 0: of none."""
    global _for_whom
    _for_whom = find


def _nobody(_connection: socket.socket) -> int:
    return 0


_for_whom = _nobody


def examine(connection: socket.socket) -> Peer:
    pid, uid = pid_and_uid(connection)
    if pid == os.getpid():
        pid = _for_whom(connection) or pid
        return Peer(pid, uid, procfs.command_line(pid), _IS_INSIDE, True)
    if uid not in (os.geteuid(), 0):
        return Peer(pid, uid, "", "it belongs to another user", False)
    pinned = _pin(connection, pid)
    if pinned is None:
        return Peer(pid, uid, "", "cannot identify the process", False)
    return _examined(pid, uid, pinned.fd)


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
        if has_ended(pidfd):  # then what we read may be of another process
            return Peer(pid, uid, "", "it ended before it was identified", False)
    finally:
        os.close(pidfd)
    return Peer(pid, uid, command, _IS_INSIDE if inside else "", inside)


def objection_to_listener(connection: socket.socket) -> str:
    """For the client: a supervised process can put a socket of its own in a session's place. What
    speaks is the one that called listen(2), which has to be there still: whoever has the number of
    one that has ended never listened. Before Linux 6.5 there is the number alone: then it has to be
    that of a supervisor, by its name."""
    pid, _uid = pid_and_uid(connection)
    pinned = _pin(connection, pid)
    if pinned is None:
        return "cannot identify the process"
    try:
        found = procfs.stat(pid)
        is_supervised = carries_more_filters_than_us(pid)
        if has_ended(pinned.fd):  # then what we read may be of another process
            return "it has ended"
    finally:
        os.close(pinned.fd)
    if pinned.by_number and (found is None or found.comm != SUPERVISOR_NAME):
        return "cannot identify the process"
    return "it may be a supervised process itself" if is_supervised else ""


def is_supervised(pid: int) -> bool:
    """By anybody; True where it can't be known."""
    return carries_more_filters_than_us(pid) or has_supervisor_above(pid)


def carries_more_filters_than_us(pid: int) -> bool:
    """True where it can't be known. One thread speaks for all: each inherits its maker's."""
    ours, theirs = _filters("self"), _filters(pid)
    return ours is None or theirs is None or _more(theirs, ours)


def is_inside_a_session() -> bool:
    """Of this process, as far as it can see. For a clear word: the kernel, and those who would have
    to believe it, see to the rest."""
    found = procfs.stat(os.getpid())
    while found is not None and found.ppid > 0:
        if found.comm == SUPERVISOR_NAME:
            return True
        found = procfs.stat(found.ppid)
    return False


def _more(theirs: Filters, ours: Filters) -> bool:
    if theirs.installed is not None and ours.installed is not None:
        return theirs.installed > ours.installed
    return _is_filtered(theirs) and not _is_filtered(ours)


def _is_filtered(filters: Filters) -> bool:
    return filters.mode == _FILTER_MODE and filters.no_new_privileges


def _filters(pid: int | str) -> Filters | None:
    """None also of a leader that has left its threads behind: it may have let go of its filters."""
    status = proc_files.contents(f"/proc/{pid}/status")
    return None if status is None else read_status(status)


def read_status(text: bytes) -> Filters | None:
    """Of the name in it the kernel escapes line ends, and nothing else."""
    lines = text.split(b"\n")
    fields = {name: value.strip() for name, _, value in (line.partition(b":") for line in lines)}
    if fields.get(b"State", b"X")[:1] in b"ZX":
        return None
    installed = fields.get(b"Seccomp_filters")
    return Filters(
        mode=int(fields.get(b"Seccomp", b"0")),
        installed=None if installed is None else int(installed),
        no_new_privileges=fields.get(b"NoNewPrivs") == b"1",
    )


def has_supervisor_above(pid: int) -> bool:
    """Ours or any other. True where the way up was lost: processes end and reparent meanwhile."""
    us = os.getpid()
    for _ in range(_DEEPEST):
        found = procfs.stat(pid)
        if found is None or pid == us:
            return True
        if found.comm == SUPERVISOR_NAME:
            return True
        if found.ppid <= 1:
            return False
        pid = found.ppid
    return True


def _pin(connection: socket.socket, pid: int) -> _Pinned | None:
    if pid <= 0:  # of a pid namespace that isn't below ours
        return None
    try:
        return _Pinned(pidfd_of(connection), by_number=False)
    except OSError as refusal:
        if refusal.errno != errno.ENOPROTOOPT:
            return None
    try:
        return _Pinned(os.pidfd_open(pid), by_number=True)
    except OSError:
        return None
