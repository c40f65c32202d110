"""Resolve the processes and groups that a signal would reach.

A group is the session's own if all its members are. A process that joins a group and reads the
terminal in the background stops the whole group, and the keys of a terminal signal its foreground
group. The group that sigwrap was started in counts as the session's own, because the command is in
it.
"""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.bare import TYPE_CHECKING
from sigwrap.front.interrupts import JOB_STOPS
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.file_state import kind_of
from sigwrap.kernel.peer import FORK_SERVER_NAME
from sigwrap.kernel.seccomp import Notification
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP
from sigwrap.policy.judge.signals import ALL
from sigwrap.session.effects import SignalTarget, Succeed, Unrecorded, would_fail
from sigwrap.session.lineage import SIGWRAP_ITSELF, Process, Types, types_inside, types_outside
from sigwrap.session.processes import refresh_comm
from sigwrap.signal import owners
from sigwrap.signal.call import (
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    probe,
    read_call,
)
from sigwrap.signal.facts import (
    EVERY_PROCESS,
    EVERYBODY,
    NO_CALL,
    NO_OWNER,
    NOT_OWN_GROUP,
    OWN,
    REACHES_NONE,
    UNRESOLVED_TARGET,
    CallKind,
    RefusedCall,
    SignalAim,
    SignalCall,
    TargetGroup,
)

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_ON_DESCRIPTORS = (
    *(CallKind.SIGNAL_OF_OWNER, CallKind.ASYNC),
    *(CallKind.TERMINAL, CallKind.FOREGROUND),
)


class Targets:
    """Resolves the processes and groups that a call names, by the numbers of its caller."""

    def __init__(self, session: Session) -> None:
        self._processes = session.processes
        self._sigwrap_pids = session.facts.sigwrap_pids
        self._our_level = linux_process.namespace_level(os.getpid())
        found = procfs.stat(os.getpid())
        self._own_image = None if found is None else found.image
        # Kept: the supervisor leaves its group while it asks on the terminal.
        self._own_group = os.getpgrp()
        self.own_session = os.getsid(0)

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

    def known_inside(self, sender: Process, number: int) -> Process | None:
        """Return the process if it is certainly inside, without a look at /proc."""
        process = self._processes.held(number)
        return process if process is None or self._shares_our_numbers(sender) else None

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

    def own_group(self, sender: Process, number: int) -> SignalAim:
        """Return OWN if a group is the session's own."""
        group = self.our_group(sender, number)
        if group is None:
            return would_fail(errno.EPERM)
        if group == self._own_group:
            return OWN
        leader = self.of_pid(sender, group)
        if leader is not None and leader.is_inside:
            return OWN
        members = self.of_group(sender, group)
        if not members:
            return would_fail(errno.EPERM)
        is_own = all(member.is_inside for member in members)
        return OWN if is_own else RefusedCall(NOT_OWN_GROUP)

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

    def resolve(
        self, notification: Notification, sender: Process, syscall: str, words: bytes | None
    ) -> tuple[SignalCall, SignalAim]:
        """Return the decoded call and its target. The caller closes the descriptor the call holds.

        `words` is the memory that the call points to, None if that cannot be read.
        """
        call = read_call(notification, syscall, words)
        if not isinstance(call, SignalCall):
            return NO_CALL._replace(syscall=syscall), call
        if call.signal == 0:
            return call, self._probe(notification.tid, sender, call)
        if call.signal not in ALL:
            return call, REACHES_NONE  # a register: the kernel refuses the number
        if call.kind in _ON_DESCRIPTORS:
            return owners.aim_of(self, notification.tid, sender, call)
        return call, self._aim(notification.tid, sender, call)

    def _probe(self, tid: int, sender: Process, call: SignalCall) -> SignalAim:
        """Return the target of signal 0. It sends nothing, so the kernel may read the call again.

        For a process outside, Landlock would make the kernel answer EPERM. So sigwrap answers.
        """
        aim = self._aim(tid, sender, call)
        match aim:
            case SignalTarget():
                members: tuple[SignalTarget, ...] = (aim,)
            case TargetGroup(members=members):
                pass
            case _:
                return REACHES_NONE
        if all(member.is_inside for member in members):
            return REACHES_NONE
        thread = call.thread and self.our_number(sender, call.thread)
        error = min(probe(sender, call, each, thread) for each in members)
        return would_fail(error) if error else Succeed(Unrecorded.ONLY_ASKS)

    def _aim(self, tid: int, sender: Process, call: SignalCall) -> SignalAim:
        match call.kind:
            case CallKind.NUMBER:
                return self._by_number(sender, call)
            case CallKind.PIDFD:
                return self._by_pidfd(tid, sender, call)
            case CallKind.ITSELF:
                one = call.flags & PIDFD_SIGNAL_THREAD or (
                    not call.flags and call.target == PIDFD_SELF_THREAD
                )
                return self._of_ours(sender, call, sender.pid, tid if one else 0)
            case CallKind.JOIN:
                group = -call.target
                if call.thread == 0 and self.our_number(sender, group) == sender.pid:
                    return OWN
                return self.own_group(sender, group)
            case CallKind.TRACED_BY_PARENT:
                found = procfs.stat(sender.pid)
                parent = None if found is None else self.of_pid(sender, found.ppid)
                is_ours = parent is not None and parent.is_inside
                return OWN if is_ours else RefusedCall(PROTECTS_SIGWRAP)
            case CallKind.TRACE | CallKind.CHANGE if call.target == tid:
                return _one(self.of_pid(sender, sender.pid))
            case _:
                return self._by_number(sender, call)

    def _by_number(self, sender: Process, call: SignalCall) -> SignalAim:
        if call.target == EVERY_PROCESS and (
            call.syscall == "kill" or call.kind is CallKind.CHANGE
        ):
            return RefusedCall(EVERYBODY)
        if call.target == 0 and call.kind is CallKind.OWNER_IN_MEMORY:
            return NO_OWNER
        if call.target <= 0:
            group = self.our_group(sender, -call.target)
            members = [] if group is None else self.of_group(sender, group)
            return _group(members, self._is_own_job(sender, call, group, members))
        return _one(self.of_pid(sender, self.our_number(sender, call.target)))

    def _is_own_job(
        self, sender: Process, call: SignalCall, group: int | None, members: list[SignalTarget]
    ) -> bool:
        """Return whether the call stops a group that has the terminal, below a shell that can
        continue it.

        Ctrl+Z would stop such a group, and `fg` would continue it.
        """
        if call.signal not in JOB_STOPS or call.kind is not CallKind.NUMBER or not group:
            return False
        terminal, foreground = procfs.terminal(sender.pid) or (0, 0)
        is_own = group == foreground and group == self.our_group(sender, 0)
        return is_own and terminal != 0 and any(_is_below_a_shell(each.pid) for each in members)

    def _by_pidfd(self, tid: int, sender: Process, call: SignalCall) -> SignalAim:
        """Return the descriptor's present target. The supervisor judges and signals this one."""
        seen = signals.pidfd_target(tid, call.target)
        if seen is None:
            return _without_a_pidfd(tid, call.target)
        pid, is_of_thread = seen
        if pid <= 0:
            return would_fail(errno.ESRCH)
        of_thread = call.flags & PIDFD_SIGNAL_THREAD or (not call.flags and is_of_thread)
        return self._of_ours(sender, call, pid, pid if of_thread else 0)

    def _of_ours(self, sender: Process, call: SignalCall, pid: int, thread: int) -> SignalAim:
        """Return the target of a call by pidfd, by our numbers of it."""
        if call.flags & PIDFD_SIGNAL_PROCESS_GROUP:
            return _group(self.of_group(sender, pid))
        found = self.of_pid(sender, pid)
        return _one(None if found is None else found._replace(thread=thread))


