"""sigwrap as typer has it: every command, and how an error becomes a line."""

from __future__ import annotations

import os
from typing import Any

import typer
from typer.core import TyperOption
from typer.exceptions import TyperException

from sigwrap import errors
from sigwrap.cli.group import LazyGroup, explained
from sigwrap.cli.options import NO_PAGER_HELP, UTC_HELP
from sigwrap.cli.output import note, out, version
from sigwrap.cli.run_options import BEFORE_A_COMMAND
from sigwrap.cli.table import COMMANDS, OLD_NAMES
from sigwrap.errors import InternalError, SigwrapError
from sigwrap.kernel.descriptors import reserve_standard_streams
from sigwrap.session.settings import AGENTS
from sigwrap.text import shell_words, shortened

_HELP = """Run a command under supervision.

sigwrap [OPTIONS] -- COMMAND [ARGS…] applies a policy to everything that the command's processes
run, signal and connect to, logs it, and ends all of them on Ctrl+C.

sigwrap [OPTIONS] claude|codex|gemini [ARGS…] runs that agent with a preset: its policy,
options and environment. sigwrap [OPTIONS] -c LINE runs a line of shell.
"""
_FIRST_OPTIONS = ("policy", "name", "approvals", "notify", "grace_s", "store")
_LINE_SHOWN = 60
_ALL = "sigwrap.all"


class Root(LazyGroup):
    """`sigwrap` itself, whose options are those of a run."""

    table = COMMANDS

    def words(self) -> dict[str, str]:
        return {**super().words(), **dict.fromkeys(AGENTS, "Run this agent")}

    def other_meaning(self, args: list[str]) -> str:
        line = shortened(shell_words(args), _LINE_SHOWN)
        return f"To run a program of that name: sigwrap -- {line}"

    def format_options(self, ctx: Any, formatter: Any) -> None:
        options = self.get_command(ctx, "run").params[1:]
        if not ctx.meta.get(_ALL):
            options = [each for each in options if each.name in _FIRST_OPTIONS]
        with formatter.section("Options of a run"):
            formatter.write_dl([each.get_help_record(ctx) for each in options])
        with formatter.section("Global options"):
            formatter.write_dl([each.get_help_record(ctx) for each in self.get_params(ctx)])
        self.format_commands(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        found = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return found
        return [*self.get_command(ctx, "run").shell_complete(ctx, incomplete), *found]

    def _main_shell_completion(self, *_: Any, **_named: Any) -> None:
        """Ignore the environment variable by which typer completes instead of running."""


def _print_version(context: Any, _option: object, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        out(version())
        raise typer.Exit


def _print_all_help(context: Any, _option: object, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.meta[_ALL] = True
        out(context.get_help())
        raise typer.Exit


def _flag(name: str, help_text: str, callback: Any = None) -> TyperOption:
    """Make an option of sigwrap itself; one with a callback prints something and ends."""
    return TyperOption(
        param_decls=[name],
        is_flag=True,
        default=False,
        help=help_text,
        callback=callback,
        is_eager=callback is not None,
        expose_value=callback is None,
    )


ROOT = Root(
    name="sigwrap",
    help=_HELP,
    epilog="Exit status of a run: sigwrap help exit-status",
    params=[
        _flag("--utc", UTC_HELP),
        _flag("--no-pager", NO_PAGER_HELP),
        _flag("--version", "Show the version", _print_version),
        _flag("--help-all", "Show this message with every option of a run", _print_all_help),
    ],
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def renamed(words: list[str]) -> list[str]:
    """Return the line with a command's new name in place of its old one, and note that name."""
    start = next((at for at, word in enumerate(words) if word not in BEFORE_A_COMMAND), 0)
    before, line = words[:start], words[start:]
    for old, new in OLD_NAMES.items():
        path = old.split()
        if line[: len(path)] == path:
            note(f'"{old}" is now "{new}"')
            return [*before, *new.split(), *line[len(path) :]]
    return words


def run_app(words: list[str]) -> int:
    reserve_standard_streams(output_may_be_closed=False)
    try:
        result = ROOT.main(renamed(words), standalone_mode=False, prog_name="sigwrap")
    except TyperException as problem:
        note(*explained(problem, "sigwrap").lines)
        return errors.REFUSED
    except typer.Abort:
        return errors.INTERRUPTED
    except SigwrapError as failure:
        note(*failure.lines)
        return failure.status
    except BrokenPipeError:
        return errors.from_signal(13)
    except (OSError, ImportError, MemoryError):
        raise  # __main__ prints a line about these
    except Exception as bug:
        if os.environ.get("SIGWRAP_DEBUG"):
            raise
        note(*InternalError.of(bug).lines)
        return errors.REFUSED
    return result if isinstance(result, int) else 0
