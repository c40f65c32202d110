"""A signal, or what makes the kernel send one: judged for each target, recorded, and only then let
through.

A call that names its target by a number goes on in the kernel: numbers are registers, which no
thread can change. A call that names it by what another thread could swap (a pidfd, a number in
memory) is carried out by the supervisor, on what was judged.
"""

from __future__ import annotations

import errno

from sigwrap.bare import signal
from sigwrap.events import Payload
from sigwrap.mediate import signal_rules
from sigwrap.mediate.denied_signals import Denied, DeniedSignals
from sigwrap.mediate.effects import (
    Ask,
    Continue,
    ContinueToChildren,
    Escalation,
    Fail,
    Judgement,
    LookAgain,
    Mediation,
    Record,
    RecordRepeated,
    Send,
    SetAsync,
    SetForeground,
    SetLimits,
    SetOwner,
    SignalTarget,
    Succeed,
    Tell,
    Unrecorded,
)
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.questions import Answer
from sigwrap.mediate.signal_answers import (
    answer_question,
    at_oneself,
    disown,
    fail,
    leave_to_the_kernel,
    stay_inside,
    succeed_by,
)
from sigwrap.mediate.signal_facts import (
    SENDS,
    Everybody,
    Exists,
    Group,
    How,
    Nobody,
    NoOwner,
    NotOwn,
    Own,
    OwnInMemory,
    SignalFacts,
    Unresolved,
    WhoeverOwns,
)
from sigwrap.mediate.signal_question import question_about, to_one
from sigwrap.mediate.signal_rules import Attempt
from sigwrap.mediate.wording import refusal, waiting, with_rules_message
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import LENIENT, PROTECTS_SIGWRAP, Action, Decision, TargetType
from sigwrap.policy.judge.signals import signal_name
from sigwrap.tuples import NamedTuple

_COUNTED_FOR_S = 1.0
_REMEMBERED = 256

_SETS_OWNER = (How.OWNER, How.OWNER_IN_MEMORY, How.ASYNC, How.SIGNAL_OF_OWNER)
_ALL_OR_NONE = (*_SETS_OWNER, How.CHANGE)
# To the caller alone they are free.
_NOT_OF_ONESELF = (How.TRACE, How.CHANGE, How.ASYNC)
_IN_REGISTERS = (How.NUMBER, How.ITSELF, How.OWNER, How.TRACE, How.CHANGE)
_KEPT_INSIDE = (How.NUMBER, How.ITSELF, How.OWNER)  # by Landlock's signal scope


class _Judged(NamedTuple):
    target: SignalTarget
    attempt: Attempt
    decision: Decision
    payload: Payload  # of its event; each event has a copy
    handled: bool | None = None  # by the target; None where no rule asked


_NOT_OWN = {
    How.JOIN: signal_rules.NOT_OWN_GROUP,
    How.FOREGROUND: signal_rules.NOT_OWN_GROUP,
    How.TERMINAL: signal_rules.NOT_OWN_TERMINAL,
    How.TRACED_BY_PARENT: PROTECTS_SIGWRAP,
}


