"""docs/agent-signals.md says what the code does, and its example prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sigwrap.agent import AgentSignal, Outcome
from sigwrap.agent.dispatcher import MAX_HISTORY, MAX_QUEUED, MAX_TEXT, Dispatcher
from sigwrap.agent.reactions import effects
from sigwrap.agent.signals import UNMASKABLE
from sigwrap.agent.watches import MAX_EXECS_WATCHED
from sigwrap.policy.judge.rules import Trust, Watch

TEXT = (Path(__file__).parents[2] / "docs" / "agent-signals.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    (table,) = re.findall(rf"^\| {header} \|.*\n\|[ -|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    return [line.strip("|\n").split("|") for line in table.splitlines()]


def test_the_table_of_signals_is_the_codes() -> None:
    comes_to = effects(Watch(), Trust())
    found = [[cell.strip(" `") for cell in row] for row in rows("signal")]
    assert [[name, number, masked, effect] for name, number, masked, _, effect in found] == [
        [
            each.name,
            str(each.value),
            "never" if each in UNMASKABLE else "yes",
            comes_to[each].value,
        ]
        for each in AgentSignal
    ]


def test_the_table_of_outcomes_is_the_codes() -> None:
    assert [row[0].strip(" `") for row in rows("outcome")] == [each.value for each in Outcome]


def test_the_table_of_the_history_has_its_keys() -> None:
    dispatcher = Dispatcher(clock=lambda: 0)
    dispatcher.send_signal(AgentSignal.SIGUSR1)
    named = [key for row in rows("key") for key in re.findall(r"`(\w+)`", row[0])]
    assert named == list(dispatcher.get_signal_history()[0])


@pytest.mark.parametrize(
    "words",
    [
        f"{MAX_TEXT} characters of each are kept",
        f"The newest {MAX_HISTORY} signals are kept",
        f"At most {MAX_QUEUED} signals wait",
        f"It knows {MAX_EXECS_WATCHED} different execs",
    ],
)
def test_the_bounds_are_the_codes(words: str) -> None:
    assert words in TEXT


def test_the_example_prints_what_the_document_says() -> None:
    ((program, output),) = re.findall(
        r"^```python\n(.*?)^```\n\nIt prints:\n\n```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL
    )
    line = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)
