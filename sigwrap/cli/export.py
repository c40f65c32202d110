"""sigwrap export: sessions for other programs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.examples import examples
from sigwrap.cli.options import StoreOption, store_folder
from sigwrap.cli.output import out_lines
from sigwrap.cli.several import AllOption, SessionsArgument, Several
from sigwrap.cli.showing import reader_may_leave
from sigwrap.cli.whole_file import whole_file, write_lines
from sigwrap.errors import UsageError
from sigwrap.report.export import csv_lines, jsonl_line
from sigwrap.report.folds.metrics import MetricsFold


class ExportFormat(Enum):
    JSONL = "jsonl"
    CSV = "csv"
    PROM = "prom"
    SQLITE = "sqlite"


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("export"))(export)


def export(
    export_format: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="Events as JSON lines or CSV, Prometheus metrics, or a SQLite database with the "
            "views of sigwrap query",
        ),
    ],
    sessions: SessionsArgument = None,
    every: AllOption = False,
    store: StoreOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Output file, written completely or not at all",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Export events as JSON lines, CSV, Prometheus metrics or SQLite."""
    if export_format is ExportFormat.SQLITE and output is None:
        raise UsageError("--format sqlite needs -o FILE")
    several = Several(store_folder(store), sessions or [], every)
    if export_format is ExportFormat.SQLITE:
        _write_database(str(output), several)
    elif output is None:
        with reader_may_leave():
            out_lines(_lines(export_format, several, to_terminal=os.isatty(1)))
    else:
        write_lines(str(output), _lines(export_format, several), reads=several.paths)
    several.finish()


def _lines(
    export_format: ExportFormat, several: Several, *, to_terminal: bool = False
) -> Iterator[str]:
    told = ((session.id, event) for session, event in several.events())
    if export_format is ExportFormat.CSV:
        return csv_lines(told, to_terminal=to_terminal)
    if export_format is ExportFormat.JSONL:
        return (jsonl_line(event, session_id) for session_id, event in told)
    return _metrics(several)


def _metrics(several: Several) -> Iterator[str]:
    fold = MetricsFold()
    for _, event in several.events():
        fold.add(event)
    yield from fold.lines()


def _write_database(path: str, several: Several) -> None:
    from sigwrap.report.query.database import QueryDatabase, all_views

    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"can't write {path}: a database needs a regular file")
    with (
        whole_file(path, reads=several.paths) as place,
        closing(QueryDatabase(place)) as database,
    ):
        several.read(lambda session, seen: database.fill(session, all_views(), seen))
