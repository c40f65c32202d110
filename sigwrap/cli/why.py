"""sigwrap why: explain how a process ended."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import asdict
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.options import Format, FormatOption, SessionArgument, StoreOption, store_folder
from sigwrap.cli.output import out
from sigwrap.cli.showing import columns, style
from sigwrap.errors import SessionError, UsageError
from sigwrap.events import Event, texts
from sigwrap.log.catalog import open_session
from sigwrap.log.reader import Session
from sigwrap.report.folds.cause import Why
from sigwrap.report.folds.ending import Ending, ending_of
from sigwrap.report.folds.why import WhyFold
from sigwrap.report.forms.layout import cut_to, wrapped
from sigwrap.report.forms.times import ago
from sigwrap.text import printable, shell_words

WHY_SCHEMA = "sigwrap.why/1"
_PID_DIGITS = 7  # the largest pid is 4194304
_NEAREST_SHOWN = 5


app = App()


@app.command()
def why(
    session: SessionArgument = "",
    pids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PID]...",
            help="Pids of processes in the session [default: the command]",
        ),
    ] = None,
    store: StoreOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Explain in one sentence how a process ended."""
    read, asked = _open(store_folder(store), session, list(map(_pid, pids or [])))
    found = [read.why(pid) for pid in asked or [0]]
    if form is Format.JSON:
        documents = [_document(each, read.session) for each in found]
        out(json.dumps(documents if len(documents) > 1 else documents[0], indent=2))
        return
    width = columns()
    if width:
        out(style().heading(cut_to(read.title(time.time_ns()), width)))
    for each in found:
        about = f'{each.pid} "{each.command}": ' if len(found) > 1 else ""
        out("\n".join(wrapped(about + each.sentence, width, "  " if about else "")))


def _pid(word: str) -> int:
    if _is_pid(word) and int(word):
        return int(word)
    shown = shell_words([word])
    raise UsageError(f"{shown} is not a pid", "sigwrap report shows the pids of a session")


def _is_pid(word: str) -> bool:
    return word.isdecimal() and word.isascii() and len(word) <= _PID_DIGITS


class _SessionRead:
    """A session, read up to its latest event."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.fold = WhyFold()
        self._ending: Ending = ending_of(session)
        self._first: Event | None = None
        for event in session.events():
            self._first = self._first or event
            self.fold.add(event)

    def title(self, now_ns: int) -> str:
        """Return a heading, so that users notice if the latest session is not the one they mean."""
        first = self._first
        if first is None:
            return printable(self.session.id)
        command = shell_words(texts(first.payload.get("command")))
        age = ago(now_ns - first.time_ns) or "now"
        return f"{printable(self.session.id)}, {age}: {command}"

    def why(self, pid: int) -> Why:
        found = self.fold.of(pid, self._ending)
        if found is not None:
            return found
        name = self.session.id
        tree = f"sigwrap report {name} --tree shows the processes"
        if pid:
            nearest = ", ".join(map(str, self.fold.nearest(pid, _NEAREST_SHOWN)))
            raise SessionError(f"no process {pid} in session {name}", f"nearest: {nearest}; {tree}")
        if self.fold.is_joined:
            raise SessionError(
                f"session {name} is shared and has no command of its own",
                f"give a pid: sigwrap why {name} PID; {tree}",
            )
        raise SessionError(f"the log of session {name} has no command")


def _open(folder: str, session: str, pids: list[int]) -> tuple[_SessionRead, list[int]]:
    """Open the session. A number can be the start of its id, or a pid of the latest session."""
    if not _is_pid(session):
        return _SessionRead(open_session(folder, session)), pids
    latest, of_latest = _SessionRead(open_session(folder, "")), [int(session), *pids]
    if not all(map(latest.fold.knows, of_latest)):
        with contextlib.suppress(SessionError):
            return _SessionRead(open_session(folder, session)), pids
    return latest, of_latest


def _document(why: Why, session: Session) -> dict[str, object]:
    content = {"schema": WHY_SCHEMA, "session_id": session.id, "sentence": why.sentence}
    return {**content, **asdict(why), "cause": why.cause.value}
