"""sigwrap export: sessions for other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from enum import Enum
from itertools import groupby
from typing import Annotated

import typer

from sigwrap.bare import Any
from sigwrap.cli.group import App
from sigwrap.cli.options import StoreOption, store_folder
from sigwrap.cli.several import AllOption, OutputOption, SessionsArgument, Several
from sigwrap.cli.showing import show_lines
from sigwrap.cli.whole_file import whole_file, write_lines
from sigwrap.errors import UsageError
from sigwrap.events import EXPORTED_SIGNAL_FIELDS, SIGNAL_TYPES, Event
from sigwrap.report.forms.times import iso_time


class ExportFormat(Enum):
    JSONL = "jsonl"
    CSV = "csv"
    PROM = "prom"
    SQLITE = "sqlite"
    ROWS = "rows"
    OTLP = "otlp"


class Signal(Enum):
    LOGS = "logs"
    TRACES = "traces"


app = App()


@app.command()
def export(
    export_format: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="Events as JSON lines or CSV, Prometheus metrics, a SQLite database with the "
            "views of sigwrap query as tables, the rows that sigwrap ship sends, or OTLP requests "
            "as JSON lines",
        ),
    ],
    sessions: SessionsArgument = None,
    every: AllOption = False,
    store: StoreOption = None,
    output: OutputOption = None,
    signal: Annotated[
        Signal | None,
        typer.Option(
            "--signal",
            help="With --format otlp: each event as a log record, or sessions, tool calls and "
            "processes as spans [default: logs]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Export events as JSON lines, CSV, Prometheus, SQLite or OTLP."""
    if signal is not None and export_format is not ExportFormat.OTLP:
        raise UsageError("--signal needs --format otlp")
    if export_format is ExportFormat.SQLITE and output is None:
        raise UsageError("--format sqlite needs -o FILE")
    several = Several(store_folder(store), sessions or [], every)
    if export_format is ExportFormat.OTLP:
        lines = _otlp_lines(several, signal or Signal.LOGS)
    else:
        lines = _lines(export_format, several, to_terminal=output is None and os.isatty(1))
    if export_format is ExportFormat.SQLITE:
        _write_database(str(output), several)
    elif output is not None:
        write_lines(str(output), lines, reads=several.paths)
    else:
        show_lines(lines)
    several.finish()


def _lines(kind: ExportFormat, several: Several, *, to_terminal: bool) -> Iterator[str]:
    """Yield the export; it imports only what this format needs."""
    if kind is ExportFormat.JSONL:
        for session, event in several.events():
            yield jsonl_line(event, session.id)
    elif kind is ExportFormat.ROWS:
        from sigwrap.fleet.rows import segments

        for _, segment in several.each(segments):
            yield from segment.lines
    elif kind is ExportFormat.PROM:
        from sigwrap.report.folds.metrics import MetricsFold

        fold = MetricsFold()
        for _, event in several.events():
            fold.add(event)
        yield from fold.lines()
    else:
        from sigwrap.log.schema import EXPORTED
        from sigwrap.report.query import QueryDatabase, csv

        with closing(QueryDatabase()) as database:
            several.read(lambda session, seen: database.fill(session, [EXPORTED], seen))
            names, rows = database.select(f"SELECT * FROM {EXPORTED.name}")
            yield from csv(names, rows, to_terminal=to_terminal)


def _otlp_lines(several: Several, signal: Signal) -> Iterator[str]:
    from sigwrap.fleet.otlp import requests

    for session, pairs in groupby(several.events(), lambda pair: pair[0]):
        for request in requests(signal.value, session.id, (event for _, event in pairs)):
            yield json.dumps(request.body, separators=(",", ":"))


def _write_database(path: str, several: Several) -> None:
    from sigwrap.log.schema import VIEWS
    from sigwrap.report.query import QueryDatabase

    if os.path.exists(path) and not os.path.isfile(path):
        raise UsageError(f"can't write {path}: a database needs a regular file")
    with (
        whole_file(path, reads=several.paths) as place,
        closing(QueryDatabase(place)) as database,
    ):
        several.read(lambda session, seen: database.fill(session, VIEWS.values(), seen))
        database.write_tables()


def jsonl_line(event: Event, session_id: str) -> str:
    """Return the event with the names that other tools know."""
    payload = event.payload
    line: dict[str, Any] = {
        "timestamp": iso_time(event.time_ns),
        "session_id": session_id,
        "event_type": event.type,
    }
    if event.type in SIGNAL_TYPES:
        line |= {name: payload.get(name) for name in EXPORTED_SIGNAL_FIELDS}
    # After the line's own keys, and never in their place: a payload can't fake them.
    line |= {name: value for name, value in payload.items() if name not in line}
    line |= {"seq": event.seq, "pid": event.pid, "hash": event.hash}
    return json.dumps(line, separators=(",", ":"))
