"""Generate docs/query.md from the views.

Run python -m sigwrap.report.query.reference > docs/query.md
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from sigwrap.report.forms.layout import wrapped
from sigwrap.report.query.database import SEARCHED
from sigwrap.store.views import EXPORTED, VIEWS, Column

EXAMPLES = (
    "select time, what, rule, message from denials",
    "select path, count(*) from execs group by path order by 2 desc",
)
_MORE_EXAMPLES = (
    ("--all", "select session, state, exit_status, command from sessions order by started"),
    ("--all", "select rule, sum(count) from denials group by rule order by 2 desc"),
    ("", "select pid, comm, command, exit_code from processes where exit_code != 0"),
    ("", "select signal_name, source, target, sum(count) from signals group by 1, 2, 3"),
    ("--format nl", "select type, count(*) from events group by type"),
    (
        "--format csv -o execs.csv",
        "select session, time, command, outcome from execs where command like 'git %'",
    ),
)

_INTRODUCTION = """\
# Logs in SQL

`sigwrap query` answers one SELECT about the latest session. Name other sessions after the SQL, or
pass `--all` for the whole store. Without SQL, it lists the views and columns. This page is
generated from `sigwrap/store/views.py`.

```text
$ sigwrap query "select what, rule from denials"
what                    rule
──────────────────────  ──────────
git push --force        force-push
SIGTERM to systemd (1)  system
```

More examples:

```
"""

_RULES = """\
```

- The SQL is SQLite's, with JSON and date functions. It runs on a temporary database and cannot
  change the log. Counting the denials of a million events takes 2 s, grouping all execs 8 s.
- A running session is answered up to its newest event.
- A damaged log is an error. Among several sessions, sigwrap names it on standard error, answers
  from the part before the damage, and exits with 1. To detect changes, use `sigwrap verify`.
- `-o FILE` writes the file completely or not at all.

Formats:

- `table` is for people. It cuts cells to the terminal and escapes control characters.
- `json` (one array) and `nl` (one object per line) are exact, for programs.
- `csv` is for spreadsheets. A text that looks like a formula (first character `=`, `+`, `-`, `@`,
  tab or return) gets an apostrophe in front.

## Other SQLite clients

The log of an ended session has the views too, so any SQLite client can read it:

```
sqlite-utils ~/.local/state/sigwrap/sessions/ID.db "select what, rule from denials" --table
datasette ~/.local/state/sigwrap/sessions/ID.db
```

- There, `events` is the table itself, without `session` and `time`; the view `log` has them.
- `command` has control characters as they are, and `state` is only `ended` or `not ended`.
- Logs of earlier versions have no views. A killed session needs `sigwrap sessions recover` first.
- SQLite runs what a file says. Read a log that you do not trust with `sigwrap query`, which uses
  no view of the file.

## Export

```
sigwrap export --format sqlite -o log.sqlite --all    # for any SQLite client, or Datasette
sigwrap export --format csv -o log.csv
sigwrap export --format jsonl -o log.jsonl
sigwrap export --format prom
```

- `sqlite`: a database with the views below as tables. Datasette shows a search box for {searched}.
  In SQL: `select * from execs_fts where execs_fts match 'push'`.
- `csv`: one row per event: {exported}. Formulas get an apostrophe as above.
- `jsonl`: one object per event, complete and exact ([events](events.md)).
- `prom`: counts and decision times for Prometheus, summed over the sessions.

## Columns that several views have

Columns marked *int* or *real* are numbers, all others text. Times are ISO 8601 in UTC with nine
digits, so they sort as text. Unknown values are NULL. Bytes that are not UTF-8 are written
`\\udc80` to `\\udcff`.
"""


def reference() -> str:
    return "\n".join(_lines()) + "\n"


def overview(columns: int) -> str:
    """Return the list of views for a terminal of that width; 0 means no wrapping."""
    return "\n".join(_overview(columns))


def _lines() -> Iterator[str]:
    yield _INTRODUCTION.rstrip("\n")
    for sql in EXAMPLES:
        yield f'sigwrap query "{sql}"'
    for options, sql in _MORE_EXAMPLES:
        yield f'sigwrap query {options} "{sql}"'.replace("  ", " ")
    yield _RULES.format(
        exported=", ".join(f"`{column.name}`" for column in EXPORTED.columns),
        searched=", ".join(f"`{name}`" for name in SEARCHED),
    )
    common = _common()
    yield from _table(common.items())
    yield "\n## Views"
    for view in VIEWS.values():
        shared = [column.name for column in view.columns if _is_in(common, column)]
        own = [
            (column.name, _told(column)) for column in view.columns if not _is_in(common, column)
        ]
        yield f"\n### {view.name}\n\n{view.meaning} Common columns: {', '.join(shared)}.\n"
        yield from _table(own)


def _common() -> dict[str, str]:
    """Return the columns that two views describe alike, by name."""
    columns = [column for view in VIEWS.values() for column in view.columns]
    told = Counter((column.name, _told(column)) for column in columns)
    return {name: meaning for (name, meaning), times in told.items() if times > 1}


def _is_in(common: Mapping[str, str], column: Column) -> bool:
    return common.get(column.name) == _told(column)


def _told(column: Column) -> str:
    kind = {"TEXT": "", "INTEGER": "*int* ", "REAL": "*real* "}[column.type]
    return f"{kind}{column.meaning}"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield "| column | meaning |"
    yield "| --- | --- |"
    for name, meaning in rows:
        yield f"| `{name}` | {meaning} |"


def _overview(columns: int) -> Iterator[str]:
    for view in VIEWS.values():
        names = ", ".join(column.name for column in view.columns)
        yield from wrapped(f"{view.name}: {names}", columns, "    ")
    yield ""
    for sql in EXAMPLES:
        yield f'sigwrap query "{sql}"'
    yield ""
    yield "For all columns: sigwrap help query"


if __name__ == "__main__":
    sys.stdout.write(reference())
