"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, TypeVar

import typer
from typer._types import TyperChoice
from typer.core import TyperOption

from sigwrap.errors import SessionError, UsageError
from sigwrap.store.location import DEFAULT_STORE, default_store

_FORMAT = "sigwrap.format"


def _named(option: str | None) -> str | None:
    if option == "":
        raise UsageError("--store '': the directory can't be empty")
    return option


def _utc(context: typer.Context, value: bool) -> bool:
    return value or bool(context.find_root().params.get("utc"))


def _no_pager(context: typer.Context, value: bool) -> bool:
    return value or bool(context.find_root().params.get("no_pager"))


def _as_json(context: typer.Context, value: bool) -> bool:
    return value or context.meta.get(_FORMAT) == "json"


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help=f"Directory for session logs [default: {DEFAULT_STORE}]",
        callback=_named,
    ),
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]",
        help="Session id, its unique start or end, a session name, or a log file "
        "[default: the latest session]",
    ),
]
# sigwrap itself has these two for every command; they are still accepted after a command.
UTC_HELP = "Show times in UTC"
NO_PAGER_HELP = "Print without a pager ($SIGWRAP_PAGER, $PAGER or less)"
UtcOption = Annotated[bool, typer.Option("--utc", help=UTC_HELP, hidden=True, callback=_utc)]
PagerOption = Annotated[
    bool, typer.Option("--no-pager", help=NO_PAGER_HELP, hidden=True, callback=_no_pager)
]
# The old name of --format json, which add_format adds to a command that has only this one.
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON", hidden=True, callback=_as_json)
]


def add_format(command: Any) -> None:
    """Add `--format text|json` to a command with a hidden --json and no formats of its own."""
    names = {name: number for number, each in enumerate(command.params) for name in each.opts}
    number = names.get("--json")
    if number is None or not command.params[number].hidden or "--format" in names:
        return
    command.params.insert(
        number,
        TyperOption(
            param_decls=["--format"],
            type=TyperChoice(["text", "json"]),
            default="text",
            show_default=True,
            help="Output format",
            expose_value=False,
            is_eager=True,  # before --json, whose callback asks for it
            callback=lambda context, _option, value: context.meta.update({_FORMAT: value}),
        ),
    )


def words_of(kind: Iterable[Any]) -> Any:
    """Make an enumeration of the standard library, which typer knows, of one of our own."""
    return Enum("Words", {each.name: each.value for each in kind})


_Format = TypeVar("_Format", bound=Enum)


def chosen_format(chosen: _Format | None, default: _Format, *, as_json: bool) -> _Format:
    """Return the format that `--format`, or its old name `--json`, asks for."""
    json = type(default)("json")
    if as_json and chosen is not None and chosen is not json:
        raise UsageError(f"--json and --format {chosen.value} can't be combined")
    return json if as_json else chosen or default


def store_folder(option: str | None) -> str:
    return default_store(os.environ) if option is None else option


def existing_store(option: str | None) -> str:
    """Return the store; an error if the user named one that does not exist."""
    store = store_folder(option)
    is_named = option is not None or bool(os.environ.get("SIGWRAP_STORE"))
    if is_named and not os.path.isdir(store):
        what = "is not a directory" if os.path.exists(store) else "does not exist"
        raise SessionError(f"the store {store} {what}", "choose another with --store")
    return store


def watched_store(option: str | None) -> str:
    """Return the store; an error if `--store` names one that does not exist."""
    return store_folder(None) if option is None else existing_store(option)
