"""The life of a run. One thread, and nothing in it waits: a request is answered before the next is
looked at, and whatever takes time is an event of its own."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Callable

from sigwrap.bare.signal import SIGCHLD, SIGKILL
from sigwrap.calls import Under
from sigwrap.events import Payload
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import held_terminals
from sigwrap.linux.killed import oom_kills, used_up_cpu_limit
from sigwrap.linux.memory import may_be_served
from sigwrap.linux.seccomp import Listener
from sigwrap.linux.sigfd import SignalFd
from sigwrap.mediate.exit_event import exit_payload
from sigwrap.mediate.heartbeat import BEATS_EVERY_S
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.refused_files import Refusals
from sigwrap.mediate.run_end import (
    CommandNotExecuted,
    LimitReached,
    RunEnd,
    SwitchedOff,
)
from sigwrap.policy.judge.network import UNIX, Direction, endpoint_of
from sigwrap.policy.judge.request import Action
from sigwrap.protocols.front import Channel, Notice
from sigwrap.run.agent_signals import AgentSignals
from sigwrap.run.aside import Aside
from sigwrap.run.asking.approvals import Approvals
from sigwrap.run.asking.terminal_prompt import ring
from sigwrap.run.children import Children
from sigwrap.run.diagnostic import Diagnostic
from sigwrap.run.ending import Ending
from sigwrap.run.execs.gate import Gate
from sigwrap.run.freezing import Freezing
from sigwrap.run.front_link import FrontLink
from sigwrap.run.job_control import JobControl
from sigwrap.run.killswitch import KillSwitch
from sigwrap.run.launch import Launch
from sigwrap.run.loop import Loop
from sigwrap.run.mediation import Mediation
from sigwrap.run.plan import Plan
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.relief import Relief
from sigwrap.run.settings import BELL, RunSettings, is_unattended
from sigwrap.run.tool_calls import ToolCalls
from sigwrap.run.walls import Walls
from sigwrap.run.watchers import Watchers
from sigwrap.start.command import HostEnvironment
from sigwrap.store.killswitch import State

if TYPE_CHECKING:  # imported at the start, where a run has one
    from sigwrap.run.usage import Usage

_IDLE_S = 0.05


class Supervisor:
    def __init__(
        self,
        *,
        settings: RunSettings,
        plan: Plan,
        recorder: Recorder,
        launched: Launch,
        walls: Walls,
        front: Channel,
        front_pid: int,
        waited_for_pid: int,
        environment: HostEnvironment,
        usage: Usage | None,
    ) -> None:
        engine = plan.engine
        self._recorder = recorder
        self._usage = usage
        self._launched = launched
        self._removed = environment.removed
        self._channel = front
        self._name = settings.name
        self.told_of_denial = False  # where COMMAND itself was denied
        self._limits = engine.policy.limits
        self._network = engine.network if Under.NETWORK_RULES in walls.filtered else None
        self._loop = Loop()
        self._processes = Processes(self._loop, self._on_process_end)
        self._approvals = Approvals(
            loop=self._loop,
            recorder=recorder,
            mode=settings.approvals,
            timeout_s=settings.approval_timeout_s,
            unattended_timeout_s=settings.unattended_timeout_s,
            notify=self._notifier(settings.notify),
            how_it_stands=self._how_it_stands,
            is_inside=lambda pid: self._processes.of_thread(pid) is not None,
            policy=engine.policy.name,
            unattended=is_unattended(os.environb),
            on_stop_key=lambda: self._job_control.stop_front(),
            walled=walls.domain,
            is_kept=lambda socket: self._keeps_from(socket),
            on_signal=lambda *words: self._agent_signals.on_request(*words),
        )
        self.watchers = Watchers(
            policy=engine.policy,
            profile=plan.profile,
            send=lambda *words: self._agent_signals.send(*words),
            note=lambda *words: self._agent_signals.note(*words),
            loop=self._loop,
            is_inside=lambda pid: self._processes.of_thread(pid) is not None,
        )
        recorder.on_event = self.watchers.on_event
        self._tool_calls = ToolCalls(plan.store, self._loop, recorder)
        gate = Gate()
        self._aside, self._writers = Aside(self._loop), Aside(self._loop)
        child_signals = SignalFd({SIGCHLD})
        Relief(self._aside, recorder)
        self._mediation: Mediation | None = None
        if launched.listener is not None:
            # What the commands that join are forked from is no program of theirs.
            own = () if plan.joins is None else (launched.pid,)
            self._mediation = Mediation(
                listener=launched.listener,
                waits_through_signals=launched.waits_through_signals,
                recorder=recorder,
                engine=engine,
                processes=self._processes,
                approvals=self._approvals,
                loop=self._loop,
                aside=self._aside,
                writers=self._writers,
                watchers=self.watchers,
                sigwrap_pids=frozenset({os.getpid(), front_pid, waited_for_pid, *own}),
                end_run=self._on_limit,
                domain=walls.domain,
                environment=environment,
                gate=gate,
                child_signals_fd=child_signals.fd,
                on_waited=lambda waited: self._children.on_waited(waited),
                network=plan.network if Under.NETWORK_RULES in walls.filtered else None,
                files=plan.files,
                refusals=_refusals(walls, environment),
            )
        self._diagnostic = Diagnostic(
            recorder=recorder,
            processes=self._processes,
            approvals=self._approvals,
            limits=self._limits,
            used={} if usage is None else usage.used,
            stopped=lambda: self._agent_signals.stopped,
            meanwhile=front.beat,
        )
        self._job_control = JobControl(
            command_pid=launched.pid,
            waited_for_pid=waited_for_pid,
            bootloader_pid=0 if waited_for_pid == front_pid else waited_for_pid,
            prompt_holds_terminal=lambda: self._approvals.holds_terminal,
            beats=lambda: front.beats,
            is_frozen=lambda: self._freezing.is_frozen,
            must_go_on=plan.joins is not None,
        )
        self._freezing = Freezing(
            gate=gate,
            recorder=recorder,
            loop=self._loop,
            job_control=self._job_control,
            command_pid=launched.pid,
        )
        self._ending = Ending(
            command_pid=launched.pid,
            grace_s=settings.grace_s,
            recorder=recorder,
            approvals=self._approvals,
            processes=self._processes,
            loop=self._loop,
            job_control=self._job_control,
            stop_forks=self._stop_forks,
            grant_nothing=self._grant_nothing,
            let_run=self._freezing.let_run,
            freeze_again=lambda: self._agent_signals.freeze_again(),
            signal_budget=lambda reached: self._agent_signals.limit_reached(reached),
        )
        self._children = Children(
            command_pid=launched.pid,
            mediation=self._mediation,
            job_control=self._job_control,
            ending=self._ending,
            loop=self._loop,
            signals=child_signals,
            on_continued=self._freezing.freeze_who_goes_on,
        )
        self._kill_switch = KillSwitch(
            plan.session_line,
            plan.stores,
            self._loop,
            recorder,
            self._on_kill_switch,
            self._approvals.refused,
        )
        self._front = FrontLink(
            channel=front,
            front_pid=front_pid,
            command_pid=launched.pid,
            recorder=recorder,
            ending=self._ending,
            loop=self._loop,
            is_frozen=lambda: self._freezing.is_frozen,
            on_notify_failed=self._approvals.notify_failed,
            recorded_commands=self._recorded_commands,
        )
        self._remote_switch = plan.remote_switch
        self._joins = plan.joins
        self._env_policy = engine.policy.env_policy
        self._agent_signals = AgentSignals(
            policy=engine.policy,
            gate=gate,
            freezing=self._freezing,
            recorder=recorder,
            ending=self._ending,
            loop=self._loop,
            command_pid=launched.pid,
            grace_s=settings.grace_s,
            interrupt=self._on_demanded_interrupt,
            diagnose=self._diagnostic.tell,
            checkpoint=self._diagnostic.save,
        )

    def run(self) -> RunEnd:
        loop, log, run = self._loop, self._recorder.log, self._ending.run
        self._oom_kills_before = oom_kills()
        self._processes.adopt_command(self._launched.pid)
        loop.watch(self._launched.channel.fileno(), self._on_launch_result)
        if self._launched.listener is not None:
            loop.watch(self._launched.listener.fd, self._on_listener, last=True)
        if self._limits.wall_time_s:
            loop.call_at(time.monotonic() + self._limits.wall_time_s, self._on_wall_time)
        if self._usage is not None:
            self._usage.watch(
                loop=loop, aside=self._aside, recorder=self._recorder, ending=self._ending
            )
        if self._remote_switch is not None:
            self._remote_switch.start(loop, self._recorder, self._on_remote_switch)
        if self._joins is not None:
            self._joins.begin(
                fork_server=self._launched.pid,
                loop=loop,
                recorder=self._recorder,
                env_policy=self._env_policy,
                on_refused=self._approvals.refused,
                was_told=self._was_told_of_denial,
                is_frozen=lambda: self._freezing.is_frozen,
            )
        self._recorder.on_full = self._on_log_full
        self._look_after_store()
        self._beat()
        self._front.start_after_scrub(self._removed, self._launched.go)
        try:
            while not run.is_over:
                busy = loop.turn(_IDLE_S if log.pending else None)
                if log.wants_fold:
                    log.fold(log.pending)  # all: a turn may have brought any number
                elif not busy:
                    log.fold()
                if not busy:
                    log.checkpoint()
        finally:
            self._channel.beat_no_more()
            self._kill_switch.close()
            self._approvals.close()
            self._tool_calls.close()
            if self._joins is not None:
                self._joins.close()
            if self._mediation is not None:
                self._mediation.close()
        self._front.drain_front()
        return run

    @property
    def is_held_up(self) -> bool:
        """A thread of this process doesn't end, whatever is done."""
        switch = self._remote_switch
        workers = self._aside.is_held_up or self._writers.is_held_up
        return workers or (switch is not None and switch.is_held_up)

    def _on_listener(self, happened: int) -> None:
        listener, mediation = self._launched.listener, self._mediation
        if listener is None or mediation is None:
            return
        if not happened & select.EPOLLIN:  # the last process under the filter is gone
            self._close_listener(listener)
            return
        notification = mediation.receive()
        if notification is not None:
            mediation.answer(notification)
            if mediation.holds(notification.tid):
                self._children.await_exec_stop()

    def _close_listener(self, listener: Listener) -> None:
        self._loop.unwatch(listener.fd)
        listener.close()

    def _stop_forks(self) -> None:
        if self._mediation is not None:
            self._mediation.stop_forks()

    def _grant_nothing(self) -> None:
        if self._mediation is not None:
            self._mediation.grant_nothing()

    def _on_kill_switch(self, state: State) -> None:
        self._ending.on(SwitchedOff(state.reason, state.by, state.since_ns))

    def _on_demanded_interrupt(self, source: str) -> None:
        self._job_control.wake_front()  # it decides, and a stopped one can't
        self._front.interrupt(source)

    def _on_launch_result(self, _happened: int) -> None:
        channel = self._launched.channel
        error = self._launched.exec_failure()
        if error is not None:
            why = self._denial_of_command() if error == errno.EACCES else ""
            self._ending.on(CommandNotExecuted(error, why or os.strerror(error)))
            self.told_of_denial = bool(why)
        self._loop.unwatch(channel.fileno())
        channel.close()

    def _keeps_from(self, socket: str) -> bool:
        if self._network is None or not socket.startswith(("/", "@")):
            return False
        decision = self._network.decide(endpoint_of(f"{UNIX}{socket}", Direction.CONNECT))
        return decision.action in (Action.DENY, Action.APPROVE)

    def _how_it_stands(self) -> Payload:
        counts = self._recorder.counts
        return {
            "name": self._name,
            "processes": len(self._processes.by_pid),
            "denied": self._recorder.actions.denied,
            "asked": counts["approval_requested"],
            "stopped": self._agent_signals.stopped is not None,
        }

    def _notifier(self, command: str) -> Callable[[Notice], None] | None:
        if not command:
            return None
        if command != BELL:
            return self._channel.send
        if held_terminals.controlling < 0:
            self._recorder.tell("--notify bell: there is no terminal")
            return None
        return ring

    def _denial_of_command(self) -> str:
        """Nobody else has made an exec by then."""
        return "" if self._mediation is None else self._mediation.last_denial()

    def _was_told_of_denial(self, pid: int) -> bool:
        return self._mediation is not None and self._mediation.denied_last() == pid

    def _recorded_commands(self) -> frozenset[int]:
        return frozenset() if self._mediation is None else self._mediation.recorded_commands()

    def _on_wall_time(self) -> None:
        maximum = self._limits.wall_time_s
        why = f"wall_time: the limit of {maximum} s was reached"
        self._on_limit(LimitReached("wall_time", maximum, why, used=maximum))

    def _on_log_full(self, reached: LimitReached, refuses: bool) -> None:
        """Not at once: this is in the middle of a request."""
        if refuses:  # else it may be COMMAND's own end that is recorded
            self._ending.run.will_end(reached)
        self._loop.call_at(time.monotonic(), lambda: self._on_limit(reached))

    def _on_remote_switch(self, reason: str, by: str) -> None:
        self._ending.on(SwitchedOff(reason, by, time.time_ns()))

    def _beat(self) -> None:
        # Who is looked at aside, and finds no helper time after time, waits as for the loop itself.
        if not (self._aside.somebody_found_none() and may_be_served()):
            self._channel.beat()
        self._loop.call_at(time.monotonic() + BEATS_EVERY_S, self._beat)

    def _look_after_store(self) -> None:
        again_in_s = self._recorder.look()
        self._approvals.look()
        self._loop.call_at(time.monotonic() + again_in_s, self._look_after_store)

    def _on_limit(self, reached: LimitReached) -> None:
        self._ending.on(reached)

    def _on_process_end(self, process: Process, wait_status: int | None) -> None:
        code = killer = None
        if wait_status is not None:
            if os.WIFSIGNALED(wait_status):
                killer = os.WTERMSIG(wait_status)
            else:
                code = os.WEXITSTATUS(wait_status)
        if self._mediation is not None:
            self._mediation.process_ended(process, code)
        payload = exit_payload(process.ppid, process.last_name, process.depth, code, killer)
        if killer == SIGKILL:
            payload |= self._what_kernel_tells(process)
        self._recorder.record("process_exited", process.pid, payload)

    def _what_kernel_tells(self, process: Process) -> Payload:
        """Of a SIGKILL that isn't our own."""
        if self._ending.run.kills:
            return {}
        found: Payload = {}
        kills = oom_kills()
        if kills is not None and self._oom_kills_before is not None:
            found["oom_kills"] = kills - self._oom_kills_before
        cpu_limit_s = used_up_cpu_limit(process.pid, process.start_time)
        if cpu_limit_s is not None:
            found["cpu_limit_s"] = cpu_limit_s
        return found


def _refusals(walls: Walls, environment: HostEnvironment) -> Refusals | None:
    rules = None if walls.files is None else walls.files.rules
    home = os.fsdecode(environment.given.get(b"HOME", b""))
    return None if rules is None else Refusals(rules, home)
