"""The table of what can reach other processes, against the filter's own."""

from __future__ import annotations

import re
from pathlib import Path

from sigwrap.calls import TABLE, Call, Never, OneOf, Refused

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security-calls.md").read_text(encoding="utf-8")
VERDICTS = {"mediated", "refused", "stopped", "harmless"}
ROWS = [
    (re.findall(r"`(\w+)`", calls), verdict, why)
    for calls, verdict, why in re.findall(r"^\| (`.*?`) \| (\w+) \| (.+) \|$", TEXT, re.MULTILINE)
]
VERDICT = {name: verdict for names, verdict, _ in ROWS for name in names}
WHY = {name: why for names, _, why in ROWS for name in names}


def _is_only_refused(call: Call) -> bool:
    condition = call.handed_over
    if isinstance(condition, OneOf):
        return not condition.values and not condition.narrowed
    return isinstance(condition, Never | Refused)


def test_each_call_has_one_row_and_each_row_a_reason() -> None:
    names = [name for row, _, _ in ROWS for name in row]
    assert len(names) == len(set(names)) > 100
    assert set(VERDICT.values()) == VERDICTS
    assert all(len(why) > 10 for _, _, why in ROWS)


def test_it_says_mediated_and_refused_of_just_those_calls_that_are() -> None:
    said = {name for name, verdict in VERDICT.items() if verdict in ("mediated", "refused")}
    assert said == {call.name for call in TABLE}
    for name in said:
        calls = [call for call in TABLE if call.name == name]
        is_refused = all(map(_is_only_refused, calls))
        assert VERDICT[name] == ("refused" if is_refused else "mediated")


def test_what_a_call_is_refused_for_is_named() -> None:
    for call in TABLE:
        condition = call.handed_over
        for each in condition.refused if isinstance(condition, OneOf) else ():
            assert f"`{each}`" in WHY[call.name], (call.name, each)