class SignalMediator:
    def __init__(self, engine: Engine, *, domain: bool) -> None:
        """`domain`: Landlock lets no signal out, so those to the outside are carried out here."""
        self._engine = engine
        self._domain = domain
        self._denied = DeniedSignals(engine.policy.name)
        # The same facts have the same decision: a repeated signal is judged once.
        self._remembered: dict[tuple[object, ...], _Judged] = {}

    def mediate(self, facts: SignalFacts) -> Mediation:
        match facts.aim:
            case SignalTarget():
                return self._one(facts, _of_parent(facts, self._judge(facts, facts.aim)))
            case Group(members=members, is_own_job=True):
                return self._stop_own_job(facts, members)
            case Group(members=members):
                return self._group(facts, [self._judge(facts, each) for each in members])
            case Everybody():
                return self._deny_unaimed(facts, signal_rules.EVERYBODY)
            case Unresolved():
                return self._deny_unaimed(facts, signal_rules.UNRESOLVED)
            case WhoeverOwns():
                return _let_owner_be_signalled(facts)
            case NoOwner() if facts.how is How.ASYNC:
                return succeed_by(SetAsync(None, Unrecorded.STAYS_INSIDE))
            case NoOwner():
                return disown()
            case OwnInMemory(group=group):
                return succeed_by(SetForeground(group, Unrecorded.STAYS_INSIDE))
            case Own():
                return stay_inside()
            case NotOwn():
                return self._deny_unaimed(facts, _NOT_OWN[facts.how])
            case Nobody():
                return leave_to_the_kernel()
            case Exists():
                return answer_question()
            case WouldFail(errno=error):
                return fail(error)

    def _judge(self, facts: SignalFacts, target: SignalTarget) -> _Judged:
        sender, syscall, number, how, _aim, _correlation, own_targets, *_asked = facts
        key = (sender, sender.comm, syscall, number, how, target, own_targets)
        judged = self._remembered.get(key)
        if judged is None:
            if len(self._remembered) >= _REMEMBERED:
                self._remembered.clear()
            judged = self._judge_anew(facts, target)
            if judged.handled is None:  # what a target handles can be other the next time
                self._remembered[key] = judged
        return judged

    def _judge_anew(self, facts: SignalFacts, target: SignalTarget) -> _Judged:
        handled: bool | None = None

        def is_handled() -> bool:
            nonlocal handled
            if handled is None:
                handled = facts.handles(target.pid, facts.signal)
            return handled

        attempt = _attempt(facts, target)
        if facts.how is How.NUMBER and target.pid in facts.stub_may_signal:
            decision = signal_rules.OF_A_STUB
        else:
            traces = facts.how is How.TRACE
            decision = signal_rules.decide(self._engine, attempt, handled=is_handled, traces=traces)
        return _Judged(target, attempt, decision, _payload(attempt, decision, handled), handled)

    # One target

    def _one(self, facts: SignalFacts, judged: _Judged) -> Mediation:
        if facts.how in _NOT_OF_ONESELF and TargetType.SELF in judged.target.types:
            yield from at_oneself(facts.how, judged.target)
            return
        match judged.decision.action:
            case Action.ALLOW | Action.AUDIT if self._kernel_can_have_it(facts, judged):
                event = _event_of(facts, judged)
                if event is None or (yield event):
                    yield _continue(facts, judged)
                else:
                    yield Fail(errno.EPERM)
            case Action.ALLOW | Action.AUDIT:
                yield from self._carry_out(facts, judged)
            case Action.REDIRECT if facts.how in SENDS:
                yield from self._carry_out(facts, judged)
            case Action.DENY | Action.REDIRECT:
                yield from self._deny(facts, _denied(judged))
            case Action.ABSORB if facts.syscall == "perf_event_open":
                yield from self._deny(facts, _denied(judged))  # 0 would be a descriptor
            case Action.ABSORB:
                if (yield _event(judged)):
                    yield Succeed()
                else:
                    yield Fail(errno.EPERM)
            case Action.APPROVE:
                yield from self._ask_for_one(facts, judged)

    def _ask_for_one(self, facts: SignalFacts, judged: _Judged) -> Mediation:
        answer: Answer = yield self._asks(facts, [judged])
        if not answer.granted:
            yield from self._deny(facts, judged, refusal(answer))
        elif facts.how in SENDS:  # the supervisor sends it: its number may be another's by now
            yield from self._carry_out(facts, judged, approved=True)
        elif not (yield LookAgain(judged.target)):
            yield Fail(errno.ESRCH, Unrecorded.NOTHING_HAPPENS)
        elif not self._kernel_can_have_it(facts, judged):
            yield from self._carry_out(facts, judged, approved=True)
        elif (yield _event(judged, approved=True)):
            yield Continue()
        else:
            yield Fail(errno.EPERM)

    def _kernel_can_have_it(self, facts: SignalFacts, judged: _Judged) -> bool:
        if facts.how not in _IN_REGISTERS or _sets_limits_of_parent(facts, judged):
            return False
        return judged.target.is_inside or not self._domain or facts.how not in _KEPT_INSIDE

    def _deny(self, facts: SignalFacts, judged: _Judged, why: str = "") -> Mediation:
        if (yield _event(judged)):
            yield from self._tell(facts, [_denial(facts, judged, why)])
        yield Fail(errno.EPERM)

    def _deny_unaimed(self, facts: SignalFacts, decision: Decision) -> Mediation:
        if (yield _unaimed_event(facts, decision)):
            is_sent = isinstance(facts.aim, Everybody) and facts.how in SENDS
            what = f"{signal_name(facts.signal)} to all processes" if is_sent else facts.syscall
            yield from self._tell(facts, [Denied(what, facts.syscall, decision)])
        yield Fail(errno.EPERM)

    def _tell(self, facts: SignalFacts, denied: list[Denied]) -> Mediation:
        for line in self._denied.lines(facts.sender, denied):
            yield Tell(line)

    def _asks(self, facts: SignalFacts, asking: list[_Judged]) -> Ask:
        question = question_about(facts, [(each.target, each.decision) for each in asking])
        return Ask(question, waiting(question.what, question.rule, self._engine.policy.name))

    def _carry_out(
        self, facts: SignalFacts, judged: _Judged, *, approved: bool = False
    ) -> Mediation:
        """In the caller's place; the caller gets the real result."""
        event = _event_of(facts, judged, approved=approved)
        if event is not None and not (yield event):
            yield Fail(errno.EPERM)
            return
        if _sets_limits_of_parent(facts, judged):
            error: int = yield SetLimits(judged.target, _unlogged(judged))
        elif facts.how in _SETS_OWNER:
            error = yield _set_owner(facts, judged)
        else:
            error = yield Send(judged.target, _number(judged), _unlogged(judged))
        if error:
            yield Fail(error, _unlogged(judged))
        else:
            yield Succeed(_unlogged(judged))

    # A group

    def _stop_own_job(self, facts: SignalFacts, members: tuple[SignalTarget, ...]) -> Mediation:
        """All of it, as an editor does at its Ctrl+Z: part of a job would keep the terminal, and
        the rest could not be continued. Sigwrap's own processes stop by themselves. Who is outside
        gets what the key would send, and nothing else."""
        decision, judged = signal_rules.OF_OWN_JOB, list[_Judged]()
        for target in members:
            if TargetType.PARENT in target.types:
                continue
            if target.is_inside or facts.signal == signal.SIGTSTP:
                attempt = _attempt(facts, target)
                payload = _payload(attempt, decision, None)
                judged.append(_Judged(target, attempt, decision, payload))
            else:
                judged.append(self._judge(facts, target))
        return self._deliver(facts, judged, granted=False)

    def _group(self, facts: SignalFacts, judged: list[_Judged]) -> Mediation:
        asking = [each for each in judged if each.decision.action is Action.APPROVE]
        if asking:
            answer: Answer = yield self._asks(facts, asking)
            why = "" if answer.granted else refusal(answer)
            yield from self._deliver(facts, judged, granted=answer.granted, why=why)
        elif facts.how in (How.NUMBER, How.ITSELF, How.CHANGE) and all(
            _goes_on(each) and self._kernel_can_have_it(facts, each) for each in judged
        ):
            if (yield from self._record_members(facts, judged)):
                yield _continue(facts, *judged)
            else:
                yield Fail(errno.EPERM)
        else:
            yield from self._deliver(facts, judged, granted=False)

    def _deliver(
        self, facts: SignalFacts, judged: list[_Judged], *, granted: bool, why: str = ""
    ) -> Mediation:
        """To those who may be reached. The sender itself comes last: it may not survive. `why`: an
        answer was no."""
        is_one = facts.how in _ALL_OR_NONE
        refused = [each for each in judged if _is_refused(each, granted=granted)]
        if not is_one and not all(map(_is_ours, judged)):
            refused = [each for each in refused if not _is_ours(each)]
        if is_one and not all(_goes_on(each, granted=granted) for each in judged):
            judged = [_denied(each) for each in judged]
        if not (yield from self._record_members(facts, judged, granted=granted)):
            yield Fail(errno.EPERM)
            return
        yield from self._tell(facts, [_denial(facts, each, why) for each in refused])
        if is_one:
            yield from self._reach_group(facts, judged, granted=granted)
            return
        reached = 0
        judged.sort(key=lambda each: TargetType.SELF in each.attempt.target_types)
        for each in judged:
            action = each.decision.action
            if action is Action.ABSORB:
                reached += 1
            elif action is not Action.DENY and (granted or action is not Action.APPROVE):
                error: int = yield Send(each.target, _number(each), _unlogged(each))
                reached += not error
        if reached:
            yield Succeed(_unlogged(*judged))
        else:
            yield Fail(errno.EPERM, _unlogged(*judged))

    def _reach_group(
        self, facts: SignalFacts, judged: list[_Judged], *, granted: bool
    ) -> Mediation:
        if not all(_goes_on(each, granted=granted) for each in judged):
            yield Fail(errno.EPERM, _unlogged(*judged))
        elif facts.how is How.CHANGE:
            yield Continue(_unlogged(*judged))
        else:
            yield from succeed_by(_set_owner(facts, *judged))

    def _record_members(
        self, facts: SignalFacts, judged: list[_Judged], *, granted: bool = False
    ) -> Judgement:
        """Returns whether all that is to be in the log is."""
        for each in judged:
            if each.decision.log:
                event = _event(each, approved=granted)
                event.payload["correlation"] = str(facts.correlation)
                if not (yield event):
                    return False
        return True


