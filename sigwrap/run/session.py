"""A session from its id to its sealed log."""

from __future__ import annotations

import gc
import os
import time

import sigwrap
from sigwrap import status
from sigwrap.agent.watches import DriftWatch
from sigwrap.bare import signal
from sigwrap.calls import Under
from sigwrap.errors import StoreError, UsageError
from sigwrap.escape import printable
from sigwrap.events import Payload
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import libc, limits, own_environment, session_line
from sigwrap.linux.descriptors import release_inherited
from sigwrap.linux.execs.look import cwd_of
from sigwrap.linux.limits import way_to_room
from sigwrap.linux.mounts import note_first_devices
from sigwrap.linux.peer import SUPERVISOR_NAME
from sigwrap.mediate.log_budget import LogBudget
from sigwrap.mediate.masking import masked, masked_text
from sigwrap.mediate.run_end import RunEnd
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.environment import KILLSWITCH_URL
from sigwrap.policy.judge.recorded import JUDGEMENT
from sigwrap.policy.judge.rules import DEFAULT_LOG_SIZE_BYTES, Limits
from sigwrap.policy.language.texts import policy_texts
from sigwrap.protocols.front import Channel, CommandStarted
from sigwrap.run.lacking import (
    NOT_TRACED,
    Tell,
    capabilities_of,
    is_of_the_machine,
    missing_interception,
    outer_session,
)
from sigwrap.run.launch import Launch, launch
from sigwrap.run.made_folders import make_missing, remove_unused
from sigwrap.run.recorder import Recorder
from sigwrap.run.settings import AGENTS, RunSettings
from sigwrap.run.supervisor import Supervisor
from sigwrap.run.walls import Walls, walls_of
from sigwrap.start import own_code, own_files
from sigwrap.start.command import CommandError, HostEnvironment, Inherited, find_program
from sigwrap.start.policy_files import host_variables, load_profile, load_with_sources
from sigwrap.store import killswitch
from sigwrap.store.chain import key_from_environment
from sigwrap.store.location import default_store
from sigwrap.store.writer import SessionLog
from sigwrap.tuples import NamedTuple

if TYPE_CHECKING:
    from sigwrap.policy.presets import Preset
    from sigwrap.run.remote_switch.switch import RemoteSwitch

