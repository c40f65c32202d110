"""Start the log of a session with its first event, and with what this machine lacks."""

from __future__ import annotations

import os
import time

import sigwrap
from sigwrap.errors import StoreError
from sigwrap.escape import first_of
from sigwrap.linux import limits
from sigwrap.linux.execs.look import cwd_of
from sigwrap.mediate.log_budget import LogBudget
from sigwrap.mediate.masking import masked, masked_text
from sigwrap.policy.judge.recorded import JUDGEMENT
from sigwrap.policy.judge.rules import DEFAULT_LOG_SIZE_BYTES, Limits
from sigwrap.run.lacking import Tell, capabilities_of, outer_session
from sigwrap.run.launch import Launch
from sigwrap.run.plan import Plan
from sigwrap.run.recorder import Recorder
from sigwrap.run.settings import RunSettings
from sigwrap.run.walls import Walls
from sigwrap.start import own_files
from sigwrap.start.command import HostEnvironment, Inherited
from sigwrap.store.chain import key_from_environment
from sigwrap.store.writer import SessionLog


def new_session_id() -> str:
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


def gaps(launched: Launch, walls: Walls, *, shown_by: int) -> list[str]:
    """`shown_by`: the process whose environment still has the removed variables, or 0."""
    found = [] if launched.listener is None else [*walls.without]
    if shown_by and not _is_unreadable(launched, walls):
        found.append(f"environment: removed variables stay readable in /proc/{shown_by}/environ")
    if limited := ", ".join(limits.not_lifted()):
        found.append(f"sigwrap's own limits: {limited}")
    if changeable := [path for path in own_files.changeable() if not walls.keeps(path)]:
        found.append(f"sigwrap's own code: the session can change {first_of(changeable)}")
    return found


def open_log(
    session_id: str,
    settings: RunSettings,
    plan: Plan,
    inherited: Inherited,
    launched: Launch,
    walls: Walls,
    environment: HostEnvironment,
    *,
    daemons_outside: list[str],
    missing: list[str],
    tell: Tell,
) -> Recorder:
    policy = plan.engine.policy
    key = key_from_environment(inherited.environment)
    log = SessionLog.create(plan.store, session_id, key=key, durable=settings.durable)
    recorder = Recorder(log, tell, _log_budget(settings, policy.limits))
    if limited := ", ".join(limits.not_lifted()):
        tell(f"{limited} {limits.LIMIT_US_TOO}")
    system = os.uname()
    start = {
        "session_id": session_id,
        "name": settings.name,
        **({"joined": True} if settings.join_name else {}),
        "inside": outer_session(launched, inherited),
        "command": masked(settings.command),
        "command_pid": launched.pid,
        "cwd": cwd_of(os.getpid()),  # also if the directory was removed
        "user": _user_name(inherited),
        "uid": os.getuid(),
        "host": system.nodename,
        "sigwrap": sigwrap.__version__,
        "kernel": system.release,
        "machine": system.machine,
        "grace_s": settings.grace_s,
        "capabilities": capabilities_of(launched, walls),
        "missing": missing,
        "keyed": key is not None,
        "environment_removed": [masked_text(os.fsdecode(n)) for n in environment.removed],
        "policy": policy.name,
        "profile": settings.profile,
        **({"preset": settings.preset} if settings.preset else {}),
        **({"daemons_outside": daemons_outside} if daemons_outside else {}),
        **plan.policy_texts,
        "judgement": JUDGEMENT,
    }
    if not recorder.record("session_started", os.getpid(), start):
        log.discard()
        raise StoreError("nothing was run", limits.way_to_room("choose another store with --store"))
    return recorder


def _is_unreadable(launched: Launch, walls: Walls) -> bool:
    """Return whether the command can't read our environment; root reads it past Landlock."""
    return walls.domain and launched.listener is not None and os.geteuid() != 0


def _log_budget(settings: RunSettings, limits: Limits) -> LogBudget:
    maximum = settings.log_size_bytes or limits.log_size_bytes or DEFAULT_LOG_SIZE_BYTES
    return LogBudget(maximum, ends_run=limits.at_log_size != "deny")


def _user_name(inherited: Inherited) -> str:
    name = inherited.environment.get(b"USER") or inherited.environment.get(b"LOGNAME") or b""
    return name.decode("utf-8", "replace")
