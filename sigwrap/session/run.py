"""Run a session, from its settings to its sealed log."""

from __future__ import annotations

import gc
import os
import time

import sigwrap
from sigwrap import errors
from sigwrap.agent.watches import DriftWatch
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.control import killswitch
from sigwrap.errors import NoInterception, StoreError, UsageError
from sigwrap.events import Payload
from sigwrap.exec.asked import cwd_of
from sigwrap.files.tree import make_missing, remove_unused
from sigwrap.front.messages import Channel
from sigwrap.kernel import libc, limits, memory, procfs
from sigwrap.kernel.descriptors import release_inherited
from sigwrap.kernel.file_state import note_first_devices
from sigwrap.kernel.peer import SUPERVISOR_NAME
from sigwrap.kernel.terminals import OwnLines
from sigwrap.log.codec import key_from_environment
from sigwrap.log.folder import default_store, new_session_id
from sigwrap.log.writer import SessionLog
from sigwrap.policy import is_url
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.environment import KILLSWITCH_URL
from sigwrap.policy.judge.recorded import JUDGEMENT
from sigwrap.policy.judge.rules import DEFAULT_LOG_SIZE_BYTES
from sigwrap.policy.language.document import policy_texts
from sigwrap.session.launch import (
    NOT_TRACED,
    Agent,
    Tell,
    agreed_to_run_without,
    capabilities_of,
    is_of_the_machine,
    launch,
    outer_session,
)
from sigwrap.session.recorder import Recorder
from sigwrap.session.run_end import Result, RunEnd
from sigwrap.session.sandbox import plan_sandbox
from sigwrap.session.session import Facts, Plan, Session
from sigwrap.session.settings import AGENTS, DEFAULT_JOIN_IDLE_S, RunSettings, ci_labels
from sigwrap.start import onefile, own_code, own_files
from sigwrap.start.child import Child, fork_child
from sigwrap.start.command import HostEnvironment, Inherited, find_program
from sigwrap.start.policy_files import host_variables, load_profile, load_with_sources
from sigwrap.text import first_of, masked, masked_text

if TYPE_CHECKING:
    from sigwrap.control.remote_switch import RemoteSwitch
    from sigwrap.control.usage import Usage

_CHANGES_SHOWN = 20


class Ended(NamedTuple):
    """The result of a session."""

    session_id: str
    result: Result
    duration_s: float
    recorder: Recorder
    is_held_up: bool  # this process cannot end


def run_session(
    settings: RunSettings,
    inherited: Inherited,
    front: Channel,
    *,
    front_pid: int,
    waited_for_pid: int,
    tell: Tell,
    child: Child | None,
) -> Ended:
    """Run the command in `child`, or in a process that is forked when its policy is known."""
    _become_supervisor()
    program, inherited, agent = _command(settings, inherited)
    daemons = [] if agent is None else agent.daemons_outside(tell)
    plan = _plan(settings, inherited.environment, tell=tell)
    policy, joins = plan.engine.policy, plan.joins
    if joins is not None:
        tell = joins.tell
    made = make_missing(plan.engine)
    try:
        goes_without = settings.best_effort or policy.tolerates_old_kernels
        sandbox = plan_sandbox(plan.engine, goes_without=goes_without)
        if policy.has_patterns:
            # Landlock forbids mounts where it restricts any file operation.
            may_cover_proc = procfs.is_ours() and sandbox.files is None
            own_code.read_patterns_engine(at_once=may_cover_proc)
        environment = HostEnvironment.under(policy.env_policy, inherited.environment)
        if agent is not None and sandbox.files is not None and sandbox.files.by_policy:
            agent.warn_of_sandbox(settings.command, policy.name, tell)
        session_id = settings.session_id or new_session_id()
        traceparent = ""
        if b"TRACEPARENT" in inherited.environment and joins is None:
            traceparent, environment = _traced(session_id, inherited, environment)
        handed_on = inherited._replace(environment=environment.given)
        become = None if joins is None else lambda: joins.serve(session_id, handed_on)
        missing, outer = [*plan.without], ""
        shown_by = _forget(environment, 0 if waited_for_pid == front_pid else waited_for_pid)
        orders = (program, session_id, environment)
        try:
            child = child or fork_child(settings.command, handed_on, become)
            launched = launch(child, *orders, sandbox)
        except NoInterception as refusal:
            outer = outer_session(refusal, inherited)
            missing.insert(0, agreed_to_run_without(refusal, settings, outer, tell))
            child = fork_child(settings.command, handed_on, become)
            launched = launch(child, *orders, None)
        facts = Facts(settings, plan, launched, sandbox, environment, front_pid, waited_for_pid)
        usage = None
        try:
            for each in sandbox.told if launched.listener is not None else ():
                tell(each)
            missing += _gaps(facts, shown_by)
            if plan.usage is not None:
                usage = plan.usage(policy.limits, launched.pid, session_id)
                missing += usage.without
            if plan.remote_switch is not None:
                missing += plan.remote_switch.gaps
                plan.remote_switch.start_thread()
            start = _start_payload(facts, session_id, inherited)
            start |= {"inside": outer, "missing": missing}
            if daemons:
                start["daemons_outside"] = daemons
            if traceparent:
                start["traceparent"] = traceparent
            recorder = _open_log(facts, start, key_from_environment(inherited.environment), tell)
        except BaseException:
            launched.kill()
            if usage is not None:
                usage.close()
            raise
        return _supervise(facts, session_id, program, recorder, front, usage, tell)
    finally:
        remove_unused(made)


