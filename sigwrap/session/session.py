"""A session: its facts, the parts that carry it out, and the turns of its loop.

Each part gets the session, and finds the other parts in it. One thread runs all of them and never
waits: work that may take long is done by the worker pool, by an approver or in the kernel, and its
result is an event of the loop.
"""

from __future__ import annotations

import errno
import os
import select

from sigwrap.approve.approvals import Approvals
from sigwrap.bare import TYPE_CHECKING, NamedTuple, signal
from sigwrap.calls import Under
from sigwrap.control.agent_signals import AgentSignals, ToolCalls
from sigwrap.control.freezing import Freezing
from sigwrap.control.killswitch import KillSwitch
from sigwrap.control.watchers import Watchers
from sigwrap.events import Payload
from sigwrap.exec.facts import exit_payload
from sigwrap.front.messages import BEATS_EVERY_S, Channel
from sigwrap.kernel.process import oom_kills, used_up_cpu_limit
from sigwrap.kernel.signals import SignalFd
from sigwrap.policy.judge.network import UNIX, Direction, endpoint_of
from sigwrap.policy.judge.request import Action
from sigwrap.session.diagnosis import Diagnostic
from sigwrap.session.ending import Ending
from sigwrap.session.front_link import FrontLink, JobControl
from sigwrap.session.launch import Launch
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Loop, WorkerPool
from sigwrap.session.mediation import Mediation
from sigwrap.session.processes import ExecTurns, Processes
from sigwrap.session.recorder import Recorder
from sigwrap.session.run_end import LimitReached, NotExecuted, RunEnd
from sigwrap.session.sandbox import Sandbox
from sigwrap.session.settings import RunSettings, is_unattended
from sigwrap.start.command import HostEnvironment

if TYPE_CHECKING:  # imported at the start, where a run has one
    from sigwrap.agent.watches import DriftWatch
    from sigwrap.control.remote_switch import RemoteSwitch
    from sigwrap.control.usage import Usage
    from sigwrap.join.joins import Joins
    from sigwrap.network.handler import SocketCalls
    from sigwrap.policy.judge.engine import Engine

_IDLE_S = 0.05


class Plan(NamedTuple):
    """The parts that a run needs, from its settings and its policy."""

    store: str
    stores: tuple[str, ...]  # that can hold an effective kill switch
    engine: Engine
    policy_texts: Payload
    profile: DriftWatch | None
    without: list[str]  # missing protection
    # None if the run has none
    remote_switch: RemoteSwitch | None
    joins: Joins | None
    usage: type[Usage] | None
    network: type[SocketCalls] | None


class Facts(NamedTuple):
    """Facts of a session, from before it begins to its end."""

    settings: RunSettings
    plan: Plan
    launched: Launch
    sandbox: Sandbox
    environment: HostEnvironment
    front_pid: int
    waited_for_pid: int  # by sigwrap's caller: the front process, or the one file's bootloader

    @property
    def command_pid(self) -> int:
        return self.launched.pid

    @property
    def bootloader_pid(self) -> int:
        """0 where there is none."""
        return 0 if self.waited_for_pid == self.front_pid else self.waited_for_pid

    @property
    def sigwrap_pids(self) -> frozenset[int]:
        """The processes that belong to sigwrap; with them the one that joining commands are forked
        from."""
        own = () if self.plan.joins is None else (self.launched.pid,)
        return frozenset({os.getpid(), self.front_pid, self.waited_for_pid, *own})


