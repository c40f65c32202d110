"""The format of each program: how it describes a tool call, and how it is answered.

An answer that lets a call through leaves every question to the program itself: none of them says
that the user has agreed. Cursor alone has no word for that, and its `allow` stands for it. Where a
question would not be asked, or the format has none, the call is denied with the same reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum

from sigwrap.bare import Any, NamedTuple
from sigwrap.hooks import calls
from sigwrap.hooks.calls import BadCall, Call, Doing
from sigwrap.hooks.verdict import Answer
from sigwrap.policy.judge.request import Operation

_NEVER_ASKS = frozenset({"bypassPermissions", "dontAsk"})
_READ, _WRITE = Operation.READ, Operation.WRITE

Reader = Callable[[Mapping[str, Any]], tuple[Doing, ...]]


class AgentProgram(Enum):
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    CURSOR = "cursor"
    GEMINI = "gemini"


AGENTS = ", ".join(each.value for each in AgentProgram)


class Format(NamedTuple):
    events: Mapping[str, Mapping[str, Reader]]  # of an event: of each tool what it does
    answered: Callable[[Answer, str], str]  # what is written to standard output
    has_questions: bool
    root_variable: str = ""  # the project's folder, in the environment of a hook


def call_in(program: AgentProgram, text: bytes) -> Call:
    """Read a call; BadCall says what is wrong with it."""
    try:
        given = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as problem:
        raise BadCall(f"the call is not valid JSON: {problem}") from problem
    if not isinstance(given, dict):
        raise BadCall("the call is not a JSON object")
    found = FORMATS[program]
    event = calls.text_in(given, "hook_event_name")
    tools = found.events.get(event)
    if tools is None:
        wanted = " or ".join(found.events)
        raise BadCall(f"the event must be {wanted}, not {event[:40]!r}")
    folder = calls.text_in(given, "cwd") if event not in _WITHOUT_FOLDER else ""
    tool, tool_input = (
        (event, given)
        if event in _TOOL_BY_EVENT
        else (calls.text_in(given, "tool_name"), given.get("tool_input"))
    )
    reader = tools.get(tool)
    if reader is None:
        return Call(tool, folder, ())
    if not isinstance(tool_input, dict):
        raise BadCall("the call has no object 'tool_input'")
    roots = given.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else ""
    is_asked = found.has_questions and given.get("permission_mode") not in _NEVER_ASKS
    return Call(
        tool,
        folder,
        reader(tool_input),
        cannot_ask=not is_asked,
        conversation=calls.optional(given, "session_id", "conversation_id"),
        id=calls.optional(given, "tool_use_id", "tool_call_id", "call_id", "generation_id"),
        project=root if isinstance(root, str) else "",
    )


def _shell_in_folder(given: Mapping[str, Any]) -> tuple[Doing, ...]:
    return calls.shell(given, "dir_path", "directory", "workdir")


def _file(operation: Operation | None, *names: str) -> Reader:
    return lambda given: calls.file(given, operation, *names)


def _claude(answer: Answer, reason: str) -> str:
    if answer is Answer.NO_OPINION:
        return ""
    return json.dumps(
        {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": answer.value,
                "permissionDecisionReason": reason,
            }
        }
    )


def _cursor(answer: Answer, reason: str) -> str:
    if answer is Answer.NO_OPINION:
        return json.dumps({"permission": "allow"})
    return json.dumps({"permission": answer.value, "user_message": reason, "agent_message": reason})


def _gemini(answer: Answer, reason: str) -> str:
    if answer is Answer.NO_OPINION:
        return ""
    return json.dumps({"decision": "deny", "reason": reason})


_CURSOR_FILE = ("file_path", "path", "target_file")
_TOOL_BY_EVENT = frozenset({"beforeShellExecution", "beforeReadFile", "beforeMCPExecution"})
_WITHOUT_FOLDER = _TOOL_BY_EVENT | {"preToolUse"}
_ANY_FILE = _file(None, "file_path")

FORMATS: Mapping[AgentProgram, Format] = {
    AgentProgram.CLAUDE_CODE: Format(
        {
            "PreToolUse": {
                "Bash": calls.shell,
                "Monitor": calls.shell,
                "Read": _file(_READ, "file_path"),
                "Grep": calls.search,
                "Write": _ANY_FILE,
                "Edit": _ANY_FILE,
                "MultiEdit": _ANY_FILE,
                "NotebookEdit": _file(None, "notebook_path"),
                "WebFetch": calls.web,
            }
        },
        _claude,
        has_questions=True,
        root_variable="CLAUDE_PROJECT_DIR",
    ),
    AgentProgram.CODEX: Format(
        {
            "PreToolUse": {
                "Bash": calls.shell,
                "shell": _shell_in_folder,
                "apply_patch": calls.patch,
                "view_image": _file(_READ, "path"),
            }
        },
        _claude,
        has_questions=False,
    ),
    AgentProgram.CURSOR: Format(
        {
            "beforeShellExecution": {
                "beforeShellExecution": lambda given: calls.shell(given, "cwd")
            },
            "beforeReadFile": {"beforeReadFile": _file(_READ, "file_path")},
            "preToolUse": {
                "Shell": lambda given: calls.shell(given, "working_directory", "cwd"),
                "Read": _file(_READ, *_CURSOR_FILE),
                "Write": _file(None, *_CURSOR_FILE),
                "StrReplace": _file(_WRITE, *_CURSOR_FILE),
                "Edit": _file(_WRITE, *_CURSOR_FILE),
                "Delete": _file(Operation.DELETE, *_CURSOR_FILE),
            },
        },
        _cursor,
        has_questions=True,
    ),
    AgentProgram.GEMINI: Format(
        {
            "BeforeTool": {
                "run_shell_command": _shell_in_folder,
                "read_file": _file(_READ, "file_path", "absolute_path"),
                "write_file": _ANY_FILE,
                "replace": _ANY_FILE,
            }
        },
        _gemini,
        has_questions=False,
        root_variable="GEMINI_PROJECT_DIR",
    ),
}
