"""sigwrap replay: show the events of a session again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import (
    PagerOption,
    SessionArgument,
    StoreOption,
    UtcOption,
    store_folder,
)
from sigwrap.cli.output import note, out_bytes
from sigwrap.cli.showing import columns, pager, style
from sigwrap.errors import StoreError, UsageError
from sigwrap.events import Event, recorded_bytes
from sigwrap.log.catalog import open_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.detail import detail
from sigwrap.report.forms.documents import event_json, report_json
from sigwrap.report.forms.text import Page, render_text
from sigwrap.report.forms.what_if import WhatIfForm
from sigwrap.text import printable, shell_words

_OLD = "See sigwrap policy try"
_LONGEST_PAUSE_S = 10.0  # a session can be idle for a night


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
        typer.Option("--speed", metavar="X", help="Replay X times as fast"),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option("--until", metavar="SEQ", help="Show the state after this event"),
    ] = None,
    stream: Annotated[
        Stream | None,
        typer.Option(
            "--recorded",
            help="Print what recorded commands read or wrote instead of events; on a terminal "
            "without control characters",
        ),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(metavar="PID", help="With --recorded: only this process"),
    ] = None,
    policy: Annotated[str | None, typer.Option("--policy", "-p", help=_OLD, hidden=True)] = None,
    root: Annotated[Path | None, typer.Option("--root", help=_OLD, hidden=True)] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help=_OLD, hidden=True)] = False,
    form: Annotated[
        WhatIfForm,
        typer.Option("--format", metavar="[text|json]", help="Output format"),
    ] = WhatIfForm.TEXT,
    utc: UtcOption = False,
    no_pager: PagerOption = False,
) -> int:
    """Replay the events of a session.

    Prints them at their original speed, with pauses of at most 10 s.
    """
    if policy is not None:
        if instant or any(each is not None for each in (speed, until, stream, pid)):
            raise UsageError(
                "--policy can't be combined with --instant, --speed, --until, --recorded or --pid"
            )
        from sigwrap.cli.policy.reading import try_policy

        status = try_policy(policy, session, root, form, exit_zero, store, no_pager)
        words = shell_words([policy, *([session] if session else [])])
        note(f"replay --policy is now: sigwrap policy try {words}")
        return status
    as_json = form is WhatIfForm.JSON
    if root is not None or form is WhatIfForm.MD or exit_zero:
        raise UsageError("--root, --format md and --exit-zero need --policy")
    if speed is not None and not 0 < speed < float("inf"):
        raise UsageError(f"--speed {speed:g}: must be greater than 0")
    if speed is not None and instant:
        raise UsageError("--instant and --speed can't be combined")
    if until is not None and until < 1:
        raise UsageError(f"--until {until}: the first event is 1")
    if stream is None and pid is not None:
        raise UsageError("--pid needs --recorded")
    if stream is not None and (until is not None or as_json):
        raise UsageError("--recorded can't be combined with --until or --format json")
    opened = open_session(store_folder(store), session)
    events = opened.events()
    if until is not None:
        last = opened.last()
        if last is None or until > last.seq:
            known = f"the last event is {last.seq}" if last else "the log is empty"
            raise UsageError(f"--until {until}: {known}")
        summary = state_after(events, until)
        page = Page(style=style(), columns=columns(), utc=utc, tree=True)
        with pager(wanted=not no_pager) as show:
            show(report_json(summary) if as_json else render_text(summary, page=page))
        return 0
    if not instant:
        events = in_rhythm(events, speed or 1.0, time.sleep)
    if stream is not None:
        _print_recorded(recorded(events, stream.value, pid), stream.value)
        return 0
    with pager(wanted=instant and not no_pager) as show:
        started_ns: int | None = None
        for event in events:
            started_ns = event.time_ns if started_ns is None else started_ns
            show(event_json(event) if as_json else timeline_line(event, started_ns))
    return 0


def _print_recorded(pieces: Iterable[bytes], stream: str) -> None:
    """Print them; on a terminal, which would obey control characters, escaped."""
    is_there = False
    with pager(wanted=False):
        for data in pieces:
            is_there = True
            lines = data.decode("utf-8", "backslashreplace").split("\n")
            out_bytes("\n".join(map(printable, lines)).encode() if os.isatty(1) else data)
    if not is_there:
        note(f"no {stream} was recorded (redirect_to with record: true records it)")


def in_rhythm(
    events: Iterable[Event], speed: float, sleep: Callable[[float], None]
) -> Iterator[Event]:
    previous_ns: int | None = None
    for event in events:
        if previous_ns is not None and event.time_ns > previous_ns:
            sleep(min((event.time_ns - previous_ns) / 1e9 / speed, _LONGEST_PAUSE_S))
        previous_ns = event.time_ns
        yield event


def state_after(events: Iterable[Event], seq: int) -> Summary:
    summary = Summary()
    for event in events:
        if event.seq > seq:
            break
        summary.add(event)
    return summary.end(Ending.MOMENT)


def timeline_line(event: Event, started_ns: int) -> str:
    offset_s = (event.time_ns - started_ns) / 1e9
    kind = printable(event.type)
    return f"{event.seq:>6} {offset_s:>+11.6f} s  {kind:<20} {event.pid:>7}  {detail(event)}"


def recorded(events: Iterable[Event], stream: str, pid: int | None) -> Iterator[bytes]:
    """Yield the bytes of a recorded stream, only those of `pid` if it is given."""
    for event in events:
        if (
            event.type == "io_recorded"
            and event.payload.get("stream") == stream
            and pid in (None, event.pid)
        ):
            try:
                yield recorded_bytes(event.payload)
            except ValueError as problem:
                raise StoreError(
                    f"cannot read row {event.seq}", "check the log: sigwrap verify"
                ) from problem
