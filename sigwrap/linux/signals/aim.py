"""Resolves the processes that a decoded call would reach."""

from __future__ import annotations

import errno
import stat

from sigwrap.errors import KernelError
from sigwrap.linux import pidfd, procfs
from sigwrap.linux.file_state import kind_of
from sigwrap.linux.foreign_fds import let_go
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.signals.call import (
    EVERYBODY,
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    CallRefused,
    NoTarget,
    SignalCall,
    UnknownUse,
    read_call,
    undecoded,
)
from sigwrap.linux.signals.send import would_fail
from sigwrap.linux.signals.targets import Groups, Targets, open_terminal
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.interrupts import JOB_STOPS
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.refusal import UnknownCall
from sigwrap.mediate.signal_facts import (
    Aim,
    AllProcesses,
    Exists,
    Group,
    How,
    NoOwner,
    NoProcess,
    OwnInMemory,
    Unresolved,
)
from sigwrap.policy.judge.signals import ALL


class TargetResolver:
    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._groups = Groups(targets)

    def resolve(
        self, notification: Notification, sender: Process, syscall: str, words: bytes | None
    ) -> tuple[SignalCall, Aim]:
        """Return the decoded call and its target. The caller closes the descriptor the call holds.

        `words` is the memory that the call points to, None if that cannot be read.
        """
        try:
            call = read_call(notification, syscall, words)
        except NoTarget:
            return undecoded(syscall), NoProcess()
        except CallRefused as refusal:
            return undecoded(syscall), WouldFail(refusal.errno)
        except UnknownUse as unknown:
            return undecoded(syscall), _unknown(notification, sender, str(unknown))
        if call.signal == 0:
            return call, self._probe(notification, sender, call)
        if call.signal not in ALL:
            return call, NoProcess()  # a register: the kernel refuses the number
        return self._aim(notification, sender, call)

    def _probe(self, notification: Notification, sender: Process, call: SignalCall) -> Aim:
        """Return the target of signal 0. It sends nothing, so the kernel may read the call again.

        For a process outside, Landlock would make the kernel answer EPERM. So sigwrap answers.
        """
        _call, aim = self._aim(notification, sender, call)
        match aim:
            case SignalTarget() as target:
                members: tuple[SignalTarget, ...] = (target,)
            case Group(members=members):
                pass
            case _:
                return NoProcess()
        if all(member.is_inside for member in members):
            return NoProcess()
        thread = call.thread and self._targets.threads_number(sender, call.thread)
        error = min(would_fail(sender, call, each, thread) for each in members)
        return WouldFail(error) if error else Exists()

    def _aim(
        self, notification: Notification, sender: Process, call: SignalCall
    ) -> tuple[SignalCall, Aim]:
        match call.how:
            case How.PIDFD:
                return call, self._by_pidfd(notification, sender, call)
            case How.ITSELF:
                one = call.flags & PIDFD_SIGNAL_THREAD or (
                    not call.flags and call.target == PIDFD_SELF_THREAD
                )
                thread = notification.tid if one else 0
                return call, self._of_held(sender, call, sender.pid, thread)
            case How.SIGNAL_OF_OWNER | How.ASYNC | How.TERMINAL:
                return self._by_descriptor(notification, sender, call)
            case How.JOIN:
                return call, self._groups.joins(sender, call)
            case How.FOREGROUND:
                aim = self._groups.gets_terminal(notification.tid, sender, call)
                if isinstance(aim, OwnInMemory):
                    return _hold_terminal(notification.tid, call, aim)
                return call, aim
            case How.TRACED_BY_PARENT:
                return call, self._groups.traced_by_parent(sender)
            case How.NUMBER | How.OWNER | How.OWNER_IN_MEMORY | How.TRACE | How.CHANGE:
                if call.target == notification.tid and call.how in (How.TRACE, How.CHANGE):
                    return call, self._of_held(sender, call, sender.pid, 0)
                return call, self._by_number(sender, call)

    def _by_descriptor(
        self, notification: Notification, sender: Process, call: SignalCall
    ) -> tuple[SignalCall, Aim]:
        call, unresolved = _hold(notification.tid, call, call.descriptor, Unresolved())
        if call.held < 0:
            return call, unresolved
        try:
            if call.how is How.ASYNC:
                return self._groups.signals_owner(sender, call)
            if call.how is How.SIGNAL_OF_OWNER:
                return call, self._groups.owner_signalled(sender, call)
            return call, self._groups.takes_terminal(call.held)
        except BaseException:
            let_go(call.held)
            raise

    def _by_number(self, sender: Process, call: SignalCall) -> Aim:
        if call.target == EVERYBODY and (call.syscall == "kill" or call.how is How.CHANGE):
            return AllProcesses()
        if call.target == 0 and call.how is How.OWNER_IN_MEMORY:
            return NoOwner()
        if call.target <= 0:
            members = self._targets.of_group(sender, -call.target)
            if not members and call.how in (How.OWNER, How.OWNER_IN_MEMORY):
                # The process with this number can still make a group with it.
                return _one(self._targets.of_number(sender, -call.target))
            is_own_job = call.signal in JOB_STOPS and self._is_own_job(sender, call, members)
            return _group(members, is_own_job=is_own_job)
        return _one(self._targets.of_number(sender, call.target))

    def _is_own_job(self, sender: Process, call: SignalCall, members: list[SignalTarget]) -> bool:
        """Return whether the group has the terminal, below a shell that can continue it.

        Ctrl+Z would stop such a group, and `fg` would continue it.
        """
        group = self._targets.groups_number(sender, -call.target)
        has_terminal = procfs.terminal(sender.pid)
        if not group or has_terminal is None or call.how is not How.NUMBER:
            return False
        terminal, foreground = has_terminal
        is_own = group == foreground and group == self._targets.groups_number(sender, 0)
        return is_own and terminal != 0 and any(_is_below_a_shell(each.pid) for each in members)

    def _by_pidfd(self, notification: Notification, sender: Process, call: SignalCall) -> Aim:
        """Return the descriptor's present target. The supervisor judges and signals this one."""
        seen = pidfd.target_of(notification.tid, call.target)
        if seen is None:
            return _without_a_pidfd(notification.tid, call.target)
        pid, is_of_thread = seen
        if pid <= 0:
            return WouldFail(errno.ESRCH)
        of_thread = call.flags & PIDFD_SIGNAL_THREAD or (not call.flags and is_of_thread)
        return self._of_held(sender, call, pid, pid if of_thread else 0)

    def _of_held(self, sender: Process, call: SignalCall, pid: int, thread: int) -> Aim:
        """Return the target for the supervisor's own pids."""
        if call.flags & PIDFD_SIGNAL_PROCESS_GROUP:
            return _group(self._targets.of_group_led_by(sender, pid))
        found = self._targets.of_pid(sender, pid)
        return _one(None if found is None else found._replace(thread=thread))


