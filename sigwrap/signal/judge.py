"""Judges a signal, or a call that makes the kernel send one, for each target; then records it.

If a call names its target by a number in a register, the kernel continues it: no thread can change
a register of another. If another thread could swap the target (a pidfd, a number in memory), the
supervisor makes the call, on the judged target.
"""

from __future__ import annotations

import errno

from sigwrap.approve.questions import Answer, refusal, waiting, with_rules_message
from sigwrap.bare import signal
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP, Action, Decision, TargetType
from sigwrap.policy.judge.signals import signal_name
from sigwrap.session.effects import (
    Ask,
    Continue,
    ContinueToChildren,
    Fail,
    Judgement,
    LetGo,
    Look,
    LookAgain,
    Record,
    RecordRepeated,
    Send,
    SetAsync,
    SetForeground,
    SetLimits,
    SetOwner,
    SignalTarget,
    Steps,
    Succeed,
    Tell,
    UnknownCall,
    Unrecorded,
    refuse_unknown,
)
from sigwrap.session.lineage import WouldFail
from sigwrap.signal import rules
from sigwrap.signal.facts import (
    SENDS,
    AllProcesses,
    Denied,
    DeniedSignals,
    Exists,
    Group,
    How,
    JudgedOwner,
    NoOwner,
    NoProcess,
    NotOwn,
    Own,
    OwnInMemory,
    SignalFacts,
    Stalled,
    Unresolved,
    request_for,
    to_one,
)
from sigwrap.signal.rules import Attempt, Judged, judged, unlogged

_COUNTED_FOR_S = 1.0
_REMEMBERED = 256

_SETS_OWNER = (How.OWNER, How.OWNER_IN_MEMORY, How.ASYNC, How.SIGNAL_OF_OWNER)
_ALL_OR_NONE = (*_SETS_OWNER, How.CHANGE)
# The caller may do these to itself without a judgement.
_FREE_ON_ITSELF = (How.TRACE, How.CHANGE, How.ASYNC)
_IN_REGISTERS = (How.NUMBER, How.ITSELF, How.OWNER, How.TRACE, How.CHANGE)
_KEPT_INSIDE = (How.NUMBER, How.ITSELF, How.OWNER)  # in Landlock's signal scope

_NOT_OWN = {
    How.JOIN: rules.NOT_OWN_GROUP,
    How.FOREGROUND: rules.NOT_OWN_GROUP,
    How.TERMINAL: rules.NOT_OWN_TERMINAL,
    How.TRACED_BY_PARENT: PROTECTS_SIGWRAP,
}


