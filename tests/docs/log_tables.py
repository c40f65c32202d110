"""Generate the tables of docs/events.md and docs/query.md from the events and the views.

`python -m tests.docs.log_tables --write` writes them. The other text of the pages stays.
"""

from __future__ import annotations

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
    return "\n".join((before + _TYPES, *_types(), FIELDS + after.partition(FIELDS)[2]))


def with_views(page: str) -> str:
    """Return docs/query.md with today's views, which end the page."""
    return page.partition(_COLUMNS)[0] + "\n".join(_views()) + "\n"


def _types() -> Iterator[str]:
    for name, fields in _FAMILIES.items():
        yield f"- *{name}* fields: {_names(fields)}"
    yield from ("", "| type | meaning | payload |", "| --- | --- | --- |")
    for kind in EVENT_TYPES.values():
        version = f" (v{kind.version})" if kind.version > 1 else ""
        yield f"| `{kind.name}`{version} | {kind.meaning} | {_payload(kind.fields)} |"


def _payload(fields: tuple[str, ...]) -> str:
    for name, family in _FAMILIES.items():
        if fields[: len(family)] == family:
            own = _names(fields[len(family) :])
            return f"*{name}*" + (f", {own}" if own else "")
    return _names(fields)


def _names(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in fields)


def _views() -> Iterator[str]:
    times = Counter(_cells(column) for view in VIEWS.values() for column in view.columns)
    yield from _table(cells for cells, number in times.items() if number > 1)
    yield "\n## Views"
    for view in VIEWS.values():
        cells = [_cells(column) for column in view.columns]
        common = ", ".join(name for name, meaning in cells if times[name, meaning] > 1)
        yield f"\n### {view.name}\n\n{view.meaning} Common columns: {common}.\n"
        yield from _table(each for each in cells if times[each] == 1)


def _cells(column: Column) -> tuple[str, str]:
    kind = {"TEXT": "", "INTEGER": "*int* ", "REAL": "*real* "}[column.type]
    return column.name, f"{kind}{column.meaning}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield from (_COLUMNS, "| --- | --- |")
    for name, meaning in rows:
        yield f"| `{name}` | {meaning} |"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    for path, made in ((EVENTS, with_types), (QUERY, with_views)):
        path.write_text(made(path.read_text(encoding="utf-8")), encoding="utf-8")
