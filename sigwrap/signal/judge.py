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
from sigwrap.policy.judge.request import Action, TargetType
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
    Send,
    SetAsync,
    SetForeground,
    SetOwner,
    SignalTarget,
    Steps,
    Succeed,
    Tell,
    Unrecorded,
    would_fail,
)
from sigwrap.signal.facts import (
    CHANGES_ITS_SHELL,
    EVERYBODY,
    IGNORED_BY_DEFAULT,
    OWNER_JUDGED,
    SENDS,
    STOPS_ITS_JOB,
    Denied,
    DeniedSignals,
    Free,
    Group,
    How,
    Judged,
    JudgedOwner,
    Refused,
    SignalFacts,
    judge,
    request_for,
    to_one,
    unaimed_event,
    unlogged,
)

_SETS_OWNER = (How.OWNER, How.OWNER_IN_MEMORY, How.ASYNC, How.SIGNAL_OF_OWNER)
_ALL_OR_NONE = (*_SETS_OWNER, How.CHANGE)
# The caller may do these to itself without a judgement.
_FREE_ON_ITSELF = (How.TRACE, How.CHANGE, How.ASYNC)
_IN_REGISTERS = (How.NUMBER, How.ITSELF, How.OWNER, How.TRACE, How.CHANGE)
_KEPT_INSIDE = (How.NUMBER, How.ITSELF, How.OWNER)  # in Landlock's signal scope


class SignalMediator:
    def __init__(self, engine: Engine, *, domain: bool) -> None:
        """Judge by a policy. In a Landlock `domain`, the supervisor sends signals that leave it."""
        self._engine = engine
        self._domain = domain
        self._denied = DeniedSignals(engine.policy.name)

    def mediate(self) -> Steps:
        facts: SignalFacts = yield Look()
        while (tracee := _tracee(facts)) and (yield LetGo(tracee)):
            facts = yield Look()
        match facts.aim:
            case SignalTarget():
                yield from self._one(facts, self._judge(facts, facts.aim))
            case Group(members=members, is_own_job=True):
                yield from self._stop_own_job(facts, members)
            case Group(members=members):
                yield from self._group(facts, [judge(self._engine, facts, it) for it in members])
            case JudgedOwner():
                if (yield unaimed_event(facts, OWNER_JUDGED)):
                    yield from _carried_out(SetAsync(None))
                else:
                    yield Fail(errno.EPERM)
            case Refused():
                yield from self._refuse(facts, facts.aim)
            case _:
                yield from _free(facts.aim)

    # One target

    def _judge(self, facts: SignalFacts, target: SignalTarget) -> Judged:
        found = judge(self._engine, facts, target)
        is_above = facts.changes_its_shell and TargetType.ANCESTORS in target.types
        if is_above and not found.goes_on():
            return found._replace(decision=CHANGES_ITS_SHELL)
        return found

    def _one(self, facts: SignalFacts, found: Judged) -> Steps:
        if facts.how in _FREE_ON_ITSELF and TargetType.SELF in found.target.types:
            is_async = facts.how is How.ASYNC
            inside = Unrecorded.STAYS_INSIDE
            yield from _free(SetAsync(found.target, inside) if is_async else Continue(inside))
            return
        match found.decision.action:
            case Action.ALLOW | Action.AUDIT if self._kernel_can_have_it(found):
                if not found.decision.log or (yield found.event()):
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
        answer: Answer = yield self._asks([found])
        if not answer.granted:
            yield from self._deny(facts, found, refusal(answer))
        elif facts.how in SENDS:  # the kernel might signal another process with this number
            yield from self._carry_out(facts, found, approved=True)
        elif not (yield LookAgain(found.target)):
            yield would_fail(errno.ESRCH)
        elif not self._kernel_can_have_it(found):
            yield from self._carry_out(facts, found, approved=True)
        else:
            yield Continue() if (yield found.event(approved=True)) else Fail(errno.EPERM)

    def _kernel_can_have_it(self, found: Judged) -> bool:
        how = found.facts.how
        if how not in _IN_REGISTERS:
            return False
        return found.target.is_inside or not self._domain or how not in _KEPT_INSIDE

    def _deny(self, facts: SignalFacts, found: Judged, why: str = "") -> Steps:
        if (yield found.event()):
            yield from self._tell(facts, [_denial(found, why)])
        yield Fail(errno.EPERM)

    def _refuse(self, facts: SignalFacts, refused: Refused) -> Steps:
        decision = refused.decision
        if (yield unaimed_event(facts, decision)):
            is_sent = decision is EVERYBODY and facts.how in SENDS
            what = f"{signal_name(facts.signal)} to all processes" if is_sent else facts.syscall
            yield from self._tell(facts, [Denied(what, facts.syscall, decision)])
        yield Fail(errno.EPERM)

    def _tell(self, facts: SignalFacts, denied: list[Denied]) -> Steps:
        for line in self._denied.lines(facts.sender, denied):
            yield Tell(line)

    def _asks(self, asking: list[Judged]) -> Ask:
        request = request_for(asking)
        return Ask(request, waiting(request.what, request.rule, self._engine.policy.name))

    def _carry_out(self, facts: SignalFacts, found: Judged, *, approved: bool = False) -> Steps:
        if found.decision.log and not (yield found.event(approved=approved)):
            yield Fail(errno.EPERM)
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
                found.append(Judged(facts, target, STOPS_ITS_JOB))
            else:
                found.append(judge(self._engine, facts, target))
        yield from self._deliver(facts, found, granted=False)

    def _group(self, facts: SignalFacts, found: list[Judged]) -> Steps:
        asking = [each for each in found if each.decision.action is Action.APPROVE]
        if asking:
            answer: Answer = yield self._asks(asking)
            why = "" if answer.granted else refusal(answer)
            yield from self._deliver(facts, found, granted=answer.granted, why=why)
        elif facts.how in (How.NUMBER, How.ITSELF, How.CHANGE) and all(
            each.goes_on() and self._kernel_can_have_it(each) for each in found
        ):
            is_recorded = yield from _record_members(found, granted=False)
            yield _continue(facts, *found) if is_recorded else Fail(errno.EPERM)
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
        if not (yield from _record_members(found, granted=granted)):
            yield Fail(errno.EPERM)
            return
        yield from self._tell(facts, [_denial(each, why) for each in refused])
        if not is_one:
            yield from _send_to_each(found, granted=granted)
        elif not all_go_on:
            yield Fail(errno.EPERM, unlogged(*found))
        elif facts.how is How.CHANGE:
            yield Continue(unlogged(*found))
        else:
            yield from _carried_out(_set_owner(facts, *found))


