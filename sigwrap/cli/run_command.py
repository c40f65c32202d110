"""`sigwrap run` as typer has it: its help, and errors in its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from typer._types import TyperChoice
from typer.core import TyperArgument, TyperCommand, TyperOption

from sigwrap import status
from sigwrap.cli.examples import examples
from sigwrap.cli.run_options import RUN_OPTIONS, FlagOption, ValueOption
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.run.settings import RunSettings

_HELP = """Run a command under supervision.

Same as: sigwrap [OPTIONS] -- COMMAND [ARGS…]
"""
_STATUS_HELP = "\n".join(
    ["\b", "Exit status:", *(f"  {code:<5}  {why}" for code, why in status.TABLE)]
)


class _Run(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = args[:-1] if args[-1:] == ["--"] else list(args)
        rest = super().parse_args(ctx, args)
        if not ctx.params["command"] and not ctx.resilient_parsing:
            line = shell_words([*words, "--", "npm", "start"])
            raise UsageError("no command given", f"sigwrap {line}")
        return rest


def _run(command: list[str], **given: Any) -> int:
    from sigwrap.cli.run import start  # the help does without

    fields: dict[str, Any] = {}
    for option in RUN_OPTIONS:
        value = given[option.field]
        match option:
            case ValueOption(kind=kind) if value is not None:
                fields[option.field] = kind.read(value)
            case FlagOption(choices):
                # True for the first word, False for the second.
                chosen = dict(zip((True, False), choices.values(), strict=False))
                fields |= {option.field: chosen[value]} if value in chosen else {}
    return start(RunSettings(command=tuple(command), **fields))


def _parameter(option: ValueOption | FlagOption) -> TyperOption:
    if isinstance(option, FlagOption):
        return TyperOption(
            param_decls=["/".join(option.choices), option.field],
            is_flag=True,
            default=None,
            help=option.help,
        )
    kind = option.kind
    return TyperOption(
        param_decls=[*option.names, option.field],
        type=TyperChoice(kind.wanted.split("|")) if kind.is_choice else str,
        metavar=None if kind.is_choice else kind.wanted,
        help=option.help,
        default=_word(RunSettings._field_defaults[option.field]),
        show_default=True,
        callback=_checked(option),
    )


def _word(default: Any) -> str | None:
    if isinstance(default, float):
        return f"{default:g}s"
    return str(getattr(default, "value", default)) if default else None


def _checked(option: ValueOption) -> Callable[[Any, Any, str | None], str | None]:
    def check(_context: Any, _parameter: Any, word: str | None) -> str | None:
        try:
            if word is not None:
                option.kind.read(word)
        except ValueError as error:
            raise UsageError(f"{option.names[0]} {error}") from error
        return word

    return check


RUN = _Run(
    "run",
    callback=_run,
    help=_HELP,
    epilog=f"{examples('run')}\n\n{_STATUS_HELP}",
    rich_markup_mode=None,
    context_settings={"allow_interspersed_args": False},
    params=[
        TyperArgument(
            param_decls=["command"],
            nargs=-1,
            metavar="COMMAND [ARGS]...",
            help="Command to run",
            show_default=False,
        ),
        *map(_parameter, RUN_OPTIONS),
    ],
)
