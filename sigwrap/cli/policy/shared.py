"""Arguments that several commands have, a policy by its name, and a result as JSON."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from sigwrap.bare.enum import Enum as CheapEnum
from sigwrap.cli.whole_file import write_lines
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.problems import Place
from sigwrap.start.policy_files import SHIPPED, host_variables, load_policy

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Directory for ${PROJECT_ROOT} in the policy [default: current directory]",
        show_default=False,
    ),
]
PolicyArgument = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help=f"Shipped policies: {', '.join(SHIPPED)}")
]


def variables(root: Path | None) -> dict[str, str]:
    return host_variables(str(root or Path.cwd()))


def load(selector: str, root: Path | None) -> Policy:
    return load_policy(selector, variables=variables(root))


def write_new(path: str, text: str) -> None:
    """A policy is written by hand: none is overwritten."""
    write_lines(path, text.removesuffix("\n").split("\n"), only_new=True)


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, Place):
        return {"file": value.file, "line": value.line, "column": value.column}
    if isinstance(value, Enum | CheapEnum):
        return value.value
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, frozenset):
        return sorted(map(plain, value))
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value
