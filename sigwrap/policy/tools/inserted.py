"""Rules put before those of a policy's text, which stays as it is otherwise, comments included."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sigwrap.policy.language.document import MappingNode, Node, ScalarNode, SequenceNode, Source
from sigwrap.policy.language.yaml_text import read_text

_OTHER_LINE_ENDS = re.compile("[\r\x85\u2028\u2029]")  # which YAML counts as well
_MARKS = re.compile(r"^(---|\.\.\.)", re.MULTILINE)  # of a document's start and end


class CannotInsert(Exception):
    """It is written in a way that leaves no place for a line."""


def with_rules_first(text: str, name: str, rules: Mapping[str, Sequence[str]]) -> str:
    """`rules`: by section, lines of YAML that begin at the first column."""
    root = read_text(Source("policy", text))
    if not isinstance(root, MappingNode) or _OTHER_LINE_ENDS.search(text) or _MARKS.search(text):
        raise CannotInsert
    lines = text.rstrip("\n").split("\n")
    if _rest_at(lines, root).startswith("{"):
        raise CannotInsert
    found = {key.text: node for key, node in root.entries}
    # From the last line on, so that the places of what comes before stay what they are.
    for key, node in sorted(found.items(), key=lambda each: -each[1].place.line):
        if key in rules:
            _insert(lines, node, rules[key])
        elif key == "name":
            _rename(lines, node, name)
    for section, new in rules.items():
        if new and section not in found:
            lines += ["", f"{section}:", *(f"  {each}" for each in new)]
    return "\n".join(lines) + "\n"


def _insert(lines: list[str], node: Node, rules: Sequence[str]) -> None:
    line, column = node.place.line - 1, node.place.column - 1
    indent = lines[line][:column]
    is_block = isinstance(node, SequenceNode) and _rest_at(lines, node).startswith("-")
    if not is_block or indent.strip(" "):
        raise CannotInsert
    lines[line:line] = [indent + each for each in rules]


def _rename(lines: list[str], node: Node, name: str) -> None:
    rest = _rest_at(lines, node)
    written = re.match("|".join(f"{quote}[A-Za-z0-9._-]+{quote}" for quote in ("'", '"', "")), rest)
    if not isinstance(node, ScalarNode) or not written or written[0].strip("'\"") != node.text:
        raise CannotInsert
    line, column = node.place.line - 1, node.place.column - 1
    lines[line] = f"{lines[line][:column]}{name}{rest[written.end() :]}"


def _rest_at(lines: Sequence[str], node: Node) -> str:
    line = node.place.line - 1
    return lines[line][node.place.column - 1 :] if line < len(lines) else ""
