from __future__ import annotations

import signal

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


def test_a_signal_is_known_by_its_name() -> None:
    for known in AgentSignal:
        plain = known.name.removeprefix("SIG")
        for word in (known.name, plain, known.name.lower(), plain.lower(), plain.title()):
            assert agent_signal(word) is known


def refusal(word: str) -> str:
    with pytest.raises(ValueError) as refused:
        agent_signal(word)
    return str(refused.value)


def test_a_typing_error_is_told_what_was_meant() -> None:
    for word, nearest in (
        *(("SIGSTP", "SIGSTOP"), ("stp", "SIGSTOP"), ("budgt", "SIGBUDGET")),
        *(("SIGPOLICE", "SIGPOLICY"), ("usr", "SIGUSR2")),
    ):
        assert refusal(word) == (
            f'"{word}" is not an agent signal; did you mean "{nearest}"? '
            "the agent signals are: SIGSTOP 1, SIGCONT 2, SIGINT 3, SIGKILL 4, "
            "SIGTERM 5, SIGUSR1 6, SIGUSR2 7, SIGPOLICY 8, "
            "SIGTRUST 9, SIGBUDGET 10, SIGLOOP 11, SIGDRIFT 12"
        )


def test_what_is_nearly_one_is_none() -> None:
    for word in (
        "0",
        "5",
        "13",
        "-1",
        "+1",
        "1.0",
        " 1",
        "1_0",
        "\uff19",
        "³",
        "9" * 5000,
        "SIGSIGINT",
    ):
        assert "is not an agent signal" in refusal(word), word


def test_nothing_is_proposed_for_what_is_like_none() -> None:
    for word in ("", "SIG", "z1", "HUP", "SIGHUP"):
        assert "is not an agent signal; the agent signals are" in refusal(word), word


def test_an_unknown_word_does_nothing_to_a_terminal() -> None:
    said = refusal("\x1b[2J" + "x" * 100_000)
    assert said.startswith('"\\e[2Jxxx') and len(said) < 300


@pytest.mark.parametrize("number", [9, signal.SIGKILL, "SIGKILL", True])
def test_a_number_is_no_signal_for_it_may_be_meant_as_posixs(number: object) -> None:
    with pytest.raises(TypeError, match=r"is not an AgentSignal; agent_signal"):
        checked(number)  # type: ignore[arg-type]


def test_three_of_them_hold_against_every_mask() -> None:
    assert UNMASKABLE == (AgentSignal.SIGKILL, AgentSignal.SIGPOLICY, AgentSignal.SIGTRUST)
