"""sigwrap hook install, uninstall: the hook in an agent's own settings."""

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
from sigwrap.cli.group import App
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import load
from sigwrap.cli.whole_file import whole_file
from sigwrap.errors import UsageError
from sigwrap.hooks.formats import AGENTS, AgentProgram
from sigwrap.hooks.settings import (
    PLACES,
    SHELL_NAME,
    BadText,
    hook_line,
    installed,
    shell_variables,
    uninstalled,
)
from sigwrap.start.policy_files import SHIPPED

_MAX_BYTES = 4 << 20
_BACKUP = ".before-sigwrap"
_INSIDE = "processes in a session can't change the hooks of an agent"
_HOW_TO_MEND = "the file was not changed; repair it, or move it away and try again"

AgentArgument = Annotated[
    AgentProgram, typer.Argument(metavar="AGENT", help=f"Agent whose settings change: {AGENTS}")
]
ProjectOption = Annotated[
    bool,
    typer.Option("--project", help="Settings of the project in the current directory [default]"),
]
SharedOption = Annotated[
    bool,
    typer.Option("--shared", help="The project's shared settings, not your own (claude-code)"),
]
UserOption = Annotated[bool, typer.Option("--user", help="Settings of the user, for all projects")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show the change")]
YesOption = Annotated[bool, typer.Option("--yes", help="Change the file without asking")]


app = App()


@app.command()
def install(
    program: AgentArgument,
    project: ProjectOption = False,
    shared: SharedOption = False,
    user: UserOption = False,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME|FILE",
            help="Policy that decides [default: agent-default]",
        ),
    ] = "",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Add the sigwrap hook to an agent's settings.

    It shows the change first, and keeps a backup of the file. The shell commands of Claude Code
    then run in a sigwrap session, one for each conversation.
    """
    refuse_inside(_INSIDE)
    path = _path(program, project=project, user=user, shared=shared)
    for_all = not user and (shared or not PLACES[program].own)
    if policy:
        load(policy, Path.cwd())  # with a bad policy, the hook would deny every call
        policy = policy if policy in SHIPPED else os.path.abspath(policy)
    sigwrap = _found("sigwrap", for_all=for_all)
    if not sigwrap:
        raise UsageError("sigwrap is not in PATH", "add its directory to PATH, and try again")
    shell = _found(SHELL_NAME, for_all=for_all)
    variables = {}
    if program is AgentProgram.CLAUDE_CODE and sys.platform == "linux":
        if shell:
            root = "" if user or shared else os.getcwd()
            variables = shell_variables(shell, policy, root)
        else:
            note(
                "sigwrap-shell is not in PATH, so the agent's shell commands are judged by the hook"
                " alone (sigwrap link ~/.local/bin makes it; then install again)"
            )
    before = _read(path)
    try:
        after = installed(before, program, hook_line(program, [sigwrap], policy), variables)
    except BadText as problem:
        raise UsageError(f"{path}: {problem}", _HOW_TO_MEND) from problem
    if after == before:
        out(f"{path} already has the hook")
        return
    _change(path, before, after, dry_run=dry_run, yes=yes)
    if not dry_run and program is AgentProgram.CODEX:
        note("Codex runs a new hook only after you trust it: /hooks in Codex")


@app.command()
def uninstall(
    program: AgentArgument,
    project: ProjectOption = False,
    shared: SharedOption = False,
    user: UserOption = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Remove the sigwrap hook from an agent's settings."""
    refuse_inside(_INSIDE)
    paths = [_path(program, project=project, user=user, shared=True)]
    if not (user or shared):
        paths.insert(0, _path(program, project=project, user=user, shared=False))
    is_there = False
    for path in dict.fromkeys(paths):
        before = _read(path)
        if before is None:
            continue
        try:
            after = uninstalled(before, program)
        except BadText as problem:
            raise UsageError(f"{path}: {problem}", _HOW_TO_MEND) from problem
        if after != before:
            is_there = True
            _change(path, before, after, dry_run=dry_run, yes=yes)
    if not is_there:
        out("\n".join(f"{path} does not have the hook" for path in dict.fromkeys(paths)))


def _path(program: AgentProgram, *, project: bool, user: bool, shared: bool) -> str:
    if project and user:
        raise UsageError("--project and --user can't be combined")
    place = PLACES[program]
    if not user:
        return os.path.join(os.getcwd(), place.project if shared else place.own or place.project)
    own = os.environ.get(place.variable, "") if place.variable else ""
    if not own:
        home = os.path.expanduser("~") if os.environ.get("HOME") != "" else ""
        if not home.startswith("/"):
            raise UsageError("no home directory", "set HOME, or use --project")
        own = os.path.join(home, place.own_folder)
    return os.path.join(os.path.abspath(own), place.user)


def _found(name: str, *, for_all: bool) -> str:
    """Return how to call one of sigwrap's programs; empty if it is not there.

    Settings that several machines share have the bare name, if PATH finds this sigwrap by it.
    """
    by_name = shutil.which(name) or ""
    called = shutil.which(sys.argv[0]) or "" if "sigwrap" in os.path.basename(sys.argv[0]) else ""
    beside = os.path.join(os.path.dirname(os.path.abspath(called)), name) if called else ""
    if name == "sigwrap" and called:
        beside = os.path.abspath(called)
    path = beside if os.access(beside, os.X_OK) else by_name
    is_same = by_name != "" and os.path.realpath(by_name) == os.path.realpath(path)
    return name if for_all and is_same else path


def _read(path: str) -> str | None:
    """Return the text of a file; None if it is not there."""
    try:
        with open(path, "rb", opener=_opened) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise UsageError(f"{path} is not a regular file")
            if state.st_uid != os.geteuid():
                raise UsageError(f"{path} belongs to another user", "run this as its owner")
            text = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        if os.path.islink(path):
            raise UsageError(f"{path} is a broken link", "remove it") from None
        return None
    except OSError as failure:
        raise UsageError(f"can't read {path}: {failure.strerror}") from failure
    if len(text) > _MAX_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_BYTES >> 20} MiB")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as failure:
        raise UsageError(f"{path} is not UTF-8 text: {failure}") from failure


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)


def _change(path: str, before: str | None, after: str | None, *, dry_run: bool, yes: bool) -> None:
    out(_difference(path, before, after))
    if dry_run:
        return
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("no terminal to ask for confirmation", "use --yes to skip it")
        if not typer.confirm(f"sigwrap: change {path}?", err=True):
            raise typer.Abort
    if _read(path) != before:
        raise UsageError(f"{path} has changed in the meantime", "try again")
    if before is not None and not os.access(path, os.W_OK):
        raise UsageError(f"{path} is read-only", "make it writable, and try again")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if after is None:
            os.unlink(path)
    except FileExistsError as failure:
        what = f"{os.path.dirname(path)} is not a directory"
        raise UsageError(what, "remove it") from failure
    except OSError as failure:
        raise UsageError(f"can't change {path}: {failure.strerror}") from failure
    if after is None:
        out(f"removed {path}")
        return
    if before is not None:
        _write(f"{path}{_BACKUP}", before, mode_of=path)
    _write(path, after)
    out(f"changed {path}" + (f" (backup: {path}{_BACKUP})" if before is not None else ""))


def _write(path: str, text: str, *, mode_of: str = "") -> None:
    with (
        whole_file(path, mode_of=mode_of) as place,
        open(place, "w", encoding="utf-8", newline="") as file,
    ):
        file.write(text)


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
    return "\n".join(lines) or f"only whitespace changes in {shown}"
