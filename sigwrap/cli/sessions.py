"""sigwrap sessions: list, remove and recover the sessions of a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import typer

from sigwrap.approve.control_client import is_listened_at, left_sockets, remove_left
from sigwrap.cli.group import App, Group
from sigwrap.cli.options import (
    Format,
    FormatOption,
    PagerOption,
    StoreOption,
    UtcOption,
    existing_store,
)
from sigwrap.cli.output import note
from sigwrap.cli.showing import columns, show_lines, style
from sigwrap.errors import REFUSED, SessionError, SigwrapError, UsageError
from sigwrap.events import counted
from sigwrap.log.catalog import (
    SessionFile,
    chosen,
    held,
    is_path,
    is_running,
    list_sessions,
    meant,
    remove,
    surplus,
)
from sigwrap.log.catalog import recover as recover_session
from sigwrap.log.folder import SESSIONS_FOLDER, SHIPPED_MARK, sessions_folder
from sigwrap.log.reader import Session
from sigwrap.report.forms.sessions import Reader, render_sessions
from sigwrap.report.forms.times import byte_size, rough_span
from sigwrap.text import printable, shell_words, size_bytes, span_s

Amount = TypeVar("Amount", int, float)

_FEWEST_COLUMNS = 40
_COMMAND_CHARACTERS = 200
_SHORTEST_PART = 2  # of an id: `rm 1` is a mistake
_SESSION_HELP = "Session id, its unique start or end, or a session name"


class _Sessions(Group):
    """Name what an unknown subcommand may mean: the list, or a session."""

    def other_meaning(self, args: list[str]) -> str:
        if args[0] in ("list", "ls"):
            return "To list sessions: sigwrap sessions"
        return f"To show one session: sigwrap report {shell_words(args[-1:])}"


app = App(
    name="sessions",
    cls=_Sessions,
    invoke_without_command=True,
    help="List, remove or recover sessions.\n\nWithout a subcommand: list them, latest last.",
)


@app.callback()
def sessions(
    context: typer.Context,
    store: StoreOption = None,
    utc: UtcOption = False,
    form: FormatOption = Format.TEXT,
    no_pager: PagerOption = False,
) -> None:
    if context.invoked_subcommand is not None:
        context.obj = store  # the option may come before the subcommand
        return
    found = list_sessions(existing_store(store))
    if form is Format.JSON:
        from sigwrap.report.forms.documents import sessions_json  # a third of the imports

        text = sessions_json(found)
    else:
        text = render_sessions(found, _reader(utc=utc))
    show_lines([text], paged=not no_pager)
    count = sum(file.is_in_several_files and not file.problem for file in found)
    if count and os.isatty(2):
        killed = counted(count, "killed session")
        note(f"{killed} left a log in several files; to merge them: sigwrap sessions recover")


def _reader(*, utc: bool) -> Reader:
    return Reader(
        now_ns=time.time_ns(),
        columns=max(columns(), _FEWEST_COLUMNS) if columns() else None,
        user=os.environ.get("USER") or os.environ.get("LOGNAME") or "",
        host=os.uname().nodename,
        utc=utc,
        style=style(),
    )


@app.command()
def rm(
    context: typer.Context,
    sessions: Annotated[list[str], typer.Argument(metavar="SESSION...", help=_SESSION_HELP)],
    store: StoreOption = None,
) -> int:
    """Remove sessions with all their files, except running ones."""
    folder, known = _opened(context, store, "remove")
    return _remove(folder, _named(folder, known, sessions))


@app.command()
def prune(
    context: typer.Context,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Remove sessions that ended longer ago, such as 12h, 30d, 1d12h or 8w",
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Keep the N latest; without other options, remove all others", min=0
        ),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Remove the oldest until the rest fits, such as 500M or 1G"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed")
    ] = False,
    store: StoreOption = None,
) -> int:
    """Remove old sessions, and sockets left by killed ones."""
    if older_than is None and keep is None and max_size is None:
        raise UsageError(
            "one of --older-than, --keep and --max-size is needed",
            "such as sigwrap sessions prune --older-than 30d --keep 20",
        )
    age_s = _amount("--older-than", older_than, span_s)
    most = _amount("--max-size", max_size, size_bytes)
    folder, known = _opened(context, store, "remove")
    found = surplus(known, time.time_ns(), older_than_s=age_s, keep=keep, max_size=most)
    if os.path.lexists(os.path.join(sessions_folder(folder), SHIPPED_MARK)):
        found = _shipped(folder, found)
    status = _remove(folder, found, would="would be " * dry_run)
    running = {file.id for file in known if file.running}
    left = [each for each in left_sockets(folder) if each.session_id not in running]
    count = len(left) if dry_run else remove_left(folder, left)
    if count:
        done = "would be removed" if dry_run else "removed"
        where = os.path.join(folder, "control")
        show_lines([f"{counted(count, 'socket')} of killed sessions {done} from {where}"])
    return status


@app.command()
def recover(
    context: typer.Context,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSION...]", help=f"{_SESSION_HELP} [default: every killed session]"
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Merge the log of a killed session into one file.

    Any SQLite client can then read it.
    """

    def recover_one(file: SessionFile) -> str:
        shown = printable(file.id)
        if file.running or is_listened_at(folder, file.id):
            raise is_running(file.id)
        if not file.is_in_several_files:
            return f"{shown}: already in one file"
        events = recover_session(folder, file.id, file.files)
        _remove_sockets(folder, file)
        return f"{shown}: {counted(events, 'event')}, now in {printable(file.path)}"

    folder, known = _opened(context, store, "recover")
    if sessions:
        wanted = _named(folder, known, sessions)
    else:
        wanted = [file for file in known if file.is_in_several_files]
    if not wanted:
        show_lines(["nothing to recover"])
    status, lines = _each(wanted, recover_one)
    show_lines(lines)
    return status