def _supervise(
    facts: Facts,
    session_id: str,
    program: bytes,
    recorder: Recorder,
    front: Channel,
    usage: Usage | None,
    tell: Tell,
) -> Ended:
    """Let the command run to its end, and seal the log."""
    own_code.import_nothing_more()
    own_files.note_own_files()
    note_first_devices()
    started_s = time.monotonic()
    front.send("command_started", facts.command_pid)
    release_inherited()
    libc.set_dumpable(False)
    lines, joins = OwnLines(tell), facts.plan.joins
    if joins is None:  # the loop reports to joined commands, each through its own socket
        recorder.tell = lines.tell
    session = Session(facts, recorder=recorder, front=front, usage=usage)
    ended = session.run()
    lines.flush()
    if usage is not None:
        usage.close()
    duration_s = time.monotonic() - started_s
    _note_changes(recorder, tell)
    session.watchers.send_what_is_due()
    is_sealed = _seal(recorder, ended, duration_s, tell)
    _tell_why(ended, facts.plan, program, tell)
    result = ended.result()
    if not is_sealed:
        result = Result(errors.REFUSED, 0, result.reason)
    if joins is not None:
        joins.end(result.exit_status)
    return Ended(session_id, result, duration_s, recorder, session.is_held_up)


def _become_supervisor() -> None:
    libc.set_child_subreaper()
    libc.set_process_name(SUPERVISOR_NAME.encode())
    gc.freeze()  # keep start-up objects; the loop makes few cycles
    gc.set_threshold(50_000)


def _command(settings: RunSettings, inherited: Inherited) -> tuple[bytes, Inherited, Agent | None]:
    """Return the program, what it inherits, and the agent that it is."""
    if settings.join_name:
        return b"", inherited, None
    name = settings.preset or settings.command[0].rpartition("/")[2]
    if name not in AGENTS:
        return find_program(settings.command[0], inherited.environment), inherited, None
    agent = Agent(name, by_preset=bool(settings.preset))
    program, inherited = agent.find(settings.command[0], inherited)
    return program, inherited, agent


