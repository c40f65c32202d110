"""A transcript each: signals in, what is done out."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, cast

import pytest

from sigwrap.front.interrupts import Arrived, BootloaderCopies, Interrupts, InterruptsEnd
from sigwrap.front.messages import Place, Sender

GRACE_S = 10.0
BOOTLOADER = 77
NO_COPIES = BootloaderCopies(0, on_terminal=False)
SENDER = 5000
AGENT = Sender(0, 0, Place.AGENT_SIGNAL, "somewhere")


class Machine:
    """Returns what each call does."""

    def __init__(
        self,
        copies: BootloaderCopies = NO_COPIES,
        ends: InterruptsEnd = InterruptsEnd.AUTO,
    ) -> None:
        self._interrupts = Interrupts(cast(Any, self), copies, grace_s=GRACE_S, ends=ends)
        self._done: list[str] = []
        self._at_prompt = False

    def signal(self, arrived: Arrived, now: float) -> list[str]:
        return self._done_by(lambda: self._interrupts.signal(arrived, now))

    def interrupt(self, arrived: Arrived, now: float) -> list[str]:
        return self._done_by(lambda: self._interrupts.interrupt(arrived, now))

    def caller_ended(self, arrived: Arrived, now: float) -> list[str]:
        return self._done_by(lambda: self._interrupts.caller_ended(arrived, now))

    def tick(self, now: float, *, at_prompt: bool = False) -> list[str]:
        self._at_prompt = at_prompt
        return self._done_by(lambda: self._interrupts.tick(now))

    @property
    def interrupted(self) -> bool:
        return self._interrupts.interrupted

    @property
    def next_deadline(self) -> float | None:
        return self._interrupts.next_deadline

    def _done_by(self, call: Callable[[], None]) -> list[str]:
        self._done.clear()
        call()
        return list(self._done)

    # What Interrupts decides

    def announce(self, _arrived: Arrived, *, ends_run: bool) -> None:
        self._done.append("announce" if ends_run else "leave to COMMAND")

    def withdraw(self) -> None:
        self._done.append("withdraw")

    def pass_on(self, number: int, sender: object = None) -> None:
        by = "" if sender is None else f" by {sender}"
        self._done.append(f"pass on {signal.Signals(number).name}{by}")

    def is_at_prompt(self, *, or_reads_a_line: bool) -> bool:
        self._done.append("look for a prompt" if or_reads_a_line else "look for an editor")
        return self._at_prompt

    def say_waiting(self, kill_in_s: float, *, or_prompts: bool, is_key: bool) -> None:
        prompts, key = " or prompts" * or_prompts, " at key" * is_key
        self._done.append(f"say {kill_in_s:g} s{prompts}{key}")

    def kill_tree(self, reason: str) -> None:
        self._done.append(f"escalate: {reason}")


def machine(ends: InterruptsEnd = InterruptsEnd.AUTO) -> Machine:
    return Machine(BootloaderCopies(BOOTLOADER, on_terminal=False), ends)


def key(
    number: int = signal.SIGINT,
    *,
    handled: bool = False,
    ignored: bool = False,
    prompt: bool = False,
    reaches: bool = True,
) -> Arrived:
    return Arrived(
        number=number,
        from_terminal=True,
        sender_pid=0,
        went_to_command=reaches,
        command_handles_it=handled or prompt,
        command_ignores_it=ignored,
        at_prompt=prompt,
    )


def sent(number: int, by: int = SENDER, *, handled: bool = False, ignored: bool = False) -> Arrived:
    return Arrived(
        number=number,
        from_terminal=False,
        sender_pid=by,
        command_handles_it=handled,
        command_outlives_it=handled,
        is_ignored=ignored,
    )


def hangup(*, handled: bool = False, reaches: bool = True, by: int = 0) -> Arrived:
    """Told by the kernel, or by a shell."""
    told = sent(signal.SIGHUP, by, handled=handled)
    return told._replace(from_terminal=by == 0, went_to_command=reaches, is_hangup=True)


def looks_in_vain(interrupts: Machine, *, until: float) -> list[str]:
    """What is done otherwise, up to that time, but for words."""
    done: list[str] = []
    while (at_s := interrupts.next_deadline) is not None and at_s <= until:
        done += interrupts.tick(at_s)
    return [each for each in done if not each.startswith(("say", "look"))]


def deadline_after_words(interrupts: Machine) -> float | None:
    assert looks_in_vain(interrupts, until=1.0) == []
    return interrupts.next_deadline


def test_a_command_that_leaves_the_key_alone_dies_of_it_or_gets_sigterm() -> None:
    interrupts = machine()
    assert interrupts.signal(key(), 0.0) == ["announce"]
    assert interrupts.interrupted
    assert looks_in_vain(interrupts, until=0.24) == []
    assert looks_in_vain(interrupts, until=0.25) == ["pass on SIGTERM"]
    assert deadline_after_words(interrupts) == GRACE_S


def test_an_interrupt_is_withdrawn_where_a_prompt_has_its_handler_aside_for_a_moment() -> None:
    interrupts = machine()
    interrupts.signal(key(), 0.0)
    assert interrupts.tick(0.01, at_prompt=True) == ["look for an editor", "withdraw"]
    assert not interrupts.interrupted


def test_a_command_that_ignores_the_key_has_as_long_to_go_on() -> None:
    interrupts = machine()
    assert interrupts.signal(key(ignored=True), 0.0) == ["announce"]
    at_s = interrupts.next_deadline
    assert at_s is not None
    assert interrupts.tick(at_s, at_prompt=True) == ["look for an editor", "withdraw"]
    assert interrupts.signal(key(ignored=True), 100.0) == ["announce"]
    assert looks_in_vain(interrupts, until=100.0 + GRACE_S / 2) == ["pass on SIGTERM"]
    assert interrupts.tick(100.0 + GRACE_S) == ["escalate: the grace period ended"]


@pytest.mark.parametrize(
    ("ends", "arrived"),
    [
        (InterruptsEnd.SIGWRAP, key(ignored=True)),
        (InterruptsEnd.AUTO, key(signal.SIGQUIT, ignored=True)),
        (InterruptsEnd.AUTO, key(ignored=True, reaches=False)),
        (InterruptsEnd.AUTO, sent(signal.SIGINT)._replace(command_ignores_it=True)),
    ],
)
def test_what_else_command_ignores_ends_it_at_once(ends: InterruptsEnd, arrived: Arrived) -> None:
    assert machine(ends).signal(arrived, 0.0) == ["announce", "pass on SIGTERM"]


def test_time_brings_nothing_before_the_first_interrupt_and_after_the_last() -> None:
    interrupts = machine(InterruptsEnd.SIGWRAP)
    assert interrupts.tick(1000.0) == []
    interrupts.signal(key(), 1000.0)
    interrupts.signal(key(), 1001.0)
    assert interrupts.tick(2000.0) == []


def test_what_did_not_reach_command_is_passed_on_once() -> None:
    interrupts = machine()
    assert interrupts.signal(sent(signal.SIGTERM, handled=True), 0.0) == [
        "announce",
        "pass on SIGTERM",
    ]
    assert deadline_after_words(interrupts) == GRACE_S
    interrupts = machine()
    assert interrupts.signal(key(handled=True, reaches=False), 0.0) == [
        "announce",
        "pass on SIGINT",
    ]
    assert deadline_after_words(interrupts) == GRACE_S / 2


def test_a_hangup_that_command_handles_or_ignores_ends_nothing() -> None:
    interrupts = machine()
    for now in (0.0, 0.1, 0.2):
        assert interrupts.signal(sent(signal.SIGHUP, handled=True), now) == ["pass on SIGHUP"]
    assert not interrupts.interrupted
    interrupts = machine()
    ignored = sent(signal.SIGHUP)._replace(command_outlives_it=True, command_ignores_it=True)
    assert interrupts.signal(ignored, 0.0) == ["pass on SIGHUP"]
    assert not interrupts.interrupted


def test_any_other_hangup_interrupts() -> None:
    blocked = sent(signal.SIGHUP, handled=True)._replace(command_outlives_it=False)
    assert machine().signal(blocked, 0.0) == ["announce", "pass on SIGHUP"]
    interrupts = machine()
    assert interrupts.signal(hangup(handled=True), 0.0) == ["announce"]
    assert deadline_after_words(interrupts) == GRACE_S / 2
    interrupts = machine()
    told = hangup(handled=True, reaches=False)
    passed_on = ["announce", "pass on SIGHUP", "pass on SIGCONT"]
    assert interrupts.signal(told, 0.0) == passed_on
    assert machine().signal(told._replace(is_hangup=False), 0.0) == ["pass on SIGHUP"]


@pytest.mark.parametrize("handled", [True, False])
def test_a_hangup_is_one_whoever_tells_of_it_and_however_often(handled: bool) -> None:
    interrupts = machine()
    told = [hangup(handled=handled, by=SENDER), hangup(handled=handled)]
    assert interrupts.signal(told[0], 0.0)[0] == "announce"
    assert interrupts.signal(told[1], 0.1) == []
    assert interrupts.signal(sent(signal.SIGHUP, BOOTLOADER), 1.0) == []
    assert interrupts.signal(sent(signal.SIGTERM), 2.0) == ["escalate: second interrupt"]
    assert interrupts.signal(told[1], 3.0) == []


def test_what_the_caller_ignores_does_nothing_where_command_does_too() -> None:
    interrupts = machine()
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        ignored = sent(number, ignored=True)._replace(command_outlives_it=True)
        assert interrupts.signal(ignored, 0.0) == []
    assert not interrupts.interrupted


# A prompt


def test_a_second_key_kills_unless_a_prompt_comes_back() -> None:
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert interrupts.signal(key(handled=True), 0.01) == []
    assert interrupts.tick(0.1, at_prompt=True) == ["look for an editor", "withdraw"]
    assert interrupts.next_deadline is None
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    interrupts.signal(key(handled=True), 0.01)
    assert looks_in_vain(interrupts, until=0.25) == []
    assert looks_in_vain(interrupts, until=0.27) == ["escalate: second interrupt"]
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert interrupts.signal(key(prompt=True), 0.05) == ["withdraw", "leave to COMMAND"]
    assert not interrupts.interrupted


@pytest.mark.parametrize("second", [key(signal.SIGQUIT, prompt=True), sent(signal.SIGTERM)])
def test_no_prompt_keeps_another_second_signal_from_killing(second: Arrived) -> None:
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert interrupts.signal(second, 0.01) == ["escalate: second interrupt"]


def test_the_quit_key_is_a_way_out_of_a_prompt() -> None:
    interrupts = machine()
    interrupts.signal(key(prompt=True), 0.0)
    quits = key(signal.SIGQUIT, prompt=True)
    assert interrupts.signal(quits, 0.1) == ["announce"]
    assert interrupts.signal(key(prompt=True), 0.2) == ["escalate: second interrupt"]


def test_after_the_sigterm_no_prompt_helps() -> None:
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert looks_in_vain(interrupts, until=GRACE_S / 2 + 0.1) == ["pass on SIGTERM"]
    assert deadline_after_words(interrupts) == GRACE_S
    assert interrupts.signal(key(prompt=True), 6.0) == ["escalate: second interrupt"]


def test_what_is_left_to_command_it_gets_each_time() -> None:
    interrupts = machine(InterruptsEnd.COMMAND)
    assert interrupts.signal(key(), 0.0) == ["leave to COMMAND"]
    assert interrupts.signal(key(handled=True), 0.1) == ["leave to COMMAND"]
    assert interrupts.signal(sent(signal.SIGINT), 0.5) == [
        "leave to COMMAND",
        "pass on SIGINT",
    ]
    assert interrupts.signal(sent(signal.SIGTERM), 1.0) == ["announce", "pass on SIGTERM"]
    assert interrupts.signal(key(), 2.0) == ["escalate: second interrupt"]
    interrupts = machine(InterruptsEnd.COMMAND)
    for now in (0.0, 0.1, 0.2):
        assert interrupts.signal(sent(signal.SIGINT), now) == [
            "leave to COMMAND",
            "pass on SIGINT",
        ]


def test_ctrl_c_can_be_sigwraps_always() -> None:
    interrupts = machine(InterruptsEnd.SIGWRAP)
    assert interrupts.signal(key(prompt=True), 0.0) == ["announce"]
    assert deadline_after_words(interrupts) == GRACE_S / 2
    assert interrupts.signal(key(prompt=True), 0.1) == ["escalate: second interrupt"]


# A second interrupt


def test_a_second_interrupt_kills_the_tree_however_quick() -> None:
    interrupts = machine(InterruptsEnd.SIGWRAP)
    interrupts.signal(key(), 0.0)
    assert interrupts.signal(key(), 0.05) == ["escalate: second interrupt"]
    assert interrupts.signal(key(), 0.5) == []
    # What CI runners do: SIGINT, and SIGTERM 7.5 s later.
    interrupts = machine()
    interrupts.signal(sent(signal.SIGINT), 0.0)
    assert interrupts.signal(sent(signal.SIGTERM), 7.5) == ["escalate: second interrupt"]


def test_the_end_of_the_caller_is_a_sigterm_with_no_more_time_than_there_was() -> None:
    interrupts = machine()
    ended = interrupts.caller_ended(sent(signal.SIGTERM), 0.0)
    assert ended == ["announce", "pass on SIGTERM"]
    assert interrupts.next_deadline == 1.5
    assert interrupts.tick(1.5) == ["escalate: its caller ended"]
    # No more than there was.
    interrupts = machine()
    interrupts.signal(sent(signal.SIGINT, handled=True), 0.0)
    assert interrupts.caller_ended(sent(signal.SIGTERM), 1.0) == ["pass on SIGTERM"]
    assert interrupts.tick(2.5) == ["escalate: its caller ended"]
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM), 0.0)
    assert interrupts.caller_ended(sent(signal.SIGTERM), 9.5) == []
    assert interrupts.tick(10.0) == ["escalate: the grace period ended"]
    assert interrupts.caller_ended(sent(signal.SIGTERM), 10.1) == []


def test_hangup_and_quit_interrupt_too() -> None:
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        assert machine().signal(sent(number), 0.0) == ["announce", "pass on SIGTERM"]


def test_the_bootloaders_copy_is_no_second_press_within_two_seconds() -> None:
    interrupts = machine(InterruptsEnd.SIGWRAP)
    interrupts.signal(key(), 0.0)
    assert interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 1.5) == []
    assert interrupts.signal(key(), 1.6) == ["escalate: second interrupt"]
    for at_s, expected in ((2.0, []), (2.1, ["escalate: second interrupt"])):
        interrupts = machine()
        interrupts.signal(key(), 0.0)
        assert interrupts.signal(sent(signal.SIGINT, BOOTLOADER), at_s) == expected
    # A signal that is pending swallows the next one of its number.
    interrupts = machine()
    interrupts.signal(key(ignored=True, reaches=False), 0.0)
    assert interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 0.01) == []
    assert interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 0.02) == [
        "escalate: second interrupt"
    ]
    interrupts = machine()
    copy = key(prompt=True)._replace(from_terminal=False, sender_pid=BOOTLOADER)
    assert interrupts.signal(key(prompt=True), 0.0) == ["leave to COMMAND"]
    assert interrupts.signal(copy, 0.01) == []
    assert interrupts.signal(copy, 0.02) == ["leave to COMMAND"]
    assert interrupts.signal(copy, 0.6) == ["announce", "pass on SIGINT"]


@pytest.mark.parametrize("number", [signal.SIGTTIN, signal.SIGTTOU])
def test_a_terminals_stop_may_be_copied_without_its_original(number: signal.Signals) -> None:
    interrupts = Machine(BootloaderCopies(BOOTLOADER, on_terminal=True))
    assert interrupts.signal(sent(number, BOOTLOADER), 0.0) == []
    assert interrupts.signal(sent(number), 0.1) == [f"pass on {number.name}"]
    assert interrupts.signal(sent(number, BOOTLOADER), 60.0) == []


@pytest.mark.parametrize("number", [signal.SIGTTIN, signal.SIGTTOU])
def test_without_a_terminal_it_is_sent_by_somebody(number: signal.Signals) -> None:
    interrupts = machine()
    assert interrupts.signal(sent(number, BOOTLOADER), 0.0) == [f"pass on {number.name}"]


def test_what_is_no_copy_is_the_second() -> None:
    interrupts = machine()
    interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 0.0)
    assert interrupts.signal(key(), 0.01) == ["escalate: second interrupt"]
    interrupts = Machine()
    interrupts.signal(key(), 0.0)
    assert interrupts.signal(sent(signal.SIGINT), 0.01) == ["escalate: second interrupt"]
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM, BOOTLOADER), 0.0)
    again = sent(signal.SIGTERM, BOOTLOADER)
    assert interrupts.signal(again, 1.0) == ["escalate: second interrupt"]


def test_one_sender_that_signals_process_and_group_is_one() -> None:
    """timeout(1) does."""
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM), 0.0)
    assert interrupts.signal(sent(signal.SIGTERM), 0.001) == []
    assert interrupts.signal(sent(signal.SIGTERM, SENDER + 1), 0.002) == [
        "escalate: second interrupt"
    ]
    for at_s, expected in ((0.3, []), (0.4, ["escalate: second interrupt"])):
        interrupts = machine()
        interrupts.signal(sent(signal.SIGTERM), 0.0)
        assert interrupts.signal(sent(signal.SIGTERM), at_s) == expected
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM, BOOTLOADER), 0.0)
    assert interrupts.signal(sent(signal.SIGTERM), 0.001) == []
    assert interrupts.signal(sent(signal.SIGTERM, BOOTLOADER), 0.002) == []


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, SENDER), (SENDER, 0)])
def test_who_is_outside_of_the_container_is_not_known_to_be_the_same(
    first: int, second: int
) -> None:
    interrupts = Machine()
    interrupts.signal(sent(signal.SIGTERM, first), 0.0)
    again = sent(signal.SIGTERM, second)
    assert interrupts.signal(again, 0.001) == ["escalate: second interrupt"]


def test_other_signals_are_passed_on_each_time_and_interrupt_nothing() -> None:
    interrupts = machine()
    assert interrupts.signal(sent(signal.SIGUSR1), 0.0) == ["pass on SIGUSR1"]
    assert not interrupts.interrupted
    assert interrupts.next_deadline is None
    interrupts = machine()
    for now in (0.0, 0.001, 0.1):
        assert interrupts.signal(sent(signal.SIGUSR1), now) == ["pass on SIGUSR1"]
    assert machine().signal(key(signal.SIGWINCH), 0.0) == []
    assert machine().signal(key(signal.SIGTSTP), 0.0) == []


# What is said


def what_is_said(interrupts: Machine, *, until: float) -> list[tuple[float, str]]:
    said: list[tuple[float, str]] = []
    while (at_s := interrupts.next_deadline) is not None and at_s <= until:
        said += [(at_s, each) for each in interrupts.tick(at_s) if each.startswith("say")]
    return said


def test_after_a_second_it_is_said_once_what_sigwrap_waits_for() -> None:
    interrupts = machine()
    interrupts.signal(key(), 0.0)
    assert what_is_said(interrupts, until=GRACE_S) == [(1.0, "say 9 s at key")]
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    said = [(1.0, "say 9 s or prompts at key")]
    assert what_is_said(interrupts, until=GRACE_S / 2 - 0.1) == said
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert interrupts.tick(0.005, at_prompt=True) == ["look for an editor", "withdraw"]
    interrupts.signal(sent(signal.SIGTERM), 5.0)
    assert what_is_said(interrupts, until=7.0) == [(6.0, "say 9 s")]


def test_a_prompt_is_looked_for_before_anything_is_said() -> None:
    """One without an editor is known a second after the key."""
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert looks_in_vain(interrupts, until=0.99) == []
    assert interrupts.next_deadline == 1.0
    assert interrupts.tick(1.0, at_prompt=True) == ["look for a prompt", "withdraw"]
    assert interrupts.next_deadline is None


@pytest.mark.parametrize("ends", list(InterruptsEnd))
def test_what_is_demanded_ends_the_run_whatever_it_is_for(ends: InterruptsEnd) -> None:
    interrupts = Machine(ends=ends)
    demanded = Arrived(signal.SIGINT, False, 0, command_handles_it=True, sender=AGENT)
    assert interrupts.interrupt(demanded, 1.0) == ["announce", f"pass on SIGINT by {AGENT}"]
    assert interrupts.next_deadline is not None
    assert interrupts.interrupt(demanded, 1.1) == ["escalate: second interrupt"]
    assert interrupts.interrupt(demanded, 1.2) == []


@pytest.mark.parametrize(
    ("handled", "ignored", "to_job", "number", "sigterm_s"),
    [
        (True, False, True, signal.SIGINT, 5.0),
        (False, True, True, signal.SIGINT, 5.0),  # it waits for another program
        (False, False, True, signal.SIGINT, 0.25),
        (False, True, False, signal.SIGTERM, None),  # its caller ignores SIGINT
    ],
)
def test_a_demand_is_sent_to_the_job_as_a_key_is(
    handled: bool, ignored: bool, to_job: bool, number: signal.Signals, sigterm_s: float | None
) -> None:
    interrupts = Machine()
    demanded = Arrived(
        number=signal.SIGINT,
        from_terminal=False,
        sender_pid=0,
        goes_to_job=to_job,
        command_handles_it=handled,
        command_ignores_it=ignored,
    )
    assert interrupts.interrupt(demanded, 0.0) == ["announce", f"pass on {number.name}"]
    if sigterm_s is not None:
        assert interrupts.next_deadline == min(sigterm_s, 1.0)
        assert "pass on SIGTERM" not in interrupts.tick(sigterm_s - 0.01)
        assert "pass on SIGTERM" in interrupts.tick(sigterm_s)
