"""Signals as transcripts: one target, a group, an owner; recorded first, then let through. And the
calls that reach a process without a signal."""

from __future__ import annotations

import errno
import signal
from collections.abc import Callable
from typing import Any

import pytest

from sigwrap.approve.requests import Answer, ApprovalRequest
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP, Decision, TargetType, with_implied
from sigwrap.policy.judge.signals import ALL
from sigwrap.session.effects import (
    Ask,
    ChangeDescriptor,
    Continue,
    ContinueToChildren,
    Effect,
    Fail,
    LetGo,
    Logged,
    Look,
    LookAgain,
    Send,
    SignalTarget,
    Succeed,
    Unrecorded,
    would_fail,
)
from sigwrap.session.lineage import SIGWRAP_ITSELF, Process, Types
from sigwrap.signal.facts import (
    EVERYBODY,
    NO_OWNER,
    NOT_OWN_GROUP,
    NOT_OWN_TERMINAL,
    OWN,
    REACHES_NONE,
    UNREAD,
    UNRESOLVED,
    CallKind,
    RefusedCall,
    SignalAim,
    SignalFacts,
    TargetGroup,
)
from sigwrap.signal.judge import SignalMediator, differs
from tests.mediate.transcript import Transcript, engine, nobody_handles, play, play_from

TERM, USR1, USR2 = signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2
HUP, INT, KILL = signal.SIGHUP, signal.SIGINT, signal.SIGKILL
STOP, TTIN = signal.SIGSTOP, signal.SIGTTIN
RULES = """
signal_rules:
  - {name: quiet, signals: [WINCH], target: session, decision: allow, log: false}
  - {name: own, signals: ["@all"], target: self, decision: allow}
  - {name: softer, signals: [KILL], target: children, decision: redirect, redirect_to: TERM}
  - {name: swallow, signals: [HUP], target: session, decision: absorb}
  - {name: ask, signals: [USR2], target: session, decision: approve, message: are you sure}
  - {name: look-at, signals: [INT], target: session, decision: audit}
  - {name: siblings-no, signals: ["@all"], target: siblings, decision: deny, message: not them}
  - {name: inside, signals: ["@all"], target: session, decision: allow}
defaults: {command: deny, signal: deny}
"""
ENGINE = engine(RULES)
ASKS_ALWAYS = engine("defaults: {command: deny, signal: approve}")


def types(*kinds: TargetType) -> Types:
    return with_implied(frozenset(kinds))


CHILD = SignalTarget(50, 5, "sleep", types(TargetType.CHILDREN))
DESCENDANT = SignalTarget(51, 5, "node", types(TargetType.DESCENDANTS))
SIBLING = SignalTarget(60, 5, "redis", types(TargetType.SIBLINGS))
OUTSIDE = SignalTarget(70, 5, "postgres", types(TargetType.USER))
OURSELVES = SignalTarget(2, 1, "sigwrap", SIGWRAP_ITSELF)
BASH = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
ITSELF = SignalTarget(40, 1, "bash", types(TargetType.SELF))

YES = Answer(granted=True, by="the terminal", message="", reason="granted")
NO = Answer(granted=False, by="the terminal", message="", reason="denied")


def sends(
    number: int,
    aim: SignalAim,
    *,
    kind: CallKind = CallKind.NUMBER,
    syscall: str = "kill",
    stub_may_signal: tuple[int, ...] = (),
    handles: Callable[[int, int], bool] = nobody_handles,
) -> Transcript:
    facts = SignalFacts(BASH, syscall, number, kind, aim, 4711, stub_may_signal, handles)
    return play_from(SignalMediator(ENGINE, domain=False), facts)


# One target


def test_an_allowed_or_audited_signal_is_recorded_and_goes_on_in_the_kernel() -> None:
    transcript = sends(TERM, DESCENDANT).records("signal_sent").yields(Continue())
    transcript.ends()
    assert transcript.payload == {
        "signal": 15,
        "signal_name": "SIGTERM",
        "source_pid": 40,
        "source_cmd": "bash",
        "target_pid": 51,
        "target_cmd": "node",
        "target_type": "descendants",
        "target_types": ["descendants", "session"],
        "decision": "allow",
        "rule_name": "inside",
        "fallback": False,
        "original_signal": 15,
        "platform": "linux",
        "syscall": "kill",
    }
    sends(INT, DESCENDANT).records("signal_sent", decision="audit").goes_on()


def test_a_denied_signal_fails_and_its_sender_is_told() -> None:
    sends(TERM, SIBLING).is_blocked("not them", rule_name="siblings-no")
    sends(TERM, OUTSIDE).is_blocked("sigwrap: denied: ", target_type="user")
    sends(TERM, OURSELVES).is_blocked(
        "sigwrap: denied: ", rule_name="builtin:sigwrap", target_type="parent"
    )