def _outside(sender: Process, pid: int, types: Types | None) -> SignalTarget | None:
    found = procfs.stat(pid)
    if found is None:
        return None
    if types is None:
        one, other = procfs.rights(sender.pid), procfs.rights(pid)
        types = types_outside(
            is_system=pid == 1 or found.is_kernel_thread,
            same_user=one is not None and other is not None and one.real_uid == other.real_uid,
        )
    return SignalTarget(pid, found.start_time, found.comm, types)


def _one(target: SignalTarget | None) -> SignalAim:
    return would_fail(errno.ESRCH) if target is None else target


def _group(members: list[SignalTarget], is_own_job: bool = False) -> SignalAim:
    return TargetGroup(tuple(members), is_own_job) if members else would_fail(errno.ESRCH)


def _without_a_pidfd(tid: int, fd: int) -> SignalAim:
    """Handle a descriptor that is no pidfd.

    The kernel would accept a directory of /proc as one. Programs have not used that since
    pidfd_open exists, so sigwrap refuses it.
    """
    try:
        is_folder = kind_of(b"/proc/%d/fd/%d" % (tid, fd))[0] == stat.S_IFDIR
    except FileNotFoundError:
        return would_fail(errno.EBADF)
    except OSError:
        return UNRESOLVED_TARGET
    return UNRESOLVED_TARGET if is_folder else would_fail(errno.EBADF)


def _is_below_a_shell(pid: int) -> bool:
    """Return whether its group is not orphaned: no shell would continue an orphaned group."""
    found = procfs.stat(pid)
    parent = None if found is None else procfs.stat(found.ppid)
    if found is None or parent is None:
        return False
    return parent.session == found.session and parent.pgrp != found.pgrp
