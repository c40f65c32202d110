"""sigwrap sessions: what a store holds; and its subcommands, which change that."""

from __future__ import annotations

import os
import pwd
import time

import typer

from sigwrap.cli.examples import examples
from sigwrap.cli.group import App, LazyGroup
from sigwrap.cli.options import JsonOption, PagerOption, StoreOption, UtcOption, existing_store
from sigwrap.cli.output import note
from sigwrap.cli.pager import pager
from sigwrap.cli.showing import columns, style
from sigwrap.cli.table import SESSIONS
from sigwrap.escape import shell_words
from sigwrap.report.forms.sessions import Reader, render_sessions
from sigwrap.store.catalog import SessionFile, list_sessions

_FEWEST_COLUMNS = 40


class _Sessions(LazyGroup):
    table = SESSIONS

    def other_meaning(self, args: list[str]) -> str:
        if args[0] in ("list", "ls"):
            return "To list sessions: sigwrap sessions"
        return f"To show one session: sigwrap report {shell_words(args[:1])}"


app = App(
    cls=_Sessions,
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples("sessions"),
    help="List, remove or recover sessions.\n\nWithout a subcommand: list them, latest last.",
)


@app.callback()
def sessions(
    context: typer.Context,
    store: StoreOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
    no_pager: PagerOption = False,
) -> None:
    if context.invoked_subcommand is not None:
        context.obj = store  # where it is given before the subcommand
        return
    found = list_sessions(existing_store(store))
    if as_json:
        from sigwrap.report.forms.documents import sessions_json  # a third of the imports

        text = sessions_json(found)
    else:
        text = render_sessions(found, _reader(utc=utc))
    with pager(wanted=not no_pager) as show:
        show(text)
    if os.isatty(2):
        _hint(found)


def _reader(*, utc: bool) -> Reader:
    return Reader(
        now_ns=time.time_ns(),
        columns=max(columns(), _FEWEST_COLUMNS) if columns() else None,
        user=os.environ.get("USER") or os.environ.get("LOGNAME") or _account(),
        host=os.uname().nodename,
        utc=utc,
        style=style(),
    )


def _account() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def _hint(found: list[SessionFile]) -> None:
    count = sum(file.is_in_several_files and not file.problem for file in found)
    if count:
        which = "1 killed session" if count == 1 else f"{count} killed sessions"
        note(f"{which} left a log in several files; to merge them: sigwrap sessions recover")


def register(root: typer.Typer) -> None:
    root.add_typer(app, name="sessions")
