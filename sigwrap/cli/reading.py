"""The commands that read logs: sessions, report, replay, verify. Parse, call, print."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.options import JsonOption, SessionArgument, StoreOption, store_folder
from sigwrap.cli.output import note, out, out_bytes
from sigwrap.errors import UsageError
from sigwrap.escape import printable
from sigwrap.events import Event
from sigwrap.report.documents import (
    event_json,
    report_json,
    sessions_json,
    verification_json,
)
from sigwrap.report.replay import in_rhythm, recorded, state_after, timeline_line
from sigwrap.report.sessions import render_sessions
from sigwrap.report.style import Style
from sigwrap.report.summary import Ending, SummaryFold
from sigwrap.report.text import render_text, render_verification
from sigwrap.report.verify import Outcome, verify_session
from sigwrap.store.catalog import list_sessions, open_session
from sigwrap.store.chain import key_from_environment


class Format(Enum):
    TEXT = "text"
    JSON = "json"


class Stream(Enum):
    STDIN = "stdin"
    STDOUT = "stdout"
    STDERR = "stderr"


def register(app: typer.Typer) -> None:
    app.command()(sessions)
    app.command()(report)
    app.command()(replay)
    app.command()(verify)


def sessions(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the recorded sessions, the latest last."""
    found = list_sessions(store_folder(store))
    with _reader_may_leave():
        out(sessions_json(found) if as_json else render_sessions(found))


def report(
    session: SessionArgument = "",
    store: StoreOption = None,
    output_format: Annotated[
        Format | None,
        typer.Option("--format", help="What to write; text by default.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there.", show_default=False),
    ] = None,
) -> None:
    """Say what happened in a session."""
    if as_json and output_format is Format.TEXT:
        raise UsageError("--json and --format text exclude each other")
    opened = open_session(store_folder(store), session)
    # Before reading: a session that ends meanwhile must not look as if it had crashed.
    ending = Ending.RUNNING if opened.running else Ending.NOT_CLEAN
    fold = SummaryFold()
    verification = verify_session(opened, _key(), and_also=fold.add)
    summary = fold.result(ending)
    if as_json or output_format is Format.JSON:
        text = report_json(summary, verification)
    else:
        text = render_text(summary, verification, _style(to_file=output is not None))
    if output is None:
        with _reader_may_leave():
            out(text)
    else:
        _write(output, text)
    if verification.outcome is Outcome.BROKEN:
        note(f"{opened.path} is not intact: row {verification.row}: {verification.problem}")


def replay(
    session: SessionArgument = "",
    store: StoreOption = None,
    instant: Annotated[bool, typer.Option("--instant", help="Without the pauses.")] = False,
    speed: Annotated[
        float | None,
        typer.Option("--speed", metavar="X", help="X times as fast.", show_default=False),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(
            "--until", metavar="SEQ", help="The state after that event.", show_default=False
        ),
    ] = None,
    stream: Annotated[
        Stream | None,
        typer.Option(
            "--recorded",
            help="Instead of events, what recorded commands read or wrote, byte for byte; "
            "a terminal gets it without control characters.",
            show_default=False,
        ),
    ] = None,
    pid: Annotated[
        int | None,
        typer.Option(
            metavar="PID", help="With --recorded: of this command only.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show a session's events in the rhythm in which they happened."""
    if speed is not None and not 0 < speed < float("inf"):
        raise UsageError(f"--speed {speed:g}: it must be more than 0")
    if speed is not None and instant:
        raise UsageError("--instant and --speed exclude each other")
    if until is not None and until < 1:
        raise UsageError(f"--until {until}: the first event has number 1")
    if stream is None and pid is not None:
        raise UsageError("--pid goes with --recorded")
    if stream is not None and (until is not None or as_json):
        raise UsageError("--recorded goes with neither --until nor --json")
    opened = open_session(store_folder(store), session)
    if until is not None:
        last = opened.last()
        if last is None or until > last.seq:
            known = f"the last event has number {last.seq}" if last else "nothing is recorded"
            raise UsageError(f"--until {until}: {known}")
        summary = state_after(opened.events(), until)
        with _reader_may_leave():
            out(report_json(summary) if as_json else render_text(summary, style=_style()))
        return
    events = opened.events()
    if not instant:
        events = in_rhythm(events, speed or 1.0, time.sleep)
    if stream is not None:
        with _reader_may_leave():
            for data in recorded(events, stream.value, pid):
                out_bytes(_harmless(data) if os.isatty(1) else data)
        return
    with _reader_may_leave():
        for line in map(event_json, events) if as_json else _timeline(events):
            out(line)


def verify(
    session: SessionArgument = "",
    store: StoreOption = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head", metavar="HASH", help="As printed at the end of the run.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check that a log is what sigwrap wrote, or name the first row that isn't."""
    if head is not None and not re.fullmatch("[0-9a-f]{64}", head):
        raise UsageError(f"--head {head!r}: not a head", "it has 64 digits from 0 to 9 and a to f")
    opened = open_session(store_folder(store), session)
    running = opened.running
    verification = verify_session(opened, _key(), expected_head=head or "")
    with _reader_may_leave():
        if as_json:
            out(verification_json(opened.id, opened.path, verification))
        else:
            out(render_verification(opened.id, verification, running, _style()))
    if verification.outcome is not Outcome.INTACT:
        raise typer.Exit(1)


def _harmless(data: bytes) -> bytes:
    """Without control characters, which a terminal would obey; a pipe to cat gets them all."""
    lines = data.decode("utf-8", "backslashreplace").split("\n")
    return "\n".join(map(printable, lines)).encode()


def _timeline(events: Iterator[Event]) -> Iterator[str]:
    started_ns: int | None = None
    for event in events:
        started_ns = event.time_ns if started_ns is None else started_ns
        yield timeline_line(event, started_ns)


def _key() -> bytes | None:
    return key_from_environment(os.environb)


def _style(to_file: bool = False) -> Style:
    return Style.suited_to(not to_file and os.isatty(1), os.environ)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from error


@contextmanager
def _reader_may_leave() -> Iterator[None]:
    """`sigwrap replay | head` is no failure."""
    try:
        yield
    except BrokenPipeError:
        pass
