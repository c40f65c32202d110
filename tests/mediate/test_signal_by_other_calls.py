"""Calls that reach a process without a signal, as transcripts: judged like one."""

from __future__ import annotations

import errno
import signal

import pytest

from sigwrap.mediate.effects import (
    Advise,
    Ask,
    Continue,
    Fail,
    LookAgain,
    SetAsync,
    SetForeground,
    SignalTarget,
    Succeed,
    TakeDescriptor,
    Unrecorded,
)
from sigwrap.mediate.lineage import SIGWRAP_ITSELF, Process
from sigwrap.mediate.questions import Answer
from sigwrap.mediate.signal import SignalMediator
from sigwrap.mediate.signal_facts import (
    Aim,
    Everybody,
    Group,
    How,
    NoOwner,
    NotOwn,
    Own,
    OwnInMemory,
    SignalFacts,
)
from sigwrap.policy.judge.request import TargetType, with_implied
from tests.mediate.transcript import Transcript, engine, nobody_handles, play

KILL, STOP, TTIN, HUP, USR2 = (
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGTTIN,
    signal.SIGHUP,
    signal.SIGUSR2,
)
ENGINE = engine("""
signal_rules:
  - {name: swallow, signals: [HUP], target: session, decision: absorb}
  - {name: ask, signals: [USR2], target: session, decision: approve, message: are you sure}
  - {name: not-them, signals: ["@all"], target: siblings, decision: deny, message: not them}
  - {name: inside, signals: ["@all"], target: session, decision: allow}
defaults: {command: deny, signal: allow}
""")
BASH = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
ITSELF = SignalTarget(40, 1, "bash", with_implied({TargetType.SELF}))
CHILD = SignalTarget(50, 5, "sleep", with_implied({TargetType.CHILDREN}))
SIBLING = SignalTarget(60, 5, "redis", with_implied({TargetType.SIBLINGS}))
OUTSIDE = SignalTarget(70, 5, "postgres", with_implied({TargetType.USER}))
OURSELVES = SignalTarget(2, 1, "sigwrap", SIGWRAP_ITSELF)
YES = Answer(granted=True, by="the terminal", message="", reason="granted")
NO = Answer(granted=False, by="the terminal", message="", reason="denied")
INSIDE, NOTHING = Unrecorded.STAYS_INSIDE, Unrecorded.NOTHING_HAPPENS


def calls(syscall: str, how: How, number: int, aim: Aim) -> Transcript:
    mediator = SignalMediator(ENGINE, domain=False)
    return play(
        mediator.mediate(SignalFacts(BASH, syscall, number, how, aim, 1, (), nobody_handles))
    )


def slows(*targets: SignalTarget) -> Transcript:
    aim = targets[0] if len(targets) == 1 else Group(targets)
    return calls("setpriority", How.CHANGE, STOP, aim)


# What a process gets of the machine


def test_of_the_caller_itself_it_is_free() -> None:
    slows(ITSELF).yields(Continue(INSIDE)).ends()
    calls("process_vm_readv", How.TRACE, KILL, ITSELF).yields(Continue(INSIDE)).ends()


def test_of_another_it_is_judged_as_a_signal_to_it() -> None:
    slows(CHILD).records("signal_sent", signal_name="SIGSTOP", rule_name="inside").yields(
        Continue()
    ).ends()
    slows(SIBLING).records("signal_blocked").tells("not them").yields(Fail(errno.EPERM)).ends()
    slows(OURSELVES).records("signal_blocked", rule_name="builtin:sigwrap").tells(
        "denied by rule"
    ).yields(Fail(errno.EPERM)).ends()


def test_of_a_group_it_is_all_or_none() -> None:
    slows(ITSELF, CHILD).records("signal_sent").records("signal_sent").yields(Continue()).ends()
    denied = slows(CHILD, SIBLING, OUTSIDE)
    for pid in (50, 60, 70):
        denied.records("signal_blocked", target_pid=pid, decision="deny")
    denied.tells("not them").yields(Fail(errno.EPERM)).ends()


