"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.store.location import DEFAULT_STORE, default_store

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help=f"Where the logs lie: {DEFAULT_STORE}.",
        show_default=False,
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


def store_folder(option: Path | None) -> str:
    return default_store(os.environ) if option is None else str(option)
