"""sigwrap sessions recover: the logs of sessions that were killed, each in one file."""

from __future__ import annotations

from typing import Annotated

import typer

from sigwrap.cli.control import refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.options import StoreOption, existing_store
from sigwrap.cli.output import note, out
from sigwrap.cli.sessions_removal import meant_one
from sigwrap.cli.showing import reader_may_leave
from sigwrap.errors import SigwrapError
from sigwrap.escape import printable
from sigwrap.outcomes import counted
from sigwrap.protocols.left_sockets import is_listened_at, left_sockets, remove_left
from sigwrap.status import REFUSED
from sigwrap.store.belongings import runs
from sigwrap.store.catalog import SessionFile, list_sessions
from sigwrap.store.recovery import recover as recover_session


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("sessions recover"))(recover)


def recover(
    context: typer.Context,
    sessions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SESSION...]",
            help="Session id, its unique start or end, or a session name [default: every killed "
            "session]",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Merge the log of a killed session into one file.

    Any SQLite client can then read it.
    """
    refuse_inside("processes in a session can't recover sessions")
    folder = existing_store(context.obj if store is None else store)
    known = list_sessions(folder)
    if sessions:
        wanted = [meant_one(folder, known, word) for word in sessions]
    else:
        wanted = [file for file in known if file.is_in_several_files]
    status = 0
    lines = []
    for file in wanted:
        try:
            lines.append(_recover(folder, file))
        except SigwrapError as failure:
            note(*failure.lines)
            status = REFUSED
    with reader_may_leave():
        for line in lines or ([] if status else ["nothing to recover"]):
            out(line)
    return status


def _recover(folder: str, file: SessionFile) -> str:
    shown = printable(file.id)
    if file.running or is_listened_at(folder, file.id):
        raise runs(file.id)
    if not file.is_in_several_files:
        return f"{shown}: already in one file"
    events = recover_session(folder, file.id, file.files)
    remove_left(folder, [each for each in left_sockets(folder) if each.session_id == file.id])
    return f"{shown}: {counted(events, 'event')}, now in {printable(file.path)}"
