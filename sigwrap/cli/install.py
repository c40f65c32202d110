"""sigwrap install, uninstall: the hook in an agent's own settings."""

from __future__ import annotations

import difflib
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.control import refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import load
from sigwrap.cli.whole_file import whole_file
from sigwrap.errors import UsageError
from sigwrap.hooks.formats import AgentProgram
from sigwrap.hooks.json_text import BadText
from sigwrap.hooks.settings import PLACES, hook_line, installed, uninstalled
from sigwrap.start.policy_files import SHIPPED

_MAX_BYTES = 4 << 20
_HOW_TO_MEND = (
    "it is left as it is: mend it, or move it away, and try again; what belongs into it is what "
    "--dry-run shows where there is none"
)

ProgramArgument = Annotated[AgentProgram, typer.Argument(help="Whose settings.")]
ProjectOption = Annotated[
    bool,
    typer.Option("--project", help="Those of the project in the current folder; the default."),
]
UserOption = Annotated[bool, typer.Option("--user", help="Those of the user, for all projects.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Don't ask.")]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("install"))(install)
    app.command(epilog=examples("uninstall"))(uninstall)


def install(
    program: ProgramArgument,
    project: ProjectOption = False,
    user: UserOption = False,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME|FILE",
            help="What is allowed; agent-default if left out.",
            show_default=False,
        ),
    ] = "",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Put sigwrap hook into an agent's settings.

    The change is shown first. Everything else in the file stays as it is.
    """
    refuse_inside("nobody inside a session changes what hooks an agent has")
    path = _path(program, project=project, user=user)
    line = hook_line(program, _sigwrap(for_all=not user), _policy(policy))
    before = _read(path)
    try:
        after = installed(before, program, line)
    except BadText as problem:
        raise _unfit(path, problem) from problem
    if after == before:
        out(f"{path} has it already")
        return
    _change(path, before, after, dry_run=dry_run, yes=yes)
    if not dry_run and program is AgentProgram.CODEX:
        note("Codex runs a new hook only after its user has trusted it: /hooks in Codex")


def uninstall(
    program: ProgramArgument,
    project: ProjectOption = False,
    user: UserOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Take sigwrap hook out of an agent's settings again.

    Where nothing else has changed since, the file is as it was before, byte for byte.
    """
    refuse_inside("nobody inside a session changes what hooks an agent has")
    path = _path(program, project=project, user=user)
    before = _read(path)
    try:
        after = uninstalled(before, program) if before is not None else before
    except BadText as problem:
        raise _unfit(path, problem) from problem
    if after == before:
        out(f"{path} doesn't have it")
        return
    _change(path, before, after, dry_run=dry_run, yes=yes)


def _path(program: AgentProgram, *, project: bool, user: bool) -> str:
    if project and user:
        raise UsageError("--project and --user exclude each other")
    place = PLACES[program]
    if not user:
        return os.path.join(os.getcwd(), place.project)
    own = os.environ.get(place.variable, "") if place.variable else ""
    if not own:
        home = os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
        if not home.startswith("/"):
            raise UsageError("there is no home folder", "set HOME, or use --project")
        own = os.path.join(home, place.own_folder)
    return os.path.join(os.path.abspath(own), place.user)


def _sigwrap(*, for_all: bool) -> list[str]:
    """A project's settings are for everybody's machine, so they have the name alone where that
    leads here."""
    found = shutil.which("sigwrap")
    called = sys.argv[0] if os.path.basename(sys.argv[0]).startswith("sigwrap") else ""
    own = shutil.which(called) if called else None
    if own is None and found is None:
        raise UsageError("sigwrap isn't found along PATH", "put it there, and try again")
    path = os.path.abspath(own or found or "")
    is_same = found is not None and os.path.realpath(found) == os.path.realpath(path)
    return ["sigwrap"] if for_all and is_same else [path]


def _policy(policy: str) -> str:
    """Loaded, for a hook with a bad one would deny everything."""
    if not policy:
        return ""
    load(policy, Path.cwd())
    return policy if policy in SHIPPED else os.path.abspath(policy)


def _read(path: str) -> str | None:
    """None where it isn't there."""
    try:
        with open(path, "rb", opener=_opened) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise UsageError(f"{path} is no plain file")
            if state.st_uid != os.geteuid():
                raise UsageError(f"{path} belongs to somebody else", "run it as its owner")
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        if os.path.islink(path):
            raise UsageError(f"{path} is a link that leads nowhere", "remove it") from None
        return None
    except OSError as failure:
        raise UsageError(f"can't read {path}: {failure.strerror}") from failure
    if len(text) > _MAX_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_BYTES >> 20} MiB")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise UsageError(f"{path} is no UTF-8 text: {failure}") from failure


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def _unfit(path: str, problem: BadText) -> UsageError:
    return UsageError(f"{path}: {problem}", _HOW_TO_MEND)


def _change(path: str, before: str | None, after: str | None, *, dry_run: bool, yes: bool) -> None:
    out(_difference(path, before, after))
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("there is no terminal to ask on", "--yes changes it unasked")
        if not typer.confirm(f"sigwrap: change {path}?", err=True):
            raise typer.Abort
    if _read(path) != before:
        raise UsageError(f"{path} has changed meanwhile", "try again")
    if before is not None and not os.access(path, os.W_OK):
        raise UsageError(f"{path} is read-only", "let it be written, and try again")
    if after is None:
        try:
            os.unlink(path)
        except OSError as failure:
            raise UsageError(f"can't remove {path}: {failure.strerror}") from failure
        out(f"removed {path}")
        return
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    except FileExistsError as failure:
        what = f"{os.path.dirname(path)} is no folder, or a link that leads to none"
        raise UsageError(what, "remove it") from failure
    except OSError as failure:
        raise UsageError(f"can't make the folder of {path}: {failure.strerror}") from failure
    with whole_file(path) as place, open(place, "w", encoding="utf-8", newline="") as file:
        file.write(after)
    out(f"changed {path}")


def _difference(path: str, before: str | None, after: str | None) -> str:
    is_link = os.path.islink(path)
    shown = f"{path} (a link to {os.path.realpath(path)})" if is_link else path
    old, new = ((text or "").splitlines() for text in (before, after))
    lines = difflib.unified_diff(
        old,
        new,
        shown if before is not None else "/dev/null",
        shown if after is not None else "/dev/null",
        lineterm="",
    )
    return "\n".join(lines) or f"only line ends or blanks change in {shown}"
