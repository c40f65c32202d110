"""A transcript each: signals in, commands out."""

from __future__ import annotations

import signal

from sigwrap.mediate.interrupts import Announce, Arrived, Command, Escalate, Interrupts, PassOn

GRACE_S = 10.0
BOOTLOADER = 77
SOMEBODY = 5000


def machine() -> Interrupts:
    return Interrupts(grace_s=GRACE_S, bootloader_pid=BOOTLOADER)


def key(number: int = signal.SIGINT, *, handled: bool = False) -> Arrived:
    return Arrived(number=number, from_terminal=True, sender_pid=0, command_handles_it=handled)


def sent(number: int, by: int = SOMEBODY) -> Arrived:
    return Arrived(number=number, from_terminal=False, sender_pid=by)


def names(commands: object) -> list[str]:
    assert isinstance(commands, tuple)
    return [_name(command) for command in commands]


def _name(command: Command) -> str:
    match command:
        case Announce():
            return "announce"
        case PassOn(number=number):
            return f"pass on {signal.Signals(number).name}"
        case Escalate(reason=reason):
            return f"escalate: {reason}"


def test_a_command_that_leaves_the_key_alone_gets_sigterm_at_once() -> None:
    interrupts = machine()
    assert names(interrupts.signal(key(), 0.0)) == ["announce", "pass on SIGTERM"]
    assert interrupts.interrupted
    assert interrupts.next_deadline == GRACE_S


def test_a_command_that_handles_the_key_has_half_of_the_grace_for_itself() -> None:
    interrupts = machine()
    assert names(interrupts.signal(key(handled=True), 0.0)) == ["announce"]
    assert interrupts.next_deadline == GRACE_S / 2
    assert names(interrupts.tick(GRACE_S / 2 - 0.01)) == []
    assert names(interrupts.tick(GRACE_S / 2)) == ["pass on SIGTERM"]
    assert interrupts.next_deadline == GRACE_S
    assert names(interrupts.tick(GRACE_S)) == ["escalate: the grace ran out"]
    assert interrupts.next_deadline is None


def test_time_brings_nothing_before_the_first_interrupt_and_after_the_last() -> None:
    interrupts = machine()
    assert names(interrupts.tick(1000.0)) == []
    interrupts.signal(key(), 1000.0)
    interrupts.signal(key(), 1001.0)
    assert names(interrupts.tick(2000.0)) == []


def test_handling_matters_for_the_terminals_keys_only() -> None:
    arrived = Arrived(
        number=signal.SIGINT, from_terminal=False, sender_pid=SOMEBODY, command_handles_it=True
    )
    assert names(machine().signal(arrived, 0.0)) == ["announce", "pass on SIGTERM"]


def test_the_second_key_press_kills_the_tree_however_quick() -> None:
    interrupts = machine()
    interrupts.signal(key(), 0.0)
    assert names(interrupts.signal(key(), 0.05)) == ["escalate: second interrupt"]
    assert names(interrupts.signal(key(), 0.5)) == []


def test_another_interrupt_is_a_second_one() -> None:
    """What CI runners do: SIGINT, and SIGTERM 7.5 s later."""
    interrupts = machine()
    interrupts.signal(sent(signal.SIGINT), 0.0)
    assert names(interrupts.signal(sent(signal.SIGTERM), 7.5)) == ["escalate: second interrupt"]


def test_hangup_and_quit_interrupt_too() -> None:
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        assert names(machine().signal(sent(number), 0.0)) == ["announce", "pass on SIGTERM"]


def test_the_bootloaders_copy_is_no_second_press() -> None:
    interrupts = machine()
    interrupts.signal(key(), 0.0)
    assert names(interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 1.5)) == []
    assert names(interrupts.signal(key(), 1.6)) == ["escalate: second interrupt"]


def test_a_copy_comes_within_two_seconds() -> None:
    for at_s, expected in ((2.0, []), (2.1, ["escalate: second interrupt"])):
        interrupts = machine()
        interrupts.signal(key(), 0.0)
        assert names(interrupts.signal(sent(signal.SIGINT, BOOTLOADER), at_s)) == expected


def test_a_copy_stands_for_a_press_that_was_merged_with_the_copy_before() -> None:
    """A signal that is pending swallows the next one of its number."""
    interrupts = machine()
    interrupts.signal(key(handled=True), 0.0)
    assert names(interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 0.01)) == []
    assert names(interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 0.02)) == [
        "escalate: second interrupt"
    ]


def test_a_press_soon_after_a_kill_of_the_outer_process_is_the_second() -> None:
    interrupts = machine()
    interrupts.signal(sent(signal.SIGINT, BOOTLOADER), 0.0)
    assert names(interrupts.signal(key(), 0.01)) == ["escalate: second interrupt"]


def test_without_a_bootloader_the_sender_0_is_nobodys_copy() -> None:
    interrupts = Interrupts(grace_s=GRACE_S)
    interrupts.signal(key(), 0.0)
    assert names(interrupts.signal(sent(signal.SIGINT), 0.01)) == ["escalate: second interrupt"]


def test_two_kills_of_the_outer_process_are_two() -> None:
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM, BOOTLOADER), 0.0)
    again = sent(signal.SIGTERM, BOOTLOADER)
    assert names(interrupts.signal(again, 1.0)) == ["escalate: second interrupt"]


def test_one_sender_that_signals_process_and_group_is_one() -> None:
    """timeout(1) does."""
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM), 0.0)
    assert names(interrupts.signal(sent(signal.SIGTERM), 0.001)) == []
    assert names(interrupts.signal(sent(signal.SIGTERM, SOMEBODY + 1), 0.002)) == [
        "escalate: second interrupt"
    ]


def test_one_sender_that_signals_again_after_a_moment_means_it() -> None:
    for at_s, expected in ((0.3, []), (0.4, ["escalate: second interrupt"])):
        interrupts = machine()
        interrupts.signal(sent(signal.SIGTERM), 0.0)
        assert names(interrupts.signal(sent(signal.SIGTERM), at_s)) == expected


def test_timeout_around_the_binary_is_one() -> None:
    interrupts = machine()
    interrupts.signal(sent(signal.SIGTERM, BOOTLOADER), 0.0)
    assert names(interrupts.signal(sent(signal.SIGTERM), 0.001)) == []
    assert names(interrupts.signal(sent(signal.SIGTERM, BOOTLOADER), 0.002)) == []


def test_other_signals_are_passed_on_and_interrupt_nothing() -> None:
    interrupts = machine()
    assert names(interrupts.signal(sent(signal.SIGUSR1), 0.0)) == ["pass on SIGUSR1"]
    assert not interrupts.interrupted
    assert interrupts.next_deadline is None


def test_a_signal_that_is_passed_on_counts_each_time() -> None:
    interrupts = machine()
    for now in (0.0, 0.001, 0.1):
        assert names(interrupts.signal(sent(signal.SIGUSR1), now)) == ["pass on SIGUSR1"]


def test_what_the_terminal_sends_everybody_is_not_sent_again() -> None:
    assert names(machine().signal(key(signal.SIGWINCH), 0.0)) == []
    assert names(machine().signal(key(signal.SIGTSTP), 0.0)) == []
