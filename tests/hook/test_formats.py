"""What each program documents of its hooks: a call is read, and its answer is in its own form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwrap.hooks.calls import BadCall, FileCall, ShellCall, WebCall
from sigwrap.hooks.formats import FORMATS, AgentProgram, call_in
from sigwrap.hooks.verdict import Answer
from sigwrap.policy.judge.request import Operation

CLAUDE, CODEX, CURSOR, GEMINI = AgentProgram
READ, DELETE, CREATE = Operation.READ, Operation.DELETE, Operation.CREATE
SESSION = {"session_id": "s1", "transcript_path": "/home/u/t.jsonl", "cwd": "/p"}
OF_A_TOOL = {"hook_event_name": "PreToolUse", "permission_mode": "default", "tool_use_id": "1"}
COMMON: dict[AgentProgram, dict[str, Any]] = {
    CLAUDE: {**SESSION, **OF_A_TOOL},
    CODEX: {**SESSION, **OF_A_TOOL, "transcript_path": None, "turn_id": "t1", "model": "m"},
    CURSOR: {
        "conversation_id": "c1",
        "generation_id": "g1",
        "cursor_version": "2.0",
        "workspace_roots": ["/p"],
    },
    GEMINI: {
        **SESSION,
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-01-01T00:00:00Z",
    },
}


def call(program: AgentProgram, **given: Any) -> bytes:
    return json.dumps({**COMMON[program], **given}).encode()


def tool(program: AgentProgram, name: str, **given: Any) -> bytes:
    return call(program, tool_name=name, tool_input=given)


PATCH = (
    "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n*** Delete File: d\n"
)


def test_a_documented_call_is_read() -> None:
    for program, text, doings in [
        (CLAUDE, tool(CLAUDE, "Bash", command="ls", description="d"), [ShellCall("ls")]),
        (CLAUDE, tool(CLAUDE, "Write", file_path="/a", content="x"), [FileCall(None, "/a")]),
        (CLAUDE, tool(CLAUDE, "Read", file_path="/a"), [FileCall(READ, "/a")]),
        (CLAUDE, tool(CLAUDE, "NotebookEdit", notebook_path="/a"), [FileCall(None, "/a")]),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="https://a.b/c"), [WebCall("a.b", 443)]),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="http://[::1]:80/"), [WebCall("::1", 80)]),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="http://0x7f.1/"), [WebCall("127.0.0.1", 80)]),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="http://be.ad/"), [WebCall("be.ad", 80)]),
        (CLAUDE, tool(CLAUDE, "mcp__x__y", anything=1), []),
        (
            CODEX,
            tool(CODEX, "shell", command=["a", "b 'c"], workdir="/w"),
            [ShellCall("'a' 'b '\\''c'", "/w")],
        ),
        (
            CODEX,
            tool(CODEX, "apply_patch", command=PATCH),
            [
                FileCall(CREATE, "a"),
                FileCall(Operation.WRITE, "b"),
                FileCall(CREATE, "c"),
                FileCall(DELETE, "d"),
            ],
        ),
        (
            CURSOR,
            call(CURSOR, hook_event_name="beforeShellExecution", command="ls", cwd="/w"),
            [ShellCall("ls", "/w")],
        ),
        (
            CURSOR,
            call(CURSOR, hook_event_name="beforeReadFile", file_path="/a", content="x"),
            [FileCall(READ, "/a")],
        ),
        (
            CURSOR,
            call(
                CURSOR, hook_event_name="preToolUse", tool_name="Delete", tool_input={"path": "/a"}
            ),
            [FileCall(DELETE, "/a")],
        ),
        (
            GEMINI,
            tool(GEMINI, "run_shell_command", command="ls", dir_path="w"),
            [ShellCall("ls", "w")],
        ),
        (GEMINI, tool(GEMINI, "write_file", file_path="a", content="x"), [FileCall(None, "a")]),
    ]:
        assert list(call_in(program, text).doings) == doings, text


def test_cursor_says_in_the_call_which_project_it_is() -> None:
    read = {
        "hook_event_name": "preToolUse",
        "tool_name": "Read",
        "tool_input": {"path": "a"},
    }
    assert call_in(CURSOR, call(CURSOR, **read)).project == "/p"
    for roots in (1, [2], []):
        assert call_in(CURSOR, call(CURSOR, **read, workspace_roots=roots)).project == ""


@pytest.mark.parametrize("program", AgentProgram)
def test_what_is_no_call_is_refused(program: AgentProgram) -> None:
    for text in [
        b"",
        b"[]",
        b"\xff",
        b"{}",
        b"[" * 100_000,
        b'{"hook_event_name": 1}',
        b'{"hook_event_name": "PostToolUse", "cwd": "/p", "tool_name": "Bash"}',
        b'{"hook_event_name": "sessionStart"}',
    ]:
        with pytest.raises(BadCall):
            call_in(program, text)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (CLAUDE, call(CLAUDE, tool_name="Bash")),
        (CLAUDE, call(CLAUDE, tool_name="Bash", tool_input="ls")),
        (CLAUDE, tool(CLAUDE, "Bash", command=5)),
        (CLAUDE, tool(CLAUDE, "Write", path="/a")),
        (CLAUDE, tool(CLAUDE, "Write", file_path="/a\0b")),
        (CLAUDE, tool(CLAUDE, "Write", file_path="/\ud800")),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="mailto:x")),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="http:/169.254.169.254/")),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="http://a:99999/")),
        (CLAUDE, tool(CLAUDE, "WebFetch", url="http://[x/")),
        (CODEX, tool(CODEX, "apply_patch", command="nothing")),
        (CODEX, tool(CODEX, "Bash", command=[1])),
        (GEMINI, call(GEMINI, tool_input={})),
    ],
)
def test_a_call_of_another_shape_is_refused(program: AgentProgram, text: bytes) -> None:
    with pytest.raises(BadCall):
        call_in(program, text)


def test_where_a_question_would_not_be_asked_is_known() -> None:
    for program, mode, never in [
        (CLAUDE, "default", False),
        (CLAUDE, "bypassPermissions", True),
        (CODEX, "default", True),
    ]:
        text = call(program, tool_name="Bash", tool_input={"command": "x"}, permission_mode=mode)
        assert call_in(program, text).cannot_ask is never, program


def test_answers_are_as_each_program_documents_them() -> None:
    def said(program: AgentProgram, answer: Answer) -> Any:
        text = FORMATS[program].answered(answer, "why")
        return json.loads(text) if text else None

    for program in (CLAUDE, CODEX):
        assert said(program, Answer.DENY) == {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "why",
            }
        }
    asked = said(CLAUDE, Answer.ASK)
    assert asked["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert said(GEMINI, Answer.DENY) == {"decision": "deny", "reason": "why"}
    for answer in (Answer.ASK, Answer.DENY):
        assert said(CURSOR, answer) == {
            "permission": answer.value,
            "user_message": "why",
            "agent_message": "why",
        }


def test_what_is_let_through_is_no_approval() -> None:
    """The program goes on to its own questions; `allow` would skip Claude's, and fail in Codex."""
    for program in (CLAUDE, CODEX, GEMINI):
        assert FORMATS[program].answered(Answer.NO_OPINION, "why") == ""
    assert FORMATS[CURSOR].answered(Answer.NO_OPINION, "why") == '{"permission": "allow"}'
