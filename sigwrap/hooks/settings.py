"""An agent's settings with sigwrap's hook in them, and without: a text to a text.

Taking it out is putting it in, backwards: of the texts that the settings may have been before, the
one from which the same text comes again. So nothing has to be remembered anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product

from sigwrap.escape import shell_words
from sigwrap.hints import Any
from sigwrap.hooks.formats import AgentProgram
from sigwrap.hooks.json_text import (
    BadText,
    Container,
    checked,
    container_at,
    elements,
    fresh,
    root,
    with_member,
    without_member,
)
from sigwrap.status import BLOCKED
from sigwrap.tuples import NamedTuple

_HOOKS = "hooks"
_TIMEOUT_S = 60
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


class Place(NamedTuple):
    """Where a program has its settings."""

    project: str  # beneath the project's folder
    user: str  # beneath the program's own
    own_folder: str  # of a user, beneath the home folder
    variable: str = ""  # that says another
    own: str = ""  # beneath the project's folder, and not shared with others


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
    """Where sigwrap can't even start, the call is denied."""
    words = [*sigwrap, "hook", program.value, *(["--policy", policy] if policy else [])]
    return f"{shell_words(words)} || exit {BLOCKED}"


def entries(program: AgentProgram, line: str) -> dict[str, Any]:
    """Of each event, what is put into its list."""
    if program is AgentProgram.CURSOR:
        return {
            event: {
                "command": line,
                "timeout": _TIMEOUT_S,
                "failClosed": True,
                **({"matcher": matcher} if matcher else {}),
            }
            for event, matcher in _CURSOR_EVENTS.items()
        }
    is_gemini = program is AgentProgram.GEMINI
    handler = {
        "type": "command",
        "command": line,
        "timeout": _TIMEOUT_S * 1000 if is_gemini else _TIMEOUT_S,
    }
    if is_gemini:
        handler["name"] = "sigwrap"
    event = "BeforeTool" if is_gemini else "PreToolUse"
    return {event: {"matcher": _MATCHERS[program], _HOOKS: [handler]}}


def installed(text: str | None, program: AgentProgram, line: str) -> str:
    """The same text where it is in there already. `text`: None where there is no file."""
    wanted = entries(program, line)
    versions: dict[str, Any] = {"version": 1} if program is AgentProgram.CURSOR else {}
    if text is None:
        return fresh({**versions, _HOOKS: {event: [entry] for event, entry in wanted.items()}})
    value = _checked(text)
    if _has(value, wanted, program):
        return text
    before = uninstalled(text, program)
    if before is None:
        return installed(None, program, line)
    text, missing = before, versions.keys() - checked(before)
    if _HOOKS not in checked(text):
        hooks = {event: [entry] for event, entry in wanted.items()}
        text = with_member(text, root(text), _HOOKS, hooks)
        for key in missing:
            text = with_member(text, root(text), key, versions[key])
        return text
    if missing:
        raise BadText(f"it has {_HOOKS!r} but not {', '.join(map(repr, missing))}")
    for event, entry in wanted.items():
        hooks_object = _hooks(text)
        member = hooks_object.find(event)
        if member is None:
            text = with_member(text, hooks_object, event, [entry])
        else:
            text = with_member(text, container_at(text, member.value), "", entry)
    return text


def uninstalled(text: str, program: AgentProgram) -> str | None:
    """None: the file was made for it. The same text where it isn't in there."""
    value = _checked(text)
    line = _line_in(value, program)
    if line is None:
        return text
    for before in _may_have_been(text, program):
        if _comes_again(before, text, program, line):
            return before
    return _without_entries(text, program, frozenset())


def _may_have_been(text: str, program: AgentProgram) -> Iterator[str | None]:
    """From the one that had the least."""
    yield None
    whole = root(text)
    hooks = whole.find(_HOOKS)
    if hooks is not None:
        bare = without_member(text, whole, hooks)
        version = root(bare).find("version")
        if program is AgentProgram.CURSOR and version is not None:
            yield without_member(bare, root(bare), version)
        yield bare
    events = [*entries(program, "")]
    for kept in product((False, True), repeat=len(events)):
        empty = frozenset(event for event, is_kept in zip(events, kept, strict=True) if is_kept)
        yield _without_entries(text, program, empty)


def _comes_again(before: str | None, text: str, program: AgentProgram, line: str) -> bool:
    if before is not None and _line_in(checked(before), program) is not None:
        return False
    return installed(before, program, line) == text


def _without_entries(text: str, program: AgentProgram, empty: frozenset[str]) -> str:
    """`empty`: events whose lists stay, empty or not."""
    for event in entries(program, ""):
        while (found := _own(text, event, program)) is not None:
            array, member = found
            is_last = len(array.members) == 1 and event not in empty
            if is_last:
                hooks = _hooks(text)
                named = hooks.find(event)
                assert named is not None
                text = without_member(text, hooks, named)
            else:
                text = without_member(text, array, member)
    return text


def _own(text: str, event: str, program: AgentProgram) -> tuple[Container, Any] | None:
    if _HOOKS not in checked(text):
        return None
    listed = _hooks(text).find(event)
    if listed is None or text[listed.value] != "[":
        return None
    array = container_at(text, listed.value)
    for member, value in elements(text, array):
        if _line_of(value, program) is not None:
            return array, member
    return None


def _hooks(text: str) -> Container:
    member = root(text).find(_HOOKS)
    assert member is not None
    return container_at(text, member.value)


def _has(value: dict[str, Any], wanted: Mapping[str, Any], program: AgentProgram) -> bool:
    hooks = value.get(_HOOKS, {})
    for event, entry in wanted.items():
        own = [each for each in hooks.get(event, []) if _line_of(each, program) is not None]
        if own != [entry]:
            return False
    return True


def _line_in(value: dict[str, Any], program: AgentProgram) -> str | None:
    hooks = value.get(_HOOKS, {})
    found = (
        line
        for event in entries(program, "")
        for each in hooks.get(event, [])
        if (line := _line_of(each, program)) is not None
    )
    return next(found, None)


def _line_of(entry: Any, program: AgentProgram) -> str | None:
    """Of one that sigwrap has put there, and nobody has put others beside it."""
    if not isinstance(entry, dict):
        return None
    handler = entry
    if program is not AgentProgram.CURSOR:
        handlers = entry.get(_HOOKS)
        if not isinstance(handlers, list) or len(handlers) != 1:
            return None
        handler = handlers[0]
    line = handler.get("command") if isinstance(handler, dict) else None
    mark = rf"(\S*/)?sigwrap\S*'? hook {program.value}( |$)"
    return line if isinstance(line, str) and re.search(rf"(^|[\s'])'?{mark}", line) else None


def _checked(text: str) -> dict[str, Any]:
    value = checked(text)
    if not isinstance(value, dict):
        raise BadText("it is not a JSON object")
    hooks = value.get(_HOOKS, {})
    if not isinstance(hooks, dict):
        raise BadText(f"{_HOOKS!r} is not an object")
    for event, listed in hooks.items():
        if isinstance(listed, list) or not any(event in entries(each, "") for each in AgentProgram):
            continue
        raise BadText(f"{_HOOKS!r}, {event!r} is not a list")
    return value
