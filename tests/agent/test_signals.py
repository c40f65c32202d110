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


def test_names() -> None:
    for known in AgentSignal:
        plain = known.name.removeprefix("SIG")
        for word in (known.name, plain, known.name.lower(), plain.lower(), plain.title()):
            assert agent_signal(word) is known


def refusal(word: str) -> str:
    with pytest.raises(ValueError) as refused:
        agent_signal(word)
    return str(refused.value)


def test_a_suggestion_for_a_typing_error() -> None:
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


def test_similar_names_are_refused() -> None:
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


def test_no_suggestion_without_a_similar_name() -> None:
    for word in ("", "SIG", "z1", "HUP", "SIGHUP"):
        assert "is not an agent signal; the agent signals are" in refusal(word), word


def test_an_unknown_name_is_escaped() -> None:
    said = refusal("\x1b[2J" + "x" * 100_000)
    assert said.startswith('"\\e[2Jxxx') and len(said) < 300


@pytest.mark.parametrize("number", [9, signal.SIGKILL, "SIGKILL", True])
def test_a_number_is_refused(number: object) -> None:
    with pytest.raises(TypeError, match=r"is not an AgentSignal; agent_signal"):
        checked(number)  # type: ignore[arg-type]


def test_three_signals_are_unmaskable() -> None:
    assert UNMASKABLE == (AgentSignal.SIGKILL, AgentSignal.SIGPOLICY, AgentSignal.SIGTRUST)
