"""Finds the processes that a call would reach, and their relation to the sender.

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
from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.errors import KernelError
from sigwrap.front.interrupts import JOB_STOPS
from sigwrap.kernel import descriptors, procfs, signals
from sigwrap.kernel import process as linux_process
from sigwrap.kernel.file_state import kind_of
from sigwrap.kernel.peer import FORK_SERVER_NAME
from sigwrap.kernel.seccomp import Notification
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP
from sigwrap.policy.judge.signals import ALL
from sigwrap.session.effects import (
    SetAsync,
    SetForeground,
    SignalTarget,
    Succeed,
    Unrecorded,
    would_fail,
)
from sigwrap.session.lineage import SIGWRAP_ITSELF, Process, Types, types_inside, types_outside
from sigwrap.session.processes import refresh_comm
from sigwrap.signal.call import (
    EVERY_PROCESS,
    F_OWNER_PGRP,
    F_OWNER_PID,
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    Settled,
    SignalCall,
    read_call,
    undecoded,
)
from sigwrap.signal.facts import (
    EVERYBODY,
    NO_OWNER,
    NOT_OWN_GROUP,
    NOT_OWN_TERMINAL,
    OWN,
    REACHES_NONE,
    UNRESOLVED,
    Aim,
    Group,
    How,
    Refused,
)
from sigwrap.signal.send import owner, probe

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_TIOCGDEV = 0x80045432
_TIOCGPTN = 0x80045430
_DEV_TTY = os.makedev(5, 0)

_UNRESOLVED = Refused(UNRESOLVED)
_FOREIGN_GROUP = Refused(NOT_OWN_GROUP)


class Targets:
    """Processes and groups, by the numbers that a sender knows them by."""

    def __init__(self, session: Session) -> None:
        self._processes = session.processes
        self._sigwrap_pids = session.facts.sigwrap_pids
        self._our_level = linux_process.namespace_level(os.getpid())
        found = procfs.stat(os.getpid())
        self._own_image = None if found is None else found.image

    def our_number(self, sender: Process, number: int) -> int:
        """Return our number of a process or thread, or 0."""
        if self._shares_our_numbers(sender):
            return number
        return linux_process.pid_for(sender.pid, number) or 0

    def our_group(self, sender: Process, number: int) -> int | None:
        """Return our number of a group; 0 is the sender's own group."""
        if number == 0:
            found = procfs.stat(sender.pid)
            return None if found is None else found.pgrp
        if self._shares_our_numbers(sender):
            return number
        return linux_process.group_for(sender.pid, number)

    def is_known_inside(self, sender: Process, number: int) -> bool:
        """Return whether it is certainly inside, without a look at /proc."""
        return self._processes.holds(number) and self._shares_our_numbers(sender)

    def is_inside(self, pid: int) -> bool:
        return pid not in self._sigwrap_pids and self._processes.target(pid) is not None

    def of_pid(self, sender: Process, pid: int) -> SignalTarget | None:
        if pid in self._sigwrap_pids:
            return _outside(sender, pid, SIGWRAP_ITSELF)
        process = self._processes.target(pid)
        if process is not None:
            refresh_comm(process)
            if process.comm == FORK_SERVER_NAME and self._is_before_its_exec(process):
                return _outside(sender, process.pid, SIGWRAP_ITSELF)
            types = types_inside(sender, process, self._processes.command)
            return SignalTarget(process.pid, process.start_time, process.comm, types)
        tgid = procfs.tgid(pid) if pid else None
        if tgid is None:
            return None
        return _outside(sender, tgid, SIGWRAP_ITSELF if tgid in self._sigwrap_pids else None)

    def of_group(self, sender: Process, group: int | None) -> list[SignalTarget]:
        """Return the members of a group, by our number of it."""
        members = [
            pid
            for pid in procfs.all_pids()
            if (found := procfs.stat(pid)) is not None and found.pgrp == group
        ]
        targets = (self.of_pid(sender, pid) for pid in members)
        return [target for target in targets if target is not None]

    def _is_before_its_exec(self, process: Process) -> bool:
        """Return whether it is still a copy of sigwrap's fork server, with its descriptors.

        Only such a copy hides its image.
        """
        if process.ppid not in self._sigwrap_pids:
            return False
        found = procfs.stat(process.pid)
        return not process.argv or found is None or found.image == self._own_image

    def _shares_our_numbers(self, sender: Process) -> bool:
        if not sender.pid_namespace:
            sender.pid_namespace = linux_process.namespace_level(sender.pid)
        return sender.pid_namespace == self._our_level


