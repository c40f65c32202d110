"""The process that connected to a unix socket or sent a signal, and whether it is in a session.

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
from collections.abc import Callable
from fcntl import ioctl

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


# Translate pids of another pid namespace to this one.

_NS_GET_PARENT = 0xB702
_NS_GET_PID_FROM_PIDNS = 0x8004B706


def level(pid: int) -> str:
    """Return how deep below /proc's pid namespace a process is.

    /proc shows only this namespace and those below, so a process on the same level is in the same
    namespace. A process that is not dumpable hides its ns/pid, but not this.
    """
    return str(len(procfs.numbers(pid, "NSpid")))


def process(sender: int, number: int) -> int | None:
    """Return the pid or tid that `sender` knows as `number`."""
    try:
        return _translated(sender, number)
    except OSError as refusal:
        return _find(sender, number, "NSpid") if refusal.errno == errno.ENOTTY else None


def group(sender: int, number: int) -> int | None:
    try:  # most groups have their leader
        return _translated(sender, number)
    except OSError:
        return _find(sender, number, "NSpgid")


def _translated(sender: int, number: int) -> int:
    """Ask the kernel, without a search (Linux 6.11). Raises OSError if there is none."""
    fd = procfs.open_file(f"/proc/{sender}/ns/pid")
    try:
        return ioctl(fd, _NS_GET_PID_FROM_PIDNS, number)
    finally:
        os.close(fd)


def _find(sender: int, number: int, field: str) -> int | None:
    level = len(procfs.numbers(sender, "NSpid")) - 1
    wanted = procfs.linked(f"/proc/{sender}/ns/pid")
    if not wanted:
        return None
    for pid in procfs.all_pids():
        for tid in (pid,) if field == "NSpgid" else procfs.threads(pid):
            numbers = procfs.numbers(tid, field)
            if numbers and len(numbers) <= level:
                break  # its namespace is above, and so are its other threads'
            if numbers and numbers[level] == number and _is_within(pid, level, wanted):
                return numbers[0]
    return None


def _is_within(pid: int, level: int, wanted: str) -> bool:
    """Return whether a process is in the wanted namespace or below: levels have many namespaces."""
    depth = len(procfs.numbers(pid, "NSpid")) - 1
    if depth < level:
        return False
    try:
        fd = procfs.open_file(f"/proc/{pid}/ns/pid")
    except OSError:
        return False
    for _ in range(depth - level):
        try:
            parent = ioctl(fd, _NS_GET_PARENT)
        except OSError:
            os.close(fd)
            return False
        os.close(fd)
        fd = parent
    try:
        return f"pid:[{os.fstat(fd).st_ino}]" == wanted
    finally:
        os.close(fd)


# Compare the rights, namespaces and root of another process with our own.

_FIELDS = (
    *(b"Uid", b"Gid", b"Groups", b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb"),
    *(b"NoNewPrivs", b"Seccomp", b"Seccomp_filters"),
)
_SHOWN = {
    b"Uid": "user",
    b"Gid": "group",
    b"Groups": "groups",
    b"NoNewPrivs": "no_new_privs",
    b"Seccomp": "seccomp filters",
    b"Seccomp_filters": "seccomp filters",
}
_NAMESPACES = {
    "mnt": "mount",
    "pid": "pid",
    "net": "network",
    "user": "user",
    "ipc": "ipc",
    "uts": "uts",
}


class Rights:
    """The rights that this process has now."""

    def __init__(self) -> None:
        self._fields = _fields("self")
        self._namespaces = {name: _identity(f"/proc/self/ns/{name}") for name in _NAMESPACES}
        self._root = _identity("/proc/self/root")

    def difference(self, pid: int) -> str:
        """Return how the process differs, or an empty string."""
        try:
            for field, value in _fields(pid).items():
                if self._fields.get(field) != value:
                    return f"its {_SHOWN.get(field, 'capabilities')} differ from the session's"
            for name, shown in _NAMESPACES.items():
                if _identity(f"/proc/{pid}/ns/{name}") != self._namespaces[name]:
                    return f"its {shown} namespace differs from the session's"
            if _identity(f"/proc/{pid}/root") != self._root:
                return "its root directory differs from the session's"
        except OSError as refusal:
            return f"cannot read its credentials: {refusal.strerror}"
        return ""


def _fields(pid: int | str) -> dict[bytes, bytes]:
    text = procfs.contents(f"/proc/{pid}/status")
    if text is None:
        raise ProcessLookupError(0, "it has ended")
    pairs = (line.partition(b":") for line in text.split(b"\n"))
    return {name: value.strip() for name, _, value in pairs if name in _FIELDS}


def _identity(path: str) -> tuple[int, int]:
    found = procfs.file_status(path)
    return found.st_dev, found.st_ino
