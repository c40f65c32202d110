"""Run a session, from its id to its sealed log."""

from __future__ import annotations

import gc
import os
import time

import sigwrap
from sigwrap import errors
from sigwrap.bare import TYPE_CHECKING, NamedTuple, signal
from sigwrap.errors import StoreError
from sigwrap.exec.asked import cwd_of
from sigwrap.files.tree import make_missing, remove_unused
from sigwrap.front.messages import Channel, CommandStarted
from sigwrap.kernel import libc, limits, memory, procfs
from sigwrap.kernel.descriptors import release_inherited
from sigwrap.kernel.file_state import note_first_devices
from sigwrap.kernel.peer import SUPERVISOR_NAME
from sigwrap.kernel.terminals import OwnLines
from sigwrap.log.codec import key_from_environment
from sigwrap.log.writer import SessionLog
from sigwrap.outcomes import Counts
from sigwrap.policy.judge.recorded import JUDGEMENT
from sigwrap.policy.judge.rules import DEFAULT_LOG_SIZE_BYTES
from sigwrap.session.launch import (
    NOT_TRACED,
    Tell,
    capabilities_of,
    is_of_the_machine,
    launch,
    missing_interception,
    outer_session,
)
from sigwrap.session.plan import Plan, plan_of
from sigwrap.session.recorder import LogBudget, Recorder
from sigwrap.session.run_end import RunEnd
from sigwrap.session.sandbox import plan_sandbox
from sigwrap.session.session import Facts, Session
from sigwrap.session.settings import AGENTS, RunSettings
from sigwrap.start import own_code, own_files
from sigwrap.start.command import HostEnvironment, Inherited, find_program
from sigwrap.text import first_of, masked, masked_text

if TYPE_CHECKING:
    from sigwrap.session.plan import Agent


class Ended(NamedTuple):
    """The result of a session: its log, and the figures for one line."""

    status: int
    signal: int  # by which the run ended, 0 for none
    log_path: str
    session_id: str
    head: str
    reason: str
    duration_s: float
    counts: Counts
    handed_work: bool  # to a server outside the session
    unrecorded: int
    is_held_up: bool  # this process cannot end


def run_session(
    settings: RunSettings,
    inherited: Inherited,
    front: Channel,
    *,
    front_pid: int,
    waited_for_pid: int,
    tell: Tell,
) -> Ended:
    _become_supervisor()
    program, inherited, agent = _command(settings, inherited)
    daemons_outside = [] if agent is None else agent.daemons_outside(tell)
    plan = plan_of(settings, inherited.environment, tell=tell)
    made = make_missing(plan.engine)
    try:
        return _run(
            settings,
            plan,
            program,
            inherited,
            front,
            front_pid=front_pid,
            waited_for_pid=waited_for_pid,
            agent=agent,
            daemons_outside=daemons_outside,
            tell=tell if plan.joins is None else plan.joins.tell,
        )
    finally:
        remove_unused(made)


def _run(
    settings: RunSettings,
    plan: Plan,
    program: bytes,
    inherited: Inherited,
    front: Channel,
    *,
    front_pid: int,
    waited_for_pid: int,
    agent: Agent | None,
    daemons_outside: list[str],
    tell: Tell,
) -> Ended:
    policy, joins = plan.engine.policy, plan.joins
    goes_without = settings.best_effort or policy.tolerates_old_kernels
    sandbox = plan_sandbox(plan.engine, goes_without=goes_without)
    if policy.has_patterns:
        # Landlock forbids mounts where it restricts any file operation.
        may_cover_proc = procfs.is_ours() and sandbox.files is None
        own_code.read_patterns_engine(at_once=may_cover_proc)
    environment = HostEnvironment.under(policy.env_policy, inherited.environment)
    outer_pid = 0 if waited_for_pid == front_pid else waited_for_pid
    shown_by = _forget(environment, outer_pid)
    if agent is not None and sandbox.files is not None and sandbox.files.by_policy:
        agent.warn_of_sandbox(settings.command, policy.name, tell)
    session_id = new_session_id()
    handed_on = inherited._replace(environment=environment.given)
    become = None if joins is None else lambda: joins.serve(session_id, handed_on)
    launched = launch(program, settings.command, session_id, handed_on, sandbox, become)
    facts = Facts(settings, plan, launched, sandbox, environment, front_pid, waited_for_pid)
    usage = None
    try:
        missing = missing_interception(launched, settings, inherited, tell) + plan.without
        for each in sandbox.told if launched.listener is not None else ():
            tell(each)
        missing += _gaps(facts, shown_by)
        if plan.usage is not None:
            usage = plan.usage(policy.limits, launched.pid, session_id)
            missing += usage.without
        if plan.remote_switch is not None:
            missing += plan.remote_switch.gaps
            plan.remote_switch.start_thread()
        recorder = _open_log(facts, session_id, inherited, daemons_outside, missing, tell)
    except BaseException:
        os.kill(launched.pid, signal.SIGKILL)
        os.waitpid(launched.pid, 0)
        if usage is not None:
            usage.close()
        raise
    own_code.import_nothing_more()
    own_files.note_own_files()
    note_first_devices()
    clock_started_s = time.monotonic()
    front.send(CommandStarted(pid=launched.pid))
    release_inherited()
    libc.set_dumpable(False)
    lines = OwnLines(tell)
    if joins is None:  # the loop reports to joined commands, each through its own socket
        recorder.tell = lines.tell
    session = Session(facts, recorder=recorder, front=front, usage=usage)
    ended = session.run()
    lines.flush()
    if usage is not None:
        usage.close()
    duration_s = time.monotonic() - clock_started_s
    note_changes(recorder, tell)
    session.watchers.send_what_is_due()
    is_sealed = seal(recorder, ended, duration_s, tell)
    tell_why(ended, plan, program, tell)
    if joins is not None:
        joins.end(ended.exit_status if is_sealed else errors.REFUSED)
    return Ended(
        status=ended.exit_status if is_sealed else errors.REFUSED,
        signal=ended.signal if is_sealed else 0,
        log_path=recorder.log.path,
        session_id=session_id,
        head=recorder.log.head,
        reason=ended.reason,
        duration_s=duration_s,
        counts=recorder.actions,
        handed_work=bool(recorder.counts["work_handed_outside"]),
        unrecorded=recorder.unrecorded,
        is_held_up=session.is_held_up,
    )


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
    from sigwrap.session import plan

    agent = plan.Agent(name, by_preset=bool(settings.preset))
    program, inherited = agent.find(settings.command[0], inherited)
    return program, inherited, agent


