from __future__ import annotations

import signal

from sigwrap.policy.judge.signals import (
    ALL,
    GROUPS,
    signal_name,
    signal_number,
    signal_numbers,
    words,
)


def test_numbers_agree_with_the_system() -> None:
    for each in signal.Signals:
        assert signal_number(each.name) == each.value


def test_every_signal_has_a_name_that_leads_back() -> None:
    for number in ALL:
        assert signal_number(signal_name(number)) == number


def test_the_spellings_of_a_signal() -> None:
    numbers = {"TERM": 15, "15": 15, "SIGRTMIN": 34, "RTMIN+1": 35, "SIGRTMIN+30": 64}
    numbers |= {"SIGRTMAX-1": 63, "SIGRTMAX-30": 34, "SIGPOLL": 29, "SIG33": 33}
    assert {word: signal_number(word) for word in numbers} == numbers


def test_what_is_no_signal() -> None:
    of_real_time = "SIGRTMIN+ SIGRTMIN-1 SIGRTMIN+31 SIGRTMAX-31 SIGRTMAX+1".split()
    for word in ("", "SIG", "0", "65", "-1", "sigterm", *of_real_time, "15 ", "٣", "999999999999"):
        assert signal_number(word) is None, word


def test_all_includes_the_realtime_signals_that_glibc_keeps() -> None:
    assert {32, 33, 64} <= GROUPS["@all"]
    assert all(signal_numbers(word) for word in words())
