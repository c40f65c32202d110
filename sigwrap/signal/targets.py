"""Finds the process with a given number, and its relation to the sender.

A group is the session's own if all its members are. A process that joins a group and reads the
terminal in the background stops the whole group, and the keys of a terminal signal its foreground
group. The group that sigwrap was started in counts as the session's own, because the command is in
it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct

from sigwrap import calls
from sigwrap.bare import Protocol, signal
from sigwrap.kernel import peer, proc_files, procfs
from sigwrap.kernel.file_state import device_of, kind_of
from sigwrap.kernel.peer import FORK_SERVER_NAME
from sigwrap.session.effects import SignalTarget
from sigwrap.session.lineage import (
    SIGWRAP_ITSELF,
    Process,
    Types,
    WouldFail,
    types_inside,
    types_outside,
)
from sigwrap.session.processes import refresh_comm
from sigwrap.signal.call import F_OWNER_PGRP, F_OWNER_PID, SignalCall
from sigwrap.signal.facts import Aim, Group, JudgedOwner, NoOwner, NotOwn, Own, OwnInMemory
from sigwrap.signal.send import owner

_TIOCGDEV = 0x80045432
_TIOCGPTN = 0x80045430
_DEV_TTY = os.makedev(5, 0)


class ProcessTable(Protocol):
    """The processes of the session."""

    command: Process | None

    def holds(self, pid: int) -> bool: ...

    def target(self, number: int) -> Process | None: ...


class Targets:
    def __init__(self, processes: ProcessTable, sigwrap_pids: frozenset[int]) -> None:
        self._processes = processes
        self._sigwrap_pids = sigwrap_pids
        self._our_level = peer.level(os.getpid())
        found = procfs.stat(os.getpid())
        self._own_image = None if found is None else found.image

    def of_number(self, sender: Process, number: int) -> SignalTarget | None:
        """Return the process that the sender knows by this number, or None."""
        if number == sender.pid and self._shares_our_numbers(sender):
            return self._inside(sender, sender)
        if not self._shares_our_numbers(sender):
            translated = peer.process(sender.pid, number)
            if translated is None:
                return None
            number = translated
        return self.of_pid(sender, number)

    def of_pid(self, sender: Process, pid: int) -> SignalTarget | None:
        if pid in self._sigwrap_pids:
            return self._outside(sender, pid, SIGWRAP_ITSELF)
        process = self._processes.target(pid)
        if process is not None:
            refresh_comm(process)
            if process.comm == FORK_SERVER_NAME and self._is_before_its_exec(process):
                return self._outside(sender, process.pid, SIGWRAP_ITSELF)
            return self._inside(sender, process)
        tgid = procfs.tgid(pid)
        if tgid is None:
            return None
        if tgid in self._sigwrap_pids:
            return self._outside(sender, tgid, SIGWRAP_ITSELF)
        return self._outside(sender, tgid, None)

    def _is_before_its_exec(self, process: Process) -> bool:
        """Return whether it is still a copy of sigwrap's fork server, with its descriptors.

        Only such a copy hides its image.
        """
        if process.ppid not in self._sigwrap_pids:
            return False
        found = procfs.stat(process.pid)
        return not process.argv or found is None or found.image == self._own_image

    def of_group(self, sender: Process, number: int) -> list[SignalTarget]:
        """Return the members of a group with the sender's number; 0 is the sender's own group."""
        group = self.groups_number(sender, number)
        return [] if group is None else self.of_group_led_by(sender, group)

    def groups_number(self, sender: Process, number: int) -> int | None:
        """Return our number of a group; 0 is the sender's own group."""
        if number == 0:
            found = procfs.stat(sender.pid)
            return None if found is None else found.pgrp
        if self._shares_our_numbers(sender):
            return number
        return peer.group(sender.pid, number)

    def of_group_led_by(self, sender: Process, group: int) -> list[SignalTarget]:
        members = [
            pid
            for pid in proc_files.all_pids()
            if (found := procfs.stat(pid)) is not None and found.pgrp == group
        ]
        targets = (self.of_pid(sender, pid) for pid in members)
        return [target for target in targets if target is not None]

    def threads_number(self, sender: Process, number: int) -> int:
        """Return our number of a thread, or 0."""
        if self._shares_our_numbers(sender):
            return number
        return peer.process(sender.pid, number) or 0

    def own_number(self, sender: Process) -> int:
        """Return the sender's pid in its own namespace."""
        if self._shares_our_numbers(sender):
            return sender.pid
        return next(reversed(procfs.numbers(sender.pid, "NSpid")), 0)

    def is_known_inside(self, sender: Process, number: int) -> bool:
        """Return whether it is certainly inside, without a look at /proc."""
        return self._processes.holds(number) and self._shares_our_numbers(sender)

    def is_inside(self, pid: int) -> bool:
        return pid not in self._sigwrap_pids and self._processes.target(pid) is not None

    def _shares_our_numbers(self, sender: Process) -> bool:
        if not sender.pid_namespace:
            sender.pid_namespace = peer.level(sender.pid)
        return sender.pid_namespace == self._our_level

    def _inside(self, sender: Process, process: Process) -> SignalTarget:
        refresh_comm(process)
        types = types_inside(sender, process, self._processes.command)
        return SignalTarget(process.pid, process.start_time, process.comm, types, 0)

    def _outside(self, sender: Process, pid: int, types: Types | None) -> SignalTarget | None:
        found = procfs.stat(pid)
        if found is None:
            return None
        if types is None:
            types = types_outside(
                is_system=pid == 1 or found.is_kernel_thread,
                same_user=_same_user(sender.pid, pid),
            )
        return SignalTarget(pid=pid, start_time=found.start_time, comm=found.comm, types=types)