_CHANGES_SHOWN = 20


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
    denied_again: int  # of the denials, those of what had just been denied, along PATH
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
    preset = _preset(settings)
    if preset is not None and settings.preset:
        inherited = _with_variables(inherited, preset)
    libc.set_child_subreaper()
    libc.set_process_name(SUPERVISOR_NAME.encode())
    gc.freeze()  # what start-up made stays; the loop itself makes no cycles worth frequent looks
    gc.set_threshold(50_000)
    program = b"" if settings.join_name else _program(settings, preset, inherited)
    daemons = _daemons_outside(settings, preset, tell) if preset is not None else []
    session_id = new_session_id()
    key = key_from_environment(inherited.environment)
    remote_switch = _remote_switch(settings, inherited.environment)
    as_text = _as_text(inherited.environment)
    store = settings.store or default_store(as_text)
    # Before the look: who puts a file there from now on finds us.
    line = session_line.listen(front_pid)
    stores = killswitch.stores(store, as_text)
    switches_not_seen = killswitch.refuse_if_on(stores, settings.store)
    variables = host_variables(settings.root)
    policy, sources = load_with_sources(settings.policy, variables=variables)
    engine = Engine(policy)
    profile = _profile(settings.profile, variables) if settings.profile else None
    limits_usage = bool(policy.limits.cpu_time_s or policy.limits.memory_bytes)
    if limits_usage:  # now or not at all, and no other run has to wait for it
        from sigwrap.run.usage import Usage
    joins = None
    if settings.join_name:
        from sigwrap.run.joined.joins import Joins

        joins = Joins(store, settings, tell)
        tell = joins.tell
    network = None
    if engine.network.are_felt:
        from sigwrap.run.network import Network

        network = Network
    files = None
    if engine.files.audits:
        from sigwrap.run.files import Files

        files = Files
    has_patterns = (
        policy.has_patterns or engine.network.has_patterns or engine.files.has_audited_patterns
    )
    not_kept = own_code.keep_what_is_loaded(needs_patterns=has_patterns)
    goes_without = settings.best_effort or policy.tolerates_old_kernels
    made = make_missing(engine)
    walls = walls_of(engine, goes_without=goes_without)
    if Under.NETWORK_RULES not in walls.filtered:
        network = None
    environment = HostEnvironment.under(policy.env_policy, inherited.environment)
    outer_pid = 0 if waited_for_pid == front_pid else waited_for_pid
    still_shows = _forget(environment, outer_pid)
    for each in walls.told:
        tell(each)
    handed_on = inherited._replace(environment=environment.given)
    become = None if joins is None else lambda: joins.serve(session_id, handed_on)
    launched = launch(program, settings.command, session_id, handed_on, walls, become)
    usage = None
    try:
        missing = missing_interception(launched, settings, inherited, tell) + switches_not_seen
        for each in switches_not_seen:
            tell(each)
        log = SessionLog.create(store, session_id, key=key, durable=settings.durable)
        recorder = Recorder(log, tell, _log_budget(settings, policy.limits))
        if launched.listener is not None:
            missing += walls.without
        if still_shows and not _nobody_reads(launched, walls):
            missing.append(
                f"environment: what was removed can be read in /proc/{still_shows}/environ"
            )
        if not_kept:
            missing.append(f"code of our own: {_first_of(not_kept)} can be changed meanwhile")
        if limited := ", ".join(limits.not_lifted()):
            missing.append(f"limits of our own: {limited}")
            tell(f"{limited} {limits.LIMIT_US_TOO}")
        if limits_usage:
            usage = Usage(policy.limits, launched.pid, session_id)
            missing += usage.without
        if remote_switch is not None:
            missing += remote_switch.gaps
            remote_switch.start_thread()
        start = {
            **_session_started(session_id, settings, inherited, launched, walls, missing),
            "keyed": key is not None,
            "environment_removed": [masked_text(os.fsdecode(n)) for n in environment.removed],
            "policy": policy.name,
            "profile": settings.profile,
            **({"preset": settings.preset} if settings.preset else {}),
            **({"daemons_outside": daemons} if daemons else {}),
            **policy_texts(sources, variables),
            "judgement": JUDGEMENT,
        }
        if not recorder.record("session_started", os.getpid(), start):
            log.discard()
            raise StoreError("nothing was run", way_to_room("choose another store with --store"))
    except BaseException:
        os.kill(launched.pid, signal.SIGKILL)
        os.waitpid(launched.pid, 0)
        remove_unused(made)
        if usage is not None:
            usage.close()
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
        session_line=line,
        stores=stores,
        environment=environment,
        usage=usage,
        network=network,
        files=files,
        remote_switch=remote_switch,
        profile=profile,
        joins=joins,
    )
    ended = supervisor.run()
    remove_unused(made)
    if usage is not None:
        usage.close()
    duration_s = time.monotonic() - clock_started_s
    _note_changes(recorder, tell)
    supervisor.watchers.send_what_is_due()
    is_sealed = _seal(recorder, ended, duration_s, tell)
    if ended.switched_off is not None:
        why = f": {ended.switched_off.reason}" if ended.switched_off.reason else ""
        if remote_switch is not None and remote_switch.has_killed:
            tell(f"killed by the remote kill switch {ended.switched_off.by}{why}")
        else:
            tell(f"killed by the kill switch{why} (sigwrap killswitch status)")
    elif ended.reached_limit is not None:
        tell(f"the command was ended by a limit: {ended.reason}")
    elif ended.not_executed is not None and not supervisor.told_of_denial:
        tell(f"{os.fsdecode(program)}: {ended.not_executed.why}")
    elif ended.not_executed is not None and is_of_the_machine(ended.not_executed.why):
        tell(NOT_TRACED)
    if joins is not None:
        joins.end(ended.exit_status if is_sealed else status.REFUSED)
    return Ended(
        status=ended.exit_status if is_sealed else status.REFUSED,
        signal=ended.signal if is_sealed else 0,
        log_path=log.path,
        session_id=session_id,
        head=log.head,
        reason=ended.reason,
        duration_s=duration_s,
        counts=dict(recorder.counts),
        denied_again=supervisor.denied_again,
        unrecorded=recorder.unrecorded,
        is_held_up=supervisor.is_held_up,
    )


