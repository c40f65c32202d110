"""A session from its id to its sealed log."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import time
from collections.abc import Callable
from hashlib import blake2b

import sigwrap
from sigwrap import status
from sigwrap.errors import SessionError, StoreError
from sigwrap.escape import printable
from sigwrap.events import LEFT_TO_ANOTHER, Payload
from sigwrap.linux import libc, limits
from sigwrap.linux.descriptors import release_inherited
from sigwrap.linux.execs.look import cwd_of
from sigwrap.linux.limits import way_to_room
from sigwrap.linux.mounts import note_first_devices
from sigwrap.mediate.log_budget import LogBudget
from sigwrap.mediate.masking import masked
from sigwrap.mediate.run_end import RunEnd
from sigwrap.platform import Capability
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.rules import DEFAULT_LOG_SIZE_BYTES, Limits
from sigwrap.policy.language.document import Source
from sigwrap.protocols.front import Channel, CommandStarted
from sigwrap.run.launch import Launch, launch
from sigwrap.run.recorder import Recorder
from sigwrap.run.settings import Nested, RunSettings
from sigwrap.run.supervisor import Supervisor
from sigwrap.run.walls import Walls, walls_of
from sigwrap.start import own_code, own_files
from sigwrap.start.command import Inherited, find_program
from sigwrap.start.policy_files import host_variables, load_with_sources
from sigwrap.store.location import default_store
from sigwrap.store.writer import SessionLog
from sigwrap.tuples import NamedTuple

_KEY_NAME = b"SIGWRAP_KEY"
_CHANGES_SHOWN = 20

Tell = Callable[[str], None]


class Ended(NamedTuple):
    """What is left of a session when it is over: its log, and the figures for one line."""

    status: int
    signal: int  # by which the run ended, 0 for none
    log_path: str
    session_id: str
    head: str
    reason: str
    duration_s: float
    counts: dict[str, int]
    unrecorded: int
    is_held_up: bool  # this process can't end


def run_session(
    settings: RunSettings,
    inherited: Inherited,
    front: Channel,
    *,
    front_pid: int,
    waited_for_pid: int,
    tell: Tell,
) -> Ended:
    libc.set_child_subreaper()
    libc.set_process_name(b"sigwrap-super")
    gc.freeze()  # what start-up made stays; the loop itself makes no cycles worth frequent looks
    gc.set_threshold(50_000)
    program = find_program(settings.command[0], inherited.environment)
    session_id = _new_session_id()
    environment = inherited.environment
    key = environment.pop(_KEY_NAME, b"") or None  # whoever has it can write the log anew
    store = settings.store or default_store(_as_text(environment))
    variables = host_variables(settings.root)
    policy, sources = load_with_sources(settings.policy, variables=variables)
    engine = Engine(policy)
    not_kept = own_code.keep_what_is_loaded()
    walls = walls_of(engine)
    launched = launch(program, settings.command, session_id, inherited, walls)
    try:
        missing = _missing(launched, settings, inherited, tell)
        log = SessionLog.create(store, session_id, key=key, durable=settings.durable)
        recorder = Recorder(log, tell, _log_budget(settings, policy.limits))
        if launched.listener is not None:
            missing += walls.without
        if not_kept:
            missing.append(f"code of our own: {_first_of(not_kept)} can be changed meanwhile")
        if limited := ", ".join(limits.not_lifted()):
            missing.append(f"limits of our own: {limited}")
            tell(f"{limited} limits sigwrap as well (a soft one, ulimit -S, only the command)")
        if policy.unenforced:
            missing.append(f"not enforced yet: {', '.join(policy.unenforced)}")
        start = {
            **_session_started(session_id, settings, inherited, launched, walls, missing),
            "keyed": key is not None,
            "policy": policy.name,
            **_policy_texts(sources, variables),
        }
        if not recorder.record("session_started", os.getpid(), start):
            log.discard()
            raise StoreError("nothing was run", way_to_room("choose another store with --store"))
    except BaseException:
        os.kill(launched.pid, signal.SIGKILL)
        os.waitpid(launched.pid, 0)
        raise
    own_code.import_nothing_more()
    own_files.note_own_files()
    note_first_devices()
    clock_started_s = time.monotonic()
    front.send(CommandStarted(pid=launched.pid))
    release_inherited()
    libc.set_undumpable()
    supervisor = Supervisor(
        settings=settings,
        recorder=recorder,
        engine=engine,
        launched=launched,
        front=front,
        front_pid=front_pid,
        waited_for_pid=waited_for_pid,
        domain=walls.domain,
    )
    ended = supervisor.run()
    duration_s = time.monotonic() - clock_started_s
    _note_changes(recorder, tell)
    is_sealed = _seal(recorder, ended, duration_s, tell)
    if ended.reached_limit is not None:
        tell(f"the command was ended by a limit: {ended.reason}")
    elif ended.not_executed is not None and not supervisor.told_of_denial:
        tell(f"{os.fsdecode(program)}: {ended.not_executed.why}")
    return Ended(
        status=ended.exit_status if is_sealed else status.REFUSED,
        signal=ended.signal if is_sealed else 0,
        log_path=log.path,
        session_id=session_id,
        head=log.head,
        reason=ended.reason,
        duration_s=duration_s,
        counts=dict(recorder.counts),
        unrecorded=recorder.unrecorded,
        is_held_up=supervisor.is_held_up,
    )


def _missing(
    launched: Launch, settings: RunSettings, inherited: Inherited, tell: Tell
) -> list[str]:
    """What this run lacks; raises where the user did not agree to go without."""
    if launched.missing is None:
        return []
    refusal = launched.missing
    outer = _outer_session(launched, inherited)
    is_nested = refusal.errno == errno.EBUSY
    where = f"session {outer}" if outer else "an outer supervisor"
    if is_nested and settings.nested is Nested.JOIN:
        tell(f"inside {where}: the command runs under its rules and in its log")
        return [f"{LEFT_TO_ANOTHER}{where}"]
    if is_nested and outer:
        raise SessionError(
            f"already inside session {outer}",
            "--nested join runs the command under that session's rules",
        )
    if settings.best_effort:
        tell(f"going on without interception: {refusal.message}")
        return [f"{LEFT_TO_ANOTHER}{where}" if is_nested else f"interception: {refusal.message}"]
    raise refusal


def _outer_session(launched: Launch, inherited: Inherited) -> str:
    """As it is called where there is one, and its name was not taken away."""
    if launched.missing is None or launched.missing.errno != errno.EBUSY:
        return ""
    return inherited.environment.get(b"SIGWRAP_SESSION", b"").decode("utf-8", "replace")


def _session_started(
    session_id: str,
    settings: RunSettings,
    inherited: Inherited,
    launched: Launch,
    walls: Walls,
    missing: list[str],
) -> Payload:
    system = os.uname()
    return {
        "session_id": session_id,
        "name": settings.name,
        "inside": _outer_session(launched, inherited),
        "command": masked(settings.command),
        "command_pid": launched.pid,
        "cwd": cwd_of(os.getpid()),  # also where the folder was removed
        "user": _user_name(inherited),
        "uid": os.getuid(),
        "host": system.nodename,
        "sigwrap": sigwrap.__version__,
        "kernel": system.release,
        "machine": system.machine,
        "grace_s": settings.grace_s,
        "capabilities": _capabilities(launched, walls),
        "missing": missing,
    }


def _policy_texts(sources: tuple[Source, ...], variables: dict[str, str]) -> Payload:
    """All that the policy was made of: a reader can load it again and judge anew."""
    texts = {
        "policy_sources": [{"name": each.name, "text": each.text} for each in sources],
        "policy_variables": variables,
    }
    digest = blake2b(json.dumps(texts, sort_keys=True).encode(), digest_size=32)
    return {**texts, "policy_digest": digest.hexdigest()}


def _capabilities(launched: Launch, walls: Walls) -> list[str]:
    if launched.listener is None:
        return []
    found = [
        Capability.INTERCEPTION,
        Capability.VERIFICATION,
        Capability.REPLACEMENT,
        Capability.RECORDING,
        Capability.DELIVERY,
    ]
    if launched.waits_through_signals:
        found.append(Capability.WAITS_THROUGH_SIGNALS)
    return [each.value for each in (*found, *walls.capabilities)]


def _note_changes(recorder: Recorder, tell: Tell) -> None:
    changed = own_files.changed_own_files()
    if not changed:
        return
    recorder.record(
        "own_files_changed",
        os.getpid(),
        {"files": changed[:_CHANGES_SHOWN], "count": len(changed)},
    )
    tell(
        f"{_first_of(changed)} changed while the command ran: sigwrap runs from there the next "
        "time (if it wasn't you, install it anew)"
    )


def _first_of(files: list[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{printable(files[0])}{more}"


def _log_budget(settings: RunSettings, limits: Limits) -> LogBudget:
    maximum = settings.log_size_bytes or limits.log_size_bytes or DEFAULT_LOG_SIZE_BYTES
    return LogBudget(maximum, ends_run=limits.at_log_size != "deny")


def _seal(recorder: Recorder, ended: RunEnd, duration_s: float, tell: Tell) -> bool:
    """False where the log has no end, or can't be found where it belongs."""
    recorder.look()
    has_end = recorder.record(
        "session_ended",
        os.getpid(),
        {
            "exit_status": ended.exit_status,
            "reason": ended.reason,
            "duration_ns": int(duration_s * 1e9),
            "counts": dict(recorder.counts),
            "head": recorder.log.head,
            "unrecorded": recorder.unrecorded,
        },
    )
    try:
        recorder.log.close()
    except StoreError as failure:
        tell(str(failure))
        return False
    return has_end


def _new_session_id() -> str:
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


def _user_name(inherited: Inherited) -> str:
    name = inherited.environment.get(b"USER") or inherited.environment.get(b"LOGNAME") or b""
    return name.decode("utf-8", "replace")


def _as_text(environment: dict[bytes, bytes]) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
