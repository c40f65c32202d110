"""The nodes of the shipped policies, so that no run has to read their texts.

`python -m sigwrap.policy.tools.shipped policies/*.yaml` writes sigwrap/policy/shipped; a test holds
it to them. What isn't written anew after a change is not used: the text is read, as any other.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from sigwrap.policy.language.document import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
    digest_of,
    module_of,
    read_document,
)

_WIDTH = 100


def module_text(source: Source) -> str:
    return (
        f'"""policies/{source.name}, read by policy/tools/shipped.py: change nothing here."""\n\n'
        f'DIGEST = "{digest_of(source.text)}"\n'
        f'NODES = r"""\n{_wrapped(_form(_without_tests(read_document(source))))}\n"""\n'
    )


def _without_tests(document: Node) -> Node:
    assert isinstance(document, MappingNode)
    entries = tuple(entry for entry in document.entries if entry[0].text != "tests")
    return document._replace(entries=entries)


def _form(node: Node) -> list[Any]:
    """As policy/language/document.py takes it apart."""
    line, column = node.place.line, node.place.column
    match node:
        case ScalarNode(_, value, text):
            return [line, column, value] if value == text else [line, column, value, text]
        case SequenceNode(_, items):
            return ["[", line, column, *map(_form, items)]
        case MappingNode(_, entries):
            return ["{", line, column, *(_form(each) for entry in entries for each in entry)]


def _wrapped(form: list[Any]) -> str:
    """JSON in lines that can be compared, each of some values."""
    lines = [""]
    for part in json.dumps(form, separators=(",\n", ":")).split("\n"):
        if lines[-1] and len(lines[-1]) + len(part) > _WIDTH:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _write(paths: list[str]) -> None:
    for path in paths:
        with open(path, encoding="utf-8") as file:
            source = Source(name=path.rpartition("/")[2], text=file.read())
        target = f"sigwrap/policy/shipped/{module_of(source.name)}.py"
        with open(target, "w", encoding="utf-8") as file:
            file.write(module_text(source))


if __name__ == "__main__":
    _write(sys.argv[1:])
