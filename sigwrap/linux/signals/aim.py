"""Whom a decoded signal call would reach: the facts that a signal is judged by."""

from __future__ import annotations

import errno
import os

from sigwrap.errors import KernelError
from sigwrap.linux import pidfd, procfs
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.signals import terminals
from sigwrap.linux.signals.call import (
    EVERYBODY,
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    CallRefused,
    NoTarget,
    SignalCall,
    read_call,
)
from sigwrap.linux.signals.jobs import Jobs
from sigwrap.linux.signals.send import would_fail
from sigwrap.linux.signals.targets import Targets
from sigwrap.linux.taken import let_go
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.interrupts import JOB_STOPS
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal_facts import (
    Aim,
    Everybody,
    Exists,
    Group,
    How,
    Nobody,
    NoOwner,
    OwnInMemory,
    Unresolved,
)
from sigwrap.policy.judge.signals import ALL

_ON_DESCRIPTORS = ("ioctl", "fcntl", "fcntl64")


class Aims:
    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._jobs = Jobs(targets)

    def look(
        self, notification: Notification, sender: Process, syscall: str, words: bytes | None
    ) -> tuple[SignalCall, Aim]:
        """`words`: what its pointer leads to. What the call holds is the caller's to close."""
        call, aim = self._look(notification, sender, syscall, words)
        if isinstance(aim, WouldFail) and syscall in _ON_DESCRIPTORS:
            aim = WouldFail(self._jobs.descriptors_error(notification, sender) or aim.errno)
        return call, aim

    def _look(
        self, notification: Notification, sender: Process, syscall: str, words: bytes | None
    ) -> tuple[SignalCall, Aim]:
        try:
            call = read_call(notification, syscall, words)
        except NoTarget:
            return _undecoded(syscall), Nobody()
        except CallRefused as refusal:
            return _undecoded(syscall), WouldFail(refusal.errno)
        if call.signal == 0:
            return call, self._question(notification, sender, call)
        if call.signal not in ALL:
            return call, Nobody()  # a register too: the kernel says what it is
        return self._aim(notification, sender, call)

    def _question(self, notification: Notification, sender: Process, call: SignalCall) -> Aim:
        """Nothing is sent, so the kernel may look again at what it is about. Only of those outside
        it would say, for Landlock's sake, that they may not be signalled."""
        _call, aim = self._aim(notification, sender, call)
        match aim:
            case SignalTarget() as target:
                members: tuple[SignalTarget, ...] = (target,)
            case Group(members=members):
                pass
            case _:
                return Nobody()
        if all(member.is_inside for member in members):
            return Nobody()
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
                return call, self._jobs.joins(sender, call)
            case How.FOREGROUND:
                aim = self._jobs.gets_terminal(notification.tid, sender, call)
                if isinstance(aim, OwnInMemory):
                    return _hold_terminal(notification.tid, call, aim)
                return call, aim
            case How.TRACED_BY_PARENT:
                return call, self._jobs.traced_by_parent(sender)
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
                return self._jobs.signals_owner(sender, call)
            if call.how is How.SIGNAL_OF_OWNER:
                return call, self._jobs.owner_signalled(sender, call)
            return call, self._jobs.takes_terminal(call.held)
        except BaseException:
            let_go(call.held)
            raise

    def _by_number(self, sender: Process, call: SignalCall) -> Aim:
        if call.target == EVERYBODY and (call.syscall == "kill" or call.how is How.CHANGE):
            return Everybody()
        if call.target == 0 and call.how is How.OWNER_IN_MEMORY:
            return NoOwner()
        if call.target <= 0:
            members = self._targets.of_group(sender, -call.target)
            if not members and call.how in (How.OWNER, How.OWNER_IN_MEMORY):
                # A group of this number can be made by the process that has it.
                return _one(self._targets.of_number(sender, -call.target))
            is_own_job = call.signal in JOB_STOPS and self._is_own_job(sender, call, members)
            return _group(members, is_own_job=is_own_job)
        return _one(self._targets.of_number(sender, call.target))

    def _is_own_job(self, sender: Process, call: SignalCall, members: list[SignalTarget]) -> bool:
        """The one that has the terminal, below a shell: a Ctrl+Z would stop it, and `fg` continue
        it."""
        group = self._targets.groups_number(sender, -call.target)
        has_terminal = procfs.terminal(sender.pid)
        if not group or has_terminal is None or call.how is not How.NUMBER:
            return False
        terminal, foreground = has_terminal
        is_own = group == foreground and group == self._targets.groups_number(sender, 0)
        return is_own and terminal != 0 and any(_is_below_a_shell(each.pid) for each in members)

    def _by_pidfd(self, notification: Notification, sender: Process, call: SignalCall) -> Aim:
        """What the descriptor stands for now gets the signal, whatever it is by then."""
        try:
            held = pidfd.duplicate(notification.tid, call.target)
        except (KernelError, OSError) as refusal:
            if refusal.errno == errno.EBADF:
                return WouldFail(errno.EBADF)
            seen = pidfd.target_of_others(notification.tid, call.target)
            return Unresolved() if seen is None else self._of_pidfd(sender, call, *seen)
        pid = None
        try:
            pid = pidfd.target(held)
            if pid is None:
                return self._by_folder(sender, call, held)
            is_of_thread = pidfd.is_of_thread(held)
        finally:
            if pid is None:
                let_go(held)
            else:  # it is a pidfd
                os.close(held)
        return self._of_pidfd(sender, call, pid, is_of_thread)

    def _of_pidfd(self, sender: Process, call: SignalCall, pid: int, is_of_thread: bool) -> Aim:
        if pid <= 0:
            return WouldFail(errno.ESRCH)
        of_thread = call.flags & PIDFD_SIGNAL_THREAD or (not call.flags and is_of_thread)
        return self._of_held(sender, call, pid, pid if of_thread else 0)

    def _by_folder(self, sender: Process, call: SignalCall, held: int) -> Aim:
        """The kernel takes /proc/PID for a pidfd. Its number is that of the namespace that was
        mounted, which we take for the sender's; whoever it is by that is judged and gets the
        signal."""
        try:
            number = pidfd.number_of_folder(held)
        except ProcessLookupError:
            return WouldFail(errno.ESRCH)
        except OSError as refusal:
            return WouldFail(errno.EBADF) if refusal.errno == errno.EBADF else Unresolved()
        pid = self._targets.threads_number(sender, number)
        if not pid:
            return WouldFail(errno.ESRCH)
        return self._of_held(sender, call, pid, pid if call.flags & PIDFD_SIGNAL_THREAD else 0)

    def _of_held(self, sender: Process, call: SignalCall, pid: int, thread: int) -> Aim:
        """`pid` and `thread` are the supervisor's numbers."""
        if call.flags & PIDFD_SIGNAL_PROCESS_GROUP:
            return _group(self._targets.of_group_led_by(sender, pid))
        found = self._targets.of_pid(sender, pid)
        return _one(None if found is None else found._replace(thread=thread))