class Groups:
    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._group = os.getpgrp()  # kept: the supervisor leaves it while it asks on the terminal
        self._session = os.getsid(0)

    def joins(self, sender: Process, call: SignalCall) -> Aim:
        """Return the target of setpgid."""
        if call.thread == 0 and -call.target == self._targets.own_number(sender):
            return Own()
        return self._group_of(sender, -call.target)

    def gets_terminal(self, tid: int, sender: Process, call: SignalCall) -> Aim:
        """Return the target of TIOCSPGRP."""
        found = procfs.stat(sender.pid)
        if found is None or found.session != self._session:
            return Own()  # the kernel requires a group of the caller's own terminal session
        aim = self._group_of(sender, -call.target)
        # The kernel stops a background job that wants the terminal, and nothing happens.
        _, foreground = procfs.terminal(sender.pid) or (0, 0)
        if isinstance(aim, Own) and (
            found.pgrp == foreground or procfs.is_deaf_to(tid, signal.SIGTTOU)
        ):
            return OwnInMemory(self._targets.groups_number(sender, -call.target) or 0)
        return aim

    def takes_terminal(self, held: int) -> Aim:
        """Return the target of TIOCSCTTY, which takes a terminal from others with CAP_SYS_ADMIN."""
        terminal = _number(held)
        if os.geteuid() != 0 or not terminal:
            return Own()
        users = [pid for pid in proc_files.all_pids() if _terminal_of(pid)[0] == terminal]
        return Own() if all(map(self._targets.is_inside, users)) else NotOwn()

    def traced_by_parent(self, sender: Process) -> Aim:
        found = procfs.stat(sender.pid)
        parent = None if found is None else self._targets.of_pid(sender, found.ppid)
        return Own() if parent is not None and parent.is_inside else NotOwn()

    def signals_owner(self, sender: Process, call: SignalCall) -> tuple[SignalCall, Aim]:
        """Return the target of O_ASYNC. The call gets the owner that the kernel would set."""
        kind, number = owner(call.held)
        if not number and call.flags & calls.O_ASYNC and _may_set_an_owner(call.held):
            kind, number = F_OWNER_PID, sender.pid
            terminal = _number(call.held)
            if terminal and not _is_master(call.held):
                group = _foreground_group(terminal)
                kind, number = (F_OWNER_PGRP, group) if group else (kind, number)
            call = call._replace(owner_kind=kind, target=number)
        return call, self._reached(sender, kind, number)

    def owner_signalled(self, sender: Process, call: SignalCall) -> Aim:
        """Return the target of F_SETSIG. The owner may be from before the descriptor came here."""
        aim = self._reached(sender, *owner(call.held))
        match aim:
            case SignalTarget() if not aim.is_inside:
                return aim
            case Group(members=members) if not all(member.is_inside for member in members):
                return aim
            case _:
                return JudgedOwner()

    def _reached(self, sender: Process, kind: int, number: int) -> Aim:
        if not number:
            return NoOwner()
        if kind == F_OWNER_PGRP:
            members = self._targets.of_group_led_by(sender, number)
            return Group(tuple(members)) if members else NoOwner()
        return self._targets.of_pid(sender, number) or NoOwner()

    def _group_of(self, sender: Process, number: int) -> Aim:
        group = self._targets.groups_number(sender, number)
        if group is None:
            return WouldFail(errno.EPERM)
        if group == self._group:
            return Own()
        leader = self._targets.of_pid(sender, group)
        if leader is not None and leader.is_inside:
            return Own()
        members = self._targets.of_group_led_by(sender, group)
        if not members:
            return WouldFail(errno.EPERM)
        return Own() if all(member.is_inside for member in members) else NotOwn()


def _same_user(one: int, other: int) -> bool:
    first, second = procfs.credentials(one), procfs.credentials(other)
    return first is not None and second is not None and first.real_uid == second.real_uid


def open_terminal(tid: int, fd: int) -> int:
    """Open the terminal that controls both `tid` and sigwrap, if descriptor `fd` of `tid` is it.

    Used where the descriptor itself cannot be copied. Raises OSError for any other descriptor.
    """
    ours = procfs.controlling_terminal(os.getpid())
    kind, major, minor = device_of(b"/proc/%d/fd/%d" % (tid, fd))
    is_ours = ours is not None and ours == procfs.controlling_terminal(tid)
    if kind != stat.S_IFCHR or not is_ours or os.makedev(major, minor) not in (_DEV_TTY, ours):
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
    return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)


def _number(fd: int) -> int:
    """Return a terminal's device number, as in /proc/PID/stat; 0 if `fd` is no terminal."""
    try:
        return int(struct.unpack("I", fcntl.ioctl(fd, _TIOCGDEV, bytes(4)))[0])
    except OSError:
        return 0


def _is_master(fd: int) -> bool:
    """Return whether it is the end of a pseudo-terminal that a terminal emulator holds."""
    try:
        fcntl.ioctl(fd, _TIOCGPTN, bytes(4))
    except OSError:
        return False
    return True


def _may_set_an_owner(fd: int) -> bool:
    """Return whether it is a device: some drivers make the caller the owner if there is none."""
    return kind_of(b"/proc/self/fd/%d" % fd)[0] == stat.S_IFCHR


def _foreground_group(terminal: int) -> int:
    """Return the foreground group of any process that the terminal controls; 0 if there is none."""
    for pid in proc_files.all_pids():
        controlling, group = _terminal_of(pid)
        if controlling == terminal:
            return max(group, 0)
    return 0


def _terminal_of(pid: int) -> tuple[int, int]:
    return procfs.terminal(pid) or (0, 0)