def test_an_absorbed_or_unlogged_signal_looks_sent() -> None:
    sends(HUP, CHILD).records("signal_absorbed").succeeds()
    sends(signal.SIGWINCH, CHILD).goes_on(Unrecorded.RULE_IS_UNLOGGED)


def test_a_redirected_signal_is_sent_by_the_supervisor_with_the_real_result() -> None:
    sends(KILL, CHILD).records(
        "signal_redirected", signal=15, signal_name="SIGTERM", original_signal=9
    ).yields(Send(CHILD, TERM), reply=0).succeeds()
    sends(KILL, CHILD).records("signal_redirected").yields(
        Send(CHILD, TERM), reply=errno.ESRCH
    ).fails(errno.ESRCH)


@pytest.mark.parametrize(
    ("number", "target", "event"),
    [
        (TERM, DESCENDANT, "signal_sent"),
        (TERM, SIBLING, "signal_blocked"),
        (HUP, CHILD, "signal_absorbed"),
        (KILL, CHILD, "signal_redirected"),
    ],
)
def test_what_cannot_be_recorded_fails(number: int, target: SignalTarget, event: str) -> None:
    sends(number, target).records(event, reply=Logged.FAILED).fails(errno.EPERM)


def test_a_stub_signals_its_command_and_nobody_else() -> None:
    sends(TERM, SIBLING, stub_may_signal=(40, 60)).records(
        "signal_sent", rule_name="builtin:stub"
    ).goes_on()
    sends(TERM, SIBLING, stub_may_signal=(40, 61)).records("signal_blocked")
    sends(TERM, SIBLING, kind=CallKind.PIDFD, stub_may_signal=(40, 60)).records("signal_blocked")


# By what the target is named


@pytest.mark.parametrize(
    "kind", [CallKind.NUMBER, CallKind.ITSELF, CallKind.OWNER, CallKind.CHANGE]
)
def test_what_is_named_by_a_register_goes_on_in_the_kernel(kind: CallKind) -> None:
    sends(TERM, DESCENDANT, kind=kind).records("signal_sent").goes_on()


def test_what_lies_in_memory_or_is_named_by_a_pidfd_is_done_by_the_supervisor() -> None:
    sends(TERM, DESCENDANT, kind=CallKind.PIDFD).records("signal_sent").yields(
        Send(DESCENDANT, TERM), reply=0
    ).succeeds()
    sends(KILL, DESCENDANT, kind=CallKind.OWNER_IN_MEMORY).records("signal_sent").yields(
        ChangeDescriptor(DESCENDANT), reply=0
    ).succeeds()
    sends(KILL, DESCENDANT, kind=CallKind.OWNER_IN_MEMORY).records("signal_sent").yields(
        ChangeDescriptor(DESCENDANT), reply=errno.EBADF
    ).fails(errno.EBADF)


@pytest.mark.parametrize(
    "kind", [CallKind.OWNER, CallKind.OWNER_IN_MEMORY, CallKind.TRACE, CallKind.CHANGE]
)
def test_what_sends_nothing_is_denied_where_a_signal_would_be_redirected(kind: CallKind) -> None:
    sends(KILL, CHILD, kind=kind).is_blocked("sigwrap: denied: ", decision="deny")


def test_tracing_is_judged_as_a_sigkill_inside_and_denied_outside() -> None:
    sends(KILL, DESCENDANT, kind=CallKind.TRACE).records("signal_sent").goes_on()
    sends(KILL, OUTSIDE, kind=CallKind.TRACE).is_blocked(
        "sigwrap: denied: ", rule_name="builtin:ptrace"
    )


# Without a target to judge


@pytest.mark.parametrize(
    ("aim", "rule"),
    [
        (RefusedCall(EVERYBODY), "builtin:everybody"),
        (RefusedCall(UNRESOLVED), "builtin:unresolved"),
    ],
)
def test_everybody_and_what_cannot_be_resolved_are_denied(aim: SignalAim, rule: str) -> None:
    transcript = sends(TERM, aim).records(
        "signal_blocked", rule_name=rule, target_pid=None, target_type="unknown"
    )
    transcript.tells(f"(rule {rule})").fails(errno.EPERM)
    assert transcript.payload["target_types"] == []


def test_a_call_whose_arguments_are_not_read_in_time_is_denied() -> None:
    sends(TERM, RefusedCall(UNREAD)).records(
        "signal_blocked", rule_name="builtin:unresolved", target_pid=None
    ).fails(errno.EFAULT)


