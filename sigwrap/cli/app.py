"""Every command, and how an error becomes a line."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

import sigwrap
from sigwrap import status
from sigwrap.cli import approvals as approval_commands
from sigwrap.cli import export as export_command
from sigwrap.cli import policy as policy_commands
from sigwrap.cli import reading
from sigwrap.cli import why as why_command
from sigwrap.cli.output import note, out
from sigwrap.cli.run import start
from sigwrap.errors import SigwrapError, UsageError
from sigwrap.run.settings import (
    DEFAULT_APPROVAL_TIMEOUT_S,
    DEFAULT_GRACE_S,
    DEFAULT_POLICY,
    Approvals,
    Nested,
    Report,
    RunSettings,
)

_HELP = """Run a command under supervision.

sigwrap [OPTIONS] -- COMMAND [ARGS…] records what the command's processes execute and whom they
signal, stops them cleanly on Ctrl+C, and leaves none behind. Its options: sigwrap run --help.
"""

_STATUS_HELP = "Exit status: " + "; ".join(f"{code}: {why}" for code, why in status.TABLE) + "."


class _Group(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args and (args[0].startswith("-")) and args[0] not in ("--help", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Group,
    help=_HELP,
    epilog=_STATUS_HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run_app(words: list[str]) -> int:
    try:
        result = app(words or ["--help"], standalone_mode=False, prog_name="sigwrap")
    except TyperException as problem:
        context = getattr(problem, "ctx", None)
        path = context.command_path if context is not None else "sigwrap"
        note(str(UsageError(problem.format_message(), f"see {path} --help")))
        return status.REFUSED
    except typer.Abort:
        return status.INTERRUPTED
    except SigwrapError as failure:
        note(str(failure))
        return failure.status
    except BrokenPipeError:
        return status.from_signal(13)
    return result if isinstance(result, int) else 0


def _version(wanted: bool) -> None:
    if wanted:
        out(f"sigwrap {sigwrap.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which one.")
    ] = False,
) -> None: ...


@app.command(context_settings={"allow_interspersed_args": False}, epilog=_STATUS_HELP)
def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND [ARGS]...", help="What to run.", show_default=False),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="What is allowed.")
    ] = DEFAULT_POLICY,
    root: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="The workspace, ${PROJECT_ROOT} in a policy; by default the current folder.",
            show_default=False,
        ),
    ] = ".",
    name: Annotated[str, typer.Option(help="A label for the session.", show_default=False)] = "",
    store: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="Where the log goes: $SIGWRAP_STORE, else $XDG_STATE_HOME/sigwrap, "
            "else ~/.local/state/sigwrap.",
            show_default=False,
        ),
    ] = "",
    grace: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="From the first Ctrl+C to SIGKILL."),
    ] = DEFAULT_GRACE_S,
    approvals: Annotated[
        Approvals,
        typer.Option(help="Who answers where a rule asks: terminal, control socket, nobody."),
    ] = Approvals.AUTO,
    approval_timeout: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0, help="Without an answer by then, it is no."),
    ] = DEFAULT_APPROVAL_TIMEOUT_S,
    report: Annotated[
        bool | None,
        typer.Option(
            "--report/--no-report",
            help="A summary on stderr at the end; by default where stderr is a terminal, "
            "and one line where $CI is set.",
            show_default=False,
        ),
    ] = None,
    best_effort: Annotated[
        bool,
        typer.Option("--best-effort", help="Run even where interception can't be had."),
    ] = False,
    nested: Annotated[
        Nested, typer.Option(help="Inside another session: refuse, or run under its rules.")
    ] = Nested.REFUSE,
    durable: Annotated[
        bool,
        typer.Option("--durable", help="Sync the log to disk before each effect; slow."),
    ] = False,
) -> int:
    """Run COMMAND under supervision (the same as: sigwrap [OPTIONS] -- COMMAND)."""
    if not command:
        raise UsageError("no command given", "sigwrap -- npm start")
    for option, seconds in (("--grace", grace), ("--approval-timeout", approval_timeout)):
        if not 0 <= seconds < math.inf:
            raise UsageError(f"{option} {seconds}: not a number of seconds")
    wanted = {None: Report.AUTO, True: Report.ALWAYS, False: Report.NEVER}[report]
    return start(
        RunSettings(
            command=tuple(command),
            policy=policy,
            root=root,
            approvals=approvals,
            approval_timeout_s=approval_timeout,
            name=name,
            store=store,
            grace_s=grace,
            report=wanted,
            best_effort=best_effort,
            nested=nested,
            durable=durable,
        )
    )


reading.register(app)
approval_commands.register(app)
why_command.register(app)
export_command.register(app)
app.add_typer(policy_commands.app, name="policy")