class Session:
    def __init__(
        self, facts: Facts, *, recorder: Recorder, front: Channel, usage: Usage | None
    ) -> None:
        self.facts = facts
        self.settings, self.plan, self.engine = facts.settings, facts.plan, facts.plan.engine
        self.policy = self.engine.policy
        self.command_pid = facts.command_pid
        self.recorder = recorder
        self.channel = front
        self.loop = Loop()
        self.child_signals = SignalFd({signal.SIGCHLD})
        self.pool = WorkerPool(self.loop)
        # A part may use those above it when it is made, and all of them later.
        self.exec_turns = ExecTurns(self)
        self.processes = Processes(self)
        self.approvals = Approvals(self)
        self.watchers = Watchers(self)
        self.tool_calls = ToolCalls(self)
        listener = facts.launched.listener
        self.mediation = None if listener is None else Mediation(self, listener)
        self.diagnostic = Diagnostic(self)
        self.job_control = JobControl(self)
        self.freezing = Freezing(self)
        self.ending = Ending(self)
        self.kill_switch = KillSwitch(self)
        self.front = FrontLink(self)
        self.agent_signals = AgentSignals(self)
        self.usage = usage
        recorder.attend(self)

    # The turns of its loop

    def run(self) -> RunEnd:
        loop, log, run = self.loop, self.recorder.log, self.ending.run
        launched, plan = self.facts.launched, self.plan
        self._oom_kills_before = oom_kills()
        self.processes.adopt_command(self.command_pid)
        loop.watch(launched.channel.fileno(), self._on_launch_result)
        if launched.listener is not None:
            loop.watch(launched.listener.fd, self._on_listener, last=True)
        wall_time_s = self.policy.limits.wall_time_s
        if wall_time_s:
            loop.call_in(wall_time_s, self._on_wall_time)
        for part in (self.usage, plan.remote_switch, plan.joins):
            if part is not None:
                part.begin(self)
        self._look_after_store()
        self._beat()
        self.front.start_after_scrub()
        try:
            while not run.is_over:
                busy = loop.turn(_IDLE_S if log.pending else None)
                if log.wants_indexing:
                    log.index_rows(log.pending)  # all: a turn may have brought any number
                elif not busy:
                    log.index_rows()
                if not busy:
                    log.checkpoint()
        finally:
            self.channel.beat_no_more()
            self.kill_switch.close()
            self.approvals.close()
            self.tool_calls.close()
            if plan.joins is not None:
                plan.joins.close()
            if self.mediation is not None:
                self.mediation.close()
        self.front.drain_front()
        return run

    def _on_listener(self, happened: int) -> None:
        listener, mediation = self.facts.launched.listener, self.mediation
        if listener is None or mediation is None:
            return
        if not happened & select.EPOLLIN:  # the last process under the filter is gone
            self.loop.unwatch(listener.fd)
            listener.close()
            return
        notification = mediation.receive()
        if notification is not None:
            mediation.answer(notification)
            if mediation.execs.tracer.holds(notification.tid):
                self.ending.await_exec_stop()

    def _on_launch_result(self, _happened: int) -> None:
        channel = self.facts.launched.channel
        error = self.facts.launched.exec_failure()
        if error is not None:
            why = ""
            if self.mediation is not None and error == errno.EACCES:
                # No other process has made an exec by then.
                why = self.mediation.execs.mediator.last_denial
            told = NotExecuted(error, why or os.strerror(error), was_told=bool(why))
            self.ending.run.not_executed = told
        self.loop.unwatch(channel.fileno())
        channel.close()

    def _on_wall_time(self) -> None:
        maximum = self.policy.limits.wall_time_s
        why = f"wall_time: the limit of {maximum} s was reached"
        self.ending.run.limit_reached(LimitReached("wall_time", maximum, why, used=maximum))

    def _beat(self) -> None:
        self.channel.beat()
        self.loop.call_in(BEATS_EVERY_S, self._beat)

    def _look_after_store(self) -> None:
        again_in_s = self.recorder.look()
        self.approvals.look()
        self.loop.call_in(again_in_s, self._look_after_store)

    def was_told_of_denial(self, pid: int) -> bool:
        """sigwrap has printed why this process's exec was denied."""
        return self.mediation is not None and self.mediation.execs.mediator.last_denied_pid == pid

    # What one part asks of the others

    @property
    def mediates_network(self) -> bool:
        return Under.NETWORK_RULES in self.facts.sandbox.filtered

    @property
    def is_held_up(self) -> bool:
        """Return whether a thread may be blocked forever, so that this process cannot end."""
        switch = self.plan.remote_switch
        return self.pool.delays_exit() or (switch is not None and switch.is_held_up)

    def is_inside(self, pid: int) -> bool:
        return self.processes.of_thread(pid) is not None

    def keeps_from(self, socket: str) -> bool:
        """The policy keeps the session from connecting to this unix socket."""
        if not self.mediates_network or not socket.startswith(("/", "@")):
            return False
        decision = self.engine.network.decide(endpoint_of(f"{UNIX}{socket}", Direction.CONNECT))
        return decision.action in (Action.DENY, Action.APPROVE)

    @property
    def is_unattended(self) -> bool:
        """No user looks at the terminal."""
        return is_unattended(os.environb)

    def how_it_stands(self) -> Payload:
        counts = self.recorder.counts
        return {
            "name": self.settings.name,
            "processes": len(self.processes.by_pid),
            "denied": self.recorder.actions.denied,
            "asked": counts["approval_requested"],
            "stopped": self.agent_signals.stopped is not None,
        }

    def recorded_commands(self) -> frozenset[int]:
        """Pids of commands that get each signal from their stubs."""
        running = {} if self.mediation is None else self.mediation.recordings.running
        return frozenset(each.command.pid for each in running.values())

    def process_ended(self, process: Process, wait_status: int | None) -> None:
        """`wait_status`: as wait(2) has it, where it is known."""
        code = killer = None
        if wait_status is not None:
            if os.WIFSIGNALED(wait_status):
                killer = os.WTERMSIG(wait_status)
            else:
                code = os.WEXITSTATUS(wait_status)
        if self.mediation is not None:
            self.mediation.process_ended(process, code)
        payload = exit_payload(process.ppid, process.last_name, process.depth, code, killer)
        if killer == signal.SIGKILL:
            payload |= self._what_kernel_tells(process)
        self.recorder.record("process_exited", process.pid, payload)

    def _what_kernel_tells(self, process: Process) -> Payload:
        """About a SIGKILL that isn't sigwrap's own."""
        if self.ending.run.kills:
            return {}
        found: Payload = {}
        kills = oom_kills()
        if kills is not None and self._oom_kills_before is not None:
            found["oom_kills"] = kills - self._oom_kills_before
        cpu_limit_s = used_up_cpu_limit(process.pid, process.start_time)
        if cpu_limit_s is not None:
            found["cpu_limit_s"] = cpu_limit_s
        return found
