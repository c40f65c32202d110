"""Bring the tables of docs/events.md and docs/query.md up to date with the events and the views.

The pages have the meanings, and the code has the names. `python -m tests.docs.log_tables --write`
adds the rows that a page lacks, with an empty meaning, and removes those of names that are gone.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from sigwrap.events import (
    APPROVAL_ANSWER_FIELDS,
    CONNECTION_FIELDS,
    EVENT_TYPES,
    EXEC_FIELDS,
    SIGNAL_FIELDS,
)
from sigwrap.log.schema import VIEWS, Column

DOCS = Path(__file__).parents[2] / "docs"
EVENTS, QUERY = DOCS / "events.md", DOCS / "query.md"
FIELDS = "\n## Fields\n"
_TYPES = "## Types\n"
_COLUMNS = "| column | meaning |"
_FAMILIES = {
    "exec": EXEC_FIELDS,
    "signal": SIGNAL_FIELDS,
    "connection": CONNECTION_FIELDS,
    "answer": APPROVAL_ANSWER_FIELDS,
}


def with_types(page: str) -> str:
    """Return docs/events.md with today's types of events."""
    before, _, after = page.partition(_TYPES)
    types, _, fields = after.partition(FIELDS)
    return "\n".join((before + _TYPES, *_types(_meanings(types)), FIELDS + fields))


def with_views(page: str) -> str:
    """Return docs/query.md with today's views, which end the page."""
    before, _, after = page.partition(_COLUMNS)
    return before + "\n".join(_views(after)) + "\n"


def _meanings(part: str) -> dict[str, str]:
    """Return the meaning in each row of a page's tables, without the version or the type."""
    rows = re.findall(r"^\| `(\w+)`(?: \(v\d\))? \| (?:\*(?:int|real)\* )?(.*?) \|", part, re.M)
    return dict(rows)


def _types(meanings: dict[str, str]) -> Iterator[str]:
    for name, fields in _FAMILIES.items():
        yield f"- *{name}* fields: {_names(fields)}"
    yield from ("", "| type | meaning | payload |", "| --- | --- | --- |")
    for kind in EVENT_TYPES.values():
        version = f" (v{kind.version})" if kind.version > 1 else ""
        meaning = meanings.get(kind.name, "")
        yield f"| `{kind.name}`{version} | {meaning} | {_payload(kind.fields)} |"


def _payload(fields: tuple[str, ...]) -> str:
    for name, family in _FAMILIES.items():
        if fields[: len(family)] == family:
            own = _names(fields[len(family) :])
            return f"*{name}*" + (f", {own}" if own else "")
    return _names(fields)


def _names(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in fields)


def _views(part: str) -> Iterator[str]:
    common, _, rest = part.partition("\n## Views")
    sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^### |\Z)", rest, re.M | re.S))
    shared = _meanings(common)
    cells = {
        view.name: [
            _cells(column, {**shared, **_meanings(sections.get(view.name, ""))})
            for column in view.columns
        ]
        for view in VIEWS.values()
    }
    times = Counter(each for columns in cells.values() for each in columns)
    yield from _table(each for each, number in times.items() if number > 1)
    yield "\n## Views"
    for name, columns in cells.items():
        meaning = sections.get(name, "").partition(" Common columns:")[0].strip()
        names = ", ".join(column for column, said in columns if times[column, said] > 1)
        yield f"\n### {name}\n\n{meaning} Common columns: {names}.\n"
        yield from _table(each for each in columns if times[each] == 1)


def _cells(column: Column, meanings: dict[str, str]) -> tuple[str, str]:
    kind = {"TEXT": "", "INTEGER": "*int* ", "REAL": "*real* "}[column.type]
    return column.name, f"{kind}{meanings.get(column.name, '')}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from (_COLUMNS, "| --- | --- |")
    for name, meaning in rows:
        yield f"| `{name}` | {meaning} |"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    for path, made in ((EVENTS, with_types), (QUERY, with_views)):
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
