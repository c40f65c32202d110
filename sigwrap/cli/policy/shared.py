"""Shared arguments, loading a policy by its name, and results as JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sigwrap.bare import Enum
from sigwrap.cli.whole_file import write_lines
from sigwrap.errors import SessionError, UsageError
from sigwrap.events import Payload
from sigwrap.log.reader import Session
from sigwrap.policy.judge.rules import Policy
from sigwrap.report.check.decisions import NoPolicy, recorded_policy
from sigwrap.start.policy_files import SHIPPED, host_variables, load_policy
from sigwrap.text import shell_words

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Directory for ${PROJECT_ROOT} in the policy [default: current directory]",
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
    """Write a policy to a new file. An existing file may be edited by hand, so it is an error."""
    write_lines(path, text.removesuffix("\n").split("\n"), only_new=True)


def selector_from(selector: str, file: str) -> str:
    """Return the base as a policy in `file` names it: a path starts at the directory of `file`."""
    if selector in SHIPPED:
        return selector
    if not selector.isprintable():
        raise UsageError(f"{shell_words([selector])}: a policy can't extend a file with this name")
    found = os.path.relpath(selector, os.path.dirname(file) or ".")
    return f"./{found}" if found in SHIPPED else found


def started_of(session: Session) -> Payload:
    first = session.first()
    if first is None or first.type != "session_started":
        raise SessionError(f"the log of {session.id} has no start", "to check it: sigwrap verify")
    return first.payload


def policy_then(session: Session, variables: Mapping[str, str]) -> Policy:
    """Load the policy of a session from its log, because the files may have changed."""
    try:
        return recorded_policy(started_of(session), variables)
    except NoPolicy as why:
        raise SessionError(f"{session.id}: {why}") from why


def plain(value: Any) -> Any:
    """Return a result as values that JSON has."""
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, frozenset):
        return sorted(map(plain, value))
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value
