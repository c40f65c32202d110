"""Every command, and how an error becomes a line."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from typer.exceptions import TyperException

import sigwrap
from sigwrap import status
from sigwrap.cli import approvals as approval_commands
from sigwrap.cli import completion as completion_command
from sigwrap.cli import doctor as doctor_command
from sigwrap.cli import export as export_command
from sigwrap.cli import help as help_command
from sigwrap.cli import hook as hook_command
from sigwrap.cli import killswitch as killswitch_commands
from sigwrap.cli import link as link_command
from sigwrap.cli import man as man_command
from sigwrap.cli import query as query_command
from sigwrap.cli import replay as replay_command
from sigwrap.cli import report as report_command
from sigwrap.cli import serve as serve_command
from sigwrap.cli import sessions as sessions_command
from sigwrap.cli import signal as signal_command
from sigwrap.cli import verify as verify_command
from sigwrap.cli import watch as watch_command
from sigwrap.cli import why as why_command
from sigwrap.cli.examples import examples
from sigwrap.cli.group import App, Root, explained
from sigwrap.cli.output import note, out
from sigwrap.cli.policy import commands as policy_commands
from sigwrap.cli.run_command import Run, run
from sigwrap.errors import InternalError, SigwrapError
from sigwrap.linux.descriptors import reserve_standard_streams

_HELP = """Run a command under supervision.

sigwrap [OPTIONS] -- COMMAND [ARGS…] applies a policy to everything that the command's processes
run, signal and connect to, logs it, and ends all of them on Ctrl+C. Options: sigwrap run --help.

sigwrap [OPTIONS] claude|codex|gemini [ARGS…] runs that agent with a preset: its policy,
options and environment.
"""

_STATUS_HELP = "\n".join(
    ["\b", "Exit status:", *(f"  {code:<5}  {why}" for code, why in status.TABLE)]
)


app = App(
    cls=Root,
    help=_HELP,
    epilog=_STATUS_HELP,
    rich_markup_mode=None,
    add_completion=False,  # sigwrap completion is ours
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run_app(words: list[str]) -> int:
    reserve_standard_streams(output_may_be_closed=False)
    try:
        result = app(words, standalone_mode=False, prog_name="sigwrap")
    except TyperException as problem:
        note(*explained(problem, "sigwrap").lines)
        return status.REFUSED
    except typer.Abort:
        return status.INTERRUPTED
    except SigwrapError as failure:
        note(*failure.lines)
        return failure.status
    except BrokenPipeError:
        return status.from_signal(13)
    except MemoryError:
        note("not enough memory")
        return status.REFUSED
    except (OSError, ImportError):
        raise  # __main__ says what the system refused, or can't be loaded
    except Exception as bug:
        if os.environ.get("SIGWRAP_DEBUG"):
            raise
        note(*InternalError.of(bug).lines)
        return status.REFUSED
    return result if isinstance(result, int) else 0


def _version(wanted: bool) -> None:
    if wanted:
        from sigwrap.linux.execs.repeated import is_wanted

        how = "with C extension" if is_wanted() else "without C extension"
        out(f"sigwrap {sigwrap.__version__}, {how}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version")
    ] = False,
) -> None: ...


app.command(
    context_settings={"allow_interspersed_args": False},
    epilog=f"{examples('run')}\n\n{_STATUS_HELP}",
    cls=Run,
)(run)
sessions_command.register(app)
report_command.register(app)
replay_command.register(app)
verify_command.register(app)
approval_commands.register(app)
watch_command.register(app)
signal_command.register(app)
serve_command.register(app)
why_command.register(app)
query_command.register(app)
export_command.register(app)
doctor_command.register(app)
hook_command.register(app)
completion_command.register(app)
link_command.register(app)
help_command.register(app)
man_command.register(app)
app.add_typer(policy_commands.app, name="policy")
app.add_typer(killswitch_commands.app, name="killswitch")
