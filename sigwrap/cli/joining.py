"""Run a command in a shared session, which commands join by name."""

from __future__ import annotations

import os

from sigwrap.bare import NoReturn, blake2b
from sigwrap.cli.note_in_time import note_in_time
from sigwrap.errors import SessionError, SigwrapError, UsageError
from sigwrap.join.joining import NotStarted, join
from sigwrap.kernel.process import die_of
from sigwrap.kernel.seccomp import has_listener
from sigwrap.log.folder import default_store
from sigwrap.policy import SHIPPED
from sigwrap.session.settings import Nested, RunSettings, as_json
from sigwrap.start import onefile
from sigwrap.start.command import Inherited, become, find_program


def run_in_joined_session(settings: RunSettings, inherited: Inherited) -> int:
    try:
        if has_listener():
            _run_inside(settings, inherited)
        return _join(settings, inherited)
    except NotStarted as ended:
        return ended.status
    except SigwrapError as failure:
        note_in_time(*failure.lines)
        return failure.status


def _join(settings: RunSettings, inherited: Inherited) -> int:
    if settings.name:
        raise UsageError(
            f"--name {settings.name} and --join-name {settings.join_name}: a session has one name",
            "leave out --name: --join-name names the session",
        )
    environment = {os.fsdecode(n): os.fsdecode(v) for n, v in inherited.environment.items()}
    store = os.path.abspath(settings.store or default_store(environment))
    of_the_session = settings._replace(
        command=("sigwrap", "--join-name", settings.join_name),
        name=settings.join_name,
        store=store,
        policy=_absolute_policy(settings.policy),
        profile=os.path.abspath(settings.profile) if settings.profile else "",
        root=_absolute_root(settings.root),
        rules_digest=_digest_of_files(settings.policy, settings.profile),
    )
    left = join(
        settings.command,
        inherited,
        note_in_time,
        store=store,
        name=settings.join_name,
        settings=as_json(of_the_session),
    )
    if settings.die_by_signal and left.signal and onefile.can_die_of(left.signal):
        onefile.leave_no_core(onefile.bootloader_pid())
        onefile.empty_unpacked(onefile.bootloader_pid())
        die_of(left.signal)
    return left.status


def _absolute_root(root: str) -> str:
    """Return the project; by default, the directory of the command that joins first."""
    return root if root == RunSettings._field_defaults["root"] else os.path.abspath(root)


def _absolute_policy(policy: str) -> str:
    """Return a name that holds in any directory: the next command may join from another."""
    return policy if policy in SHIPPED else os.path.abspath(policy)


def _digest_of_files(*files: str) -> str:
    """Return a digest by which a session knows that the files have changed."""
    texts = [_text(file) for file in files if file and file not in SHIPPED]
    return blake2b("\0".join(texts).encode()).hexdigest() if texts else ""


def _text(file: str) -> str:
    from sigwrap.start.policy_files import read_source  # not for a shipped policy

    try:
        return read_source(file).text
    except SigwrapError:  # the start of the session reports it
        return ""


def _run_inside(settings: RunSettings, inherited: Inherited) -> NoReturn:
    """Run the command in the session around it."""
    session = os.fsdecode(inherited.environment.get(b"SIGWRAP_SESSION", b""))
    where = f"session {session}" if session else "another supervisor"
    if settings.nested is not Nested.JOIN:
        raise SessionError(
            f"already in {where}",
            "to run the command in that session, under its policy: --nested join",
        )
    program = find_program(settings.command[0], inherited.environment)
    become(program, settings.command, inherited, {})