def _opened(context: typer.Context, store: str | None, verb: str) -> tuple[str, list[SessionFile]]:
    from sigwrap.cli.control import refuse_inside  # not for the list

    refuse_inside(f"processes in a session can't {verb} sessions")
    folder = existing_store(context.obj if store is None else store)
    return folder, list_sessions(folder)


def _named(folder: str, known: list[SessionFile], words: Iterable[str]) -> list[SessionFile]:
    found = [_named_by(folder, known, word) for word in words]
    return list({file.id: file for file in found}.values())


def _named_by(folder: str, known: list[SessionFile], word: str) -> SessionFile:
    """Return the session of that word; a name of several is an error here."""
    if not word:
        raise UsageError("the session can't be empty", "give an id or a name")
    if is_path(word):
        raise UsageError(f"{shell_words([word])} is a file", "give the session's id or name")
    found = chosen(known, word)
    if found is None:
        raise SessionError(f"no session is called {word!r} in {folder}", meant(folder, word))
    if len(word) < _SHORTEST_PART and word not in (found.id, found.name):
        raise UsageError(
            f"{word!r} is too short for {printable(found.id)}",
            f"give {_SHORTEST_PART} characters of the id",
        )
    same = [file.id for file in known if file.name == word]
    if found.id != word and len(same) > 1:
        raise SessionError(
            f"{len(same)} sessions are called {word!r}", f"give an id: {', '.join(same)}"
        )
    return found


def _shipped(folder: str, files: list[SessionFile]) -> list[SessionFile]:
    """Return the sessions that were shipped, and say how many are kept because they were not."""
    from sigwrap.fleet.shipping import is_shipped

    with held(folder, SESSIONS_FOLDER) as sessions:
        found = [file for file in files if is_shipped(Session(file.id, file.path), sessions)]
    if kept := len(files) - len(found):
        note(
            f"kept {counted(kept, 'session')} that sigwrap ship has not shipped completely; to "
            "remove one anyway: sigwrap sessions rm SESSION"
        )
    return found


def _amount(option: str, word: str | None, read: Callable[[str], Amount]) -> Amount | None:
    try:
        return None if word is None else read(word)
    except ValueError as error:
        raise UsageError(f"{option} {word}: {error}") from error


def _each(files: Iterable[SessionFile], act: Callable[[SessionFile], str]) -> tuple[int, list[str]]:
    """Return the status and the lines; an error for one session does not stop the others."""
    status, lines = 0, []
    for file in files:
        try:
            lines.append(act(file))
        except SigwrapError as failure:
            note(*failure.lines)
            status = REFUSED
    return status, lines


def _remove(folder: str, files: Iterable[SessionFile], *, would: str = "") -> int:
    now_ns, size = time.time_ns(), 0

    def remove_one(file: SessionFile) -> str:
        nonlocal size
        size += file.size if would else _remove_session(folder, file)
        age = "" if file.problem else f"{rough_span(now_ns - file.started_ns)} old  "
        name = f"({printable(file.name)}) " if file.name else ""
        what = f"{name}{shell_words(file.command)[:_COMMAND_CHARACTERS]}"
        done = "would remove" if would else "removed"
        return f"{done} {printable(file.id)}  {age}{byte_size(file.size)}  {what}".rstrip()

    status, lines = _each(files, remove_one)
    if lines or not status:
        removed = counted(len(lines), "session")
        lines.append(f"{removed} {would}removed, {byte_size(size)} {would}freed")
    show_lines(lines)
    return status


def _remove_session(folder: str, file: SessionFile) -> int:
    """Return how many bytes that freed."""
    if not file.ended_cleanly and is_listened_at(folder, file.id):  # its journal was taken away
        raise is_running(file.id)
    size, left = remove(folder, file.id, file.files)
    _remove_sockets(folder, file)
    if left:
        raise SessionError(
            f"session {printable(file.id)}: not removed: links or files of another user: "
            f"{', '.join(map(printable, left))}",
            "check them and remove them by hand",
        )
    return size


def _remove_sockets(folder: str, file: SessionFile) -> None:
    remove_left(folder, [each for each in left_sockets(folder) if each.session_id == file.id])
