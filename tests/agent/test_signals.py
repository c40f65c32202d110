from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from sigwrap.agent import AgentSignal, agent_signal
from sigwrap.agent.signals import UNMASKABLE, checked


def test_the_numbers_are_not_those_of_posix() -> None:
    assert [f"{each.name} {each.value}" for each in AgentSignal] == [
        *("SIGSTOP 1", "SIGCONT 2", "SIGINT 3", "SIGKILL 4", "SIGTERM 5", "SIGUSR1 6"),
        *("SIGUSR2 7", "SIGPOLICY 8", "SIGTRUST 9", "SIGBUDGET 10", "SIGLOOP 11", "SIGDRIFT 12"),
    ]
    for each in AgentSignal:
        assert getattr(signal, each.name, 0) != each.value


@pytest.mark.parametrize("known", AgentSignal)
def test_a_signal_is_known_by_its_name_and_its_number(known: AgentSignal) -> None:
    plain = known.name.removeprefix("SIG")
    for word in (known.name, plain, known.name.lower(), plain.lower(), plain.title()):
        assert agent_signal(word) is known
    assert agent_signal(str(known.value)) is known


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("SIGSTP", "SIGSTOP"),
        ("stp", "SIGSTOP"),
        ("budgt", "SIGBUDGET"),
        ("SIGPOLICE", "SIGPOLICY"),
        ("usr", "SIGUSR2"),
    ],
)
def test_a_typing_error_is_told_what_was_meant(word: str, nearest: str) -> None:
    with pytest.raises(ValueError) as refused:
        agent_signal(word)
    assert str(refused.value) == (
        f'"{word}" is no agent signal; did you mean {nearest}? these are all: SIGSTOP 1, '
        "SIGCONT 2, SIGINT 3, SIGKILL 4, SIGTERM 5, SIGUSR1 6, SIGUSR2 7, SIGPOLICY 8, "
        "SIGTRUST 9, SIGBUDGET 10, SIGLOOP 11, SIGDRIFT 12"
    )


@pytest.mark.parametrize(
    "word",
    ["", "SIG", "0", "13", "-1", "+1", "1.0", " 1", "1_0", "\uff19", "³", "9" * 5000, "SIGSIGINT"],
)
def test_what_is_nearly_one_is_none(word: str) -> None:
    with pytest.raises(ValueError, match="is no agent signal"):
        agent_signal(word)


def test_an_unknown_word_does_nothing_to_a_terminal() -> None:
    with pytest.raises(ValueError) as refused:
        agent_signal("\x1b[2J" + "x" * 100_000)
    assert str(refused.value).startswith('"\\e[2Jxxx')
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("number", [9, signal.SIGKILL, "SIGKILL", True])
def test_a_number_is_no_signal_for_it_may_be_meant_as_posixs(number: object) -> None:
    with pytest.raises(TypeError, match=r"is no AgentSignal; agent_signal\(\) makes one"):
        checked(number)  # type: ignore[arg-type]


def test_three_of_them_hold_against_every_mask() -> None:
    assert UNMASKABLE == (AgentSignal.SIGKILL, AgentSignal.SIGPOLICY, AgentSignal.SIGTRUST)


def test_the_library_imports_nothing_slow() -> None:
    look = (
        "import sys; import sigwrap.agent; print([each for each in ('dataclasses', 'datetime',"
        " 'threading', 'inspect', 'asyncio', 'hashlib') if each in sys.modules])"
    )
    line = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}; {look}"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("word", ["", "SIG", "z1", "HUP", "SIGHUP"])
def test_nothing_is_proposed_for_what_is_like_none(word: str) -> None:
    with pytest.raises(ValueError, match="is no agent signal; these are all"):
        agent_signal(word)