def _forget(environment: HostEnvironment, outer_pid: int) -> int:
    """Erase removed variables from our own processes, which the command could read. Return the pid
    of a process that still shows them, or 0."""
    removed = environment.removed
    if removed and not memory.forget(removed):
        return os.getpid()
    if removed and outer_pid and not memory.forget_in(outer_pid, removed):
        return outer_pid
    return 0


# Start the log of a session with its first event, and with what this machine lacks.


def new_session_id() -> str:
    return time.strftime("%Y%m%d-%H%M%S-") + os.urandom(3).hex()


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


def _open_log(
    facts: Facts,
    session_id: str,
    inherited: Inherited,
    daemons_outside: list[str],
    missing: list[str],
    tell: Tell,
) -> Recorder:
    settings, plan, launched = facts.settings, facts.plan, facts.launched
    policy = plan.engine.policy
    key = key_from_environment(inherited.environment)
    log = SessionLog.create(plan.store, session_id, key=key, durable=settings.durable)
    size = settings.log_size_bytes or policy.limits.log_size_bytes or DEFAULT_LOG_SIZE_BYTES
    budget = LogBudget(size, ends_run=policy.limits.at_log_size != "deny")
    recorder = Recorder(log, tell, budget)
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
        "capabilities": capabilities_of(launched, facts.sandbox),
        "missing": missing,
        "keyed": key is not None,
        "environment_removed": [masked_text(os.fsdecode(n)) for n in facts.environment.removed],
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


def _user_name(inherited: Inherited) -> str:
    name = inherited.environment.get(b"USER") or inherited.environment.get(b"LOGNAME") or b""
    return name.decode("utf-8", "replace")


# The end of a session, as the user and the log are told.

_CHANGES_SHOWN = 20


def note_changes(recorder: Recorder, tell: Tell) -> None:
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


def seal(recorder: Recorder, ended: RunEnd, duration_s: float, tell: Tell) -> bool:
    """End the log; return False if it has no end, or is not where it belongs."""
    recorder.look()
    has_end = recorder.record(
        "session_ended",
        os.getpid(),
        {
            "exit_status": ended.exit_status,
            "reason": ended.reason,
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


def tell_why(ended: RunEnd, plan: Plan, program: bytes, tell: Tell) -> None:
    """Say why the command ended, unless it ended by itself."""
    if ended.switched_off is not None:
        why = f": {ended.switched_off.reason}" if ended.switched_off.reason else ""
        if plan.remote_switch is not None and plan.remote_switch.has_killed:
            tell(f"killed by the remote kill switch {ended.switched_off.by}{why}")
        else:
            tell(f"killed by the kill switch{why} (sigwrap killswitch status)")
    elif ended.reached_limit is not None:
        tell(f"a limit ended the command: {ended.reason}")
    elif ended.not_executed is not None and not ended.not_executed.was_told:
        tell(f"{os.fsdecode(program)}: {ended.not_executed.why}")
    elif ended.not_executed is not None and is_of_the_machine(ended.not_executed.why):
        tell(NOT_TRACED)
