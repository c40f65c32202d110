"""killswitch on, off, status: the end of every session of this user, and none until it is off."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Annotated

import typer

from sigwrap import status as statuses
from sigwrap.cli.control import refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.group import Group
from sigwrap.cli.options import JsonOption, StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.errors import StoreError, UsageError
from sigwrap.linux import proc_files
from sigwrap.linux.supervisors import hides_processes
from sigwrap.report.forms.counts import counted
from sigwrap.report.forms.times import iso_time
from sigwrap.run.activation import Activated, activate
from sigwrap.store import killswitch
from sigwrap.store.killswitch import State

STATUS_SCHEMA = "sigwrap.killswitch-status/1"  # the file's own has another form
_HELD_BACK = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP)

app = typer.Typer(
    cls=Group, no_args_is_help=True, help="End every session now, and let none start until off."
)


@app.command(epilog=examples("killswitch on"))
def on(
    reason: Annotated[
        str, typer.Option("--reason", metavar="R", help="Shown to whoever it concerns.")
    ] = "",
    store: StoreOption = None,
) -> int:
    """End every session now, and let none start until off.

    Every session of this user on this machine.
    """
    proc_files.hold()
    proc_files.require()
    refuse_inside("nobody inside a session turns it on")
    signal.pthread_sigmask(signal.SIG_BLOCK, _HELD_BACK)  # half of it would be worse than late
    activated = activate(lambda: store_folder(store), reason)
    note(*activated.without)
    if activated.left:
        left = ", ".join(str(pid) if pid else "one that isn't seen here" for pid in activated.left)
        note(f"these supervisors were told, or killed, and have not ended: {left}")
    if hides_processes():
        note("/proc shows no processes of others (hidepid): a session may be left that hides there")
    if activated.may_be_more:
        note("not all that looks like a session could be looked at: one may be left")
    if activated.without:
        raise StoreError(
            f"{_ended(activated)}; but others can start, for nothing keeps them from it",
            "see to it that the file can be written, and turn it on again",
        )
    out(f"{activated.state}\n{_ended(activated)}; none starts until sigwrap killswitch off")
    return statuses.REFUSED if activated.left or activated.may_be_more else 0


@app.command(epilog=examples("killswitch off"))
def off(
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
    store: StoreOption = None,
) -> None:
    """Let sessions start again."""
    refuse_inside("nobody inside a session turns it off")
    stores = _stores(store)
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


@app.command(epilog=examples("killswitch status"))
def status(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Say whether it is on, since when, by whom and why."""
    state = killswitch.known(_stores(store))
    if not as_json:
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


def _stores(option: str | None) -> tuple[str, ...]:
    """StoreError where there is none."""
    return killswitch.stores(store_folder(option), os.environ)


def _confirm(state: State) -> None:
    if not sys.stdin.isatty():
        raise UsageError(f"{state}; there is no terminal to ask on", "sigwrap killswitch off --yes")
    note(str(state))
    if not typer.confirm("sigwrap: turn it off?", err=True):
        raise typer.Abort


def _ended(activated: Activated) -> str:
    count = activated.ended + activated.forced
    if not count:
        return "no session was running"
    ended = f"{counted(count, 'session')} ended"
    if not activated.forced:
        return ended
    was = "was" if activated.forced == 1 else "were"
    return f"{ended} ({activated.forced} {was} held up, and killed from here)"