class SignalMediator:
    def __init__(self, engine: Engine, *, domain: bool) -> None:
        """Judge by a policy. In a Landlock `domain`, the supervisor sends signals that leave it."""
        self._engine = engine
        self._domain = domain
        self._denied = DeniedSignals(engine.policy.name)
        # A repeated signal is judged once.
        self._remembered: dict[tuple[object, ...], Judged] = {}

    def mediate(self) -> Steps:
        facts: SignalFacts = yield Look()
        while (tracee := _tracee(facts)) and (yield LetGo(tracee)):
            facts = yield Look()
        yield from self._answer(facts)

    def _answer(self, facts: SignalFacts) -> Steps:
        match facts.aim:
            case SignalTarget():
                return self._one(facts, _by_its_child(facts, self._judge(facts, facts.aim)))
            case Group(members=members, is_own_job=True):
                return self._stop_own_job(facts, members)
            case Group(members=members):
                return self._group(facts, [self._judge(facts, each) for each in members])
            case AllProcesses():
                return self._deny_unaimed(facts, rules.EVERYBODY)
            case Unresolved():
                return self._deny_unaimed(facts, rules.UNRESOLVED)
            case Stalled():
                return _deny_unread(facts)
            case NotOwn():
                return self._deny_unaimed(facts, _NOT_OWN[facts.how])
            case JudgedOwner():
                return _choose_signal_of_owner(facts)
            case NoOwner() if facts.how is How.ASYNC:
                return _carried_out(SetAsync(None, Unrecorded.STAYS_INSIDE))
            case NoOwner():
                return _carried_out(SetOwner(None, Unrecorded.REACHES_NOBODY))
            case OwnInMemory(group=group):
                return _carried_out(SetForeground(group, Unrecorded.STAYS_INSIDE))
            case Own():
                return _answered(Continue(Unrecorded.STAYS_INSIDE))
            case NoProcess():
                return _answered(Continue(Unrecorded.REACHES_NOBODY))
            case Exists():
                return _answered(Succeed(Unrecorded.ONLY_ASKS))
            case WouldFail(errno=error):
                return _answered(Fail(error, Unrecorded.NOTHING_HAPPENS))
            case UnknownCall():
                return refuse_unknown(facts.aim)

    def _judge(self, facts: SignalFacts, target: SignalTarget) -> Judged:
        sender, syscall, number, how, _aim, _correlation, own_targets, *_asked = facts
        key = (sender, sender.comm, syscall, number, how, target, own_targets)
        known = self._remembered.get(key)
        if known is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            known = self._judge_anew(facts, target)
            if known.handled is None:  # what a target handles may change
                self._remembered[key] = known
        return known

    def _judge_anew(self, facts: SignalFacts, target: SignalTarget) -> Judged:
        handled: bool | None = None

        def is_handled() -> bool:
            nonlocal handled
            if handled is None:
                handled = facts.handles(target.pid, facts.signal)
            return handled

        attempt = _attempt(facts, target)
        if facts.how is How.NUMBER and target.pid in facts.stub_may_signal:
            decision = rules.STUB_PASSES_ON
        else:
            traces = facts.how is How.TRACE
            decision = rules.decide(self._engine, attempt, handled=is_handled, traces=traces)
        return judged(target, attempt, decision, handled)

    # One target

    def _one(self, facts: SignalFacts, found: Judged) -> Steps:
        if facts.how in _FREE_ON_ITSELF and TargetType.SELF in found.target.types:
            yield from _on_itself(facts.how, found.target)
            return
        match found.decision.action:
            case Action.ALLOW | Action.AUDIT if self._kernel_can_have_it(facts, found):
                event = _event_of(facts, found)
                if event is None or (yield event):
                    yield _continue(facts, found)
                else:
                    yield Fail(errno.EPERM)
            case Action.ALLOW | Action.AUDIT:
                yield from self._carry_out(facts, found)
            case Action.REDIRECT if facts.how in SENDS:
                yield from self._carry_out(facts, found)
            case Action.DENY | Action.REDIRECT:
                yield from self._deny(facts, found.denied())
            case Action.ABSORB if facts.syscall == "perf_event_open":
                yield from self._deny(facts, found.denied())  # 0 would be a descriptor
            case Action.ABSORB:
                yield Succeed() if (yield found.event()) else Fail(errno.EPERM)
            case Action.APPROVE:
                yield from self._ask_for_one(facts, found)

    def _ask_for_one(self, facts: SignalFacts, found: Judged) -> Steps:
        answer: Answer = yield self._asks(facts, [found])
        if not answer.granted:
            yield from self._deny(facts, found, refusal(answer))
        elif facts.how in SENDS:  # the kernel might signal another process with this number
            yield from self._carry_out(facts, found, approved=True)
        elif not (yield LookAgain(found.target)):
            yield Fail(errno.ESRCH, Unrecorded.NOTHING_HAPPENS)
        elif not self._kernel_can_have_it(facts, found):
            yield from self._carry_out(facts, found, approved=True)
        else:
            yield Continue() if (yield found.event(approved=True)) else Fail(errno.EPERM)

    def _kernel_can_have_it(self, facts: SignalFacts, found: Judged) -> bool:
        if facts.how not in _IN_REGISTERS or _sets_limits_of_shell(facts, found):
            return False
        return found.target.is_inside or not self._domain or facts.how not in _KEPT_INSIDE

    def _deny(self, facts: SignalFacts, found: Judged, why: str = "") -> Steps:
        if (yield found.event()):
            yield from self._tell(facts, [_denial(facts, found, why)])
        yield Fail(errno.EPERM)

    def _deny_unaimed(self, facts: SignalFacts, decision: Decision) -> Steps:
        if (yield _unaimed_event(facts, decision)):
            is_sent = isinstance(facts.aim, AllProcesses) and facts.how in SENDS
            what = f"{signal_name(facts.signal)} to all processes" if is_sent else facts.syscall
            yield from self._tell(facts, [Denied(what, facts.syscall, decision)])
        yield Fail(errno.EPERM)

    def _tell(self, facts: SignalFacts, denied: list[Denied]) -> Steps:
        for line in self._denied.lines(facts.sender, denied):
            yield Tell(line)

    def _asks(self, facts: SignalFacts, asking: list[Judged]) -> Ask:
        request = request_for(facts, [(each.target, each.decision) for each in asking])
        return Ask(request, waiting(request.what, request.rule, self._engine.policy.name))

    def _carry_out(self, facts: SignalFacts, found: Judged, *, approved: bool = False) -> Steps:
        event = _event_of(facts, found, approved=approved)
        if event is not None and not (yield event):
            yield Fail(errno.EPERM)
        elif _sets_limits_of_shell(facts, found):
            yield from _carried_out(SetLimits(found.target, unlogged(found)))
        elif facts.how in _SETS_OWNER:
            yield from _carried_out(_set_owner(facts, found))
        else:
            yield from _carried_out(Send(found.target, found.number(), unlogged(found)))

    # A group

    def _stop_own_job(self, facts: SignalFacts, members: tuple[SignalTarget, ...]) -> Steps:
        """Stop the whole job, as an editor does at its Ctrl+Z.

        A part of it would keep the terminal, and the shell could not continue the rest. Sigwrap's
        own processes stop by themselves. Members outside get SIGTSTP, as from the key, or are
        judged.
        """
        found = list[Judged]()
        for target in members:
            if TargetType.PARENT in target.types:
                continue
            if target.is_inside or facts.signal == signal.SIGTSTP:
                found.append(judged(target, _attempt(facts, target), rules.STOPS_ITS_JOB))
            else:
                found.append(self._judge(facts, target))
        return self._deliver(facts, found, granted=False)

    def _group(self, facts: SignalFacts, found: list[Judged]) -> Steps:
        asking = [each for each in found if each.decision.action is Action.APPROVE]
        if asking:
            answer: Answer = yield self._asks(facts, asking)
            why = "" if answer.granted else refusal(answer)
            yield from self._deliver(facts, found, granted=answer.granted, why=why)
        elif facts.how in (How.NUMBER, How.ITSELF, How.CHANGE) and all(
            each.goes_on() and self._kernel_can_have_it(facts, each) for each in found
        ):
            if (yield from self._record_members(facts, found)):
                yield _continue(facts, *found)
            else:
                yield Fail(errno.EPERM)
        else:
            yield from self._deliver(facts, found, granted=False)

    def _deliver(
        self, facts: SignalFacts, found: list[Judged], *, granted: bool, why: str = ""
    ) -> Steps:
        """Signal the members that may be signalled, the sender last: it may not survive.

        `why` says why an approval was denied.
        """
        is_one = facts.how in _ALL_OR_NONE
        all_go_on = all(each.goes_on(granted=granted) for each in found)
        refused = [each for each in found if each.is_refused(granted=granted)]
        if not is_one and not all(map(_is_sigwraps, found)):
            refused = [each for each in refused if not _is_sigwraps(each)]
        if is_one and not all_go_on:
            found = [each.denied() for each in found]
        if not (yield from self._record_members(facts, found, granted=granted)):
            yield Fail(errno.EPERM)
            return
        yield from self._tell(facts, [_denial(facts, each, why) for each in refused])
        if not is_one:
            yield from _send_to_each(found, granted=granted)
        elif not all_go_on:
            yield Fail(errno.EPERM, unlogged(*found))
        elif facts.how is How.CHANGE:
            yield Continue(unlogged(*found))
        else:
            yield from _carried_out(_set_owner(facts, *found))

    def _record_members(
        self, facts: SignalFacts, found: list[Judged], *, granted: bool = False
    ) -> Judgement:
        """Record the events of a group. Returns whether all were written."""
        for each in found:
            if each.decision.log:
                event = each.event(approved=granted)
                event.payload["correlation"] = str(facts.correlation)
                if not (yield event):
                    return False
        return True


