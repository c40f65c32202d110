"""The hook goes into an agent's settings and out again, and leaves everything else as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwrap.hooks.formats import AgentProgram
from sigwrap.hooks.json_text import BadText
from sigwrap.hooks.settings import entries, hook_line, installed, uninstalled

CLAUDE, CODEX, CURSOR, GEMINI = AgentProgram
LINES = {each: hook_line(each, ["/opt/my tools/sigwrap"], "ci") for each in AgentProgram}

SETTINGS = """{
    // "model" : 1,
    "model":"opus",   "nested": {"a": [1,2,
      3]},
\t"hooks": {
        "PostToolUse": [{"matcher": "*", "hooks": []}],
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]}
        ]
    },
    "version": 1,
    "é": "\\u00e9"
}
""".replace('    // "model" : 1,\n', "")


def test_claude_codes_settings_have_its_documented_form() -> None:
    text = installed(None, CLAUDE, hook_line(CLAUDE, ["sigwrap"], ""))
    assert json.loads(text) == {
        "hooks": {
            "PreToolUse": [
                {
                    "matcher": "Bash|Monitor|Read|Grep|Write|Edit|MultiEdit|NotebookEdit|WebFetch",
                    "hooks": [
                        {
                            "type": "command",
                            "command": "sigwrap hook claude-code || exit 2",
                            "timeout": 60,
                        }
                    ],
                }
            ]
        }
    }


def test_the_other_programs_have_theirs() -> None:
    assert json.loads(installed("{}", CURSOR, "x"))["version"] == 1
    cursor = entries(CURSOR, "x")
    assert cursor["beforeShellExecution"] == {"command": "x", "timeout": 60, "failClosed": True}
    assert cursor["preToolUse"]["matcher"] == "Write|StrReplace|Edit|Delete"
    gemini = entries(GEMINI, "x")["BeforeTool"]
    assert gemini["hooks"][0]["timeout"] == 60_000  # milliseconds
    assert set(entries(CODEX, "x")) == {"PreToolUse"}


def test_a_hook_that_cannot_start_denies() -> None:
    assert LINES[GEMINI] == "'/opt/my tools/sigwrap' hook gemini --policy ci || exit 2"


@pytest.mark.parametrize("program", AgentProgram)
def test_everything_else_stays_as_it_was_written(program: AgentProgram) -> None:
    text = installed(SETTINGS, program, LINES[program])
    lines = iter(text.splitlines())
    assert all(
        any(line.rstrip(",") == each.rstrip(",") for each in lines)
        for line in SETTINGS.splitlines()
    )
    was, now = json.loads(SETTINGS), json.loads(text)
    for event, entry in entries(program, LINES[program]).items():
        assert now["hooks"][event].pop() == entry
        was["hooks"].setdefault(event, [])
    assert now == was
    assert installed(text, program, LINES[program]) == text
    assert uninstalled(text, program) == SETTINGS


def test_another_policy_takes_the_place_of_the_first() -> None:
    text = installed(SETTINGS, CLAUDE, LINES[CLAUDE])
    other = hook_line(CLAUDE, ["sigwrap"], "agent-strict")
    again = installed(text, CLAUDE, other)
    assert again.count("hook claude-code") == 1 and "agent-strict" in again
    assert uninstalled(again, CLAUDE) == SETTINGS


def test_what_was_changed_meanwhile_stays_changed() -> None:
    value = json.loads(installed(None, CLAUDE, LINES[CLAUDE]))
    value["hooks"]["PreToolUse"].insert(0, {"matcher": "Bash", "hooks": [{"command": "mine"}]})
    value["model"] = "x"
    left = uninstalled(json.dumps(value), CLAUDE)
    assert left is not None
    assert json.loads(left) == {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "mine"}]}]},
        "model": "x",
    }


@pytest.mark.parametrize("program", AgentProgram)
def test_a_file_that_was_made_for_it_goes_again(program: AgentProgram) -> None:
    assert uninstalled(installed(None, program, LINES[program]), program) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("[]", "it is not a JSON object"),
        ("\ufeff{}", "it begins with a byte order mark"),
        ('{"a": 1} x', "line 1: Extra data"),
        ('{"a": 1, /* x */ "b": 2}', "line 1: a comment, which JSON does not allow"),
        ('{\n  // x\n  "a": 1\n}', "line 2: a comment, which JSON does not allow"),
        ('{"a": [1,]}', "line 1: a trailing comma"),
        ('{\n"a": 1,\n}', "line [23]: a trailing comma"),
        ('{"a": NaN}', "NaN is not valid JSON"),
        ('{"a": ' + "1" * 5000 + "}", "a number in it is too long"),
        ('{"hooks": []}', "'hooks' is not an object"),
        ('{"hooks": {"PreToolUse": {}}}', "'hooks', 'PreToolUse' is not a list"),
        ('{"hooks": {}, "hooks": {}}', "it has the key 'hooks' twice"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_it_does_not_understand_is_refused_and_said(text: str, why: str) -> None:
    with pytest.raises(BadText, match=why):
        installed(text, CLAUDE, LINES[CLAUDE])
    with pytest.raises(BadText, match=why):
        uninstalled(text, CLAUDE)


JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def settings_texts(draw: Any) -> str:
    value = draw(st.dictionaries(st.text(max_size=5), JSON, max_size=3))
    events = st.sampled_from(["PreToolUse", "BeforeTool", "beforeReadFile", "x"])
    entry = st.fixed_dictionaries({"matcher": st.just("a")})
    if draw(st.booleans()):
        value["hooks"] = draw(st.dictionaries(events, st.lists(entry, max_size=2), max_size=3))
    if draw(st.booleans()):
        value["version"] = 1
    indent = draw(st.sampled_from([None, 0, 2, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (" ,\r\n", " :  ")]))
    text = json.dumps(value, indent=indent, separators=separators)
    before, behind = draw(st.sampled_from([("", ""), ("", "\n"), (" ", " \r\n"), ("\t", "\r")]))
    return str(before + text + behind)


@example(text='{"hooks": {"PreToolUse": []}}', program=CLAUDE)
@example(text='{"version": 1, "hooks": {"preToolUse": [], "x": []}}', program=CURSOR)
@example(text="{ }\r", program=CLAUDE)
@given(text=settings_texts(), program=st.sampled_from(list(AgentProgram)))
def test_whatever_the_settings_are_they_come_back_byte_for_byte(
    text: str, program: AgentProgram
) -> None:
    line, value = LINES[program], json.loads(text)
    if program is CURSOR and "hooks" in value and "version" not in value:
        with pytest.raises(BadText):
            installed(text, program, line)
        return
    after = installed(text, program, line)
    assert json.loads(after) != json.loads(text)
    assert installed(after, program, line) == after
    assert uninstalled(after, program) == text
