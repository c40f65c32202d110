"""sigwrap replay: show the events of a session again."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import (
    JsonOption,
    PagerOption,
    SessionArgument,
    StoreOption,
    UtcOption,
    chosen_format,
    store_folder,
)
from sigwrap.cli.output import note, out_bytes
from sigwrap.cli.pager import pager
from sigwrap.cli.showing import columns, reader_may_leave, style
from sigwrap.cli.tried import show_tried
from sigwrap.errors import UsageError
from sigwrap.escape import printable, shell_words
from sigwrap.events import Event
from sigwrap.report.forms.documents import event_json, report_json
from sigwrap.report.forms.text import Page, render_text
from sigwrap.report.forms.what_if import WhatIfForm
from sigwrap.report.replay import in_rhythm, recorded, state_after, timeline_line
from sigwrap.store.catalog import open_session

_OLD = "See sigwrap policy try"


class Stream(Enum):
    STDIN = "stdin"
    STDOUT = "stdout"
    STDERR = "stderr"


app = App()


@app.command()
def replay(
    session: SessionArgument = "",
    store: StoreOption = None,
    instant: Annotated[bool, typer.Option("--instant", help="Print without pauses")] = False,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", help="Replay X times as fast", show_default=False),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until", metavar="SEQ", help="Show the state after this event", show_default=False
        ),
    ] = None,
    stream: Annotated[
        Stream | None,
        typer.Option(
            "--recorded",
            help="Print what recorded commands read or wrote instead of events; on a terminal "
            "without control characters",
            show_default=False,
        ),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(metavar="PID", help="With --recorded: only this process", show_default=False),
    ] = None,
    policy: Annotated[str | None, typer.Option("--policy", "-p", help=_OLD, hidden=True)] = None,
    root: Annotated[Path | None, typer.Option("--root", help=_OLD, hidden=True)] = None,
    form: Annotated[WhatIfForm | None, typer.Option("--format", help=_OLD, hidden=True)] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help=_OLD, hidden=True)] = False,
    as_json: JsonOption = False,
    utc: UtcOption = False,
    no_pager: PagerOption = False,
) -> None:
    """Replay the events of a session.

    Prints them at their original speed, with pauses of at most 10 s.
    """
    kind = chosen_format(form, WhatIfForm.TEXT, as_json=as_json)
    if policy is not None:
        if instant or any(each is not None for each in (speed, until, stream, pid)):
            raise UsageError(
                "--policy can't be combined with --instant, --speed, --until, --recorded or --pid"
            )
        opened = open_session(store_folder(store), session)
        status = show_tried(
            opened, policy, root, kind, exit_zero=exit_zero, with_pager=not no_pager
        )
        words = shell_words([policy, *([session] if session else [])])
        note(f"replay --policy is now: sigwrap policy try {words}")
        raise typer.Exit(status)
    if root is not None or form is not None or exit_zero:
        raise UsageError("--root, --format and --exit-zero need --policy")
    if speed is not None and not 0 < speed < float("inf"):
        raise UsageError(f"--speed {speed:g}: must be greater than 0")
    if speed is not None and instant:
        raise UsageError("--instant and --speed can't be combined")
    if until is not None and until < 1:
        raise UsageError(f"--until {until}: the first event is 1")
    if stream is None and pid is not None:
        raise UsageError("--pid needs --recorded")
    if stream is not None and (until is not None or as_json):
        raise UsageError("--recorded can't be combined with --until or --json")
    opened = open_session(store_folder(store), session)
    if until is not None:
        last = opened.last()
        if last is None or until > last.seq:
            known = f"the last event is {last.seq}" if last else "the log is empty"
            raise UsageError(f"--until {until}: {known}")
        summary = state_after(opened.events(), until)
        page = Page(style=style(), columns=columns(), utc=utc, tree=True)
        with pager(wanted=not no_pager) as show:
            show(report_json(summary) if as_json else render_text(summary, page=page))
        return
    events = opened.events()
    if not instant:
        events = in_rhythm(events, speed or 1.0, time.sleep)
    if stream is not None:
        is_there = False
        with reader_may_leave():
            for data in recorded(events, stream.value, pid):
                is_there = True
                out_bytes(_harmless(data) if os.isatty(1) else data)
        if not is_there:
            note(f"no {stream.value} was recorded (redirect_to with record: true records it)")
        return
    with pager(wanted=instant and not no_pager) as show:
        for line in map(event_json, events) if as_json else _timeline(events):
            show(line)


def _harmless(data: bytes) -> bytes:
    """Escape control characters, which a terminal would obey; a pipe to cat gets them all."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    return "\n".join(map(printable, lines)).encode()


def _timeline(events: Iterator[Event]) -> Iterator[str]:
    started_ns: int | None = None
    for event in events:
        started_ns = event.time_ns if started_ns is None else started_ns
        yield timeline_line(event, started_ns)
