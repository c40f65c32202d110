"""The shipped policies as they were checked, so that no run has to read and check their texts.

`python -m sigwrap.policy.tools.shipped policies/*.yaml` writes sigwrap/policy/shipped; a test holds
it to them. What isn't written anew after a change is not used: the text is read, as any other.
"""

from __future__ import annotations

import pprint
import sys
from typing import Any

from sigwrap.bare.enum import Enum
from sigwrap.policy.judge.rules import PidRange, ProcessPattern
from sigwrap.policy.language import build
from sigwrap.policy.language.beforehand import FILLED
from sigwrap.policy.language.check import Checker
from sigwrap.policy.language.document import ScalarNode, Source, digest_of, module_of, read_document
from sigwrap.policy.language.parts import Checked
from sigwrap.policy.language.schema import POLICY, Form
from sigwrap.policy.language.variables import BUILT_IN, Room
from sigwrap.policy.problems import Place

_WIDTH = 100
_SOMEWHERE = {name: f"/{name}" for name in BUILT_IN}


class _Later(str):
    """A text that depends on variables, as policy/language/beforehand.py takes it."""

    form: tuple[object, ...]


class _Checker(Checker):
    def _formed(self, node: ScalarNode, text: str, form: Form, name: str) -> str:
        formed = super()._formed(node, text, form, name)
        kind = form.name.lower()
        if kind not in FILLED or (formed == text and "$" not in text):
            return formed
        later = _Later(formed)
        later.form = (None, kind, name, text, node.place.line, node.place.column)
        return later


def module_text(source: Source) -> str:
    checker = _Checker(_SOMEWHERE, Room(), shipped=True)
    checked = checker.group(read_document(source), POLICY)
    problems = [*checker.problems, *build.inconsistencies(checked, None, shipped=True)]
    if problems or "vars" in checked.values:
        raise SystemExit(f"{source.name}: {problems or 'vars are for other policies'}")
    parts = build.parts(checked)
    left_out = {"tests", "command_rules", "signal_rules", "file_rules", "network_rules"}
    for each in left_out:
        checked.places.pop(each, None)
    constants = {
        "DIGEST": digest_of(source.text),
        "SECTIONS": _section(checked),
        "COMMAND_RULES": tuple(map(_fields, parts.command_rules)),
        "SIGNAL_RULES": tuple(map(_fields, parts.signal_rules)),
        "FILE_RULES": tuple(map(_fields, parts.file_rules)),
        "NETWORK_RULES": tuple(map(_fields, parts.network_rules)),
    }
    head = f"Generated from policies/{source.name} by policy/tools/shipped.py. Do not edit."
    lines = [f'"""{head}"""\n\n# fmt: off\n']
    for name, value in constants.items():
        form = pprint.pformat(value, width=_WIDTH, compact=True, sort_dicts=False)
        lines.append(f"{name} = {form}\n")
    return "".join(lines)


def _section(checked: Checked) -> tuple[int, int, dict[str, Any]]:
    entries = {
        key: (place.line, place.column, _value(checked.values[key]))
        for key, place in checked.places.items()
    }
    return checked.place.line, checked.place.column, entries


def _value(value: object) -> object:
    return _section(value)[2] if isinstance(value, Checked) else _plain(value)


def _fields(rule: tuple[object, ...]) -> tuple[object, ...]:
    place, *fields, overrides, layer = rule
    assert layer == 0
    fields += [] if overrides is None else [overrides]
    assert isinstance(place, Place)
    return place.line, place.column, *map(_plain, fields)


def _plain(value: object) -> object:
    match value:
        case _Later():
            return value.form
        case Enum():
            return value.value
        case frozenset():
            return tuple(sorted(value))
        case ProcessPattern() | PidRange() | tuple():
            return tuple(map(_plain, value))
    return value


def _write(paths: list[str]) -> None:
    for path in paths:
        with open(path, encoding="utf-8") as file:
            source = Source(name=path.rpartition("/")[2], text=file.read())
        target = f"sigwrap/policy/shipped/{module_of(source.name)}.py"
        with open(target, "w", encoding="utf-8") as file:
            file.write(module_text(source))


if __name__ == "__main__":
    _write(sys.argv[1:])
