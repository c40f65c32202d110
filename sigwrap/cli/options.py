"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from sigwrap.errors import UsageError
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
        help="An id, a unique prefix, a --name, or a file; left out: the latest "
        "that joined no other.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs.")]


def store_folder(option: str | None) -> str:
    return default_store(os.environ) if option is None else option
