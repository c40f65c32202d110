"""Check the shipped policies when sigwrap is built, so that no run has to read their texts.

`python -m sigwrap.policy.tools.shipped TARGET policies/*.yaml` writes sigwrap/policy/shipped.py, in
`make setup` and when a package is built. If a policy was changed since, a run reads its text.
"""

from __future__ import annotations

import marshal
import sys
import zlib
from collections.abc import Iterable

from sigwrap.bare import Any, Enum
from sigwrap.policy.language import build
from sigwrap.policy.language.beforehand import TEXT
from sigwrap.policy.language.check import Checker
from sigwrap.policy.language.document import ScalarNode, Source, digest_of
from sigwrap.policy.language.fill import BUILT_IN, FILLED, Room
from sigwrap.policy.language.schema import POLICY
from sigwrap.policy.language.shapes import Form
from sigwrap.policy.language.yaml_text import read_document
from sigwrap.policy.problems import Place

_HEAD = '"""The shipped policies, checked. Made from policies/ by policy/tools/shipped.py."""'
_SOMEWHERE = {name: f"/{name}" for name in BUILT_IN}
_FORMAT = 2  # of marshal: the same bytes at each build, for every Python


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
        later.form = (None, TEXT, kind, name, text, node.place.line, node.place.column)
        return later


def module_text(sources: Iterable[Source]) -> str:
    forms = {each.name.removesuffix(".yaml"): _form(each) for each in sources}
    lines = [f"    {name!r}: {form!r},\n" for name, form in sorted(forms.items())]
    return f"{_HEAD}\n\nFORMS = {{\n{''.join(lines)}}}\n"


def _form(source: Source) -> tuple[object, ...]:
    checker = _Checker(_SOMEWHERE, Room(), shipped=True)
    checked = checker.group(read_document(source), POLICY)
    problems = [*checker.problems, *build.inconsistencies(checked, None, shipped=True)]
    if problems or "vars" in checked.values:
        raise SystemExit(f"{source.name}: {problems or 'vars are for other policies'}")
    extends = checked.get("extends")
    place = checked.place_of("extends")
    base = (place.line, place.column, extends) if extends else None
    parts = marshal.dumps(_plain(build.parts(checked)), _FORMAT)
    return digest_of(source.text), base, zlib.compress(parts, 9)


def _plain(value: Any) -> Any:
    match value:
        case _Later():
            return value.form
        case Enum():
            return None, type(value).__name__, value.value
        case Place():
            return None, "Place", value.line, value.column
        case dict():
            return None, "dict", *map(_plain, value.items())
        case tuple() if hasattr(value, "_fields"):
            return None, type(value).__name__, *map(_plain, _without_defaults(value))
        case tuple():
            items = tuple(map(_plain, value))
            is_plain = not any(type(each) is tuple for each in items)
            return items if is_plain else (None, "tuple", *items)
    return value


def _without_defaults(value: Any) -> tuple[object, ...]:
    """Return a named tuple's fields up to the last one that is not at its default."""
    fields = list(zip(value._fields, value, strict=True))
    while fields and value._field_defaults.get(fields[-1][0], ...) == fields[-1][1]:
        fields.pop()
    return tuple(each for _, each in fields)


def write(target: str, paths: Iterable[str]) -> None:
    sources = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            sources.append(Source(path.rpartition("/")[2], file.read()))
    with open(target, "w", encoding="utf-8") as file:
        file.write(module_text(sources))


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2:])