class TargetResolver:
    """Resolves the processes that a call would reach."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._group = os.getpgrp()  # kept: the supervisor leaves it while it asks on the terminal
        self._session = os.getsid(0)

    def resolve(
        self, notification: Notification, sender: Process, syscall: str, words: bytes | None
    ) -> tuple[SignalCall, Aim]:
        """Return the decoded call and its target. The caller closes the descriptor the call holds.

        `words` is the memory that the call points to, None if that cannot be read.
        """
        try:
            call = read_call(notification, syscall, words)
        except Settled as settled:
            return undecoded(syscall), settled.answer
        if call.signal == 0:
            return call, self._probe(notification.tid, sender, call)
        if call.signal not in ALL:
            return call, REACHES_NONE  # a register: the kernel refuses the number
        if call.how in (How.SIGNAL_OF_OWNER, How.ASYNC, How.TERMINAL):
            return self._by_descriptor(notification.tid, sender, call)
        if call.how is How.FOREGROUND:
            return self._gets_terminal(notification.tid, sender, call)
        return call, self._aim(notification.tid, sender, call)

    def _probe(self, tid: int, sender: Process, call: SignalCall) -> Aim:
        """Return the target of signal 0. It sends nothing, so the kernel may read the call again.

        For a process outside, Landlock would make the kernel answer EPERM. So sigwrap answers.
        """
        aim = self._aim(tid, sender, call)
        match aim:
            case SignalTarget():
                members: tuple[SignalTarget, ...] = (aim,)
            case Group(members=members):
                pass
            case _:
                return REACHES_NONE
        if all(member.is_inside for member in members):
            return REACHES_NONE
        thread = call.thread and self._targets.our_number(sender, call.thread)
        error = min(probe(sender, call, each, thread) for each in members)
        return would_fail(error) if error else Succeed(Unrecorded.ONLY_ASKS)

    def _aim(self, tid: int, sender: Process, call: SignalCall) -> Aim:
        match call.how:
            case How.PIDFD:
                return self._by_pidfd(tid, sender, call)
            case How.ITSELF:
                one = call.flags & PIDFD_SIGNAL_THREAD or (
                    not call.flags and call.target == PIDFD_SELF_THREAD
                )
                return self._of_held(sender, call, sender.pid, tid if one else 0)
            case How.JOIN:
                group = -call.target
                if call.thread == 0 and self._targets.our_number(sender, group) == sender.pid:
                    return OWN
                return self._own_group(sender, group)
            case How.TRACED_BY_PARENT:
                found = procfs.stat(sender.pid)
                parent = None if found is None else self._targets.of_pid(sender, found.ppid)
                is_ours = parent is not None and parent.is_inside
                return OWN if is_ours else Refused(PROTECTS_SIGWRAP)
            case How.TRACE | How.CHANGE if call.target == tid:
                return self._of_held(sender, call, sender.pid, 0)
            case _:
                return self._by_number(sender, call)

    def _by_number(self, sender: Process, call: SignalCall) -> Aim:
        if call.target == EVERY_PROCESS and (call.syscall == "kill" or call.how is How.CHANGE):
            return Refused(EVERYBODY)
        if call.target == 0 and call.how is How.OWNER_IN_MEMORY:
            return NO_OWNER
        if call.target <= 0:
            group = self._targets.our_group(sender, -call.target)
            members = [] if group is None else self._targets.of_group(sender, group)
            return _group(members, self._is_own_job(sender, call, group, members))
        return _one(self._targets.of_pid(sender, self._targets.our_number(sender, call.target)))

    def _is_own_job(
        self, sender: Process, call: SignalCall, group: int | None, members: list[SignalTarget]
    ) -> bool:
        """Return whether the call stops a group that has the terminal, below a shell that can
        continue it.

        Ctrl+Z would stop such a group, and `fg` would continue it.
        """
        if call.signal not in JOB_STOPS or call.how is not How.NUMBER or not group:
            return False
        terminal, foreground = procfs.terminal(sender.pid) or (0, 0)
        is_own = group == foreground and group == self._targets.our_group(sender, 0)
        return is_own and terminal != 0 and any(_is_below_a_shell(each.pid) for each in members)

    def _by_pidfd(self, tid: int, sender: Process, call: SignalCall) -> Aim:
        """Return the descriptor's present target. The supervisor judges and signals this one."""
        seen = signals.pidfd_target(tid, call.target)
        if seen is None:
            return _without_a_pidfd(tid, call.target)
        pid, is_of_thread = seen
        if pid <= 0:
            return would_fail(errno.ESRCH)
        of_thread = call.flags & PIDFD_SIGNAL_THREAD or (not call.flags and is_of_thread)
        return self._of_held(sender, call, pid, pid if of_thread else 0)

    def _of_held(self, sender: Process, call: SignalCall, pid: int, thread: int) -> Aim:
        """Return the target for the supervisor's own pids."""
        if call.flags & PIDFD_SIGNAL_PROCESS_GROUP:
            return _group(self._targets.of_group(sender, pid))
        found = self._targets.of_pid(sender, pid)
        return _one(None if found is None else found._replace(thread=thread))

    # Groups, owners and terminals

    def _own_group(self, sender: Process, number: int) -> Aim:
        """Return whether a group is the session's own."""
        group = self._targets.our_group(sender, number)
        if group is None:
            return would_fail(errno.EPERM)
        if group == self._group:
            return OWN
        leader = self._targets.of_pid(sender, group)
        if leader is not None and leader.is_inside:
            return OWN
        members = self._targets.of_group(sender, group)
        if not members:
            return would_fail(errno.EPERM)
        return OWN if all(member.is_inside for member in members) else _FOREIGN_GROUP

    def _gets_terminal(self, tid: int, sender: Process, call: SignalCall) -> tuple[SignalCall, Aim]:
        """Return the target of TIOCSPGRP. Another thread can change the group's number in memory,
        so the supervisor gives the terminal to the judged one."""
        found = procfs.stat(sender.pid)
        if found is None or found.session != self._session:
            return call, OWN  # the kernel requires a group of the caller's own terminal session
        aim = self._own_group(sender, -call.target)
        _, foreground = procfs.terminal(sender.pid) or (0, 0)
        is_in_front = found.pgrp == foreground or signals.is_in(
            tid, signal.SIGTTOU, b"SigBlk", b"SigIgn"
        )
        if aim is not OWN or not is_in_front:
            return call, aim  # the kernel stops a background job that wants the terminal
        group = self._targets.our_group(sender, -call.target) or 0
        call, failed = _hold(tid, call)
        if failed is _UNRESOLVED:  # the kernel may refuse copies of descriptors
            try:
                call, failed = call._replace(held=_open_terminal(tid, call.descriptor)), None
            except OSError:
                pass
        return call, failed or SetForeground(group, Unrecorded.STAYS_INSIDE)

    def _by_descriptor(self, tid: int, sender: Process, call: SignalCall) -> tuple[SignalCall, Aim]:
        call, failed = _hold(tid, call)
        if failed is not None:
            return call, failed
        try:
            if call.how is How.TERMINAL:
                return call, self._takes_terminal(call.held)
            return self._signals_owner(sender, call)
        except BaseException:
            descriptors.let_go(call.held)
            raise

    def _takes_terminal(self, held: int) -> Aim:
        """Return the target of TIOCSCTTY, which takes a terminal from others with CAP_SYS_ADMIN."""
        terminal = _terminal_number(held)
        if os.geteuid() != 0 or not terminal:
            return OWN
        users = [
            pid for pid in procfs.all_pids() if (procfs.terminal(pid) or (0, 0))[0] == terminal
        ]
        return OWN if all(map(self._targets.is_inside, users)) else Refused(NOT_OWN_TERMINAL)

    def _signals_owner(self, sender: Process, call: SignalCall) -> tuple[SignalCall, Aim]:
        """Return the target of O_ASYNC or F_SETSIG: the owner, which may be from before the
        descriptor came here. For O_ASYNC, the call gets the owner that the kernel would set."""
        kind, number = owner(call.held)
        is_async = call.how is How.ASYNC and call.flags & calls.O_ASYNC
        if not number and is_async and _may_set_an_owner(call.held):
            kind, number = F_OWNER_PID, sender.pid
            terminal = _terminal_number(call.held)
            if terminal and not _is_master(call.held):
                group = _foreground_group(terminal)
                kind, number = (F_OWNER_PGRP, group) if group else (kind, number)
            call = call._replace(owner_kind=kind, target=number)
        none = SetAsync(None, Unrecorded.STAYS_INSIDE)
        return call, self._owners(sender, kind, number) or none

    def _owners(self, sender: Process, kind: int, number: int) -> SignalTarget | Group | None:
        if not number:
            return None
        if kind == F_OWNER_PGRP:
            members = self._targets.of_group(sender, number)
            return Group(tuple(members)) if members else None
        return self._targets.of_pid(sender, number)


