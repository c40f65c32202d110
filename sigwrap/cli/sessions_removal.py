"""sigwrap sessions rm, prune."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import typer

from sigwrap.amounts import size_bytes, span_s
from sigwrap.cli.control import refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.options import StoreOption, existing_store
from sigwrap.cli.output import note, out
from sigwrap.cli.showing import reader_may_leave
from sigwrap.errors import SessionError, SigwrapError, UsageError
from sigwrap.escape import printable, shell_words
from sigwrap.outcomes import counted
from sigwrap.protocols.left_sockets import is_listened_at, left_sockets, remove_left
from sigwrap.report.forms.sizes import byte_size
from sigwrap.report.forms.times import rough_span
from sigwrap.status import REFUSED
from sigwrap.store.belongings import runs
from sigwrap.store.catalog import SessionFile, chosen, is_path, list_sessions, meant
from sigwrap.store.removal import Surplus, remove, surplus

Amount = TypeVar("Amount", int, float)


def register(app: typer.Typer) -> None:
    app.command("rm", epilog=examples("sessions rm"))(rm)
    app.command(epilog=examples("sessions prune"))(prune)


def rm(
    context: typer.Context,
    sessions: Annotated[
        list[str],
        typer.Argument(
            metavar="SESSION...", help="Session id, its unique start or end, or a session name"
        ),
    ],
    store: StoreOption = None,
) -> int:
    """Remove sessions with all their files, except running ones."""
    refuse_inside("processes in a session can't remove sessions")
    folder = existing_store(context.obj if store is None else store)
    known = list_sessions(folder)
    wanted = {file.id: file for file in (meant_one(folder, known, word) for word in sessions)}
    return _remove(folder, list(wanted.values()), dry_run=False)


def meant_one(folder: str, known: list[SessionFile], word: str) -> SessionFile:
    """What is clear enough for a list to be shown isn't for one to be removed."""
    if not word:
        raise UsageError("the session can't be empty", "give an id or a name")
    if is_path(word):
        raise UsageError(f"{shell_words([word])} is a file", "give the session's id or name")
    found = chosen(known, word)
    if found is None:
        raise SessionError(f"no session is called {word!r} in {folder}", meant(folder, word))
    same = [file.id for file in known if file.name == word]
    if found.id != word and found.name == word and len(same) > 1:
        raise SessionError(
            f"{len(same)} sessions are called {word!r}", f"give an id: {', '.join(same)}"
        )
    return found


def prune(
    context: typer.Context,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            help="Remove sessions that ended longer ago, such as 12h, 30d, 1d12h or 8w",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            metavar="N",
            help="Keep the N latest; without other options, remove all others",
            show_default=False,
        ),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            help="Remove the oldest until the rest fits, such as 500M or 1G",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be removed")
    ] = False,
    store: StoreOption = None,
) -> int:
    """Remove old sessions, and sockets left by killed ones."""
    refuse_inside("processes in a session can't remove sessions")
    if older_than is None and keep is None and max_size is None:
        raise UsageError(
            "one of --older-than, --keep and --max-size is needed",
            "such as sigwrap sessions prune --older-than 30d --keep 20",
        )
    if keep is not None and keep < 0:
        raise UsageError(f"--keep {keep}: must be 0 or more")
    wanted = Surplus(
        older_than_s=None if older_than is None else _read("--older-than", older_than, span_s),
        keep=keep,
        max_size=None if max_size is None else _read("--max-size", max_size, size_bytes),
    )
    folder = existing_store(context.obj if store is None else store)
    known = list_sessions(folder)
    result = _remove(folder, surplus(known, wanted, time.time_ns()), dry_run=dry_run)
    _remove_left(folder, known, dry_run=dry_run)
    return result


def _read(option: str, word: str, reader: Callable[[str], Amount]) -> Amount:
    try:
        return reader(word)
    except ValueError as error:
        raise UsageError(f"{option} {word}: {error}") from error


def _remove(folder: str, sessions: Iterable[SessionFile], *, dry_run: bool) -> int:
    """Whatever becomes of one, the others are gone through."""
    count = size = 0
    status = 0
    lines = []
    now_ns = time.time_ns()
    for file in sessions:
        what = f"{printable(file.id)}  {rough_span(now_ns - file.started_ns)} old  "
        if file.problem:
            what = f"{printable(file.id)}  "
        named = f"({printable(file.name)}) " if file.name else ""
        what += f"{byte_size(file.size)}  {named}{shell_words(file.command)[:200]}"
        try:
            if not dry_run:
                size += _remove_one(folder, file)
        except SigwrapError as failure:
            note(*failure.lines)
            status = REFUSED
            continue
        size += file.size if dry_run else 0
        count += 1
        lines.append(f"{'would remove' if dry_run else 'removed'} {what.rstrip()}")
    done = "would be removed" if dry_run else "removed"
    freed = "would be freed" if dry_run else "freed"
    if count or not status:
        lines.append(f"{counted(count, 'session')} {done}, {byte_size(size)} {freed}")
    with reader_may_leave():
        for line in lines:
            out(line)
    return status


def _remove_one(folder: str, file: SessionFile) -> int:
    """How much was freed."""
    if not file.ended_cleanly and is_listened_at(folder, file.id):  # somebody took its journal
        raise runs(file.id)
    removed = remove(folder, file.id, file.files)
    remove_left(folder, [each for each in left_sockets(folder) if each.session_id == file.id])
    if removed.left:
        raise SessionError(
            f"session {printable(file.id)}: not removed: links or files of another user: "
            f"{', '.join(map(printable, removed.left))}",
            "check them and remove them by hand",
        )
    return removed.size


def _remove_left(folder: str, sessions: list[SessionFile], *, dry_run: bool) -> None:
    running = {file.id for file in sessions if file.running}
    left = [each for each in left_sockets(folder) if each.session_id not in running]
    count = len(left) if dry_run else remove_left(folder, left)
    if count:
        done = "would be removed" if dry_run else "removed"
        where = os.path.join(folder, "control")
        with reader_may_leave():
            out(f"{counted(count, 'socket')} of killed sessions {done} from {where}")