def _of_parent(facts: SignalFacts, judged: _Judged) -> _Judged:
    """Not remembered: the same call with other arguments is denied."""
    if facts.how is not How.CHANGE or _goes_on(judged):
        return judged
    is_above = TargetType.ANCESTORS in judged.target.types
    may_change = is_above and facts.may_change(judged.target)
    return _decided(judged, signal_rules.OF_PARENT) if may_change else judged


def _sets_limits_of_parent(facts: SignalFacts, judged: _Judged) -> bool:
    return judged.decision is signal_rules.OF_PARENT and facts.syscall == "prlimit64"


def _continue(facts: SignalFacts, *judged: _Judged) -> Continue | ContinueToChildren:
    may_end = facts.how is How.NUMBER and facts.signal not in signal_rules.IGNORED_BY_DEFAULT
    if may_end and any(TargetType.CHILDREN in each.target.types for each in judged):
        return ContinueToChildren(_unlogged(*judged))
    return Continue(_unlogged(*judged))


def _let_owner_be_signalled(facts: SignalFacts) -> Mediation:
    if (yield _unaimed_event(facts, signal_rules.OWNER_JUDGED)):
        yield from succeed_by(SetAsync(None))
    else:
        yield Fail(errno.EPERM)


def _set_owner(facts: SignalFacts, *judged: _Judged) -> SetOwner | SetAsync:
    target, unrecorded = judged[0].target, _unlogged(*judged)
    if facts.how in (How.ASYNC, How.SIGNAL_OF_OWNER):
        return SetAsync(target, unrecorded)
    return SetOwner(target, unrecorded)