@pytest.mark.parametrize("answer", [YES, NO])
def test_of_a_group_that_is_asked_about_too(answer: Answer) -> None:
    asked = calls("setpriority", How.CHANGE, USR2, Group((CHILD,)))
    assert isinstance(asked.next(answer), Ask)
    if answer.granted:
        asked.records("signal_approved").yields(Continue()).ends()
    else:
        asked.records("signal_blocked").tells("not approved").yields(Fail(errno.EPERM)).ends()


def test_of_everybody_it_is_denied() -> None:
    calls("setpriority", How.CHANGE, STOP, Everybody()).records(
        "signal_blocked", rule_name="builtin:everybody"
    ).tells("denied by rule").yields(Fail(errno.EPERM)).ends()


# Its memory


def advises(aim: Aim, number: int = STOP) -> Transcript:
    return calls("process_madvise", How.ADVISE, number, aim)


def test_advice_on_memory_is_given_by_the_supervisor() -> None:
    """Its pidfd can be swapped. The caller gets the answer by it."""
    sent = advises(CHILD).records("signal_sent", signal_name="SIGSTOP", rule_name="inside")
    sent.yields(Advise(CHILD), reply=0).ends()
    advises(CHILD).records("signal_sent").yields(Advise(CHILD), reply=errno.ENOMEM).yields(
        Fail(errno.ENOMEM)
    ).ends()
    advises(ITSELF).yields(Advise(ITSELF, INSIDE), reply=errno.ENOMEM).yields(
        Fail(errno.ENOMEM, NOTHING)
    ).ends()


def test_advice_on_memory_is_judged_as_a_stop() -> None:
    advises(SIBLING).records("signal_blocked").tells("not them").yields(Fail(errno.EPERM)).ends()
    advises(OURSELVES).records("signal_blocked", rule_name="builtin:sigwrap").tells(
        "denied by rule"
    ).yields(Fail(errno.EPERM)).ends()
    advises(CHILD, HUP).records("signal_absorbed").yields(Succeed()).ends()
    asked = advises(CHILD, USR2)
    assert isinstance(asked.next(YES), Ask)
    asked.yields(LookAgain(CHILD), reply=True).records("signal_approved").yields(
        Advise(CHILD), reply=0
    ).ends()


# A descriptor of another


def takes(aim: Aim, number: int = KILL) -> Transcript:
    return calls("pidfd_getfd", How.TAKE, number, aim)


def counted(target: SignalTarget, syscall: str) -> tuple[object, ...]:
    return (BASH, int(KILL), "inside", syscall, target)


def test_a_descriptor_is_taken_by_the_supervisor() -> None:
    """The caller gets it as its answer: no other follows."""
    key = counted(CHILD, "pidfd_getfd")
    takes(CHILD).counts("signal_sent", key, 1.0).yields(TakeDescriptor(CHILD), reply=0).ends()
    takes(CHILD).counts("signal_sent", key, 1.0).yields(
        TakeDescriptor(CHILD), reply=errno.EBADF
    ).yields(Fail(errno.EBADF)).ends()
    takes(ITSELF).yields(TakeDescriptor(ITSELF, INSIDE), reply=0).ends()
    takes(ITSELF).yields(TakeDescriptor(ITSELF, INSIDE), reply=errno.EBADF).yields(
        Fail(errno.EBADF, NOTHING)
    ).ends()


def test_it_is_judged_as_tracing() -> None:
    for target, rule in ((OUTSIDE, "builtin:ptrace"), (OURSELVES, "builtin:sigwrap")):
        takes(target).records("signal_blocked", rule_name=rule).tells("denied by rule").yields(
            Fail(errno.EPERM)
        ).ends()


def test_who_is_asked_about_it_is_looked_at_again() -> None:
    asked = takes(CHILD, USR2)
    assert isinstance(asked.next(YES), Ask)
    asked.yields(LookAgain(CHILD), reply=True).records("signal_approved").yields(
        TakeDescriptor(CHILD), reply=0
    ).ends()
    asked = takes(CHILD, USR2)
    asked.next(YES)
    asked.yields(LookAgain(CHILD), reply=False).yields(Fail(errno.ESRCH, NOTHING)).ends()


