"""sigwrap lake: the sessions of many machines in one place."""

from __future__ import annotations

import os
import re
import time
from enum import Enum
from typing import Annotated

import typer

from sigwrap.cli.group import App, Group
from sigwrap.cli.showing import show_lines
from sigwrap.errors import UsageError
from sigwrap.events import counted

_DAY_S = 86_400

UrlOption = Annotated[
    str,
    typer.Option("--at", metavar="URL", help="The lake: file:///DIR or s3://BUCKET/PREFIX"),
]


class Engine(Enum):
    DUCKDB = "duckdb"
    CLICKHOUSE = "clickhouse"
    SPARK = "spark"
    TRINO = "trino"


app = App(
    name="lake",
    cls=Group,
    help="Read the sessions of many machines in one place.\n\nsigwrap ship sends them there.",
)


@app.command()
def sql(
    engine: Annotated[Engine, typer.Option("--engine", help="Engine that reads the lake")],
    at: UrlOption,
    date: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Date to load or compact [default: yesterday]"),
    ] = None,
) -> None:
    """Print an engine's SQL: tables, views, compaction.

    The views are those of sigwrap query.
    """
    from sigwrap.fleet.duck import place_of
    from sigwrap.fleet.lake import SCRIPTS

    yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - _DAY_S))
    day = yesterday if date is None else _date(date)
    show_lines(SCRIPTS[engine.value](place_of(at), day), paged=False)


@app.command()
def compact(
    at: UrlOption,
    date: Annotated[
        list[str] | None,
        typer.Option(
            metavar="YYYY-MM-DD",
            help="Date to compact, also again [default: every past date that is not compacted]",
        ),
    ] = None,
) -> None:
    """Write the rows of past days into Parquet files.

    Engines read these faster than the files that sigwrap ship sends.
    """
    from sigwrap.fleet.duck import Lake

    done = Lake(at, os.environ).compact([_date(each) for each in date or []])
    show_lines([f"compacted {counted(len(done), 'day')}", *done], paged=False)


def _date(word: str) -> str:
    try:
        time.strptime(word, "%Y-%m-%d")
    except ValueError as error:
        raise UsageError(f"--date {word}: not a date", "such as 2026-11-29") from error
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", word):
        raise UsageError(f"--date {word}: not YYYY-MM-DD", "such as 2026-11-29")
    return word
