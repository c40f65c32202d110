"""An agent's settings with sigwrap's hook in them, and without: one JSON text to another."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from sigwrap.bare import Any, NamedTuple, NoReturn
from sigwrap.errors import BLOCKED
from sigwrap.hooks.formats import AgentProgram
from sigwrap.text import shell_words

PREFIX_VARIABLE = "CLAUDE_CODE_SHELL_PREFIX"
OPTIONS_VARIABLE = "SIGWRAP_OPTIONS"
SHELL_NAME = "sigwrap-shell"

_HOOKS, _ENV = "hooks", "env"
_TIMEOUT_S = 60
_SESSION = "--join-name claude-$CLAUDE_CODE_SESSION_ID"
_MATCHERS = {
    AgentProgram.CLAUDE_CODE: "Bash|Monitor|Read|Grep|Write|Edit|MultiEdit|NotebookEdit|WebFetch",
    AgentProgram.CODEX: "Bash|shell|apply_patch|view_image",
    AgentProgram.GEMINI: "run_shell_command|read_file|write_file|replace",
}
_CURSOR_EVENTS = {
    "beforeShellExecution": "",
    "beforeReadFile": "",
    "preToolUse": "Write|StrReplace|Edit|Delete",
}


class BadText(Exception):
    """The text is not JSON that can be changed; says why and where."""


class Place(NamedTuple):
    """The places where a program keeps its settings."""

    project: str  # below the project's directory
    user: str  # below the program's own
    own_folder: str  # of a user, below the home directory
    variable: str = ""  # that names another
    own: str = ""  # below the project's directory, and not shared with others


PLACES: Mapping[AgentProgram, Place] = {
    AgentProgram.CLAUDE_CODE: Place(
        ".claude/settings.json",
        "settings.json",
        ".claude",
        "CLAUDE_CONFIG_DIR",
        ".claude/settings.local.json",
    ),
    AgentProgram.CODEX: Place(".codex/hooks.json", "hooks.json", ".codex", "CODEX_HOME"),
    AgentProgram.CURSOR: Place(".cursor/hooks.json", "hooks.json", ".cursor"),
    AgentProgram.GEMINI: Place(".gemini/settings.json", "settings.json", ".gemini"),
}


def hook_line(program: AgentProgram, sigwrap: list[str], policy: str) -> str:
    """If sigwrap cannot even start, the line denies the call."""
    words = [*sigwrap, "hook", "run", program.value, *(["--policy", policy] if policy else [])]
    return f"{shell_words(words)} || exit {BLOCKED}"


def shell_variables(shell: str, policy: str, root: str) -> dict[str, str]:
    """Return the variables by which Claude Code runs each shell command in a session of sigwrap's,
    one for each conversation."""
    options = [_SESSION, "--approvals control"]
    options += [f"--policy {shell_words([policy])}"] if policy else []
    options += [f"--root {shell_words([root])}"] if root else []
    return {PREFIX_VARIABLE: shell, OPTIONS_VARIABLE: " ".join(options)}


def entries(program: AgentProgram, line: str) -> dict[str, Any]:
    """Return what is put into the list of each event."""
    if program is AgentProgram.CURSOR:
        entry = {"command": line, "timeout": _TIMEOUT_S, "failClosed": True}
        return {
            event: {**entry, **({"matcher": matcher} if matcher else {})}
            for event, matcher in _CURSOR_EVENTS.items()
        }
    is_gemini = program is AgentProgram.GEMINI
    handler = {
        "type": "command",
        "command": line,
        "timeout": _TIMEOUT_S * 1000 if is_gemini else _TIMEOUT_S,
        **({"name": "sigwrap"} if is_gemini else {}),
    }
    event = "BeforeTool" if is_gemini else "PreToolUse"
    return {event: {"matcher": _MATCHERS[program], _HOOKS: [handler]}}


def installed(
    text: str | None, program: AgentProgram, line: str, variables: Mapping[str, str]
) -> str:
    """Return the settings with the hook. `text`: None if there is no file."""
    value = _checked(text) if text is not None else {}
    before = _copy(value)
    _take_out(value, program)
    if program is AgentProgram.CURSOR:
        value.setdefault("version", 1)
    hooks = value.setdefault(_HOOKS, {})
    for event, entry in entries(program, line).items():
        hooks.setdefault(event, []).append(entry)
    if variables and PREFIX_VARIABLE not in value.get(_ENV, {}):
        value.setdefault(_ENV, {}).update(variables)
    return text if text is not None and value == before else _written(value, text)


def uninstalled(text: str, program: AgentProgram) -> str | None:
    """Return the settings without the hook; None if nothing is left of them."""
    value = _checked(text)
    before = _copy(value)
    _take_out(value, program)
    if value == before:
        return text
    return None if value in ({}, {"version": 1}) else _written(value, text)


def _take_out(value: dict[str, Any], program: AgentProgram) -> None:
    hooks, env = value.get(_HOOKS, {}), value.get(_ENV, {})
    for event in entries(program, ""):
        listed = hooks.get(event, [])
        kept = [each for each in listed if not _is_ours(each, program)]
        if len(kept) < len(listed):
            hooks[event] = kept
            if not kept:
                del hooks[event]
    if _is_our_prefix(env, program):
        del env[PREFIX_VARIABLE]
        env.pop(OPTIONS_VARIABLE, None)
    for key in (_HOOKS, _ENV):
        if value.get(key) == {}:
            del value[key]


def _is_our_prefix(env: dict[str, Any], program: AgentProgram) -> bool:
    prefix, options = env.get(PREFIX_VARIABLE), str(env.get(OPTIONS_VARIABLE))
    is_ours = isinstance(prefix, str) and prefix.endswith(SHELL_NAME)
    return is_ours and options.startswith(_SESSION) and program is AgentProgram.CLAUDE_CODE


def _is_ours(entry: Any, program: AgentProgram) -> bool:
    """Return whether sigwrap has put it there, and there is nothing else in it."""
    handlers = entry.get(_HOOKS) if isinstance(entry, dict) else None
    if program is not AgentProgram.CURSOR:
        entry = handlers[0] if isinstance(handlers, list) and len(handlers) == 1 else None
    line = entry.get("command") if isinstance(entry, dict) else None
    mark = rf"(^|[\s'])'?(\S*/)?sigwrap\S*'? hook (run )?{program.value}( |$)"
    return isinstance(line, str) and re.search(mark, line) is not None


def _checked(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        is_comment = text[problem.pos : problem.pos + 1] == "/"
        why = "comments are not allowed in JSON" if is_comment else problem.msg
        raise BadText(f"line {problem.lineno}: {why}") from problem
    except RecursionError as problem:
        raise BadText("it is nested too deeply") from problem
    except ValueError as problem:
        raise BadText("a number in it is too long") from problem
    if not isinstance(value, dict):
        raise BadText("it is not a JSON object")
    for key in (_HOOKS, _ENV):
        if not isinstance(value.get(key, {}), dict):
            raise BadText(f"{key!r} is not an object")
    for event in {event for each in AgentProgram for event in entries(each, "")}:
        if not isinstance(value.get(_HOOKS, {}).get(event, []), list):
            raise BadText(f"{_HOOKS!r}, {event!r} is not a list")
    return value


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadText("it has the same key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise BadText(f"{name} is not valid JSON")


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _written(value: Any, text: str | None) -> str:
    """Indent as the text before does."""
    found = re.match(r"\s*\{[^\S\n]*\n([ \t]+)", text or "")
    return json.dumps(value, indent=found[1] if found else 2, ensure_ascii=False) + "\n"
