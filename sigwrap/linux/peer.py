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
import select
import socket
import struct

from sigwrap.linux import procfs
from sigwrap.tuples import NamedTuple

_SO_PEERPIDFD = 77  # Linux 6.5: holds the very process that connected, whatever its pid is now
_UCRED = struct.Struct("=iII")
_SUPERVISOR_NAME = "sigwrap-super"
_FILTER_MODE = 2
_DEEPEST = 10_000


class Peer(NamedTuple):
    """`objection` says why it must not be served; empty where it may."""

    pid: int
    uid: int
    command: str
    objection: str
    inside_session: bool


class Filters(NamedTuple):
    mode: int
    installed: int | None  # None before Linux 5.9
    no_new_privileges: bool


def examine(connection: socket.socket) -> Peer:
    pid, uid, _gid = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    if uid not in (os.geteuid(), 0):
        return Peer(pid, uid, "", "it belongs to another user", False)
    pidfd = _pin(connection, pid)
    if pidfd is None:
        return Peer(pid, uid, "", "it can't be identified", False)
    try:
        command = procfs.command_line(pid)
        inside = carries_more_filters_than_us(pid) or _has_supervisor_above(pid)
        if _has_ended(pidfd):  # then what we read may be of another process
            return Peer(pid, uid, "", "it ended before it was identified", False)
    finally:
        os.close(pidfd)
    objection = "it is inside a supervised session" if inside else ""
    return Peer(pid, uid, command, objection, inside)


def peer_is_supervised(connection: socket.socket) -> bool:
    """For the client: a supervised process can put a socket of its own in a session's place."""
    pid, _uid, _gid = _UCRED.unpack(
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    )
    return pid <= 0 or carries_more_filters_than_us(pid)


def carries_more_filters_than_us(pid: int) -> bool:
    """True where it can't be known. One thread speaks for all: each inherits its maker's."""
    ours, theirs = _filters("self"), _filters(pid)
    return ours is None or theirs is None or _more(theirs, ours)


def _more(theirs: Filters, ours: Filters) -> bool:
    if theirs.installed is not None and ours.installed is not None:
        return theirs.installed > ours.installed
    return _is_filtered(theirs) and not _is_filtered(ours)


def _is_filtered(filters: Filters) -> bool:
    return filters.mode == _FILTER_MODE and filters.no_new_privileges


def _filters(pid: int | str) -> Filters | None:
    """None also of a leader that has left its threads behind: it may have let go of its filters."""
    status = procfs.contents(f"/proc/{pid}/status")
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


def _has_supervisor_above(pid: int) -> bool:
    """Ours or any other. True where the way up was lost: processes end and reparent meanwhile."""
    us = os.getpid()
    for _ in range(_DEEPEST):
        found = procfs.stat(pid)
        if found is None or pid == us:
            return True
        if found.comm == _SUPERVISOR_NAME:
            return True
        if found.ppid <= 1:
            return False
        pid = found.ppid
    return True


def _pin(connection: socket.socket, pid: int) -> int | None:
    if pid <= 0:  # of a pid namespace that isn't below ours
        return None
    try:
        return connection.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as refusal:
        if refusal.errno != errno.ENOPROTOOPT:
            return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
