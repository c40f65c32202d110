"""sigwrap why: who ended a process."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from sigwrap.cli.options import JsonOption, SessionArgument, StoreOption, store_folder
from sigwrap.cli.output import out
from sigwrap.errors import SessionError, UsageError
from sigwrap.report.cause import Why
from sigwrap.report.why import WhyFold
from sigwrap.store.catalog import open_session
from sigwrap.store.reader import Session

WHY_SCHEMA = "sigwrap.why/1"
_PID_DIGITS = 12


def register(app: typer.Typer) -> None:
    app.command()(why)


def why(
    session: SessionArgument = "",
    pid: Annotated[
        int | None,
        typer.Argument(
            metavar="[PID]",
            help="A process of it; COMMAND if left out.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say who ended a process, in one sentence."""
    if pid is not None and pid < 1:
        raise UsageError(f"{pid} is no process", "sigwrap why SESSION PID")
    found, opened = _find(store_folder(store), session, pid)
    if found is None:
        if pid is None:
            raise SessionError(f"nothing is recorded of the command of session {opened.id}")
        raise SessionError(f"no process {pid} was seen in session {opened.id}")
    out(_document(found, opened) if as_json else found.sentence)


def _find(folder: str, session: str, pid: int | None) -> tuple[Why | None, Session]:
    if (
        pid is None and session.isdecimal() and len(session) < _PID_DIGITS
    ):  # a pid of the latest session, or the start of an id
        latest = open_session(folder, "")
        fold = _folded(latest)
        if fold.knows(int(session)):
            return fold.of(int(session)), latest
    opened = open_session(folder, session)
    return _folded(opened).of(pid or 0), opened


def _folded(session: Session) -> WhyFold:
    fold = WhyFold()
    for event in session.events():
        fold.add(event)
    return fold


def _document(why: Why, session: Session) -> str:
    content = {"schema": WHY_SCHEMA, "session_id": session.id, "sentence": why.sentence}
    return json.dumps({**content, **asdict(why), "cause": why.cause.value}, indent=2)