def _plan(settings: RunSettings, environment: dict[bytes, bytes], *, tell: Tell) -> Plan:
    """Plan the run. Errors in its settings and its policy appear here, before anything starts.

    Modules that few runs need are imported here, because the supervisor imports nothing later.
    """
    if settings.join_idle_s != DEFAULT_JOIN_IDLE_S and not settings.join_name:
        raise UsageError("--join-idle, but no session to join", "name it: --join-name NAME")
    as_text = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    remote_switch = _remote_switch(settings, as_text)
    store = settings.store or default_store(as_text)
    # This process already has the supervisors' name and blocks the kill switch's signal. So if the
    # switch is turned on after this look, `sigwrap killswitch on` finds it.
    stores = killswitch.stores(store, as_text)
    without = killswitch.refuse_if_on(stores, settings.store)
    for each in without:
        tell(each)
    variables = host_variables(settings.root)
    origin: Payload = {}
    if is_url(settings.policy):
        from sigwrap.session.policy_url import load_by_url

        policy, sources, origin = load_by_url(settings, as_text, store, variables, tell)
    else:
        policy, sources = load_with_sources(settings.policy, variables=variables)
    engine = Engine(policy)
    profile = None
    if settings.profile:
        profile = DriftWatch(load_profile(settings.profile, variables=variables))
    joins = usage = network = None
    if settings.join_name:
        from sigwrap.join.joins import Joins

        joins = Joins(settings, tell)
    if policy.limits.cpu_time_s or policy.limits.memory_bytes:
        from sigwrap.control.usage import Usage

        usage = Usage
    if engine.network.must_mediate:
        from sigwrap.network.handler import SocketCalls

        network = SocketCalls
    onefile.release_unpacked(for_stubs=policy.has_recordings)
    return Plan(
        store=store,
        stores=stores,
        engine=engine,
        policy_texts=policy_texts(sources, variables) | origin,
        profile=profile,
        without=without,
        remote_switch=remote_switch,
        joins=joins,
        usage=usage,
        network=network,
    )


def _remote_switch(settings: RunSettings, environment: dict[str, str]) -> RemoteSwitch | None:
    url = settings.killswitch_url or environment.get(KILLSWITCH_URL, "")
    if not url:
        if settings.killswitch_fail_closed:
            raise UsageError(
                "--killswitch-fail-closed, but there is no kill switch to poll",
                "name it: --killswitch-url URL, or $SIGWRAP_KILLSWITCH_URL",
            )
        return None
    from sigwrap.control.remote_switch import RemoteSwitch

    where = "--killswitch-url" if settings.killswitch_url else f"${KILLSWITCH_URL}"
    return RemoteSwitch(
        url, where, environment=environment, fail_closed=settings.killswitch_fail_closed
    )


def _traced(
    session_id: str, inherited: Inherited, environment: HostEnvironment
) -> tuple[str, HostEnvironment]:
    """Return the caller's TRACEPARENT if it is valid, and an environment that names the session's
    root span instead, so that an instrumented command becomes its child."""
    from sigwrap.log import trace_context  # few runs need it

    parent = trace_context.parse(os.fsdecode(inherited.environment[b"TRACEPARENT"]))
    if parent is None:
        return "", environment
    given = dict(environment.given)
    if b"TRACEPARENT" in given:  # the policy may remove it
        root = parent._replace(span_id=trace_context.span_id(session_id))
        given[b"TRACEPARENT"] = str(root).encode()
    return str(parent), environment._replace(given=given)


def _forget(environment: HostEnvironment, outer_pid: int) -> int:
    """Erase removed variables from our own processes, which the command could read. Return the pid
    of a process that still shows them, or 0."""
    removed = environment.removed
    if removed and not memory.forget(removed):
        return os.getpid()
    if removed and outer_pid and not memory.forget_in(outer_pid, removed):
        return outer_pid
    return 0


def _gaps(facts: Facts, shown_by: int) -> list[str]:
    """`shown_by`: the process whose environment still has the removed variables, or 0."""
    sandbox, is_filtered = facts.sandbox, facts.launched.listener is not None
    found = [*sandbox.without] if is_filtered else []
    # Root reads it past Landlock.
    is_unreadable = sandbox.domain and is_filtered and os.geteuid() != 0
    if shown_by and not is_unreadable:
        found.append(f"environment: removed variables stay readable in /proc/{shown_by}/environ")
    if limited := ", ".join(limits.not_lifted()):
        found.append(f"sigwrap's own limits: {limited}")
    if changeable := [path for path in own_files.changeable() if not sandbox.keeps(path)]:
        found.append(f"sigwrap's own code: the session can change {first_of(changeable)}")
    return found