def test_a_denial_without_a_target_or_an_event_fails_all_the_same() -> None:
    sends(TERM, RefusedCall(EVERYBODY)).records("signal_blocked", reply=Logged.FAILED).fails(
        errno.EPERM
    )


def test_what_reaches_nobody_or_the_kernel_refuses_needs_no_event() -> None:
    sends(KILL, NO_OWNER).yields(
        ChangeDescriptor(None, Unrecorded.REACHES_NO_PROCESS), reply=0
    ).succeeds(Unrecorded.REACHES_NO_PROCESS)
    sends(KILL, NO_OWNER).yields(
        ChangeDescriptor(None, Unrecorded.REACHES_NO_PROCESS), reply=errno.EBADF
    ).fails(errno.EBADF, Unrecorded.NOTHING_HAPPENS)
    sends(577, REACHES_NONE).goes_on(Unrecorded.REACHES_NO_PROCESS)
    sends(TERM, would_fail(errno.ESRCH)).fails(errno.ESRCH, Unrecorded.NOTHING_HAPPENS)


# Again and again


def test_a_process_that_signals_itself_is_counted() -> None:
    key = (BASH, int(USR1), "own", "kill", ITSELF)
    sends(USR1, ITSELF).counts("signal_sent", key, 1.0, target_type="self").goes_on()
    sends(USR1, ITSELF).counts("signal_sent", key, 1.0, reply=Logged.COUNTED).goes_on()
    sends(USR1, ITSELF).counts("signal_sent", key, 1.0, reply=Logged.FAILED).fails(errno.EPERM)


# A group


def group(number: int, *members: SignalTarget, kind: CallKind = CallKind.NUMBER) -> Transcript:
    return sends(number, TargetGroup(members), kind=kind)


def test_a_group_that_may_all_be_reached_is_the_kernels() -> None:
    group(TERM, CHILD, DESCENDANT).records(
        "signal_sent", target_pid=50, correlation="4711"
    ).records("signal_sent", target_pid=51, correlation="4711").yields(ContinueToChildren()).ends()


@pytest.mark.parametrize("refused_at", [0, 1])
def test_a_group_with_an_event_that_cannot_be_written_fails(refused_at: int) -> None:
    transcript = group(TERM, CHILD, DESCENDANT)
    for _ in range(refused_at):
        transcript.records("signal_sent")
    transcript.records("signal_sent", reply=Logged.FAILED).fails(errno.EPERM)


def test_of_a_group_of_which_nobody_is_reached_the_sender_is_told() -> None:
    transcript = group(TERM, SIBLING, OUTSIDE).records("signal_blocked").records("signal_blocked")
    transcript.tells("60 (redis)", "not them").tells("70 (postgres)").yields(Fail(errno.EPERM))
    transcript.ends()
    group(TERM, SIBLING, CHILD).records("signal_blocked").records("signal_sent").tells(
        "not them"
    ).yields(Send(CHILD, TERM), reply=errno.ESRCH).fails(errno.EPERM)
    other = SIBLING._replace(pid=61)
    group(TERM, SIBLING, other).records("signal_blocked").is_blocked("not them")


def test_all_of_a_job_that_has_the_terminal_stop_the_sender_last() -> None:
    number = signal.SIGTSTP
    aim = TargetGroup((ITSELF, OURSELVES, SIBLING, CHILD), is_own_job=True)
    transcript = sends(number, aim)
    for target in (ITSELF, SIBLING, CHILD):
        transcript.records("signal_sent", target_pid=target.pid, rule_name="builtin:job")
    for target in (SIBLING, CHILD, ITSELF):
        transcript.yields(Send(target, number), reply=0)
    transcript.succeeds()


def test_of_a_job_who_is_outside_gets_what_the_key_would_send() -> None:
    aim = TargetGroup((OUTSIDE, CHILD), is_own_job=True)
    by_key = sends(signal.SIGTSTP, aim).records("signal_sent", target_pid=OUTSIDE.pid)
    by_key.records("signal_sent", target_pid=CHILD.pid).yields(
        Send(OUTSIDE, signal.SIGTSTP), reply=0
    ).yields(Send(CHILD, signal.SIGTSTP), reply=0).succeeds()
    harder = sends(signal.SIGSTOP, aim).records("signal_blocked", target_pid=OUTSIDE.pid)
    harder.records("signal_sent", target_pid=CHILD.pid).tells("70 (postgres)").yields(
        Send(CHILD, signal.SIGSTOP), reply=0
    ).succeeds()


