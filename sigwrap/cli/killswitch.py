"""killswitch on, off, status: end all sessions of this user, and block new ones."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Annotated

import typer

from sigwrap import errors as statuses
from sigwrap.cli.control import refuse_inside
from sigwrap.cli.group import App, Group
from sigwrap.cli.options import Format, FormatOption, StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.control import killswitch
from sigwrap.control.activation import activate, hides_processes
from sigwrap.control.killswitch import State
from sigwrap.errors import StoreError, UsageError
from sigwrap.kernel import procfs
from sigwrap.report.forms.times import iso_time
from sigwrap.text import first_of
from sigwrap.watch.actions import ended_sessions

STATUS_SCHEMA = "sigwrap.killswitch-status/1"  # the file itself has another schema
_BLOCKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)

app = App(name="killswitch", cls=Group, help="End all your sessions and block new ones.")


@app.command()
def on(
    reason: Annotated[str, typer.Option(metavar="R", help="Reason to show and log")] = "",
    store: StoreOption = None,
) -> int:
    """End all your sessions on this machine, and block new ones.

    New sessions can start again after sigwrap killswitch off.
    """
    procfs.hold()
    procfs.require()
    refuse_inside("processes in a session can't turn on the kill switch")
    signal.pthread_sigmask(signal.SIG_BLOCK, _BLOCKED)  # an interrupt would leave it half done
    activated = activate(lambda: store_folder(store), reason)
    note(*activated.without)
    if activated.left:
        note(f"these supervisors have not ended yet: {', '.join(map(str, activated.left))}")
    if activated.unreached:
        sessions = first_of(list(activated.unreached))
        note(f"these sessions run out of reach, as in another container: {sessions}")
    if hides_processes():
        note("/proc hides processes (hidepid): a session with another store may still be running")
    elif activated.may_be_more:
        note("some processes could not be checked: a session may still be running")
    ended = ended_sessions(activated)
    if activated.without:
        raise StoreError(
            f"{ended}, but new sessions can start: the kill switch could not be set",
            "make its file writable and turn it on again",
        )
    out(f"{activated.state}\n{ended}; to allow new sessions: sigwrap killswitch off")
    return 0 if activated.is_complete else statuses.REFUSED


@app.command()
def off(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation")] = False,
    store: StoreOption = None,
) -> None:
    """Allow new sessions again."""
    refuse_inside("processes in a session can't turn off the kill switch")
    stores = killswitch.stores(store_folder(store), os.environ)
    state = killswitch.known(stores)
    if state is None:
        out("the kill switch is off")
        return
    if not yes:
        _confirm(state)
    if failures := killswitch.remove(stores):
        note(*failures[:-1])
        raise StoreError(failures[-1], "the kill switch is still on")
    out("the kill switch is off: sessions can start again")


@app.command()
def status(store: StoreOption = None, form: FormatOption = Format.TEXT) -> None:
    """Show whether the kill switch is on, since when and why."""
    state = killswitch.known(killswitch.stores(store_folder(store), os.environ))
    if form is Format.TEXT:
        out("the kill switch is off" if state is None else str(state))
        return
    known = State() if state is None else state
    document = {
        "schema": STATUS_SCHEMA,
        "on": state is not None,
        "since": iso_time(known.since_ns) if known.since_ns else None,
        "by": known.by or None,
        "reason": known.reason or None,
    }
    out(json.dumps(document, indent=2))


def _confirm(state: State) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{state}; no terminal to confirm on", "sigwrap killswitch off --yes")
    note(str(state))
    if not typer.confirm("sigwrap: turn off the kill switch?", err=True):
        raise typer.Abort
