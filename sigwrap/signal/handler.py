"""Gathers the facts of signal requests, and carries out the effects of the signal mediator."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import KernelError
from sigwrap.front.interrupts import JOB_STOPS
from sigwrap.kernel import pidfd, procfs
from sigwrap.kernel.file_state import kind_of
from sigwrap.kernel.pidfd import closes_at_once, duplicate, let_go
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.policy.judge.request import TargetType
from sigwrap.policy.judge.signals import ALL
from sigwrap.session.effects import (
    ContinueToChildren,
    LetGo,
    LookAgain,
    Send,
    SetAsync,
    SetForeground,
    SetLimits,
    SetOwner,
    SignalTarget,
    UnknownCall,
)
from sigwrap.session.lineage import Process, WouldFail
from sigwrap.session.loop import Done, Lane, Outcome, Raised
from sigwrap.session.perform import PAUSED, NoHoldings, Request
from sigwrap.session.processes import refresh_comm
from sigwrap.signal.call import (
    EVERYBODY,
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    CallRefused,
    NoTarget,
    SignalCall,
    UnknownUse,
    pointed_at,
    read,
    read_call,
    undecoded,
)
from sigwrap.signal.facts import (
    Aim,
    AllProcesses,
    Exists,
    Group,
    How,
    NoOwner,
    NoProcess,
    OwnInMemory,
    SignalFacts,
    Stalled,
    Unresolved,
)
from sigwrap.signal.judge import SignalMediator
from sigwrap.signal.rules import IGNORED_BY_DEFAULT
from sigwrap.signal.send import (
    is_still,
    may_change,
    send,
    set_async,
    set_limits,
    set_owner,
    would_fail,
)
from sigwrap.signal.targets import Groups, Targets, open_terminal

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_CLOSE_DEADLINE_S = 1.0


class _SignalHoldings(NoHoldings):
    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call = undecoded("")

    def hold(self, fd: int) -> SignalCall:
        self.call = self.call._replace(held=fd)
        return self.call

    def give_up(self) -> int:
        """Return the held descriptor for the receiver to close; -1 if there is none."""
        held, self.call = self.call.held, self.call._replace(held=-1)
        return held

    def close(self) -> None:
        held = self.give_up()
        if held >= 0:
            let_go(held)


class Signals:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = performer = mediation.performer
        self._listener = mediation.listener
        self._mediator = SignalMediator(session.engine, domain=session.facts.walls.domain)
        self._targets = Targets(session.processes, session.facts.sigwrap_pids)
        self._resolver = TargetResolver(self._targets)
        self._recordings = mediation.recordings.running
        self._restarts = mediation.restarts
        self._pool = session.pool
        performer.offer(
            {
                ContinueToChildren: self._continue_to_children,
                Send: self._send,
                SetOwner: self._set_owner,
                SetAsync: self._set_async,
                SetForeground: self._set_foreground,
                SetLimits: self._set_limits,
                LetGo: self._let_go,
                LookAgain: self._look_again,
            }
        )

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        if syscall == "kill" and self._kernel_knows_the_answer(notification, sender):
            self._performer.leave_to_the_kernel(notification.id)
            return
        steps = self._mediator.mediate()
        held = _SignalHoldings()
        self._performer.begin(
            Request(notification, sender, syscall, steps, family=self, holdings=held)
        )

    def look(self, request: Request, *, may_wait: bool) -> bytes | None:
        """The memory that the call points to."""
        place = pointed_at(request.notification, request.syscall)
        return b"" if place is None else read(request.tid, place, may_wait=may_wait)

    def facts(self, request: Request, words: bytes | None) -> SignalFacts:
        notification, sender, syscall = request.notification, request.process, request.syscall
        refresh_comm(sender)
        call, aim = self._resolver.resolve(notification, sender, syscall, words)
        request.holdings.call = call
        recording = self._recordings.get(sender)
        return SignalFacts(
            sender,
            syscall,
            call.signal,
            call.how,
            aim,
            notification.id,
            # A stub passes signals on to its command, and ends as the command did.
            () if recording is None else (sender.pid, recording.command.pid),
            procfs.catches_or_ignores,
            lambda target: may_change(sender, call, target),
        )

    def stalled(self, request: Request, _why: str) -> SignalFacts:
        return self.facts(request, None)._replace(aim=Stalled())

    def drop(self, words: bytes | None) -> None:
        pass

    def _kernel_knows_the_answer(self, notification: Notification, sender: Process) -> bool:
        """Return whether it is signal 0 to a process inside, which Landlock lets through."""
        target, number = int32(notification.argument0), int32(notification.argument1)
        return number == 0 and self._targets.is_known_inside(sender, target)

    # Effects

    def _continue_to_children(self, request: Request, effect: ContinueToChildren) -> None:
        self._restarts.expects_ends(request.process.pid)
        self._performer.let_go_on(request, effect, effect.unrecorded)

    def _send(self, request: Request, effect: Send) -> object:
        def run(call: SignalCall) -> None:
            target = self._with_thread(request, effect.target)
            if TargetType.CHILDREN in target.types and effect.signal not in IGNORED_BY_DEFAULT:
                self._restarts.expects_ends(request.process.pid)
            send(request.process, call, target, effect.signal)

        return self._carry_out(request, effect, run)

    def _set_owner(self, request: Request, effect: SetOwner) -> object:
        def run(call: SignalCall) -> None:
            target = None if effect.target is None else self._with_thread(request, effect.target)
            call = request.holdings.hold(duplicate(request.tid, call.descriptor))
            set_owner(request.process, call, target)

        return self._carry_out(request, effect, run)

    def _set_async(self, request: Request, effect: SetAsync) -> object:
        """Set O_ASYNC or its signal in a worker, because pipes and sockets take their lock for it.

        The call's descriptor stays open until the worker is done.
        """
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        call, held = request.holdings.call, request.holdings.give_up()

        def over() -> None:
            if not request.is_over:
                request.holdings.hold(held)
            elif held >= 0:
                let_go(held)

        def told(outcome: Outcome) -> None:
            if request.is_over:
                return
            reply = self._let_go_then(request, _error_of(outcome))
            if reply is not PAUSED:
                self._performer.resume(request, reply)

        self._pool.run(lambda: set_async(request.process, call), told, over=over)
        return PAUSED

    def _set_foreground(self, request: Request, effect: SetForeground) -> object:
        return self._carry_out(request, effect, lambda call: os.tcsetpgrp(call.held, effect.group))

    def _set_limits(self, request: Request, effect: SetLimits) -> object:
        return self._carry_out(
            request,
            effect,
            lambda call: set_limits(request.process, request.tid, call, effect.target),
        )

    def _carry_out(
        self,
        request: Request,
        effect: Send | SetOwner | SetForeground | SetLimits,
        run: Callable[[SignalCall], None],
    ) -> object:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        try:
            run(request.holdings.call)
            error = 0
        except (KernelError, OSError) as refusal:
            error = refusal.errno or errno.EPERM
        return self._let_go_then(request, error)

    def _let_go_then(self, request: Request, reply: int) -> object:
        """Close the descriptor before the answer: the caller's own close must be the last."""
        held = request.holdings.give_up()
        if held < 0:
            return reply
        if closes_at_once(held):
            os.close(held)
            return reply
        left = [held]
        self._pool.run(
            lambda: os.close(left.pop()),
            lambda _outcome: self._performer.resume(request, reply),
            lane=Lane.CLOSES,
            deadline_s=_CLOSE_DEADLINE_S,
            over=lambda: let_go(left.pop()) if left else None,  # no worker began with it
        )
        return PAUSED

    def _let_go(self, request: Request, effect: LetGo) -> object:
        waits = self._restarts.let_go_soon(effect.pid, request, True)
        return PAUSED if waits else False

    def _look_again(self, _request: Request, effect: LookAgain) -> bool:
        return is_still(effect.target)

    def _with_thread(self, request: Request, target: SignalTarget) -> SignalTarget:
        thread = request.holdings.call.thread
        if not thread:
            return target
        tid = self._targets.threads_number(request.process, thread)
        if not tid:
            raise ProcessLookupError(errno.ESRCH, "no such thread")
        return target._replace(thread=tid)


def _error_of(outcome: Outcome) -> int:
    match outcome:
        case Done():
            return 0
        case Raised(error=KernelError() | OSError() as refusal):
            return refusal.errno or errno.EPERM
    return errno.EAGAIN


# Resolves the processes that a decoded call would reach.


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
