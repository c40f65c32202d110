"""What the documents quote is what the code says. The two tables here are the one place for it: a
message, a bound or a list that changes in the code is then changed in the document alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from sigwrap import errors
from sigwrap.agent import AgentSignal, Outcome
from sigwrap.agent.dispatcher import MAX_HISTORY, MAX_QUEUED, MAX_TEXT, Dispatcher
from sigwrap.agent.signals import EFFECTS, UNMASKABLE, escalations
from sigwrap.cli.hook_call import MAX_CALL_BYTES, WITHIN_S
from sigwrap.hooks.formats import FORMATS, AgentProgram
from sigwrap.hooks.settings import PLACES, entries
from sigwrap.kernel import landlock, seccomp
from sigwrap.machine import WITHOUT, Capability
from sigwrap.policy.judge.rules import Trust, Watch
from sigwrap.report.folds.cause import Cause
from tests.support import roots
from tests.tools import kernels

ROOT = Path(__file__).parents[2]


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def _statuses() -> str:
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in errors.TABLE)
    return f"| status | meaning |\n| --- | --- |\n{rows}\n"


def _hook_timeout() -> int:
    timeout: int = entries(AgentProgram.CLAUDE_CODE, "")["PreToolUse"]["hooks"][0]["timeout"]
    return timeout


def _oldest_kernel() -> str:
    (oldest,) = re.findall(r"needs Linux ([\d.]+\d) or later", seccomp.NEEDS)
    return str(oldest)


def _older_file() -> str:
    script = (ROOT / "build" / "older_glibc.sh").read_text()
    (release,) = re.findall(r"^release=(\w+)$", script, re.MULTILINE)
    needed = ".".join(map(str, roots.RELEASES[release]))
    return f"| `dist/older/sigwrap` (`make binary-older`) | glibc {needed} or newer"


def _history_keys() -> list[str]:
    dispatcher = Dispatcher(clock=lambda: 0)
    dispatcher.send_signal(AgentSignal.SIGUSR1)
    return list(dispatcher.get_signal_history()[0])


QUOTED = [
    ("docs/exit-status.md", _statuses()),
    ("docs/signals.md", f"with {MAX_TEXT} characters of source and reason"),
    ("docs/signals.md", f"The newest {MAX_HISTORY} signals are kept"),
    ("docs/signals.md", f"At most {MAX_QUEUED} signals wait"),
    ("docs/agents.md", f"a call of more than {MAX_CALL_BYTES >> 20} MiB"),
    ("docs/agents.md", f"{WITHIN_S} seconds without a result"),
    ("docs/agents.md", f"set to {_hook_timeout()} seconds"),
    ("docs/platforms.md", f"**Linux {_oldest_kernel()} is the oldest.**"),
    ("docs/platforms.md", _older_file()),
    ("docs/platforms.md", WITHOUT[Capability.WAITS_THROUGH_SIGNALS]),
]

Rows = Sequence[tuple[str, ...]]

# A document, how the header of one of its tables begins, which columns, and the code's own.
LISTED: list[tuple[str, str, tuple[int, ...], Rows]] = [
    ("docs/commands.md", "cause", (0,), [(each.value,) for each in Cause]),
    (
        "docs/signals.md",
        "signal",
        (0, 1, 2, 4),
        [
            (each.name, str(each.value), "never" if each in UNMASKABLE else "yes", what.value)
            for each in AgentSignal
            for what in [EFFECTS[escalations(Watch(), Trust()).get(each, each)]]
        ],
    ),
    ("docs/signals.md", "outcome", (0,), [(each.value,) for each in Outcome]),
    (
        "docs/platforms.md",
        "system",
        (0, 1),
        [(f"Debian {name}", f"{a}.{b}") for name, (a, b) in roots.RELEASES.items()]
        + [("without glibc", "-")],
    ),
    (
        "docs/agents.md",
        "agent",
        (0, 1, 2),
        [
            (each.value, place.own or place.project, "`, `".join(FORMATS[each].events))
            for each, place in PLACES.items()
        ],
    ),
]


@pytest.mark.parametrize(("document", "words"), QUOTED)
def test_the_document_quotes_the_code(document: str, words: str) -> None:
    assert words in text_of(document)


@pytest.mark.parametrize(("document", "header", "columns", "rows"), LISTED)
def test_the_table_is_the_codes(
    document: str, header: str, columns: tuple[int, ...], rows: Rows
) -> None:
    (table,) = re.findall(
        rf"^\| {header} \|.*\n\|[ -|]+\n((?:\|.*\n)+)", text_of(document), re.MULTILINE
    )
    cells = [line.strip("|\n").split("|") for line in table.splitlines()]
    assert [tuple(row[column].strip(" `") for column in columns) for row in cells] == [*rows]


def test_the_readme_names_every_exit_status() -> None:
    table = text_of("README.md").partition("| status |")[2].partition("\n\n")[0]
    assert [code for code, _ in errors.TABLE if code not in table] == []
    assert "| the command's own, or 128+N |" in table


def test_the_history_has_the_keys_that_are_documented() -> None:
    (line,) = re.findall(r"^- Each entry has (.*)\.$", text_of("docs/signals.md"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", line) == _history_keys()


def test_an_agent_is_said_to_ask_where_its_hooks_can() -> None:
    table = text_of("docs/agents.md").partition("| agent |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| (.*?) \|$", table, re.MULTILINE)
    assert len(rows) == len(AgentProgram)
    for name, asks in rows:
        program = AgentProgram(name)
        assert asks.startswith("asks the user") is FORMATS[program].has_questions
        assert [*FORMATS[program].events] == [*entries(program, "")]


def test_the_kernels_are_those_that_are_tried() -> None:
    text = text_of("docs/platforms.md")
    (listed,) = re.findall(r"boots Debian's kernels of (.*?) in an emulator", text)
    assert dict(re.findall(r"([\w-]+) \(([\d.]+)\)", listed)) == kernels.KERNELS
    needed = dict(re.findall(r"^\| (\d+\.\d+) \| (.*?) \|", text, re.MULTILINE))
    for needs in (landlock.NEEDS, landlock.FILES_NEED):
        assert "Landlock" in needed[needs.split()[1]]