def test_a_member_is_absorbed_or_redirected_by_itself() -> None:
    group(HUP, CHILD, OUTSIDE).records("signal_absorbed").records("signal_blocked").tells(
        "sigwrap: denied: "
    ).succeeds()
    group(KILL, CHILD, DESCENDANT).records("signal_redirected").records("signal_sent").yields(
        Send(CHILD, TERM), reply=0
    ).yields(Send(DESCENDANT, KILL), reply=0).succeeds()
    group(TERM, OURSELVES, CHILD).records("signal_blocked").records("signal_sent").yields(
        Send(CHILD, TERM), reply=0
    ).succeeds()
    group(TERM, DESCENDANT, kind=CallKind.PIDFD).records("signal_sent").yields(
        Send(DESCENDANT, TERM), reply=0
    ).succeeds()


def test_an_unlogged_group_has_no_events_but_those_of_others() -> None:
    group(signal.SIGWINCH, CHILD, DESCENDANT).goes_on(Unrecorded.RULE_IS_UNLOGGED)
    quiet = Send(CHILD, signal.SIGWINCH, Unrecorded.RULE_IS_UNLOGGED)
    group(signal.SIGWINCH, CHILD, kind=CallKind.PIDFD).yields(quiet, reply=0).succeeds(
        Unrecorded.RULE_IS_UNLOGGED
    )
    transcript = group(signal.SIGWINCH, CHILD, OUTSIDE).records("signal_blocked", target_pid=70)
    transcript.tells("SIGWINCH to 70 (postgres)")
    quiet = Send(CHILD, signal.SIGWINCH, Unrecorded.RULE_IS_UNLOGGED)
    transcript.yields(quiet, reply=0).succeeds()


def test_a_group_owns_a_descriptor_only_if_all_may_be_reached() -> None:
    kind = CallKind.OWNER_IN_MEMORY
    group(TERM, DESCENDANT, CHILD, kind=CallKind.OWNER).records("signal_sent").records(
        "signal_sent"
    ).goes_on()
    group(TERM, DESCENDANT, CHILD, kind=kind).records("signal_sent").records("signal_sent").yields(
        ChangeDescriptor(DESCENDANT), reply=0
    ).succeeds()
    group(TERM, DESCENDANT, CHILD, kind=kind).records("signal_sent").records("signal_sent").yields(
        ChangeDescriptor(DESCENDANT), reply=errno.EINVAL
    ).fails(errno.EINVAL)
    group(TERM, DESCENDANT, SIBLING, kind=kind).records(
        "signal_blocked", decision="deny", rule_name="inside"
    ).is_blocked("not them", rule_name="siblings-no")


# Asking


def question(what: str, *key: str) -> ApprovalRequest:
    return ApprovalRequest(
        kind="signal",
        pid=40,
        process="bash",
        depth=1,
        what=what,
        rule="ask",
        message="are you sure",
        key=("signal", "kill", "SIGUSR2", "ask", "50", "5", "sleep", *key),
    )


def asks(what: str, *key: str) -> Ask:
    """`key`: of those besides the child."""
    return Ask(question(what, *key), f"{what} needs approval (rule ask, policy x)")


def test_an_approved_signal_is_sent_by_the_supervisor_and_another_denied() -> None:
    """Its number may be another process's by then."""
    ask = asks("SIGUSR2 to 50 (sleep)")
    sends(USR2, CHILD).yields(ask, reply=YES).records("signal_approved", decision="approve").yields(
        Send(CHILD, USR2), reply=0
    ).succeeds()
    sends(USR2, CHILD).yields(ask, reply=YES).records("signal_approved", reply=Logged.FAILED).fails(
        errno.EPERM
    )
    sends(USR2, CHILD).yields(asks("SIGUSR2 to 50 (sleep)"), reply=NO).is_blocked(
        "request denied (rule ask, policy x)"
    )


@pytest.mark.parametrize("kind", [CallKind.OWNER, CallKind.TRACE, CallKind.CHANGE])
def test_what_sends_nothing_goes_on_if_its_target_is_still_the_same(kind: CallKind) -> None:
    asked = sends(USR2, CHILD, kind=kind)
    asked.next(YES)
    asked.yields(LookAgain(CHILD), reply=True).records("signal_approved").goes_on()
    asked = sends(USR2, CHILD, kind=kind)
    asked.next(YES)
    asked.yields(LookAgain(CHILD), reply=False).fails(errno.ESRCH, Unrecorded.NOTHING_HAPPENS)


