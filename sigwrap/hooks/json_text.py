"""A JSON text that is changed in one place: every other byte stays as somebody wrote it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sigwrap.hints import Any, NoReturn
from sigwrap.tuples import NamedTuple

_BLANK = " \t\n\r"
_BYTE_ORDER_MARK = "\ufeff"
_DECODER = json.JSONDecoder()


class BadText(Exception):
    """It is no JSON, or has the same key twice, and where."""


class Member(NamedTuple):
    """Of an object or an array."""

    key: str  # empty in an array
    start: int  # of the key, or the value
    value: int
    end: int


class Container(NamedTuple):
    start: int  # of its bracket
    end: int  # behind the other one
    members: tuple[Member, ...]

    def find(self, key: str) -> Member | None:
        return next((each for each in self.members if each.key == key), None)


def checked(text: str) -> Any:
    """Its value."""
    if not text.strip(_BLANK):
        raise BadText("it is empty")
    if text.startswith(_BYTE_ORDER_MARK):
        raise BadText("it begins with a byte order mark (U+FEFF), which JSON does not allow")
    try:
        return json.loads(text, object_pairs_hook=_without_twins, parse_constant=_no_constant)
    except json.JSONDecodeError as problem:
        raise BadText(f"line {problem.lineno}: {_why(text, problem)}") from problem
    except RecursionError as problem:
        raise BadText("it is nested too deeply") from problem
    except ValueError as problem:
        raise BadText("a number in it is too long") from problem


def _why(text: str, problem: json.JSONDecodeError) -> str:
    behind = text[problem.pos : problem.pos + 2]
    before = text[: problem.pos].rstrip(_BLANK)
    if behind in ("//", "/*"):
        return "a comment, which JSON does not allow"
    is_trailing = before.endswith(",") and behind.startswith(("}", "]", ","))
    if is_trailing or problem.msg.startswith("Illegal trailing comma"):  # Python 3.13's
        return "a trailing comma"
    return problem.msg


def _no_constant(name: str) -> NoReturn:
    raise BadText(f"{name} is not valid JSON")


def container_at(text: str, start: int) -> Container:
    """Of a text that was checked."""
    is_object = text[start] == "{"
    members: list[Member] = []
    position = _skipped(text, start + 1)
    while text[position] not in "}]":
        if text[position] == ",":
            position = _skipped(text, position + 1)
        begin, key = position, ""
        if is_object:
            key, position = _DECODER.raw_decode(text, position)
            position = _skipped(text, _skipped(text, position) + 1)
        _, end = _DECODER.raw_decode(text, position)
        members.append(Member(key, begin, position, end))
        position = _skipped(text, end)
    return Container(start, position + 1, tuple(members))


def root(text: str) -> Container:
    return container_at(text, _skipped(text, 0))


def with_member(text: str, container: Container, key: str, value: Any) -> str:
    """At its end, as its neighbours are indented. Where it has none, behind a blank, which tells
    what was empty from what was not there."""
    shown_key = f"{json.dumps(key)}: " if key else ""
    if not container.members:
        at = container.start + 1
        new = json.dumps(value, ensure_ascii=False)
        return f"{text[:at]} {shown_key}{new}{text[at:]}"
    last = container.members[-1]
    before = text[container.start + 1 : container.members[0].start]
    margin = before.rpartition("\n")[2] if "\n" in before else None
    new = _indented(value, margin, _step(text, margin or ""))
    return f"{text[: last.end]},{before or ' '}{shown_key}{new}{text[last.end :]}"


def without_member(text: str, container: Container, member: Member) -> str:
    position = container.members.index(member)
    if len(container.members) == 1:
        return text[: container.start + 1] + text[member.end :]
    if position:
        return text[: container.members[position - 1].end] + text[member.end :]
    return text[: member.start] + text[container.members[1].start :]


def fresh(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _indented(value: Any, margin: str | None, step: str) -> str:
    if margin is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
    return f"\n{margin}".join(lines)


def _step(text: str, margin: str) -> str:
    """How much deeper one level is than another, as the root's members show."""
    members = root(text).members
    before = text[root(text).start + 1 : members[0].start] if members else ""
    return before.rpartition("\n")[2] or margin or "  "


def _skipped(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twins = sorted({key for key, _ in pairs if [each for each, _ in pairs].count(key) > 1})
        raise BadText(f"it has the key {', '.join(map(repr, twins))} twice")
    return found


def elements(text: str, container: Container) -> Iterator[tuple[Member, Any]]:
    for member in container.members:
        yield member, json.loads(text[member.value : member.end])