def _unaimed(facts: SignalFacts) -> Attempt:
    sender = facts.sender
    return Attempt(facts.syscall, facts.signal, sender.pid, sender.comm, None, "", frozenset())


def _event(judged: _Judged, *, approved: bool = False) -> Record:
    decision = judged.decision
    kind = signal_rules.event_type(decision, approved=approved)
    escalation = None
    if decision.escalate:
        escalation = Escalation(decision.rule, signal_rules.described(judged.attempt))
    return Record(kind, judged.payload.copy(), escalation)


def _unaimed_event(facts: SignalFacts, decision: Decision) -> Record:
    kind = signal_rules.event_type(decision)
    return Record(kind, signal_rules.event_payload(_unaimed(facts), decision))


def _event_of(
    facts: SignalFacts, judged: _Judged, *, approved: bool = False
) -> Record | RecordRepeated | None:
    """None where the rule wants none."""
    decision = judged.decision
    if not decision.log:
        return None
    event = _event(judged, approved=approved)
    if not signal_rules.is_coalesced(judged.attempt, decision):
        return event
    key = (facts.sender, facts.signal, decision.rule, facts.syscall, judged.target)
    return RecordRepeated(event.event, event.payload, key, _COUNTED_FOR_S, event.escalation)


def _is_refused(judged: _Judged, *, granted: bool) -> bool:
    action = judged.decision.action
    return action is Action.DENY or (action is Action.APPROVE and not granted)


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


def _is_ours(judged: _Judged) -> bool:
    """That sigwrap is in a group as well is no news to whoever signals it."""
    return TargetType.PARENT in judged.target.types


def _denial(facts: SignalFacts, judged: _Judged, why: str) -> Denied:
    """`why`: what was answered, where somebody was asked."""
    decision, target = judged.decision, judged.target
    if why and decision.action is Action.APPROVE:
        decision = decision._replace(message=with_rules_message(why, decision.message))
    return Denied(to_one(facts, target), (target.pid, target.start_time), decision)


def _unlogged(*judged: _Judged) -> Unrecorded | None:
    """Where no rule of all of them wanted an event."""
    for each in judged:
        if each.decision.log:
            return None
    return Unrecorded.RULE_IS_UNLOGGED


def _goes_on(judged: _Judged, *, granted: bool = False) -> bool:
    action = judged.decision.action
    return action in LENIENT or (granted and action is Action.APPROVE)


def _denied(judged: _Judged) -> _Judged:
    return _decided(judged, judged.decision._replace(action=Action.DENY))


def _decided(judged: _Judged, decision: Decision) -> _Judged:
    payload = _payload(judged.attempt, decision, judged.handled)
    return judged._replace(decision=decision, payload=payload)


def _payload(attempt: Attempt, decision: Decision, handled: bool | None) -> Payload:
    payload = signal_rules.event_payload(attempt, decision)
    return payload if handled is None else payload | {"target_handles": handled}


def _number(judged: _Judged) -> int:
    return judged.decision.redirect_signal or judged.attempt.signal
