"""sigwrap lake: the sessions of many machines in one place."""

from __future__ import annotations

import datetime
import os
import time
from contextlib import suppress
from typing import Annotated, Literal

import typer

from sigwrap.cli.group import App, Group
from sigwrap.cli.several import OutputOption
from sigwrap.cli.showing import show_lines
from sigwrap.cli.whole_file import write_lines
from sigwrap.errors import UsageError
from sigwrap.events import counted
from sigwrap.text import shell_words

_DAY_S = 86_400
_EXAMPLES = "7d, 12h, 2026-11-01 or 2026-11-29T14:00"

UrlOption = Annotated[
    str,
    typer.Option("--at", metavar="URL", help="The lake: file:///DIR or s3://BUCKET/PREFIX"),
]

app = App(
    name="lake",
    cls=Group,
    help="Read the sessions of many machines in one place.\n\nsigwrap ship sends them there.",
)


@app.command()
def sql(
    engine: Annotated[
        Literal["duckdb", "clickhouse", "spark", "trino"] | None,
        typer.Option("--engine", help="Engine that reads the lake"),
    ] = None,
    at: UrlOption = "",
    date: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Date to load or compact [default: yesterday]"),
    ] = None,
    questions: Annotated[
        bool,
        typer.Option("--questions", help="Print what sigwrap lake report asks, for dashboards"),
    ] = False,
) -> None:
    """Print an engine's SQL: tables, views, compaction.

    The views are those of sigwrap query.
    """
    if questions:
        from sigwrap.fleet.questions import script

        if engine is not None or at or date is not None:
            raise UsageError(
                "--questions has no other options", "its SQL is the same for each engine and lake"
            )
        show_lines(script(time.time_ns()))
        return
    if engine is None or not at:
        raise UsageError(f"{'--engine' if engine is None else '--at'} is missing")
    from sigwrap.fleet.duck import place_of
    from sigwrap.fleet.lake import SCRIPTS

    yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - _DAY_S))
    day = yesterday if date is None else _date(date)
    show_lines(SCRIPTS[engine](place_of(at), day))


@app.command()
def report(
    at: UrlOption,
    since: Annotated[
        str,
        typer.Option(metavar="TIME", help=f"Only what happened after TIME (UTC): {_EXAMPLES}"),
    ] = "30d",
    output: OutputOption = None,
) -> None:
    """Write a web page about all sessions.

    Denials over time, new command lines, connections, sessions without an end, old versions.
    """
    from sigwrap.fleet.duck import Lake
    from sigwrap.fleet.page import lake_page

    until_ns = time.time_ns()
    since_ns = _start_ns(since, until_ns)
    lake = Lake(at, os.environ)
    lake.make_views(read_once=True)
    page = list(lake_page(at, lake.asked, since_ns, until_ns))
    if output is not None:
        write_lines(str(output), page)
    else:
        show_lines(page)


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
    show_lines([f"compacted {counted(len(done), 'day')}", *done])


def _date(word: str) -> str:
    with suppress(ValueError):
        if datetime.date.fromisoformat(word).isoformat() == word:
            return word
    raise UsageError(f"--date {word}: not a date", "such as 2026-11-29")


def _start_ns(words: str, now_ns: int) -> int:
    from sigwrap.cli.report import moment_ns

    try:
        found = moment_ns(words, started_ns=now_ns, ended_ns=now_ns, utc=True)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"--since {shell_words([words])}: not a time", f"such as {_EXAMPLES}"
        ) from error
    if found >= now_ns:
        raise UsageError(f"--since {shell_words([words])}: not in the past")
    return max(found, 0)
