"""Every command, and how an error becomes a line."""

from __future__ import annotations

import os
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
from sigwrap.cli.run_command import run
from sigwrap.cli.run_options import is_run_option
from sigwrap.errors import InternalError, SigwrapError, UsageError
from sigwrap.escape import shell_words
from sigwrap.linux.descriptors import reserve_standard_streams
from sigwrap.policy.problems import nearest_word

_HELP = """Run a command under supervision.

sigwrap [OPTIONS] -- COMMAND [ARGS…] records what the command's processes execute and whom they
signal, stops them cleanly on Ctrl+C, and leaves none behind. Its options: sigwrap run --help.
"""

_LINE_SHOWN = 60
_STATUS_HELP = "Exit status: " + "; ".join(f"{code}: {why}" for code, why in status.TABLE) + "."


class _Group(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] and args[0].startswith("-") and args[0] not in ("-h", "--help", "--version"):
            if "--" not in args and is_run_option(args[0]):
                raise UsageError("-- is missing before the command", "sigwrap -p ci -- npm start")
            args = ["run", *args] if "--" in args else args
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if self.get_command(ctx, word) is None:
            near = nearest_word(word, self.list_commands(ctx))
            meant = f"did you mean sigwrap {near}? " if near else ""
            raise UsageError(
                f"{shell_words([word])} is no command of sigwrap's",
                f"{meant}to run it: sigwrap -- {_shortened(args)}; all commands: sigwrap --help",
            )
        return super().resolve_command(ctx, args)


def _shortened(words: list[str]) -> str:
    line = shell_words(words)
    return line if len(line) <= _LINE_SHOWN else f"{line[: _LINE_SHOWN - 1]}…"


app = typer.Typer(
    cls=_Group,
    help=_HELP,
    epilog=_STATUS_HELP,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run_app(words: list[str]) -> int:
    reserve_standard_streams()
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
    except MemoryError:
        note("there is not enough memory for that")
        return status.REFUSED
    except OSError:
        raise  # __main__ says what the system refused
    except Exception as bug:
        if os.environ.get("SIGWRAP_DEBUG"):
            raise
        note(str(InternalError.of(bug)))
        return status.REFUSED
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


app.command(context_settings={"allow_interspersed_args": False}, epilog=_STATUS_HELP)(run)
reading.register(app)
approval_commands.register(app)
why_command.register(app)
export_command.register(app)
app.add_typer(policy_commands.app, name="policy")