def _without_a_pidfd(tid: int, fd: int) -> Aim:
    """Handle a descriptor that is no pidfd.

    The kernel would accept a directory of /proc as one. Programs have not used that since
    pidfd_open exists, so sigwrap refuses it.
    """
    try:
        is_folder = kind_of(b"/proc/%d/fd/%d" % (tid, fd))[0] == stat.S_IFDIR
    except FileNotFoundError:
        return WouldFail(errno.EBADF)
    except OSError:
        return Unresolved()
    return Unresolved() if is_folder else WouldFail(errno.EBADF)


def _hold(tid: int, call: SignalCall, descriptor: int, aim: Aim) -> tuple[SignalCall, Aim]:
    """Copy the descriptor. Sigwrap judges the copy and makes the call on it."""
    try:
        return call._replace(held=pidfd.duplicate(tid, descriptor)), aim
    except (KernelError, OSError) as refusal:
        bad = refusal.errno == errno.EBADF
        return call, WouldFail(errno.EBADF) if bad else Unresolved()


def _hold_terminal(tid: int, call: SignalCall, aim: Aim) -> tuple[SignalCall, Aim]:
    """Copy the descriptor, or open the terminal if the kernel refuses the copy."""
    held, found = _hold(tid, call, call.descriptor, aim)
    if isinstance(found, Unresolved):
        try:
            return call._replace(held=open_terminal(tid, call.descriptor)), aim
        except OSError:
            return call, found
    return held, found


def _is_below_a_shell(pid: int) -> bool:
    """Return whether its group is not orphaned: no shell would continue an orphaned group."""
    found = procfs.stat(pid)
    parent = None if found is None else procfs.stat(found.ppid)
    if found is None or parent is None:
        return False
    return parent.session == found.session and parent.pgrp != found.pgrp


def _unknown(notification: Notification, sender: Process, reason: str) -> UnknownCall:
    arguments = notification[6:]
    return UnknownCall(notification.number, notification.arch, arguments, sender.comm, reason)


def _one(target: SignalTarget | None) -> Aim:
    return WouldFail(errno.ESRCH) if target is None else target


def _group(members: list[SignalTarget], *, is_own_job: bool = False) -> Aim:
    return Group(tuple(members), is_own_job) if members else WouldFail(errno.ESRCH)
