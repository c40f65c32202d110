"""docs/hooks.md says what the code does; its command lines are run by test_command_lines.py."""

from __future__ import annotations

import re
from pathlib import Path

from sigwrap.cli.hook import MAX_CALL_BYTES, WITHIN_S
from sigwrap.hooks.formats import FORMATS, AgentProgram
from sigwrap.hooks.settings import PLACES, entries

TEXT = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")


def test_its_table_has_each_agent_its_place_and_its_events() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| `(.*?)` \| (.*?) \| (.*?) \|$", TEXT, re.MULTILINE)
    assert [row[0] for row in rows] == [program.value for program in AgentProgram]
    for name, place, events, asks in rows:
        program = AgentProgram(name)
        assert place == PLACES[program].project
        assert (
            re.findall(r"`(\w+)`", events) == [*entries(program, "")] == [*FORMATS[program].events]
        )
        assert asks.startswith("it asks") is FORMATS[program].has_questions


def test_its_limits_are_the_codes() -> None:
    assert f"a call of more than {MAX_CALL_BYTES >> 20} MiB" in TEXT
    assert f"{WITHIN_S} seconds without a result" in TEXT
    handler = entries(AgentProgram.CLAUDE_CODE, "")["PreToolUse"]["hooks"][0]
    assert f"set to {handler['timeout']} seconds" in TEXT