def _outside(sender: Process, pid: int, types: Types | None) -> SignalTarget | None:
    found = procfs.stat(pid)
    if found is None:
        return None
    if types is None:
        one, other = procfs.credentials(sender.pid), procfs.credentials(pid)
        types = types_outside(
            is_system=pid == 1 or found.is_kernel_thread,
            same_user=one is not None and other is not None and one.real_uid == other.real_uid,
        )
    return SignalTarget(pid, found.start_time, found.comm, types)


def _one(target: SignalTarget | None) -> Aim:
    return would_fail(errno.ESRCH) if target is None else target


def _group(members: list[SignalTarget], is_own_job: bool = False) -> Aim:
    return Group(tuple(members), is_own_job) if members else would_fail(errno.ESRCH)


def _without_a_pidfd(tid: int, fd: int) -> Aim:
    """Handle a descriptor that is no pidfd.

    The kernel would accept a directory of /proc as one. Programs have not used that since
    pidfd_open exists, so sigwrap refuses it.
    """
    try:
        is_folder = kind_of(b"/proc/%d/fd/%d" % (tid, fd))[0] == stat.S_IFDIR
    except FileNotFoundError:
        return would_fail(errno.EBADF)
    except OSError:
        return _UNRESOLVED
    return _UNRESOLVED if is_folder else would_fail(errno.EBADF)


