"""sigwrap query: SQL over logs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import JsonOption, PagerOption, StoreOption, chosen_format, store_folder
from sigwrap.cli.output import out_lines
from sigwrap.cli.pager import pager
from sigwrap.cli.several import AllOption, OutputOption, SessionsArgument, Several
from sigwrap.cli.showing import columns, reader_may_leave
from sigwrap.cli.whole_file import write_lines
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.report.query import forms

_A_WORD = r"[\w.:/-]+"


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
            show_default=False,
        ),
    ] = "",
    sessions: SessionsArgument = None,
    every: AllOption = False,
    store: StoreOption = None,
    query_format: Annotated[
        QueryFormat | None,
        typer.Option(
            "--format",
            help="Output format; nl: one JSON object per line [default: table]",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    no_pager: PagerOption = False,
) -> None:
    """Query logs with SQL.

    Reads only. sigwrap help query has all columns and more examples.
    """
    from sigwrap.report.query.database import QueryDatabase
    from sigwrap.report.query.reference import overview

    kind = chosen_format(query_format, QueryFormat.TABLE, as_json=as_json)
    if not sql.strip():
        if sessions or every or output is not None:
            raise UsageError("no SQL given", "sigwrap query without SQL lists the views")
        with reader_may_leave():
            out_lines(overview(columns()))
        return
    if re.fullmatch(_A_WORD, sql.strip()):
        shown = shell_words([sql.strip()])
        raise UsageError(f"{shown} is not SQL", f'sigwrap query "select * from denials" {shown}')
    with closing(QueryDatabase()) as database:
        views = database.views_in(sql)
        several = Several(store_folder(store), sessions or [], every)
        if views:
            several.read(lambda session, seen: database.fill(session, views, seen))
        names, rows = database.select(sql)
        to_terminal = output is None and os.isatty(1)
        lines = _lines(kind, names, rows, to_terminal=to_terminal)
        if output is not None:
            write_lines(str(output), lines, reads=several.paths)
        elif to_terminal:
            with pager(wanted=not no_pager) as show:
                for line in lines:
                    show(line)
        else:
            with reader_may_leave():
                out_lines(lines)
    several.finish()


def _lines(
    kind: QueryFormat, names: tuple[str, ...], rows: Iterator[forms.Row], *, to_terminal: bool
) -> Iterator[str]:
    match kind:
        case QueryFormat.TABLE:
            return forms.table(names, rows, columns(to_file=not to_terminal))
        case QueryFormat.CSV:
            return forms.csv(names, rows, to_terminal=to_terminal)
        case QueryFormat.JSON:
            return forms.json_array(names, rows)
        case QueryFormat.NL:
            return forms.json_lines(names, rows)
