"""sigwrap export: a session for other programs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from sigwrap.cli.options import SessionArgument, StoreOption, store_folder
from sigwrap.cli.output import out
from sigwrap.report.export import jsonl_line
from sigwrap.report.metrics import MetricsFold
from sigwrap.store.catalog import open_session


class ExportFormat(Enum):
    JSONL = "jsonl"
    PROM = "prom"


def register(app: typer.Typer) -> None:
    app.command()(export)


def export(
    export_format: Annotated[
        ExportFormat,
        typer.Option("--format", help="Events, one a line; or metrics for Prometheus."),
    ],
    session: SessionArgument = "",
    store: StoreOption = None,
) -> None:
    """Write a session for other programs."""
    opened = open_session(store_folder(store), session)
    try:
        match export_format:
            case ExportFormat.JSONL:
                for event in opened.events():
                    out(jsonl_line(event, opened.id))
            case ExportFormat.PROM:
                fold = MetricsFold()
                for event in opened.events():
                    fold.add(event)
                for line in fold.lines():
                    out(line)
    except BrokenPipeError:
        pass  # `sigwrap export | head` is no failure