def _send_to_each(found: list[Judged], *, granted: bool) -> Steps:
    reached = 0
    found.sort(key=lambda each: TargetType.SELF in each.attempt.target_types)
    for each in found:
        action = each.decision.action
        if action is Action.ABSORB:
            reached += 1
        elif action is not Action.DENY and (granted or action is not Action.APPROVE):
            error: int = yield Send(each.target, each.number(), unlogged(each))
            reached += not error
    if reached:
        yield Succeed(unlogged(*found))
    else:
        yield Fail(errno.EPERM, unlogged(*found))


def _by_its_child(facts: SignalFacts, found: Judged) -> Judged:
    """Let a child change its parent shell. Not remembered: it depends on the call's arguments."""
    if facts.how is not How.CHANGE or found.goes_on():
        return found
    is_above = TargetType.ANCESTORS in found.target.types
    may_change = is_above and facts.may_change(found.target)
    return found.decided(rules.CHANGES_ITS_SHELL) if may_change else found


def _sets_limits_of_shell(facts: SignalFacts, found: Judged) -> bool:
    return found.decision is rules.CHANGES_ITS_SHELL and facts.syscall == "prlimit64"


def _continue(facts: SignalFacts, *found: Judged) -> Continue | ContinueToChildren:
    may_end = facts.how is How.NUMBER and facts.signal not in rules.IGNORED_BY_DEFAULT
    if may_end and any(TargetType.CHILDREN in each.target.types for each in found):
        return ContinueToChildren(unlogged(*found))
    return Continue(unlogged(*found))