def _preset(settings: RunSettings) -> Preset | None:
    """Also of an agent that is run without it."""
    name = settings.preset or settings.command[0].rpartition("/")[2]
    if name not in AGENTS:
        return None
    from sigwrap.policy.presets import PRESETS

    return PRESETS[name]


def _program(settings: RunSettings, preset: Preset | None, inherited: Inherited) -> bytes:
    try:
        return find_program(settings.command[0], inherited.environment)
    except CommandError as missing:
        if preset is None or missing.status != status.NOT_FOUND:
            raise
        hint = f"to install it: {preset.install}"
        raise CommandError(missing.message, missing.status, hint) from missing


def _with_variables(inherited: Inherited, preset: Preset) -> Inherited:
    added = {os.fsencode(name): os.fsencode(value) for name, value in preset.environment}
    return inherited._replace(environment={**added, **inherited.environment})


def _daemons_outside(settings: RunSettings, preset: Preset, tell: Tell) -> list[str]:
    """As the log has them."""
    from sigwrap.run.daemons import running_daemons, warning

    found = running_daemons(preset)
    for each in found:
        tell(warning(each, preset, is_kept_from_it=bool(settings.preset)))
    return [f"{each.pid} {' '.join(masked(each.argv))}" for each in found]


def _forget(environment: HostEnvironment, outer_pid: int) -> int:
    """What COMMAND is not given, it shall not read in our own processes either; the front process
    does its part before COMMAND runs. Returns who shows it all the same, or 0."""
    removed = environment.removed
    if removed and not own_environment.forget(removed):
        return os.getpid()
    if removed and outer_pid and not own_environment.forget_in(outer_pid, removed):
        return outer_pid
    return 0


def _nobody_reads(launched: Launch, walls: Walls) -> bool:
    """Root reads an environment past a Landlock domain too."""
    return walls.domain and launched.listener is not None and os.geteuid() != 0


def _remote_switch(settings: RunSettings, environment: dict[bytes, bytes]) -> RemoteSwitch | None:
    by_variable = os.fsdecode(environment.get(KILLSWITCH_URL.encode(), b""))
    url = settings.killswitch_url or by_variable
    if not url:
        if settings.killswitch_fail_closed:
            raise UsageError(
                "--killswitch-fail-closed, but there is no kill switch to ask",
                "name it: --killswitch-url URL, or $SIGWRAP_KILLSWITCH_URL",
            )
        return None
    # Now, or not at all: nobody else is to pay for it.
    from sigwrap.run.remote_switch.switch import RemoteSwitch

    where = "--killswitch-url" if settings.killswitch_url else f"${KILLSWITCH_URL}"
    return RemoteSwitch(
        url, where, environment=environment, fail_closed=settings.killswitch_fail_closed
    )


def _profile(file: str, variables: dict[str, str]) -> DriftWatch:
    return DriftWatch(load_profile(file, variables=variables))


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
        **({"joined": True} if settings.join_name else {}),
        "inside": outer_session(launched, inherited),
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
        "capabilities": capabilities_of(launched, walls),
        "missing": missing,
    }


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
            "repeated": recorder.repeated,
        },
    )
    try:
        recorder.log.close()
    except StoreError as failure:
        tell(str(failure))
        return False
    return has_end


def new_session_id() -> str:
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


def _user_name(inherited: Inherited) -> str:
    name = inherited.environment.get(b"USER") or inherited.environment.get(b"LOGNAME") or b""
    return name.decode("utf-8", "replace")


def _as_text(environment: dict[bytes, bytes]) -> dict[str, str]:
    return {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
