"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from collections.abc import Iterable
from enum import Enum
from typing import Annotated, Any, TypeVar

import typer

from sigwrap.errors import SessionError, UsageError
from sigwrap.store.location import DEFAULT_STORE, default_store


def _named(option: str | None) -> str | None:
    if option == "":
        raise UsageError("--store '': the directory can't be empty")
    return option


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help=f"Directory for session logs [default: {DEFAULT_STORE}]",
        show_default=False,
        callback=_named,
    ),
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]",
        help="Session id, its unique start or end, a session name, or a log file "
        "[default: the latest session]",
        show_default=False,
    ),
]
UtcOption = Annotated[bool, typer.Option("--utc", help="Show times in UTC")]
PagerOption = Annotated[
    bool,
    typer.Option("--no-pager", help="Print without a pager ($SIGWRAP_PAGER, $PAGER or less)"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON")]

_Format = TypeVar("_Format", bound=Enum)


def words_of(kind: Iterable[Any]) -> Any:
    """An enumeration as typer knows them, of the words of one that is none of the standard
    library's."""
    return Enum("Words", {each.name: each.value for each in kind})


def chosen_format(chosen: _Format | None, default: _Format, *, as_json: bool) -> _Format:
    """Of `--format`, for which `--json` is another word."""
    json = type(default)("json")
    if as_json and chosen is not None and chosen is not json:
        raise UsageError(f"--json and --format {chosen.value} can't be combined")
    return json if as_json else chosen or default


def store_folder(option: str | None) -> str:
    return default_store(os.environ) if option is None else option


def existing_store(option: str | None) -> str:
    """Return the store; an error where the user named one that does not exist."""
    store = store_folder(option)
    is_named = option is not None or bool(os.environ.get("SIGWRAP_STORE"))
    if is_named and not os.path.isdir(store):
        raise SessionError(f"the store {store} does not exist", "choose another with --store")
    return store


def watched_store(option: str | None) -> str:
    """Return the store; an error if `--store` names one that does not exist."""
    return store_folder(None) if option is None else existing_store(option)