def _answered(answer: Continue | Succeed | Fail) -> Steps:
    yield answer


def _carried_out(
    effect: Send | SetOwner | SetAsync | SetForeground | SetLimits,
) -> Steps:
    """Carry out the call in the supervisor. The caller gets the real result."""
    unrecorded = effect.unrecorded
    error: int = yield effect
    if error:
        if unrecorded in (Unrecorded.REACHES_NOBODY, Unrecorded.STAYS_INSIDE):
            unrecorded = Unrecorded.NOTHING_HAPPENS
        yield Fail(error, unrecorded)
    else:
        yield Succeed(unrecorded)


def _on_itself(how: How, target: SignalTarget) -> Steps:
    if how is How.ASYNC:
        yield from _carried_out(SetAsync(target, Unrecorded.STAYS_INSIDE))
    else:
        yield Continue(Unrecorded.STAYS_INSIDE)


def _choose_signal_of_owner(facts: SignalFacts) -> Steps:
    if (yield _unaimed_event(facts, rules.OWNER_JUDGED)):
        yield from _carried_out(SetAsync(None))
    else:
        yield Fail(errno.EPERM)


def _set_owner(facts: SignalFacts, *found: Judged) -> SetOwner | SetAsync:
    target, unrecorded = found[0].target, unlogged(*found)
    if facts.how in (How.ASYNC, How.SIGNAL_OF_OWNER):
        return SetAsync(target, unrecorded)
    return SetOwner(target, unrecorded)


def _tracee(facts: SignalFacts) -> int:
    """Return the pid of the process that the call would trace, or 0."""
    aim = facts.aim
    return aim.pid if facts.how is How.TRACE and isinstance(aim, SignalTarget) else 0


def _deny_unread(facts: SignalFacts) -> Steps:
    """Deny with the errno of an invalid address."""
    yield _unaimed_event(facts, rules.UNREAD)
    yield Fail(errno.EFAULT)


def _unaimed_event(facts: SignalFacts, decision: Decision) -> Record:
    sender = facts.sender
    attempt = Attempt(facts.syscall, facts.signal, sender.pid, sender.comm, None, "", frozenset())
    kind = rules.event_type(decision)
    return Record(kind, rules.event_payload(attempt, decision))


def _event_of(
    facts: SignalFacts, found: Judged, *, approved: bool = False
) -> Record | RecordRepeated | None:
    """Return the event to record, None if the rule wants none."""
    decision = found.decision
    if not decision.log:
        return None
    event = found.event(approved=approved)
    if not rules.is_coalesced(found.attempt, decision):
        return event
    key = (facts.sender, facts.signal, decision.rule, facts.syscall, found.target)
    return RecordRepeated(event.event, event.payload, key, _COUNTED_FOR_S, event.escalation)


def _attempt(facts: SignalFacts, target: SignalTarget) -> Attempt:
    sender = facts.sender
    return Attempt(
        facts.syscall,
        facts.signal,
        sender.pid,
        sender.comm,
        target.pid,
        target.comm,
        target.types,
    )


def _is_sigwraps(found: Judged) -> bool:
    """Return whether the target is sigwrap. A sender to a group need not read of such members."""
    return TargetType.PARENT in found.target.types


def _denial(facts: SignalFacts, found: Judged, why: str) -> Denied:
    decision, target = found.decision, found.target
    if why and decision.action is Action.APPROVE:
        decision = decision._replace(message=with_rules_message(why, decision.message))
    return Denied(to_one(facts, target), (target.pid, target.start_time), decision)