def _record_members(found: list[Judged], *, granted: bool) -> Judgement:
    """Record the events of a group. Returns whether all were written."""
    for each in found:
        if each.decision.log and not (yield each.event(approved=granted, in_group=True)):
            return False
    return True


def _send_to_each(found: list[Judged], *, granted: bool) -> Steps:
    reached = 0
    found.sort(key=lambda each: TargetType.SELF in each.target.types)
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


def _continue(facts: SignalFacts, *found: Judged) -> Continue | ContinueToChildren:
    may_end = facts.how is How.NUMBER and facts.signal not in IGNORED_BY_DEFAULT
    if may_end and any(TargetType.CHILDREN in each.target.types for each in found):
        return ContinueToChildren(unlogged(*found))
    return Continue(unlogged(*found))


def _free(answer: Free) -> Steps:
    match answer:
        case Continue() | Succeed() | Fail():
            yield answer
        case _:
            yield from _carried_out(answer)


def _carried_out(effect: Send | SetOwner | SetAsync | SetForeground) -> Steps:
    """Carry out the call in the supervisor. The caller gets the real result."""
    unrecorded = effect.unrecorded
    error: int = yield effect
    if error:
        if unrecorded in (Unrecorded.REACHES_NOBODY, Unrecorded.STAYS_INSIDE):
            unrecorded = Unrecorded.NOTHING_HAPPENS
        yield Fail(error, unrecorded)
    else:
        yield Succeed(unrecorded)


def _set_owner(facts: SignalFacts, *found: Judged) -> SetOwner | SetAsync:
    target, unrecorded = found[0].target, unlogged(*found)
    if facts.how in (How.ASYNC, How.SIGNAL_OF_OWNER):
        return SetAsync(target, unrecorded)
    return SetOwner(target, unrecorded)


def _tracee(facts: SignalFacts) -> int:
    """Return the pid of the process that the call would trace, or 0."""
    aim = facts.aim
    return aim.pid if facts.how is How.TRACE and isinstance(aim, SignalTarget) else 0


def _is_sigwraps(found: Judged) -> bool:
    """Return whether the target is sigwrap. A sender to a group need not read of such members."""
    return TargetType.PARENT in found.target.types


def _denial(found: Judged, why: str) -> Denied:
    facts, target, decision, _ = found
    if why and decision.action is Action.APPROVE:
        decision = decision._replace(message=with_rules_message(why, decision.message))
    return Denied(to_one(facts, target), (target.pid, target.start_time), decision)
