"""Mediated signals: judged one target at a time, recorded, and only then let through.

A call that names its target by number goes on in the kernel: numbers are registers, which nobody
can change. A call that names it by something another thread could swap (a pidfd, a number in
memory) is carried out here instead, on what was judged.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from sigwrap.errors import KernelError
from sigwrap.linux import caller_stderr, pidfd
from sigwrap.linux.seccomp import Listener, Request
from sigwrap.linux.signals.call import (
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    Call,
    How,
    NoTarget,
    Refused,
    read_call,
)
from sigwrap.mediate import signals
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signals import Attempt
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action, Decision, TargetType
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.run.asking.approvals import Answer, Approvals, Question
from sigwrap.run.loop import Loop
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.recording.recordings import Recordings
from sigwrap.run.signals.send import is_still, send, set_owner
from sigwrap.run.signals.targets import Target, Targets, refresh_comm

_COALESCED_FOR_S = 1.0
_StormKey = tuple[Process, int, str]  # who signals itself, by what, under which rule
_SENDS = (How.NUMBER, How.PIDFD, How.ITSELF)


class _Case(NamedTuple):
    """A call on its way: what was asked, by whom, since when."""

    request: Request
    sender: Process
    call: Call
    started_ns: int

    def evaluation_us(self) -> int:
        return (time.perf_counter_ns() - self.started_ns) // 1000


class _Judged(NamedTuple):
    attempt: Attempt
    decision: Decision
    target: Target | None = None


class _Storm:
    __slots__ = ("attempt", "decision", "further")

    def __init__(self, *, attempt: Attempt, decision: Decision) -> None:
        self.attempt = attempt
        self.decision = decision
        self.further = 0


class SignalGate:
    def __init__(
        self,
        *,
        listener: Listener,
        recorder: Recorder,
        engine: Engine,
        processes: Processes,
        sigwrap_pids: frozenset[int],
        approvals: Approvals,
        recordings: Recordings,
        loop: Loop,
    ) -> None:
        self._listener = listener
        self._recorder = recorder
        self._engine = engine
        self._targets = Targets(processes, sigwrap_pids)
        self._approvals = approvals
        self._recordings = recordings
        self._loop = loop
        self._storms: dict[_StormKey, _Storm] = {}
        self._open_questions: dict[Process, list[str]] = {}

    def forget(self, sender: Process) -> None:
        """It has ended; whatever it waited for, it waits no longer, and what it sent itself is
        counted."""
        for request_id in self._open_questions.pop(sender, ()):
            self._approvals.withdraw(request_id)
        for key in [key for key in self._storms if key[0] is sender]:
            self._storm_is_over(key, self._storms[key])

    def answer(self, request: Request, sender: Process) -> None:
        started_ns = time.perf_counter_ns()
        refresh_comm(sender)
        try:
            call = read_call(request)
        except NoTarget:
            self._listener.resume(request.id)
            return
        except Refused as refusal:
            self._listener.fail(request.id, refusal.errno)
            return
        if call.signal not in ALL:
            self._listener.resume(request.id)  # a register too: the kernel says what it is
            return
        case = _Case(request=request, sender=sender, call=call, started_ns=started_ns)
        match call.how:
            case How.PIDFD:
                self._by_pidfd(case)
            case How.ITSELF:
                one = call.flags & PIDFD_SIGNAL_THREAD or (
                    not call.flags and call.target == PIDFD_SELF_THREAD
                )
                self._by_held(case, sender.pid, thread=request.tid if one else 0)
            case How.NOBODY:
                self._continue(case, _Judged(attempt=_unaimed(case), decision=signals.OWNER_JUDGED))
            case _:
                self._by_number(case)

    # From a call to its targets

    def _by_number(self, case: _Case) -> None:
        call = case.call
        if call.syscall == "kill" and call.target == -1:
            self._deny(case, _Judged(attempt=_unaimed(case), decision=signals.EVERYBODY))
        elif call.target == 0 and call.how is How.OWNER_IN_MEMORY:
            self._disown(case)
        elif call.target <= 0:
            members = self._targets.of_group(case.sender, -call.target)
            self._on_group(case, members, may_continue=call.how is How.NUMBER)
        else:
            target = self._targets.of_number(case.sender, call.target)
            if target is None:
                self._listener.fail(case.request.id, errno.ESRCH)
            else:
                self._on_one(case, self._judge(case, target))

    def _by_pidfd(self, case: _Case) -> None:
        """What the descriptor is now is what gets the signal, whatever it is by then."""
        try:
            held = pidfd.duplicate(case.request.tid, case.call.target)
        except (KernelError, OSError) as refusal:
            if refusal.errno == errno.EBADF:
                self._listener.fail(case.request.id, errno.EBADF)
            else:
                self._deny(case, _Judged(attempt=_unaimed(case), decision=signals.UNRESOLVED))
            return
        try:
            pid = pidfd.target(held)
            of_thread = case.call.flags & PIDFD_SIGNAL_THREAD or (
                not case.call.flags and pidfd.is_of_thread(held)
            )
        finally:
            os.close(held)
        if pid is None:
            self._deny(case, _Judged(attempt=_unaimed(case), decision=signals.UNRESOLVED))
        elif pid <= 0:
            self._listener.fail(case.request.id, errno.ESRCH)
        else:
            self._by_held(case, pid, thread=pid if of_thread else 0)

    def _by_held(self, case: _Case, pid: int, *, thread: int) -> None:
        """Both in our own numbers."""
        if case.call.flags & PIDFD_SIGNAL_PROCESS_GROUP:
            group = self._targets.of_group_led_by(case.sender, pid)
            self._on_group(case, group, may_continue=case.call.how is How.ITSELF)
            return
        target = self._targets.of_pid(case.sender, pid)
        if target is None:
            self._listener.fail(case.request.id, errno.ESRCH)
        else:
            self._on_one(case, self._judge(case, target._replace(thread=thread)))

    def _judge(self, case: _Case, target: Target) -> _Judged:
        attempt = Attempt(
            syscall=case.call.syscall,
            signal=case.call.signal,
            sender_pid=case.sender.pid,
            sender_comm=case.sender.comm,
            target_pid=target.pid,
            target_comm=target.comm,
            target_types=target.types,
        )
        if case.call.how is How.NUMBER and self._recordings.is_own_signal(case.sender, target.pid):
            decision = signals.OF_A_STUB
        else:
            decision = signals.decide(self._engine, attempt, traces=case.call.how is How.TRACE)
        return _Judged(attempt=attempt, decision=decision, target=target)

    def _disown(self, case: _Case) -> None:
        """From now on the descriptor signals nobody."""
        if not self._listener.is_waiting(case.request.id):
            return
        try:
            set_owner(case.request.tid, case.sender, case.call, None)
        except (KernelError, OSError) as refusal:
            self._listener.fail(case.request.id, refusal.errno or errno.EPERM)
        else:
            self._listener.succeed(case.request.id, 0)

    # One target

    def _on_one(self, case: _Case, judged: _Judged) -> None:
        match judged.decision.action:
            case Action.ALLOW | Action.AUDIT:
                if case.call.how in (How.NUMBER, How.ITSELF, How.OWNER, How.TRACE):
                    self._continue(case, judged)
                else:
                    self._carry_out(case, judged)
            case Action.DENY:
                self._deny(case, judged)
            case Action.ABSORB:
                if self._record(case, judged):
                    self._listener.succeed(case.request.id, 0)
            case Action.REDIRECT:
                if case.call.how in _SENDS:
                    self._carry_out(case, judged)
                else:
                    self._deny(case, judged)
            case Action.APPROVE:
                self._ask(case, [judged], lambda granted: self._approved(case, judged, granted))

    def _approved(self, case: _Case, judged: _Judged, granted: bool) -> None:
        if not granted:
            self._deny(case, judged)
        elif case.call.how in _SENDS:
            self._carry_out(case, judged, approved=True)  # held: its number may be another's now
        elif is_still(judged.target):
            self._continue(case, judged, approved=True)
        else:
            self._listener.fail(case.request.id, errno.ESRCH)

    def _continue(self, case: _Case, judged: _Judged, *, approved: bool = False) -> None:
        if self._record(case, judged, approved=approved):
            self._listener.resume(case.request.id)

    def _deny(self, case: _Case, judged: _Judged) -> None:
        if self._record(case, judged):
            _tell(case, [judged])
            self._listener.fail(case.request.id, errno.EPERM)

    def _carry_out(self, case: _Case, judged: _Judged, *, approved: bool = False) -> None:
        """In the caller's place; it gets the real result."""
        if not self._record(case, judged, approved=approved):
            return
        target = self._with_thread(case, judged.target)
        try:
            if case.call.how is How.OWNER_IN_MEMORY:
                set_owner(case.request.tid, case.sender, case.call, target)
            else:
                send(case.request.tid, case.sender, case.call, target, _number(judged))
        except (KernelError, OSError) as refusal:
            self._listener.fail(case.request.id, refusal.errno or errno.EPERM)
        else:
            self._listener.succeed(case.request.id, 0)

    def _with_thread(self, case: _Case, target: Target | None) -> Target | None:
        if target is None or not case.call.thread:
            return target
        tid = self._targets.threads_number(case.sender, case.call.thread)
        return target._replace(thread=tid) if tid else None

    # A group

    def _on_group(self, case: _Case, members: list[Target], *, may_continue: bool) -> None:
        if not members:
            self._listener.fail(case.request.id, errno.ESRCH)
            return
        all_judged = [self._judge(case, member) for member in members]
        asking = [each for each in all_judged if each.decision.action is Action.APPROVE]
        if asking:
            self._ask(case, asking, lambda granted: self._deliver(case, all_judged, granted))
        elif may_continue and all(_goes_on(each) for each in all_judged):
            if self._record_all(case, all_judged):
                self._listener.resume(case.request.id)
        else:
            self._deliver(case, all_judged, granted=False)

    def _deliver(self, case: _Case, all_judged: list[_Judged], granted: bool) -> None:
        """To those who may be reached; the sender itself last, it may not survive."""
        owner = case.call.how in (How.OWNER, How.OWNER_IN_MEMORY)
        if owner and not all(_goes_on(each, granted=granted) for each in all_judged):
            all_judged = [each._replace(decision=_denied(each.decision)) for each in all_judged]
        if not self._record_all(case, all_judged, granted=granted):
            return
        _tell(case, all_judged)
        if owner:
            self._finish_owner(case, all_judged, granted)
            return
        reached = 0
        all_judged.sort(key=lambda each: TargetType.SELF in each.attempt.target_types)
        for judged in all_judged:
            action = judged.decision.action
            if action is Action.ABSORB:
                reached += 1
            elif action is not Action.DENY and (granted or action is not Action.APPROVE):
                try:
                    send(case.request.tid, case.sender, case.call, judged.target, _number(judged))
                    reached += 1
                except (KernelError, OSError):
                    continue
        if reached:
            self._listener.succeed(case.request.id, 0)
        else:
            self._listener.fail(case.request.id, errno.EPERM)

    def _finish_owner(self, case: _Case, all_judged: list[_Judged], granted: bool) -> None:
        if all(_goes_on(each, granted=granted) for each in all_judged):
            try:
                set_owner(case.request.tid, case.sender, case.call, all_judged[0].target)
                self._listener.succeed(case.request.id, 0)
            except (KernelError, OSError) as refusal:
                self._listener.fail(case.request.id, refusal.errno or errno.EPERM)
        else:
            self._listener.fail(case.request.id, errno.EPERM)

    # Asking and recording

    def _ask(self, case: _Case, asking: list[_Judged], on_answer: Callable[[bool], None]) -> None:
        first = asking[0]
        others = f" and {len(asking) - 1} more" if len(asking) > 1 else ""
        name = signal_name(case.call.signal)
        question = Question(
            kind="signal",
            pid=case.sender.pid,
            process=case.sender.comm,
            depth=case.sender.depth,
            what=f"{name} to {first.attempt.target_pid} ({first.attempt.target_comm}){others}",
            rule=first.decision.rule,
            message=first.decision.message,
            key=("signal", name, first.decision.rule, first.attempt.target_comm),
        )

        def answered(answer: Answer) -> None:
            on_answer(answer.granted)

        request_id = self._approvals.ask(question, answered)
        self._open_questions.setdefault(case.sender, []).append(request_id)

    def _record(self, case: _Case, judged: _Judged, *, approved: bool = False) -> bool:
        """False where the call must not go on, or has nobody waiting any more."""
        if not self._listener.is_waiting(case.request.id):
            return False
        if not judged.decision.log:
            return True
        if signals.is_coalesced(judged.attempt, judged.decision):
            storm = self._storms.get(_storm_key(case, judged))
            if storm is not None:
                storm.further += 1
                return True
        if not self._write(case, judged, approved=approved):
            self._listener.fail(case.request.id, errno.EPERM)
            return False
        if signals.is_coalesced(judged.attempt, judged.decision):
            self._expect_storm(case, judged)
        return True

    def _record_all(self, case: _Case, all_judged: list[_Judged], *, granted: bool = False) -> bool:
        if not self._listener.is_waiting(case.request.id):
            return False
        for judged in all_judged:
            if judged.decision.log and not self._write(
                case, judged, approved=granted, of_group=True
            ):
                self._listener.fail(case.request.id, errno.EPERM)
                return False
        return True

    def _write(
        self, case: _Case, judged: _Judged, *, approved: bool = False, of_group: bool = False
    ) -> bool:
        payload = signals.event_payload(judged.attempt, judged.decision, case.evaluation_us())
        if of_group:
            payload["correlation"] = str(case.request.id)
        kind = signals.event_type(judged.decision, approved=approved)
        return self._recorder.record(kind, case.sender.pid, payload)

    def _expect_storm(self, case: _Case, judged: _Judged) -> None:
        key = _storm_key(case, judged)
        storm = self._storms[key] = _Storm(attempt=judged.attempt, decision=judged.decision)

        def over() -> None:
            if self._storms.get(key) is storm:  # or its sender has ended meanwhile
                self._storm_is_over(key, storm)

        self._loop.call_at(time.monotonic() + _COALESCED_FOR_S, over)

    def _storm_is_over(self, key: _StormKey, storm: _Storm) -> None:
        del self._storms[key]
        if storm.further:
            payload = signals.event_payload(storm.attempt, storm.decision, 0)
            payload["count"] = storm.further
            self._recorder.record("signal_sent", storm.attempt.sender_pid, payload)


def _tell(case: _Case, all_judged: list[_Judged]) -> None:
    denied = [each.decision for each in all_judged if each.decision.action is Action.DENY]
    for message in dict.fromkeys(decision.message for decision in denied if decision.message):
        caller_stderr.tell(case.sender.pid, message)


def _storm_key(case: _Case, judged: _Judged) -> _StormKey:
    return case.sender, judged.attempt.signal, judged.decision.rule


def _unaimed(case: _Case) -> Attempt:
    return Attempt(
        syscall=case.call.syscall,
        signal=case.call.signal,
        sender_pid=case.sender.pid,
        sender_comm=case.sender.comm,
        target_pid=None,
        target_comm="",
        target_types=frozenset(),
    )


def _goes_on(judged: _Judged, *, granted: bool = False) -> bool:
    action = judged.decision.action
    return action in (Action.ALLOW, Action.AUDIT) or (granted and action is Action.APPROVE)


def _denied(decision: Decision) -> Decision:
    return decision._replace(action=Action.DENY)


def _number(judged: _Judged) -> int:
    return judged.decision.redirect_signal or judged.attempt.signal