def _hold(tid: int, call: SignalCall, descriptor: int, aim: Aim) -> tuple[SignalCall, Aim]:
    """What the descriptor stands for now is what is judged, and what it is carried out on."""
    try:
        return call._replace(held=pidfd.duplicate(tid, descriptor)), aim
    except (KernelError, OSError) as refusal:
        bad = refusal.errno == errno.EBADF
        return call, WouldFail(errno.EBADF) if bad else Unresolved()


def _hold_terminal(tid: int, call: SignalCall, aim: Aim) -> tuple[SignalCall, Aim]:
    """Where descriptors are not to be taken, one of our own does as well for a terminal that
    controls us too."""
    held, found = _hold(tid, call, call.descriptor, aim)
    if isinstance(found, Unresolved):
        try:
            return call._replace(held=terminals.open_as_ours(tid, call.descriptor)), aim
        except OSError:
            return call, found
    return held, found


def _is_below_a_shell(pid: int) -> bool:
    """Whether its group is none that the kernel calls orphaned, which nobody would continue."""
    found = procfs.stat(pid)
    parent = None if found is None else procfs.stat(found.ppid)
    if found is None or parent is None:
        return False
    return parent.session == found.session and parent.pgrp != found.pgrp


def _one(target: SignalTarget | None) -> Aim:
    return WouldFail(errno.ESRCH) if target is None else target


def _group(members: list[SignalTarget], *, is_own_job: bool = False) -> Aim:
    return Group(tuple(members), is_own_job) if members else WouldFail(errno.ESRCH)


def _undecoded(syscall: str) -> SignalCall:
    return SignalCall(syscall, How.NUMBER, signal=0, target=0)
