"""Options and arguments that several commands have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.store.location import default_store

STORE_DEFAULT = "$SIGWRAP_STORE, else $XDG_STATE_HOME/sigwrap, else ~/.local/state/sigwrap"

StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help=f"Where the logs lie: {STORE_DEFAULT}.",
        show_default=False,
    ),
]
SessionArgument = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]",
        help="An id, a unique prefix, a --name, or a file; the latest if left out.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs.")]


def store_folder(option: Path | None) -> str:
    return default_store(os.environ) if option is None else str(option)