@pytest.mark.parametrize(
    ("answer", "then"), [(YES, [Send(CHILD, USR2), Send(DESCENDANT, USR2)]), (NO, [])]
)
def test_of_a_group_one_question_speaks_of_all_who_need_it(
    answer: Answer, then: list[Effect]
) -> None:
    transcript = group(USR2, CHILD, DESCENDANT, OUTSIDE)
    asked = asks("SIGUSR2 to 50 (sleep); 51 (node)", "ask", "51", "5", "node")
    transcript.yields(asked, reply=answer)
    kind = "signal_approved" if answer.granted else "signal_blocked"
    transcript.records(kind).records(kind).records("signal_blocked", target_pid=70)
    if not answer.granted:
        transcript.tells("SIGUSR2 to 50 (sleep) and 1 more", "request denied (rule ask, policy x)")
    transcript.tells("SIGUSR2 to 70 (postgres)")
    for effect in then:
        transcript.yields(effect, reply=0)
    transcript.yields(Succeed() if then else Fail(errno.EPERM)).ends()


def asked_about(facts: SignalFacts) -> ApprovalRequest:
    asked = play_from(SignalMediator(ASKS_ALWAYS, domain=False), facts).next(NO)
    assert isinstance(asked, Ask)
    return asked.request


SIGNAL = SignalFacts(BASH, "kill", USR2, CallKind.NUMBER, CHILD, 1, (), nobody_handles)


@pytest.mark.parametrize(
    "other",
    [
        SIGNAL._replace(signal=USR1),
        SIGNAL._replace(aim=CHILD._replace(pid=52)),
        SIGNAL._replace(aim=CHILD._replace(start_time=6)),
        SIGNAL._replace(aim=CHILD._replace(comm="postgres")),
        SIGNAL._replace(aim=TargetGroup((CHILD, DESCENDANT))),
        SIGNAL._replace(aim=TargetGroup((CHILD, OUTSIDE))),
        SIGNAL._replace(aim=OUTSIDE),
        SIGNAL._replace(syscall="prlimit64", kind=CallKind.CHANGE),
        SIGNAL._replace(syscall="ptrace", kind=CallKind.TRACE),
    ],
)
def test_always_is_for_the_same_signal_to_the_same_processes_alone(other: SignalFacts) -> None:
    assert asked_about(SIGNAL).key == asked_about(SIGNAL._replace(correlation=2)).key
    assert asked_about(other).key != asked_about(SIGNAL).key


def test_who_is_outside_is_said_and_said_first() -> None:
    """What is cut of a long question is its end."""
    assert asked_about(SIGNAL._replace(aim=OUTSIDE)).what == (
        "SIGUSR2 to 70 (postgres), outside this session"
    )
    everybody = TargetGroup((CHILD, OUTSIDE, DESCENDANT._replace(comm="a); 1 (b")))
    assert asked_about(SIGNAL._replace(aim=everybody)).what == (
        "SIGUSR2 to 70 (postgres), outside this session; 50 (sleep); 51 ('a); 1 (b')"
    )
    limits = SIGNAL._replace(syscall="prlimit64", kind=CallKind.CHANGE, aim=OUTSIDE)
    assert asked_about(limits).what == ("prlimit64 aimed at 70 (postgres), outside this session")


@pytest.mark.parametrize("answer", [YES, NO])
def test_a_group_becomes_an_owner_if_somebody_says_yes(answer: Answer) -> None:
    transcript = group(USR2, CHILD, kind=CallKind.OWNER_IN_MEMORY)
    transcript.next(answer)
    if answer.granted:
        transcript.yields(LookAgain(CHILD), reply=True).records("signal_approved")
        transcript.yields(ChangeDescriptor(CHILD), reply=0).succeeds()
    else:
        transcript.is_blocked("request denied", decision="approve")


# Whether a target handles a signal


HANDLED = engine("""
signal_rules:
  - {name: own, signals: ["@all"], target: self, decision: allow}
  - {name: deaf, signals: ["@lethal"], target: siblings, handled: false, decision: deny}
  - {name: inside, signals: ["@all"], target: session, decision: allow}
defaults: {command: deny, signal: deny}
""")


def test_whether_a_target_handles_it_is_asked_anew_and_only_where_a_rule_asks() -> None:
    answers, asked = [True, False], list[tuple[int, int]]()

    def handles(pid: int, number: int) -> bool:
        asked.append((pid, number))
        return answers.pop(0)

    mediator = SignalMediator(HANDLED, domain=False)

    def sends_to(target: SignalTarget) -> Transcript:
        facts = SignalFacts(BASH, "kill", USR1, CallKind.NUMBER, target, 1, (), handles)
        return play_from(mediator, facts)

    for target in (ITSELF, CHILD, CHILD):
        sends_to(target)
    assert asked == []
    sends_to(SIBLING).records("signal_sent", target_handles=True, rule_name="inside")
    sends_to(SIBLING).records("signal_blocked", target_handles=False, rule_name="deaf")
    assert asked == [(60, USR1), (60, USR1)]


# Beyond the wall

OPEN = engine("signal_rules:\n  - {name: all, signals: ['@all'], decision: allow}\n")