def _is_below_a_shell(pid: int) -> bool:
    """Return whether its group is not orphaned: no shell would continue an orphaned group."""
    found = procfs.stat(pid)
    parent = None if found is None else procfs.stat(found.ppid)
    if found is None or parent is None:
        return False
    return parent.session == found.session and parent.pgrp != found.pgrp


def _hold(tid: int, call: SignalCall) -> tuple[SignalCall, Aim | None]:
    """Copy the call's descriptor. Sigwrap judges the copy and makes the call on it."""
    try:
        return call._replace(held=descriptors.duplicate(tid, call.descriptor)), None
    except (KernelError, OSError) as refusal:
        return call, would_fail(errno.EBADF) if refusal.errno == errno.EBADF else _UNRESOLVED


def _open_terminal(tid: int, fd: int) -> int:
    """Open the terminal that controls both `tid` and sigwrap, if descriptor `fd` of `tid` is it.

    Raises OSError for any other descriptor.
    """
    ours = procfs.controlling_terminal(os.getpid())
    kind, major, minor = kind_of(b"/proc/%d/fd/%d" % (tid, fd))
    is_ours = ours is not None and ours == procfs.controlling_terminal(tid)
    if kind != stat.S_IFCHR or not is_ours or os.makedev(major, minor) not in (_DEV_TTY, ours):
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
    return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)


def _terminal_number(fd: int) -> int:
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
    for pid in procfs.all_pids():
        controlling, group = procfs.terminal(pid) or (0, 0)
        if controlling == terminal:
            return max(group, 0)
    return 0
