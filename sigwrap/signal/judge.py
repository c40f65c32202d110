"""Judges a signal, or a call that makes the kernel send one, for each target; then records it.

If a call names its target by a number in a register, the kernel continues it: no thread can change
a register of another. If another thread could swap the target (a pidfd, a number in memory), the
supervisor makes the call, on the judged target.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from sigwrap.approve.requests import Answer, ApprovalRequest, refusal, waiting, with_rules_message
from sigwrap.bare import NamedTuple, signal
from sigwrap.events import Payload
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import (
    LENIENT,
    PROTECTS_SIGWRAP,
    Action,
    Decision,
    SignalRequest,
    TargetType,
)
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.session.effects import (
    Ask,
    ChangeDescriptor,
    Continue,
    ContinueToChildren,
    Escalation,
    Fail,
    LetGo,
    Logged,
    Look,
    LookAgain,
    Record,
    RecordRepeated,
    Send,
    SignalTarget,
    Steps,
    Succeed,
    Tell,
    Unrecorded,
    would_fail,
)
from sigwrap.session.lineage import Types
from sigwrap.signal.facts import (
    CHANGES_ITS_SHELL,
    EVERYBODY,
    IGNORED_BY_DEFAULT,
    OUTSIDE_TRACED,
    SENDS,
    STOPS_ITS_JOB,
    STUB_PASSES_ON,
    UNREAD,
    CallKind,
    Denied,
    DeniedSignals,
    Free,
    RefusedCall,
    SignalFacts,
    TargetGroup,
)
from sigwrap.text import shell_words

_NAMES = {number: signal_name(number) for number in ALL}
_COUNTED_FOR_S = 1.0
_REPEATED = frozenset({"process_vm_readv", "process_vm_writev", "perf_event_open"})
_EVENT_TYPES = {
    Action.ALLOW: "signal_sent",
    Action.AUDIT: "signal_sent",
    Action.APPROVE: "signal_approved",
    Action.REDIRECT: "signal_redirected",
    Action.ABSORB: "signal_absorbed",
    Action.DENY: "signal_blocked",
}
_SETS_OWNER = (CallKind.OWNER, CallKind.OWNER_IN_MEMORY, CallKind.ASYNC, CallKind.SIGNAL_OF_OWNER)
# The caller may do these to itself without a judgement.
_FREE_ON_ITSELF = (CallKind.TRACE, CallKind.CHANGE, CallKind.ASYNC, CallKind.SIGNAL_OF_OWNER)
_IN_REGISTERS = (CallKind.NUMBER, CallKind.ITSELF, CallKind.OWNER, CallKind.TRACE, CallKind.CHANGE)
_KEPT_INSIDE = (CallKind.NUMBER, CallKind.ITSELF, CallKind.OWNER)  # in Landlock's signal scope


class Judged(NamedTuple):
    """The decision on one target. A call to a group has one for each member."""

    facts: SignalFacts
    target: SignalTarget
    decision: Decision
    handled: bool | None = None  # whether the target handles it; None if no rule asked

    def goes_on(self, *, granted: bool = False) -> bool:
        action = self.decision.action
        return action in LENIENT or (granted and action is Action.APPROVE)

    def is_refused(self, *, granted: bool) -> bool:
        action = self.decision.action
        return action is Action.DENY or (action is Action.APPROVE and not granted)

    def denied(self) -> Judged:
        return self._replace(decision=self.decision._replace(action=Action.DENY))

    def number(self) -> int:
        """Return the signal to send."""
        return self.decision.redirect_signal or self.facts.signal

    def event(self, *, approved: bool = False, in_group: bool = False) -> Record | RecordRepeated:
        facts, target, decision, handled = self
        escalation = None
        if decision.escalate:
            escalation = Escalation(decision.rule, _described(facts, target))
        kind = _EVENT_TYPES[decision.action]
        if decision.action is Action.APPROVE and not approved:
            kind = "signal_blocked"
        payload = event_payload(facts, target, decision)
        if handled is not None:
            payload["target_handles"] = handled
        if in_group:
            payload["correlation"] = str(facts.correlation)
        elif self._is_repeated():
            key = (facts.sender, facts.signal, decision.rule, facts.syscall, target)
            return RecordRepeated(kind, payload, key, _COUNTED_FOR_S, escalation)
        return Record(kind, payload, escalation)

    def _is_repeated(self) -> bool:
        """Return whether repeats share an event.

        A Go program signals its own threads all the time, and a debugger looks into its child.
        """
        action = self.decision.action
        if self.facts.syscall in _REPEATED:
            return action in LENIENT
        return action is Action.ALLOW and TargetType.SELF in self.target.types


def judge(engine: Engine, facts: SignalFacts, target: SignalTarget) -> Judged:
    """Decide on one target. Tracing is judged as SIGKILL: a tracer controls its tracee."""
    handled: bool | None = None

    def is_handled() -> bool:
        nonlocal handled
        if handled is None:
            handled = facts.handles(target.pid, facts.signal)
        return handled

    if facts.kind is CallKind.NUMBER and target.pid in facts.stub_may_signal:
        decision = STUB_PASSES_ON
    elif _stops_its_job(facts) and (target.is_inside or facts.signal == signal.SIGTSTP):
        decision = STOPS_ITS_JOB  # members outside get SIGTSTP, as from the key
    elif TargetType.SIGWRAP in target.types:
        decision = PROTECTS_SIGWRAP
    elif facts.kind is CallKind.TRACE and not target.is_inside:
        decision = OUTSIDE_TRACED
    else:
        decision = engine.decide_signal(
            SignalRequest(facts.signal, target.types, target.comm, target.pid, is_handled)
        )
        is_above = facts.changes_its_shell and TargetType.ANCESTORS in target.types
        if is_above and decision.action not in LENIENT:
            decision = CHANGES_ITS_SHELL
    return Judged(facts, target, decision, handled)


def unlogged(*all_judged: Judged) -> Unrecorded | None:
    """Return why the answer needs no event, None if any rule wants one."""
    for each in all_judged:
        if each.decision.log:
            return None
    return Unrecorded.RULE_IS_UNLOGGED


def unaimed_event(facts: SignalFacts, decision: Decision) -> Record:
    """Return the event of a call that is decided without a target."""
    return Record(_EVENT_TYPES[decision.action], event_payload(facts, None, decision))


def event_payload(facts: SignalFacts, target: SignalTarget | None, decision: Decision) -> Payload:
    redirected = decision.action is Action.REDIRECT
    number = decision.redirect_signal if redirected else facts.signal
    words = _words(frozenset() if target is None else target.types)
    payload: Payload = {
        "signal": number,
        "signal_name": _NAMES.get(number) or str(number),
        "source_pid": facts.sender.pid,
        "source_cmd": facts.sender.comm,
        "target_pid": None if target is None else target.pid,
        "target_cmd": "" if target is None else target.comm,
        "target_type": words[0] if words else "unknown",
        "target_types": words,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "fallback": False,
        "original_signal": facts.signal,
        "platform": "linux",
        "syscall": facts.syscall,
    }
    if decision.message and decision.action is not Action.ALLOW:
        payload["message"] = decision.message
    return payload


_known_words: dict[Types, list[str]] = {}


def _words(types: Types) -> list[str]:
    """Return the names of the types, the most specific first."""
    words = _known_words.get(types)
    if words is None:
        words = _known_words[types] = [each.value for each in TargetType if each in types]
    return words


def _described(facts: SignalFacts, target: SignalTarget) -> str:
    """Describe the signal for SIGPOLICY. Nothing in the text is escaped."""
    name = _NAMES.get(facts.signal) or f"signal {facts.signal}"
    sender = f"{facts.sender.comm} ({facts.sender.pid})"
    return f"{name} to {target.comm} ({target.pid}) by {sender}, {facts.syscall}"


def request_for(asked: Sequence[Judged]) -> ApprovalRequest:
    """Make the approval request. An approval for the session covers these very processes only."""
    asked = sorted(asked, key=lambda each: each.target.is_inside)  # outside first: the end is cut
    facts, _, decision, _ = asked[0]
    key = ["signal", facts.syscall, signal_name(facts.signal)]
    shown = []
    for _, target, each, _ in asked:
        key += (each.rule, str(target.pid), str(target.start_time), target.comm)
        shown.append(_named(target) + ("" if target.is_inside else ", outside this session"))
    return ApprovalRequest(
        kind="signal",
        pid=facts.sender.pid,
        process=facts.sender.comm,
        depth=facts.sender.depth,
        what=f"{_aimed(facts)} {'; '.join(shown)}",
        rule=decision.rule,
        message=decision.message,
        key=tuple(key),
        execs=facts.sender.execs,
    )


def _aimed(facts: SignalFacts) -> str:
    is_sent = facts.kind in SENDS
    return f"{signal_name(facts.signal)} to" if is_sent else f"{facts.syscall} aimed at"


def _named(target: SignalTarget) -> str:
    return f"{target.pid} ({shell_words([target.comm])})"


class _Differs(Exception):
    """A rule asks for a fact that differs from signal to signal."""


def differs(_pid: int, _number: int) -> bool:
    """Stand in for SignalFacts.handles where all signals with the same facts are judged."""
    raise _Differs


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
            case SignalTarget(types=types) if (
                facts.kind in _FREE_ON_ITSELF and TargetType.SELF in types
            ):
                inside = Unrecorded.STAYS_INSIDE
                is_set = facts.kind in _SETS_OWNER
                yield from _free(
                    ChangeDescriptor(facts.aim, inside) if is_set else Continue(inside)
                )
            case SignalTarget():
                yield from self._reach(facts, [judge(self._engine, facts, facts.aim)])
            case TargetGroup(members=members, is_own_job=is_own_job):
                # Sigwrap's own processes stop by themselves.
                found = [judge(self._engine, facts, each) for each in members]
                yield from self._reach(
                    facts, [x for x in found if not (is_own_job and _is_sigwraps(x))]
                )
            case RefusedCall():
                yield from self._refuse(facts, facts.aim)
            case _:
                yield from _free(facts.aim)

    def settle(
        self, facts: SignalFacts
    ) -> tuple[Record | None, Continue | ContinueToChildren] | None:
        """Return the event and the answer of all signals with these facts, if they go on at once.

        Return None if they do not, or if a rule asks for a fact that differs from signal to signal.
        """
        steps, record = self.mediate(), None
        next(steps)
        try:
            effect = steps.send(facts)
            if isinstance(effect, Record) and effect.event == "signal_sent":
                record, effect = effect, steps.send(Logged.WRITTEN)
        except _Differs:
            return None
        if record is not None and record.escalation is not None:
            return None
        return (record, effect) if isinstance(effect, Continue | ContinueToChildren) else None

    def _reach(self, facts: SignalFacts, found: list[Judged]) -> Steps:
        """Record what is decided on each target, then let the kernel go on, or do it in its place.

        A call that sends no signal goes on for all targets or for none.
        """
        sends, granted, why = facts.kind in SENDS, False, ""
        asking = [each for each in found if each.decision.action is Action.APPROVE]
        if asking:
            answer: Answer = yield self._asks(asking)
            granted = answer.granted
            why = "" if granted else refusal(answer)
            if granted and not sends:
                for each in asking:
                    if not (yield LookAgain(each.target)):
                        yield would_fail(errno.ESRCH)
                        return
        refused = [each for each in found if each.is_refused(granted=granted)]
        if sends and not all(map(_is_sigwraps, found)):
            refused = [each for each in refused if not _is_sigwraps(each)]
        all_go_on = all(each.goes_on(granted=granted) for each in found)
        if not (sends or all_go_on):
            found = [each if each.is_refused(granted=granted) else each.denied() for each in found]
            refused = refused or found
        in_group = isinstance(facts.aim, TargetGroup)
        for each in found:
            is_logged = each.decision.log or each.decision.action is Action.DENY
            if is_logged and not (yield each.event(approved=granted, in_group=in_group)):
                yield Fail(errno.EPERM)
                return
        if refused:
            yield from self._tell(facts, [_denial(each, why) for each in refused])
        # After a wait, the kernel might signal another process with this number.
        is_current = not (sends and asking)
        if not (sends or all_go_on):
            yield Fail(errno.EPERM)
        elif (
            all_go_on
            and is_current
            and not _stops_its_job(facts)
            and all(map(self._kernel_can_have_it, found))
        ):
            yield _continue(facts, *found)
        elif sends:
            yield from _send_to_each(found, granted=granted)
        else:
            yield from _carried_out(ChangeDescriptor(found[0].target, unlogged(*found)))

    def _kernel_can_have_it(self, found: Judged) -> bool:
        kind, is_inside = found.facts.kind, TargetType.SESSION in found.target.types
        return kind in _IN_REGISTERS and (is_inside or not self._domain or kind not in _KEPT_INSIDE)

    def _refuse(self, facts: SignalFacts, refused: RefusedCall) -> Steps:
        decision = refused.decision
        is_recorded = yield unaimed_event(facts, decision)
        if decision is UNREAD:
            yield Fail(errno.EFAULT)  # as for an invalid address
            return
        if is_recorded:
            is_sent = decision is EVERYBODY and facts.kind in SENDS
            what = f"{signal_name(facts.signal)} to all processes" if is_sent else facts.syscall
            yield from self._tell(facts, [Denied(what, facts.syscall, decision)])
        yield Fail(errno.EPERM)

    def _tell(self, facts: SignalFacts, denied: list[Denied]) -> Steps:
        for line in self._denied.lines(facts.sender, denied):
            yield Tell(line)

    def _asks(self, asking: list[Judged]) -> Ask:
        request = request_for(asking)
        return Ask(request, waiting(request.what, request.rule, self._engine.policy.name))


def _send_to_each(found: list[Judged], *, granted: bool) -> Steps:
    """Signal the targets that may be signalled, the sender last: it may not survive."""
    reached = failed = 0
    for each in sorted(found, key=lambda each: TargetType.SELF in each.target.types):
        if each.is_refused(granted=granted):
            failed = errno.EPERM
        elif each.decision.action is Action.ABSORB:
            reached += 1
        else:
            error: int = yield Send(each.target, each.number(), unlogged(each))
            reached += not error
            failed = failed or error
    if reached:
        yield Succeed(unlogged(*found))
    else:
        yield Fail(failed or errno.EPERM, unlogged(*found))


def _continue(facts: SignalFacts, *found: Judged) -> Continue | ContinueToChildren:
    may_end = facts.kind is CallKind.NUMBER and facts.signal not in IGNORED_BY_DEFAULT
    if may_end and any(TargetType.CHILDREN in each.target.types for each in found):
        return ContinueToChildren(unlogged(*found))
    return Continue(unlogged(*found))


def _free(answer: Free) -> Steps:
    match answer:
        case Continue() | Succeed() | Fail():
            yield answer
        case _:
            yield from _carried_out(answer)


def _carried_out(effect: Send | ChangeDescriptor) -> Steps:
    """Carry out the call in the supervisor. The caller gets the real result."""
    unrecorded = effect.unrecorded
    error: int = yield effect
    if error:
        if unrecorded in (Unrecorded.REACHES_NO_PROCESS, Unrecorded.STAYS_INSIDE):
            unrecorded = Unrecorded.NOTHING_HAPPENS
        yield Fail(error, unrecorded)
    else:
        yield Succeed(unrecorded)


def _tracee(facts: SignalFacts) -> int:
    """Return the pid of the process that the call would trace, or 0."""
    aim = facts.aim
    return aim.pid if facts.kind is CallKind.TRACE and isinstance(aim, SignalTarget) else 0


def _stops_its_job(facts: SignalFacts) -> bool:
    """Return whether the sender stops its whole foreground job, as an editor does at its Ctrl+Z.

    A part of the job would keep the terminal, and the shell could not continue the rest.
    """
    return isinstance(facts.aim, TargetGroup) and facts.aim.is_own_job


def _is_sigwraps(found: Judged) -> bool:
    """Return whether the target is sigwrap. A sender to a group need not read of such members."""
    return TargetType.SIGWRAP in found.target.types


def _denial(found: Judged, why: str) -> Denied:
    facts, target, decision, _ = found
    if why and decision.action is Action.APPROVE:
        decision = decision._replace(message=with_rules_message(why, decision.message))
    return Denied(f"{_aimed(facts)} {_named(target)}", (target.pid, target.start_time), decision)
