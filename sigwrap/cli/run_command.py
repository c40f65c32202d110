"""`sigwrap run` as typer has it: the help, and what is wrong with a line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from sigwrap.bare.enum import Enum
from sigwrap.cli.options import words_of
from sigwrap.cli.run import start
from sigwrap.cli.run_options import RUN_OPTIONS, FlagOption, ValueOption, value_of
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.run.settings import RunSettings

_CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="COMMAND [ARGS]...", help="Command to run", show_default=False),
]


class Run(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        words = args[:-1] if args[-1:] == ["--"] else list(args)
        rest = super().parse_args(ctx, args)
        if not ctx.params["command"]:
            line = shell_words([*words, "--", "npm", "start"])
            raise UsageError("no command given", f"sigwrap {line}")
        return rest


def run(command: list[str], **given: Any) -> int:
    """Run a command under supervision.

    Same as: sigwrap [OPTIONS] -- COMMAND [ARGS…]
    """
    fields: dict[str, Any] = {}
    for option in RUN_OPTIONS:
        match option:
            case ValueOption():
                fields[option.field] = _value(option, given[option.field])
            case FlagOption():
                fields |= _choice(option, given[option.field])
    return start(RunSettings(command=tuple(command), **fields))


def _value(option: ValueOption, given: Any) -> object:
    if given is None:
        return RunSettings._field_defaults[option.field]
    return value_of(option, given.value if issubclass(option.kind, Enum) else given)


def _checked(option: ValueOption) -> Callable[[Any], Any]:
    """With the line itself, so that one that is no more than suggested is checked too."""

    def check(given: Any) -> Any:
        try:
            _value(option, given)
        except ValueError as error:
            raise UsageError(f"{option.names[0]} {error}") from error
        return given

    return check


def _choice(option: FlagOption, given: bool | None) -> dict[str, object]:
    """typer says True for the first word, False for the second, and the default for neither."""
    chosen = dict(zip((True, False), option.choices.values(), strict=False))
    return {option.field: chosen[given]} if given in chosen else {}


def _parameters() -> list[inspect.Parameter]:
    """In the order of the table, after COMMAND."""
    return [
        _parameter("command", _CommandArgument, None),
        *(_parameter(each.field, *_annotation(each)) for each in RUN_OPTIONS),
    ]


def _annotation(option: ValueOption | FlagOption) -> tuple[Any, Any]:
    """The type with its typer.Option, and the default."""
    match option:
        case ValueOption(names, field, help_text, kind, metavar, shows_default):
            shown = typer.Option(
                *names,
                metavar=metavar,
                help=help_text,
                show_default=shows_default,
                callback=None if issubclass(kind, Enum) else _checked(option),
            )
            default = RunSettings._field_defaults[field]
            if not shows_default:  # so that who gives the default itself is seen to
                return Annotated[str | None, shown], None
            if kind is float:  # as a word, so that the table says what is wrong with it
                return Annotated[str, shown], str(default)
            if issubclass(kind, Enum):
                words = words_of(kind)
                return Annotated[words, shown], words(default.value)
            return Annotated[kind, shown], default
        case FlagOption(choices, _, help_text):
            shown = typer.Option("/".join(choices), help=help_text, show_default=False)
            return (
                (Annotated[bool | None, shown], None)
                if len(choices) == 2
                else (
                    Annotated[bool, shown],
                    False,
                )
            )


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, annotation=annotation, default=default)


# typer reads a command's options off its signature.
_signature = inspect.Signature(_parameters(), return_annotation=int)
run.__signature__ = _signature  # type: ignore[attr-defined]
run.__annotations__ = {each.name: each.annotation for each in _signature.parameters.values()}
