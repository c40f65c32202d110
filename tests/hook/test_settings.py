"""The hook goes into an agent's settings and out again, and leaves everything else as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwrap.hooks.formats import AgentProgram
from sigwrap.hooks.settings import (
    BadText,
    entries,
    hook_line,
    installed,
    shell_variables,
    uninstalled,
)

CLAUDE, CODEX, CURSOR, GEMINI = AgentProgram
LINES = {each: hook_line(each, ["/opt/my tools/sigwrap"], "ci") for each in AgentProgram}
VARIABLES = shell_variables("/opt/my tools/sigwrap-shell", "ci", "/p q")


def with_hook(text: str | None, program: AgentProgram) -> str:
    return installed(text, program, LINES[program], VARIABLES if program is CLAUDE else {})


def test_claude_codes_settings_have_its_documented_form() -> None:
    line = hook_line(CLAUDE, ["sigwrap"], "")
    text = installed(None, CLAUDE, line, shell_variables("sigwrap-shell", "", ""))
    matcher = "Bash|Monitor|Read|Grep|Write|Edit|MultiEdit|NotebookEdit|WebFetch"
    command = "sigwrap hook run claude-code || exit 2"
    handler = {"type": "command", "command": command, "timeout": 60}
    assert json.loads(text) == {
        "hooks": {"PreToolUse": [{"matcher": matcher, "hooks": [handler]}]},
        "env": {
            "CLAUDE_CODE_SHELL_PREFIX": "sigwrap-shell",
            "SIGWRAP_OPTIONS": "--join-name claude-$CLAUDE_CODE_SESSION_ID --approvals control",
        },
    }
    assert VARIABLES["SIGWRAP_OPTIONS"].endswith("control --policy ci --root '/p q'")


def test_the_other_programs_have_theirs() -> None:
    assert json.loads(installed("{}", CURSOR, "x", {}))["version"] == 1
    cursor = entries(CURSOR, "x")
    assert cursor["beforeShellExecution"] == {"command": "x", "timeout": 60, "failClosed": True}
    assert cursor["preToolUse"]["matcher"] == "Write|StrReplace|Edit|Delete"
    gemini = entries(GEMINI, "x")["BeforeTool"]
    assert gemini["hooks"][0]["timeout"] == 60_000  # milliseconds
    assert set(entries(CODEX, "x")) == {"PreToolUse"}


def test_a_hook_that_cannot_start_denies() -> None:
    assert LINES[GEMINI] == "'/opt/my tools/sigwrap' hook run gemini --policy ci || exit 2"


def test_the_hook_of_an_earlier_version_or_another_policy_is_replaced() -> None:
    old = {"hooks": [{"type": "command", "command": "/x/sigwrap hook claude-code || exit 2"}]}
    text = with_hook(json.dumps({"hooks": {"PreToolUse": [old]}}), CLAUDE)
    other = installed(text, CLAUDE, hook_line(CLAUDE, ["sigwrap"], "agent-strict"), VARIABLES)
    assert other.count("claude-code") == 1 and "agent-strict" in other
    assert uninstalled(other, CLAUDE) is None


def test_a_prefix_of_the_users_own_stays() -> None:
    own = {"env": {"CLAUDE_CODE_SHELL_PREFIX": "nice", "SIGWRAP_OPTIONS": "--policy ci"}}
    text = with_hook(json.dumps(own), CLAUDE)
    assert json.loads(text)["env"] == own["env"]
    after = uninstalled(text, CLAUDE)
    assert after is not None and json.loads(after) == own


def test_what_was_changed_meanwhile_stays_changed() -> None:
    value = json.loads(with_hook(None, CLAUDE))
    value["hooks"]["PreToolUse"].insert(0, {"matcher": "Bash", "hooks": [{"command": "mine"}]})
    value["model"] = "x"
    value["env"]["A"] = "1"
    left = uninstalled(json.dumps(value), CLAUDE)
    assert left is not None
    assert json.loads(left) == {
        "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"command": "mine"}]}]},
        "model": "x",
        "env": {"A": "1"},
    }


@pytest.mark.parametrize("program", AgentProgram)
def test_a_file_that_was_made_for_it_goes_again(program: AgentProgram) -> None:
    assert uninstalled(with_hook(None, program), program) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "line 1: Expecting value"),
        ("[]", "it is not a JSON object"),
        ('{"a": 1} x', "line 1: Extra data"),
        ('{"a": 1, /* x */ "b": 2}', "line 1: comments are not allowed in JSON"),
        ('{\n  // x\n  "a": 1\n}', "line 2: comments are not allowed in JSON"),
        ('{"a": NaN}', "NaN is not valid JSON"),
        ('{"a": ' + "1" * 5000 + "}", "a number in it is too long"),
        ('{"hooks": []}', "'hooks' is not an object"),
        ('{"env": []}', "'env' is not an object"),
        ('{"hooks": {"PreToolUse": {}}}', "'hooks', 'PreToolUse' is not a list"),
        ('{"hooks": {}, "hooks": {}}', "it has the same key twice"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_it_does_not_understand_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadText, match=why):
        with_hook(text, CLAUDE)
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
        listed = st.lists(entry, min_size=1, max_size=2)
        value["hooks"] = draw(st.dictionaries(events, listed, min_size=1, max_size=3))
    value["own"] = 1
    return json.dumps(value, indent=draw(st.sampled_from([None, 0, 2, "\t"])))


@example(text='{\n\t"own": 1\n}', program=CLAUDE)
@given(text=settings_texts(), program=st.sampled_from(list(AgentProgram)))
def test_all_other_settings_come_back(text: str, program: AgentProgram) -> None:
    before = json.loads(text)
    after = with_hook(text, program)
    assert with_hook(after, program) == after
    left = uninstalled(after, program)
    assert left is not None
    value = json.loads(left)
    if program is CURSOR:
        before.setdefault("version", 1)
    assert value == before
    assert [*value][: len(before)] == [*before]
    assert uninstalled(left, program) == left


def test_the_indentation_stays() -> None:
    text = '{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n'
    assert with_hook(text, CLAUDE).startswith('{\n\t"a": {\n\t\t"b": 1\n\t},\n\t"hooks": {')
