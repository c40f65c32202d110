"""Findings as lines, as JSON and as an exit status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sigwrap.doctor import output
from sigwrap.doctor.items import (
    ITEMS,
    LISTENER,
    RUN,
    SHORTFALLS,
    SIGNAL_SANDBOX,
    TERMINAL,
    WAKE_UP,
    Finding,
    Level,
    level_of,
    unchecked,
)
from sigwrap.report.forms.layout import PLAIN, Style

MACHINE = output.Machine("9.9", "6.1.0", "x86_64", 1000)
FINE = [Finding(item, "there") for item in ITEMS]


def _with(*others: Finding) -> list[Finding]:
    by_name = {each.item: each for each in others}
    return [by_name.get(each.item, each) for each in FINE]


REFUSED = Finding(LISTENER, "the kernel refused it", "refused", "sigwrap: the kernel refused it")
NO_WALL = Finding(SIGNAL_SANDBOX, "there is no Landlock", "absent")
SLOW = Finding(WAKE_UP, "no synchronous wake-up", "absent")
RUN_WITH_LESS = Finding(RUN, "true ran; missing: landlock", "less")


@pytest.mark.parametrize(
    ("others", "status", "verdict"),
    [
        ([], 0, "Runs work here, and every rule is enforced."),
        ([SLOW], 0, "Runs work here, and every rule is enforced."),
        (
            [NO_WALL, RUN_WITH_LESS],
            1,
            "Runs work here, with limited protection: signal sandbox.",
        ),
        ([RUN_WITH_LESS], 1, "Runs work here, with limited protection: test run."),
        (
            [unchecked(TERMINAL, "too late")],
            1,
            "Runs work here, with limited protection: terminal.",
        ),
        ([NO_WALL, REFUSED, unchecked(RUN, "")], 125, "Runs are refused here: listener."),
    ],
)
def test_the_worst_one_decides(others: list[Finding], status: int, verdict: str) -> None:
    found = _with(*others)
    assert (output.exit_status(found), output.verdict(found)) == (status, verdict)
    assert output.document(MACHINE, found)["status"] == status


def test_a_line_for_each_item_and_then_what_to_do() -> None:
    found = _with(REFUSED, NO_WALL, SLOW, unchecked(RUN, "it took too long"))
    lines = list(output.lines(MACHINE, found, columns=80, style=PLAIN))
    assert lines[:2] == ["sigwrap 9.9 on Linux 6.1.0 x86_64, as uid 1000", ""]
    rows = lines[2 : 2 + len(ITEMS)]
    for item, row in zip(ITEMS, rows, strict=True):
        assert row[10:].startswith(item)
    assert [row[1:8].strip() for row in rows if not row.startswith(" ok")] == [
        *("fail", "note", "limited", "?")
    ]
    assert len({row.index(each.found) for row, each in zip(rows, found, strict=True)}) == 1
    headings = [line for line in lines if line in {f"{n}: {w.value}" for n in ITEMS for w in Level}]
    assert headings == ["listener: fail", "signal sandbox: limited", "fast wake-up: note"]
    assert "  a run prints: sigwrap: the kernel refused it" in lines
    assert max(map(len, lines)) <= 80


def test_without_a_terminal_nothing_is_cut_and_on_a_narrow_one_all_is_told() -> None:
    words = "it took longer than anybody waits for it, and was ended"
    found = _with(REFUSED, unchecked(RUN, words), Finding(SIGNAL_SANDBOX, "x" * 200, "absent"))
    lines = list(output.lines(MACHINE, found, columns=0, style=PLAIN))
    assert any("x" * 200 in line for line in lines)
    for columns in (40, 60, 80):
        lines = list(output.lines(MACHINE, found, columns=columns, style=PLAIN))
        assert max(map(len, lines)) <= columns
        text = " ".join(" ".join(lines).split())
        assert words in text and "a run prints: sigwrap: the kernel refused it" in text


def test_what_was_found_may_hold_anything() -> None:
    hostile = Finding(LISTENER, "a\x1b[31m\nb", "refused", "c\nd")
    text = "\n".join(output.lines(MACHINE, _with(hostile), columns=80, style=PLAIN))
    assert "\x1b" not in text and "a\\e[31m\\nb" in text and "c\\nd" in text


def test_colour_is_of_the_levels_alone() -> None:
    painted = list(output.lines(MACHINE, _with(REFUSED), columns=80, style=Style(colour=True)))
    plain = list(output.lines(MACHINE, _with(REFUSED), columns=80, style=PLAIN))
    assert painted != plain
    assert any("\x1b[32mok\x1b[0m " in line for line in painted)
    assert any("\x1b[1;31mfail\x1b[0m " in line for line in painted)


def test_the_document_names_each_shortfall() -> None:
    items = output.document(MACHINE, _with(REFUSED, unchecked(RUN, "why")))["items"]
    by_name = {each["item"]: each for each in items}  # type: ignore[attr-defined]
    listener = by_name[LISTENER]
    assert (listener["level"], listener["shortfall"]) == ("fail", "refused")
    assert listener["a_run_says"] == "sigwrap: the kernel refused it"
    assert listener["lost"] and listener["to_do"]
    assert by_name[RUN]["level"] == "unknown"
    assert by_name[TERMINAL] == {
        "item": TERMINAL,
        "level": "ok",
        "found": "there",
        **dict.fromkeys(("shortfall", "lost", "to_do", "a_run_says")),
    }


def test_each_shortfall_says_what_is_lost_and_what_to_do() -> None:
    for (item, key), short in SHORTFALLS.items():
        assert short.lost and short.todo
        assert level_of(Finding(item, "", key)) in {Level.NO, Level.LESS, Level.NOTE}


def test_the_documented_shortfall_is_printed_so() -> None:
    page = (Path(__file__).parents[2] / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    found = _with(Finding(TERMINAL, "no controlling terminal", "none"))
    printed = "\n".join(output.lines(MACHINE, found, columns=0, style=PLAIN))
    (shown,) = re.findall(r"^```text\n(terminal: .*?)\n```", page, re.MULTILINE | re.DOTALL)
    assert f"\n{shown}\n\n" in printed