def beyond(aim: SignalAim, *, kind: CallKind = CallKind.NUMBER) -> Transcript:
    facts = SignalFacts(BASH, "kill", TERM, kind, aim, 4711, (), nobody_handles)
    return play_from(SignalMediator(OPEN, domain=True), facts)


@pytest.mark.parametrize("kind", [CallKind.NUMBER, CallKind.PIDFD])
def test_what_the_kernel_would_keep_inside_is_sent_from_outside(kind: CallKind) -> None:
    transcript = beyond(OUTSIDE, kind=kind).records("signal_sent")
    transcript.yields(Send(OUTSIDE, TERM), reply=0).succeeds()


def test_inside_of_the_wall_the_kernel_does_it() -> None:
    beyond(CHILD).records("signal_sent").yields(ContinueToChildren()).ends()
    group = beyond(TargetGroup((CHILD, ITSELF))).records("signal_sent").records("signal_sent")
    group.yields(ContinueToChildren()).ends()
    beyond(OUTSIDE, kind=CallKind.CHANGE).records("signal_sent").goes_on()
    beyond(Succeed(Unrecorded.ONLY_ASKS)).succeeds(Unrecorded.ONLY_ASKS)
    beyond(would_fail(errno.EPERM)).fails(errno.EPERM, Unrecorded.NOTHING_HAPPENS)


@pytest.mark.parametrize("number", sorted(ALL))
def test_a_signal_to_a_child_may_end_it_unless_it_does_nothing(number: int) -> None:
    """Its parent gets SIGCHLD then, which must not break off the next call."""
    facts = SignalFacts(BASH, "kill", number, CallKind.NUMBER, CHILD, 4711, (), nobody_handles)
    transcript = play_from(SignalMediator(OPEN, domain=True), facts).records("signal_sent")
    does_nothing = number in (signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH)
    transcript.yields(Continue() if does_nothing else ContinueToChildren()).ends()


@pytest.mark.parametrize("kind", [CallKind.OWNER, CallKind.OWNER_IN_MEMORY])
def test_somebody_outside_comes_to_own_a_descriptor_by_us(kind: CallKind) -> None:
    """The kernel remembers the wall of whoever set it."""
    transcript = beyond(OUTSIDE, kind=kind).records("signal_sent")
    transcript.yields(ChangeDescriptor(OUTSIDE), reply=0).succeeds()


# Calls that reach a process without a signal: judged like one

OF_CALLS = engine("""
signal_rules:
  - {name: swallow, signals: [HUP], target: session, decision: absorb}
  - {name: ask, signals: [USR2], target: session, decision: approve, message: are you sure}
  - {name: not-them, signals: ["@all"], target: siblings, decision: deny, message: not them}
  - {name: inside, signals: ["@all"], target: session, decision: allow}
defaults: {command: deny, signal: allow}
""")
INSIDE, NOTHING = Unrecorded.STAYS_INSIDE, Unrecorded.NOTHING_HAPPENS


def calls(syscall: str, kind: CallKind, number: int, aim: SignalAim) -> Transcript:
    mediator = SignalMediator(OF_CALLS, domain=False)
    facts = SignalFacts(BASH, syscall, number, kind, aim, 1, (), nobody_handles)
    return play_from(mediator, facts)


def slows(*targets: SignalTarget) -> Transcript:
    aim = targets[0] if len(targets) == 1 else TargetGroup(targets)
    return calls("setpriority", CallKind.CHANGE, STOP, aim)


# What a process gets of the machine


def test_of_another_or_of_everybody_it_is_judged_as_a_signal() -> None:
    slows(ITSELF).goes_on(INSIDE)
    calls("process_vm_readv", CallKind.TRACE, KILL, ITSELF).goes_on(INSIDE)
    slows(CHILD).records("signal_sent", signal_name="SIGSTOP", rule_name="inside").goes_on()
    slows(SIBLING).is_blocked("not them")
    slows(OURSELVES).is_blocked("sigwrap: denied: ", rule_name="builtin:sigwrap")
    calls("setpriority", CallKind.CHANGE, STOP, RefusedCall(EVERYBODY)).is_blocked(
        "sigwrap: denied: ", rule_name="builtin:everybody"
    )


def test_of_a_group_it_is_all_or_none() -> None:
    slows(ITSELF, CHILD).records("signal_sent").records("signal_sent").goes_on()
    denied = slows(CHILD, SIBLING, OUTSIDE)
    for pid in (50, 60, 70):
        denied.records("signal_blocked", target_pid=pid, decision="deny")
    denied.tells("not them").fails(errno.EPERM)


