"""docs/query.md from the views: python -m sigwrap.report.query.reference > docs/query.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sigwrap.report.forms.layout import wrapped
from sigwrap.report.query.views import EXPORTED, VIEWS

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

Generated from `sigwrap/report/query/` by
`python -m sigwrap.report.query.reference > docs/query.md`; a test holds it equal.

`sigwrap query` answers one SELECT in SQL from the views below. They are made of the latest session,
of those that are named behind the SQL, or of all in the store (`--all`). Without SQL it lists them.

```
"""

_RULES = """\
```

- A session may still be running: the answer is of what is recorded by then. A log that is damaged
  is an error; among several it is named on standard error, what comes before the damage is
  answered, and the exit status is 1. Whether a log was changed only `sigwrap verify` tells.
- The SQL is SQLite's, with its functions for JSON and dates. It can't change anything: it runs on a
  temporary database, which is in memory while it is small, else in `$TMPDIR`, and is gone with the
  command. Only what the SQL reads is filled in: of a million events, counting the denials takes 2
  seconds, and grouping all execs 12.
- `--format table` is for people: on a terminal, cells are cut to its width; control characters are
  shown as escapes everywhere. `json` is one array, `nl` one object a line, and both are exact.
- `csv` is for spreadsheets: a text that begins with `=`, `+`, `-`, `@`, a tab or a carriage return
  gets an apostrophe in front, because a spreadsheet would take it for a formula, and the text may
  be a process's. A program that needs each text as it is takes `nl`. On a terminal, control
  characters are shown as escapes.
- `-o FILE` writes a file completely or not at all.

## Other programs

```
sigwrap export --format sqlite -o log.sqlite --all    # for any SQLite client, or Datasette
sigwrap export --format csv -o log.csv
sigwrap export --format jsonl -o log.jsonl
sigwrap export --format prom
```

- `sqlite`: a database whose tables are the views below.
- `csv`: one row an event of any type, with the columns that many types have: {exported}. A text
  that a spreadsheet would take for a formula gets an apostrophe in front here too.
- `jsonl`: one object an event, complete and exact ([events.md](events.md)).
- `prom`: counts of execs, signals, connections and audited files, and how long deciding took, for
  Prometheus; of several sessions, the sums.

## Views

`time` is ISO 8601 in UTC with nine digits, so the text sorts as the moments do. What was empty or
isn't known is NULL. A byte that was no UTF-8 is written `\\udc80` to `\\udcff`.
"""


def reference() -> str:
    return "\n".join(_lines()) + "\n"


def overview(columns: int) -> str:
    """For a terminal of that width, or 0."""
    return "\n".join(_overview(columns))


def _lines() -> Iterator[str]:
    yield _INTRODUCTION.rstrip("\n")
    for sql in EXAMPLES:
        yield f'sigwrap query "{sql}"'
    for options, sql in _MORE_EXAMPLES:
        yield f'sigwrap query {options} "{sql}"'.replace("  ", " ")
    yield _RULES.format(exported=", ".join(f"`{column.name}`" for column in EXPORTED)).rstrip("\n")
    for view in VIEWS.values():
        yield f"\n### {view.name}\n\n{view.meaning}\n"
        yield "| column | type | meaning |"
        yield "| --- | --- | --- |"
        for column in view.columns:
            yield f"| `{column.name}` | {column.type} | {column.meaning} |"


def _overview(columns: int) -> Iterator[str]:
    for view in VIEWS.values():
        names = ", ".join(column.name for column in view.columns)
        yield from wrapped(f"{view.name}: {names}", columns, "    ")
    yield ""
    for sql in EXAMPLES:
        yield f'sigwrap query "{sql}"'
    yield ""
    yield "docs/query.md says what each column is."


if __name__ == "__main__":
    sys.stdout.write(reference())
