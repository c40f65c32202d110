"""sigwrap query: SQL over logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import LakeOption, PagerOption, StoreOption, opened_lake, store_folder
from sigwrap.cli.several import AllOption, OutputOption, SessionsArgument, Several
from sigwrap.cli.showing import columns, show_lines
from sigwrap.cli.whole_file import write_lines
from sigwrap.errors import UsageError
from sigwrap.log.schema import VIEWS
from sigwrap.report.forms.layout import wrapped
from sigwrap.report.query import QueryDatabase, Row, csv, json_array, json_lines, table
from sigwrap.text import shell_words

_A_WORD = r"[\w.:/-]+"
_EXAMPLES = (
    'sigwrap query "select time, what, rule, message from denials"',
    'sigwrap query "select path, count(*) from execs group by path order by 2 desc"',
)


class QueryFormat(Enum):
    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    NL = "nl"


app = App()


@app.command()
def query(
    sql: Annotated[
        str,
        typer.Argument(
            metavar="[SQL]",
            help="SELECT over the views [default: list the views and their columns]",
        ),
    ] = "",
    sessions: SessionsArgument = None,
    every: AllOption = False,
    store: StoreOption = None,
    form: Annotated[
        QueryFormat,
        typer.Option("--format", help="Output format; nl: one JSON object per line"),
    ] = QueryFormat.TABLE,
    output: OutputOption = None,
    lake: LakeOption = None,
    no_pager: PagerOption = False,
) -> None:
    """Query logs with SQL.

    Reads only. sigwrap help query has all columns and more examples.
    """
    if not sql.strip():
        if sessions or every or output is not None:
            raise UsageError("no SQL given", "sigwrap query without SQL lists the views")
        show_lines(overview(columns()))
        return
    if re.fullmatch(_A_WORD, sql.strip()):
        shown = shell_words([sql.strip()])
        raise UsageError(f"{shown} is not SQL", f'sigwrap query "select * from denials" {shown}')
    if lake is not None:
        if sessions or every or store is not None:
            raise UsageError("--lake can't be combined with SESSION, --all or --store")
        names, rows = opened_lake(lake).select(sql)
        _show(form, names, rows, output, no_pager=no_pager)
        return
    with closing(QueryDatabase()) as database:
        views = database.views_in(sql)
        several = Several(store_folder(store), sessions or [], every)
        if views:
            several.read(lambda session, seen: database.fill(session, views, seen))
        names, rows = database.select(sql)
        _show(form, names, rows, output, reads=several.paths, no_pager=no_pager)
    several.finish()


def _show(
    form: QueryFormat,
    names: tuple[str, ...],
    rows: Iterator[Row],
    output: Path | None,
    *,
    reads: Iterable[str] = (),
    no_pager: bool,
) -> None:
    lines = _lines(form, names, rows, to_terminal=output is None and os.isatty(1))
    if output is not None:
        write_lines(str(output), lines, reads=reads)
    else:
        show_lines(lines, paged=not no_pager)


def overview(width: int) -> Iterator[str]:
    """Yield the list of views for a terminal of that width; 0 means no wrapping."""
    for view in VIEWS.values():
        names = ", ".join(column.name for column in view.columns)
        yield from wrapped(f"{view.name}: {names}", width, "    ")
    yield from ("", *_EXAMPLES, "", "For all columns: sigwrap help query")


def _lines(
    form: QueryFormat, names: tuple[str, ...], rows: Iterator[Row], *, to_terminal: bool
) -> Iterator[str]:
    match form:
        case QueryFormat.TABLE:
            return table(names, rows, columns(to_file=not to_terminal))
        case QueryFormat.CSV:
            return csv(names, rows, to_terminal=to_terminal)
        case QueryFormat.JSON:
            return json_array(names, rows)
        case QueryFormat.NL:
            return json_lines(names, rows)
