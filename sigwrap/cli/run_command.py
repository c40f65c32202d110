"""sigwrap run, as typer has it: its help, and errors in its line."""

from __future__ import annotations

from typing import Any

import typer
from typer._types import TyperChoice
from typer.core import TyperArgument, TyperOption

from sigwrap import errors
from sigwrap.cli.group import App, Command
from sigwrap.cli.run_options import RUN_OPTIONS, RunOption, read_run_line
from sigwrap.session.settings import RunSettings

_STATUS_HELP = "\n".join(
    ["\b", "Exit status:", *(f"  {code:<5}  {why}" for code, why in errors.TABLE)]
)

app = App()


class _Run(Command):
    """Reads its line by the table, and lets typer make the help and completion alone."""

    def __init__(self, **settings: Any) -> None:
        command = TyperArgument(
            param_decls=["command"], nargs=-1, metavar="COMMAND [ARGS]...", help="Command to run"
        )
        super().__init__(**{**settings, "params": [command, *map(_parameter, RUN_OPTIONS)]})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        settings = None if ctx.resilient_parsing else read_run_line(["run", *args])
        if settings is None:
            return super().parse_args(ctx, ["--help"] if not ctx.resilient_parsing else args)
        ctx.obj = settings
        return []


def _parameter(option: RunOption) -> TyperOption:
    default: Any = RunSettings._field_defaults[option.field]
    is_choice = hasattr(default, "value")
    return TyperOption(
        param_decls=[*option.names, option.field],
        is_flag=not option.wanted,
        type=TyperChoice(option.wanted.split("|")) if option.wanted and is_choice else str,
        metavar=None if is_choice else option.wanted,
        help=option.help,
        default=_word(default) if option.wanted else None,
        show_default=True,
        multiple=option.repeats,
    )


def _word(default: Any) -> str | None:
    if isinstance(default, float):
        return f"{default:g}s"
    return str(getattr(default, "value", default)) if default else None


@app.command(cls=_Run, epilog=_STATUS_HELP, context_settings={"allow_interspersed_args": False})
def run(context: typer.Context) -> int:
    """Run a command under supervision.

    Same as: sigwrap [OPTIONS] -- COMMAND [ARGS…]

    With -c LINE instead of a command, it runs a line of shell in bash, or in sh without bash.
    """
    from sigwrap.cli.run import start  # the help does without

    return start(context.obj)