@pytest.mark.parametrize("answer", [YES, NO])
def test_of_a_group_that_is_asked_about_too(answer: Answer) -> None:
    asked = calls("setpriority", CallKind.CHANGE, USR2, TargetGroup((CHILD,)))
    assert isinstance(asked.next(answer), Ask)
    if answer.granted:
        asked.yields(LookAgain(CHILD), reply=True).records("signal_approved").goes_on()
    else:
        asked.is_blocked("request denied")


PARENT = SignalTarget(30, 5, "sh", types(TargetType.ANCESTORS, TargetType.AGENT))


def changes(
    syscall: str,
    aim: SignalAim = PARENT,
    *,
    may: bool = True,
    kind: CallKind = CallKind.CHANGE,
    rules: Engine = ENGINE,
) -> Transcript:
    facts = SignalFacts(BASH, syscall, INT, kind, aim, 1, (), nobody_handles, may)
    return play_from(SignalMediator(rules, domain=True), facts)


OURS_ALONE = engine("defaults: {command: deny, signal: deny}")


def test_a_direct_child_changes_its_parent_whatever_the_rules_say() -> None:
    by_parent: dict[str, Any] = {
        "rule_name": "builtin:parent",
        "decision": "allow",
        "target_pid": 30,
    }
    for asks in (OURS_ALONE, ASKS_ALWAYS):
        changes("setpriority", rules=asks).records("signal_sent", **by_parent).goes_on()
    unlogged = changes("setpriority", rules=OURS_ALONE)
    unlogged.records("signal_sent", reply=Logged.FAILED, **by_parent).fails(errno.EPERM)


def test_what_a_rule_allows_of_a_parent_goes_on_by_that_rule() -> None:
    changes("setpriority").records("signal_sent", rule_name="look-at").goes_on()


def test_nothing_else_is_changed_because_of_that() -> None:
    blocked: dict[str, Any] = {"rule_name": "builtin:default", "decision": "deny"}
    changes("setpriority", may=False, rules=OURS_ALONE).is_blocked("sigwrap: denied: ", **blocked)
    for aim in (SIBLING, OUTSIDE, CHILD):
        changes("setpriority", aim, rules=OURS_ALONE).is_blocked("sigwrap: denied: ", **blocked)
    changes("setpriority", OURSELVES).is_blocked("sigwrap: denied: ", rule_name="builtin:sigwrap")


# Tracing


def counted(target: SignalTarget, syscall: str) -> tuple[object, ...]:
    return (BASH, int(KILL), "inside", syscall, target)


def test_reading_memory_is_judged_as_tracing_and_counted() -> None:
    key = counted(CHILD, "process_vm_readv")
    calls("process_vm_readv", CallKind.TRACE, KILL, CHILD).counts("signal_sent", key, 1.0).goes_on()
    for target, rule in ((OUTSIDE, "builtin:ptrace"), (OURSELVES, "builtin:sigwrap")):
        tried = calls("process_vm_readv", CallKind.TRACE, KILL, target)
        tried.is_blocked("sigwrap: denied: ", rule_name=rule)


@pytest.mark.parametrize("syscall", ["perf_event_open", "ptrace"])
def test_a_call_that_sends_no_signal_is_not_absorbed(syscall: str) -> None:
    calls(syscall, CallKind.TRACE, HUP, CHILD).is_blocked("sigwrap: denied: ", decision="deny")


# A descriptor that signals


def has_signalled(aim: SignalAim) -> Transcript:
    return calls("fcntl", CallKind.ASYNC, KILL, aim)


def test_what_would_be_signalled_is_judged_and_else_free() -> None:
    has_signalled(CHILD).records("signal_sent").yields(ChangeDescriptor(CHILD), reply=0).succeeds()
    has_signalled(OURSELVES).is_blocked("sigwrap: denied: ")
    has_signalled(TargetGroup((ITSELF, CHILD))).records("signal_sent").records(
        "signal_sent"
    ).yields(ChangeDescriptor(ITSELF), reply=errno.EPERM).fails(errno.EPERM)
    has_signalled(TargetGroup((ITSELF, OURSELVES))).records("signal_blocked").is_blocked(
        "sigwrap: denied: ", rule_name="builtin:sigwrap"
    )
    has_signalled(ITSELF).yields(ChangeDescriptor(ITSELF, INSIDE), reply=0).succeeds(INSIDE)
    has_signalled(ChangeDescriptor(None, INSIDE)).yields(
        ChangeDescriptor(None, INSIDE), reply=0
    ).succeeds(INSIDE)
    has_signalled(ChangeDescriptor(None, INSIDE)).yields(
        ChangeDescriptor(None, INSIDE), reply=errno.EBADF
    ).fails(errno.EBADF, NOTHING)
    by = ("fcntl", CallKind.SIGNAL_OF_OWNER)
    calls(*by, KILL, SIBLING).is_blocked("not them")
    calls(*by, KILL, ITSELF).yields(ChangeDescriptor(ITSELF, INSIDE), reply=0).succeeds(INSIDE)
    calls(*by, KILL, OUTSIDE).records("signal_sent", target_pid=70).yields(
        ChangeDescriptor(OUTSIDE), reply=0
    ).succeeds()


