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
        raise UsageError("--store '': an empty word names no folder")
    return option


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help=f"Where the logs lie: {DEFAULT_STORE}.",
        show_default=False,
        callback=_named,
    ),
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]",
        help="An id, a unique beginning or end of one, a --name, or a file; left out: the latest "
        "that joined no other.",
        show_default=False,
    ),
]
UtcOption = Annotated[bool, typer.Option("--utc", help="Times in UTC, not in the local zone.")]
PagerOption = Annotated[
    bool,
    typer.Option("--no-pager", help="Never in a pager ($SIGWRAP_PAGER, $PAGER, else less)."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs.")]

_Format = TypeVar("_Format", bound=Enum)


def words_of(kind: Iterable[Any]) -> Any:
    """An enumeration as typer knows them, of the words of one that is none of the standard
    library's."""
    return Enum("Words", {each.name: each.value for each in kind})


def chosen_format(chosen: _Format | None, default: _Format, *, as_json: bool) -> _Format:
    """Of `--format`, for which `--json` is another word."""
    json = type(default)("json")
    if as_json and chosen is not None and chosen is not json:
        raise UsageError(f"--json and --format {chosen.value} exclude each other")
    return json if as_json else chosen or default


def store_folder(option: str | None) -> str:
    return default_store(os.environ) if option is None else option


def existing_store(option: str | None) -> str:
    """A store that somebody named, and that is there."""
    store = store_folder(option)
    is_named = option is not None or bool(os.environ.get("SIGWRAP_STORE"))
    if is_named and not os.path.isdir(store):
        raise SessionError(f"there is no store {store}", "choose another with --store")
    return store
