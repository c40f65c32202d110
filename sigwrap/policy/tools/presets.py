"""The presets of agents as they were checked, so that no run and no report has to read them.

`python -m sigwrap.policy.tools.presets policies/presets/*.yaml` writes
sigwrap/policy/shipped/presets.py; a test holds it to them.
"""

from __future__ import annotations

import pprint
import sys
from collections.abc import Iterable

from sigwrap.hints import Any
from sigwrap.policy.language.document import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
    read_document,
)
from sigwrap.policy.presets import COMMAND, QUOTED
from sigwrap.policy.problems import InvalidPolicy, Place, Problem

_WIDTH = 100
_TEXTS = ("program", "policy", "install", "stop")
_LISTS = ("before", "daemons", "without_sandbox", "sandbox_words", "tool_calls")
_NEEDED = ("program", "policy", "install")


def module_text(sources: Iterable[Source]) -> str:
    presets = {each.name.removesuffix(".yaml"): fields_of(each) for each in sources}
    head = "Generated from policies/presets by policy/tools/presets.py. Do not edit."
    form = pprint.pformat(presets, width=_WIDTH, sort_dicts=False)
    return "\n".join(
        (
            f'"""{head}"""\n',
            "from sigwrap.hints import Any\n",
            "# fmt: off",
            f"PRESETS: dict[str, dict[str, Any]] = \\\n{form}\n",
        )
    )


def fields_of(source: Source) -> dict[str, Any]:
    """Raises InvalidPolicy."""
    document = read_document(source)
    if not isinstance(document, MappingNode):
        raise _wrong(document.place, "a preset must be a mapping")
    fields = {key.text: _value(key, value) for key, value in document.entries}
    for name in _NEEDED:
        if name not in fields:
            raise _wrong(document.place, f"a preset needs {name}")
    if ("daemons" in fields) != ("stop" in fields):
        raise _wrong(document.place, "`daemons` and `stop` go together")
    return fields


def _value(key: ScalarNode, value: Node) -> Any:
    match value:
        case ScalarNode() if key.text in _TEXTS:
            return value.text
        case SequenceNode(items=items) if key.text in _LISTS:
            found = tuple(_text(each) for each in items)
            if key.text == "tool_calls":
                for text in found:
                    if text.count(COMMAND) + text.count(QUOTED) != 1:
                        raise _wrong(value.place, f"one of {COMMAND} and {QUOTED}, once")
            return found
        case MappingNode(entries=entries) if key.text == "environment":
            return tuple((name.text, _text(each)) for name, each in entries)
    raise _wrong(key.place, f"unknown key, or a value of another type: {key.text}")


def _text(node: Node) -> str:
    if isinstance(node, ScalarNode) and isinstance(node.value, str):
        return node.value
    raise _wrong(node.place, "text is needed here; put it in quotes")


def _wrong(place: Place, message: str) -> InvalidPolicy:
    return InvalidPolicy([Problem(place, message)])


def _write(paths: list[str]) -> None:
    sources = []
    for path in sorted(paths):
        with open(path, encoding="utf-8") as file:
            sources.append(Source(name=path.rpartition("/")[2], text=file.read()))
    with open("sigwrap/policy/shipped/presets.py", "w", encoding="utf-8") as file:
        file.write(module_text(sources))


if __name__ == "__main__":
    _write(sys.argv[1:])