def _start_payload(facts: Facts, session_id: str, inherited: Inherited) -> Payload:
    settings, plan = facts.settings, facts.plan
    system = os.uname()
    return {
        "session_id": session_id,
        "name": settings.name,
        **({"joined": True} if settings.join_name else {}),
        "command": masked(settings.command),
        "command_pid": facts.command_pid,
        "cwd": cwd_of(os.getpid()),  # also if the directory was removed
        "user": _user_name(inherited),
        "uid": os.getuid(),
        "host": system.nodename,
        "sigwrap": sigwrap.__version__,
        "kernel": system.release,
        "machine": system.machine,
        "grace_s": settings.grace_s,
        "capabilities": capabilities_of(facts.launched, facts.sandbox),
        "environment_removed": [masked_text(os.fsdecode(n)) for n in facts.environment.removed],
        "policy": plan.engine.policy.name,
        "profile": settings.profile,
        **({"preset": settings.preset} if settings.preset else {}),
        **({"labels": labels} if (labels := _labels(settings, inherited.environment)) else {}),
        **plan.policy_texts,
        "judgement": JUDGEMENT,
    }


def _labels(settings: RunSettings, environment: dict[bytes, bytes]) -> dict[str, str]:
    found = {name: masked_text(value) for name, value in ci_labels(environment).items()}
    return found | dict(each.split("=", 1) for each in settings.labels)


def _open_log(facts: Facts, start: Payload, key: bytes | None, tell: Tell) -> Recorder:
    """Start the log with its first event."""
    settings, limits_of_policy = facts.settings, facts.plan.engine.policy.limits
    session_id = start["session_id"]
    log = SessionLog.create(facts.plan.store, session_id, key=key, durable=settings.durable)
    size = settings.log_size_bytes or limits_of_policy.log_size_bytes or DEFAULT_LOG_SIZE_BYTES
    recorder = Recorder(log, tell, size, ends_run=limits_of_policy.at_log_size != "deny")
    if limited := ", ".join(limits.not_lifted()):
        tell(f"{limited} {limits.LIMIT_US_TOO}")
    if not recorder.record("session_started", os.getpid(), {**start, "keyed": key is not None}):
        log.discard()
        raise StoreError("nothing was run", limits.way_to_room("choose another store with --store"))
    return recorder


def _user_name(inherited: Inherited) -> str:
    name = inherited.environment.get(b"USER") or inherited.environment.get(b"LOGNAME") or b""
    return name.decode("utf-8", "replace")


def _note_changes(recorder: Recorder, tell: Tell) -> None:
    try:
        changed = own_files.changed_own_files()
    except Exception as bug:  # count them as changed, and let the log get its end
        tell(f"internal error: can't check sigwrap's own files: {type(bug).__name__}: {bug}")
        changed = [own_files.PACKAGE]
    if not changed:
        return
    recorder.record(
        "own_files_changed",
        os.getpid(),
        {"files": changed[:_CHANGES_SHOWN], "count": len(changed)},
    )
    tell(
        f"a part of sigwrap changed while the command ran ({first_of(changed)}): reinstall sigwrap "
        "if you did not change it"
    )


def _seal(recorder: Recorder, ended: RunEnd, duration_s: float, tell: Tell) -> bool:
    """End the log; return False if it has no end, or is not where it belongs."""
    recorder.look()
    result = ended.result()
    has_end = recorder.record(
        "session_ended",
        os.getpid(),
        {
            "exit_status": result.exit_status,
            "reason": result.reason,
            "duration_ns": int(duration_s * 1e9),
            "counts": dict(recorder.counts),
            "denied": recorder.actions.denied,
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


def _tell_why(ended: RunEnd, plan: Plan, program: bytes, tell: Tell) -> None:
    """Say why the command ended, unless it ended by itself."""
    if ended.switched_off is not None:
        why = f": {ended.switched_off.reason}" if ended.switched_off.reason else ""
        if plan.remote_switch is not None and plan.remote_switch.has_killed:
            tell(f"killed by the remote kill switch {ended.switched_off.by}{why}")
        else:
            tell(f"killed by the kill switch{why} (sigwrap killswitch status)")
    elif ended.reached_limit is not None:
        tell(f"a limit ended the command: {ended.result().reason}")
    elif ended.not_executed is not None and not ended.not_executed.was_told:
        tell(f"{os.fsdecode(program)}: {ended.not_executed.why}")
    elif ended.not_executed is not None and is_of_the_machine(ended.not_executed.why):
        tell(NOT_TRACED)
