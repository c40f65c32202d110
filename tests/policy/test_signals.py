from __future__ import annotations

import signal

import pytest

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


@pytest.mark.parametrize("number", sorted(ALL))
def test_every_signal_has_a_name_that_leads_back(number: int) -> None:
    assert signal_number(signal_name(number)) == number


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("TERM", 15),
        ("15", 15),
        ("SIGRTMIN", 34),
        ("RTMIN+1", 35),
        ("SIGRTMIN+30", 64),
        ("SIGRTMAX-1", 63),
        ("SIGRTMAX-30", 34),
        ("SIGPOLL", 29),
        ("SIG33", 33),
    ],
)
def test_the_spellings_of_a_signal(word: str, number: int) -> None:
    assert signal_number(word) == number


@pytest.mark.parametrize(
    "word",
    [
        "",
        "SIG",
        "0",
        "65",
        "-1",
        "sigterm",
        "SIGRTMIN+",
        "SIGRTMIN-1",
        "SIGRTMIN+31",
        "SIGRTMAX-31",
        "SIGRTMAX+1",
        "15 ",
        "٣",
        "999999999999",
    ],
)
def test_what_is_no_signal(word: str) -> None:
    assert signal_number(word) is None


def test_all_includes_the_realtime_signals_that_glibc_keeps() -> None:
    assert {32, 33, 64} <= GROUPS["@all"]
    assert all(signal_numbers(word) for word in words())
