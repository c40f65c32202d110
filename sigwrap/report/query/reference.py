"""List the views and their columns: `sigwrap query` without SQL, and the tables of docs/query.md.

Run python -m sigwrap.report.query.reference docs/query.md
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from sigwrap.report.forms.layout import wrapped
from sigwrap.store.views import VIEWS, Column

_EXAMPLES = (
    "select time, what, rule, message from denials",
    "select path, count(*) from execs group by path order by 2 desc",
)
_HEAD = "| column | meaning |"


def overview(columns: int) -> Iterator[str]:
    """Yield the list of views for a terminal of that width; 0 means no wrapping."""
    for view in VIEWS.values():
        names = ", ".join(column.name for column in view.columns)
        yield from wrapped(f"{view.name}: {names}", columns, "    ")
    yield ""
    for sql in _EXAMPLES:
        yield f'sigwrap query "{sql}"'
    yield from ("", "For all columns: sigwrap help query")


def reference(page: str) -> str:
    """Return the page with its text up to the first table, and the tables of today."""
    return page.partition(_HEAD)[0] + "\n".join(_tables()) + "\n"


def _tables() -> Iterator[str]:
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
    yield from (_HEAD, "| --- | --- |")
    for name, meaning in rows:
        yield f"| `{name}` | {meaning} |"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(reference(path.read_text(encoding="utf-8")), encoding="utf-8")