# Groups and terminals


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (CallKind.JOIN, NOT_OWN_GROUP),
        (CallKind.FOREGROUND, NOT_OWN_GROUP),
        (CallKind.TERMINAL, NOT_OWN_TERMINAL),
        (CallKind.TRACED_BY_PARENT, PROTECTS_SIGWRAP),
    ],
)
def test_what_is_not_the_sessions_own_is_denied(kind: CallKind, rule: Decision) -> None:
    calls("any", kind, TTIN, RefusedCall(rule)).is_blocked("sigwrap: denied: ", rule_name=rule.rule)
    calls("any", kind, TTIN, OWN).goes_on(INSIDE)


def test_the_supervisor_gives_a_group_the_terminal() -> None:
    calls("ioctl", CallKind.FOREGROUND, TTIN, ChangeDescriptor(None, INSIDE)).yields(
        ChangeDescriptor(None, INSIDE), reply=0
    ).succeeds(INSIDE)
    calls("ioctl", CallKind.FOREGROUND, TTIN, ChangeDescriptor(None, INSIDE)).yields(
        ChangeDescriptor(None, INSIDE), reply=errno.ENOTTY
    ).fails(errno.ENOTTY, NOTHING)


def test_a_tracer_waits_until_sigwrap_traces_its_target_no_more() -> None:
    facts = SignalFacts(
        BASH, "ptrace", int(signal.SIGKILL), CallKind.TRACE, CHILD, 1, (), nobody_handles
    )
    steps = play(SignalMediator(OF_CALLS, domain=False).mediate()).yields(Look(), reply=facts)
    gone = facts._replace(aim=would_fail(errno.ESRCH))
    steps.yields(LetGo(CHILD.pid), reply=True).yields(Look(), reply=gone)
    steps.fails(errno.ESRCH, Unrecorded.NOTHING_HAPPENS)


# Signals that are settled for all that have the same facts


@pytest.mark.parametrize("number", [TERM, USR1, signal.SIGWINCH, signal.SIGCONT])
@pytest.mark.parametrize("target", [CHILD, DESCENDANT])
def test_a_settled_signal_is_recorded_and_answered_like_each_single_one(
    number: int, target: SignalTarget
) -> None:
    facts = _facts(number, target)
    settled = SignalMediator(ENGINE, domain=True).settle(facts)
    assert settled is not None
    record, answer = settled
    transcript = play_from(SignalMediator(ENGINE, domain=True), facts)
    if record is not None:
        assert transcript.next(Logged.WRITTEN) == record
    transcript.yields(answer)
    transcript.ends()
    assert (record is None) == (number == signal.SIGWINCH)


def test_an_audited_signal_is_settled_with_its_event() -> None:
    settled = SignalMediator(ENGINE, domain=False).settle(_facts(INT, DESCENDANT))
    assert settled is not None and settled[0] is not None
    assert settled[0].payload["decision"] == "audit"


@pytest.mark.parametrize(
    ("number", "target"),
    [
        (TERM, SIBLING),  # denied
        (TERM, OUTSIDE),
        (TERM, OURSELVES),
        (USR2, CHILD),  # a user is asked
        (KILL, CHILD),  # redirected
        (HUP, CHILD),  # absorbed
        (TERM, ITSELF),  # repeats share an event
    ],
)
def test_a_signal_that_does_not_simply_go_on_is_not_settled(
    number: int, target: SignalTarget
) -> None:
    assert SignalMediator(ENGINE, domain=False).settle(_facts(number, target)) is None


@pytest.mark.parametrize(
    "rule",
    [
        "{name: x, signals: [TERM], target: session, handled: true, decision: allow}",
        "{name: x, signals: [TERM], target: session, decision: allow, escalate: SIGPOLICY}",
    ],
)
def test_a_rule_that_needs_each_signal_settles_none(rule: str) -> None:
    one = engine(f"signal_rules:\n  - {rule}\ndefaults: {{command: deny, signal: allow}}")
    assert SignalMediator(one, domain=False).settle(_facts(TERM, CHILD)) is None
    assert SignalMediator(one, domain=False).settle(_facts(USR1, CHILD)) is not None


def _facts(number: int, target: SignalTarget) -> SignalFacts:
    return SignalFacts(BASH, "kill", number, CallKind.NUMBER, target, 0, (), differs)