@pytest.mark.parametrize("syscall", ["pidfd_getfd", "perf_event_open"])
def test_what_gives_a_descriptor_is_not_absorbed(syscall: str) -> None:
    """0 would look like one."""
    how = How.TAKE if syscall == "pidfd_getfd" else How.TRACE
    calls(syscall, how, HUP, CHILD).records("signal_blocked", decision="deny").tells(
        "denied by rule"
    ).yields(Fail(errno.EPERM)).ends()


def test_a_debugger_that_reads_at_every_turn_is_counted() -> None:
    key = counted(CHILD, "process_vm_readv")
    calls("process_vm_readv", How.TRACE, KILL, CHILD).counts("signal_sent", key, 1.0).yields(
        Continue()
    ).ends()


# A descriptor that signals


def has_signalled(aim: Aim) -> Transcript:
    return calls("fcntl", How.ASYNC, KILL, aim)


def test_whoever_would_be_signalled_is_judged() -> None:
    has_signalled(CHILD).records("signal_sent").yields(SetAsync(CHILD), reply=0).yields(
        Succeed()
    ).ends()
    has_signalled(OURSELVES).records("signal_blocked").tells("denied by rule").yields(
        Fail(errno.EPERM)
    ).ends()
    has_signalled(Group((ITSELF, CHILD))).records("signal_sent").records("signal_sent").yields(
        SetAsync(ITSELF), reply=errno.EPERM
    ).yields(Fail(errno.EPERM)).ends()
    has_signalled(Group((ITSELF, OURSELVES))).records("signal_blocked").records(
        "signal_blocked", rule_name="builtin:sigwrap"
    ).tells("denied by rule").yields(Fail(errno.EPERM)).ends()


def test_who_signals_nobody_or_itself_is_let() -> None:
    has_signalled(ITSELF).yields(SetAsync(ITSELF, INSIDE), reply=0).yields(Succeed(INSIDE)).ends()
    has_signalled(NoOwner()).yields(SetAsync(None, INSIDE), reply=0).yields(Succeed(INSIDE)).ends()
    has_signalled(NoOwner()).yields(SetAsync(None, INSIDE), reply=errno.EBADF).yields(
        Fail(errno.EBADF, NOTHING)
    ).ends()


def test_an_owner_from_outside_is_judged_when_its_signal_is_chosen() -> None:
    by = ("fcntl", How.SIGNAL_OF_OWNER)
    calls(*by, KILL, SIBLING).records("signal_blocked").tells("not them").yields(
        Fail(errno.EPERM)
    ).ends()
    calls(*by, KILL, OUTSIDE).records("signal_sent", target_pid=70).yields(
        SetAsync(OUTSIDE), reply=0
    ).yields(Succeed()).ends()


# Groups, terminals, tracers


@pytest.mark.parametrize(
    ("how", "rule"),
    [
        (How.JOIN, "builtin:group"),
        (How.FOREGROUND, "builtin:group"),
        (How.TERMINAL, "builtin:terminal"),
        (How.TRACED_BY_PARENT, "builtin:sigwrap"),
    ],
)
def test_what_is_not_the_sessions_own_is_denied(how: How, rule: str) -> None:
    calls("any", how, TTIN, NotOwn()).records("signal_blocked", rule_name=rule).tells(
        "denied by rule"
    ).yields(Fail(errno.EPERM)).ends()
    calls("any", how, TTIN, Own()).yields(Continue(INSIDE)).ends()


def test_the_supervisor_gives_a_group_the_terminal() -> None:
    calls("ioctl", How.FOREGROUND, TTIN, OwnInMemory(50)).yields(
        SetForeground(50, INSIDE), reply=0
    ).yields(Succeed(INSIDE)).ends()
    calls("ioctl", How.FOREGROUND, TTIN, OwnInMemory(50)).yields(
        SetForeground(50, INSIDE), reply=errno.ENOTTY
    ).yields(Fail(errno.ENOTTY, NOTHING)).ends()
