"""sigwrap link: links by the names of the program's other roles."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from sigwrap.cli.group import App
from sigwrap.cli.output import out
from sigwrap.errors import UsageError
from sigwrap.start.onefile import unpacked_folder

_NAMES = ("sigwrap-forward", "sigwrap-shell", "sigwrap-stub")


app = App()


@app.command()
def link(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Directory for the links")],
) -> None:
    """Link the program's other names in a directory.

    These are sigwrap-forward, sigwrap-shell and sigwrap-stub. It replaces links to an earlier
    sigwrap, and no other file.
    """
    program = _program()
    paths = [os.path.join(directory, name) for name in _NAMES]
    for path in paths:
        if os.path.lexists(path) and not _is_such_a_link(path):
            raise UsageError(f"{path} exists and is not a link to sigwrap", "remove it")
    is_beside = os.path.realpath(directory) == os.path.dirname(program)
    target = os.path.basename(program) if is_beside else program
    for path in paths:
        try:
            _replace(path, target)
        except OSError as failure:
            hint = "name a directory that you can write"
            raise UsageError(f"can't create {path}: {failure.strerror}", hint) from failure
        out(f"{path} -> {target}")


def _program() -> str:
    path = os.path.abspath(sys.executable if unpacked_folder() else sys.argv[0])
    if os.path.basename(path) == "__main__.py":  # python -m sigwrap
        path = os.path.join(os.path.dirname(sys.executable), "sigwrap")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{path} is not executable", f"chmod +x {path}")
    return path


def _is_such_a_link(path: str) -> bool:
    return os.path.islink(path) and os.path.basename(os.readlink(path)).startswith("sigwrap")


def _replace(path: str, target: str) -> None:
    unfinished = f"{path}.{os.getpid()}"
    os.symlink(target, unfinished)
    os.replace(unfinished, path)
