"""Run a session, from its id to its sealed log."""

from __future__ import annotations

import gc
import os
import time

from sigwrap import status
from sigwrap.bare import TYPE_CHECKING, NamedTuple, signal
from sigwrap.linux import libc, own_environment
from sigwrap.linux.descriptors import release_inherited
from sigwrap.linux.mounts import note_first_devices
from sigwrap.linux.peer import SUPERVISOR_NAME
from sigwrap.linux.stderr_lines import OwnLines
from sigwrap.outcomes import Counts
from sigwrap.protocols.front import Channel, CommandStarted
from sigwrap.run.closing import note_changes, seal, tell_why
from sigwrap.run.files import make_missing, remove_unused
from sigwrap.run.lacking import Tell, missing_interception
from sigwrap.run.launch import launch
from sigwrap.run.opening import gaps, new_session_id, open_log
from sigwrap.run.plan import Plan, plan_of
from sigwrap.run.session import Facts, Session
from sigwrap.run.settings import AGENTS, RunSettings
from sigwrap.run.walls import walls_of
from sigwrap.start import own_code, own_files
from sigwrap.start.command import HostEnvironment, Inherited, find_program

if TYPE_CHECKING:
    from sigwrap.run.agents import Agent


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
    walls = walls_of(plan.engine, goes_without=goes_without)
    environment = HostEnvironment.under(policy.env_policy, inherited.environment)
    outer_pid = 0 if waited_for_pid == front_pid else waited_for_pid
    shown_by = _forget(environment, outer_pid)
    if agent is not None and walls.files is not None and walls.files.by_policy:
        agent.warn_of_sandbox(settings.command, policy.name, tell)
    session_id = new_session_id()
    handed_on = inherited._replace(environment=environment.given)
    become = None if joins is None else lambda: joins.serve(session_id, handed_on)
    launched = launch(program, settings.command, session_id, handed_on, walls, become)
    usage = None
    try:
        missing = missing_interception(launched, settings, inherited, tell) + plan.without
        for each in walls.told if launched.listener is not None else ():
            tell(each)
        missing += gaps(launched, walls, shown_by=shown_by)
        if plan.usage is not None:
            usage = plan.usage(policy.limits, launched.pid, session_id)
            missing += usage.without
        if plan.remote_switch is not None:
            missing += plan.remote_switch.gaps
            plan.remote_switch.start_thread()
        recorder = open_log(
            session_id,
            settings,
            plan,
            inherited,
            launched,
            walls,
            environment,
            daemons_outside=daemons_outside,
            missing=missing,
            tell=tell,
        )
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
    libc.set_undumpable()
    lines = OwnLines(tell)
    if joins is None:  # the loop reports to joined commands, each through its own socket
        recorder.tell = lines.tell
    facts = Facts(settings, plan, launched, walls, environment, front_pid, waited_for_pid)
    session = Session(facts, recorder=recorder, front=front, usage=usage)
    ended = session.run()
    lines.flush()
    if usage is not None:
        usage.close()
    duration_s = time.monotonic() - clock_started_s
    note_changes(recorder, tell)
    session.watchers.send_what_is_due()
    is_sealed = seal(recorder, ended, duration_s, tell)
    tell_why(ended, plan, program, told_of_denial=session.told_of_denial, tell=tell)
    if joins is not None:
        joins.end(ended.exit_status if is_sealed else status.REFUSED)
    return Ended(
        status=ended.exit_status if is_sealed else status.REFUSED,
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
    from sigwrap.run import agents

    agent = agents.Agent(name, by_preset=bool(settings.preset))
    program, inherited = agent.find(settings.command[0], inherited)
    return program, inherited, agent


def _forget(environment: HostEnvironment, outer_pid: int) -> int:
    """Erase removed variables from our own processes, which the command could read. Return the pid
    of a process that still shows them, or 0."""
    removed = environment.removed
    if removed and not own_environment.forget(removed):
        return os.getpid()
    if removed and outer_pid and not own_environment.forget_in(outer_pid, removed):
        return outer_pid
    return 0
