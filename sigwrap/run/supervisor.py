"""The life of a run. One thread, and nothing in it waits: a request is answered before the next is
looked at, and whatever takes time is an event of its own."""

from __future__ import annotations

import errno
import os
import select
import time

from sigwrap.linux.memory import may_be_served
from sigwrap.linux.seccomp import Listener
from sigwrap.mediate.heartbeat import BEATS_EVERY_S
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.run_end import CommandNotExecuted, LimitReached, RunEnd
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.signals import signal_name
from sigwrap.protocols.front import Channel
from sigwrap.run.aside import Aside
from sigwrap.run.asking.approvals import Approvals
from sigwrap.run.children import Children
from sigwrap.run.ending import Ending
from sigwrap.run.front_link import FrontLink
from sigwrap.run.job_control import JobControl
from sigwrap.run.launch import Launch
from sigwrap.run.loop import Loop
from sigwrap.run.mediation import Mediation
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.relief import Relief
from sigwrap.run.settings import RunSettings, is_unattended

_IDLE_S = 0.05


class Supervisor:
    def __init__(
        self,
        *,
        settings: RunSettings,
        recorder: Recorder,
        engine: Engine,
        launched: Launch,
        front: Channel,
        front_pid: int,
        waited_for_pid: int,
        domain: bool,
    ) -> None:
        self._recorder = recorder
        self._launched = launched
        self._channel = front
        self.told_of_denial = False  # where COMMAND itself was denied
        self._limits = engine.policy.limits
        self._loop = Loop()
        self._processes = Processes(self._loop, self._on_process_end)
        self._approvals = Approvals(
            loop=self._loop,
            recorder=recorder,
            mode=settings.approvals,
            timeout_s=settings.approval_timeout_s,
            policy=engine.policy.name,
            unattended=is_unattended(os.environb),
            on_stop_key=lambda: self._job_control.stop_front(),
            walled=domain,
        )
        self._aside = Aside(self._loop)
        Relief(self._aside, recorder)
        self._mediation: Mediation | None = None
        if launched.listener is not None:
            self._mediation = Mediation(
                listener=launched.listener,
                waits_through_signals=launched.waits_through_signals,
                recorder=recorder,
                engine=engine,
                processes=self._processes,
                approvals=self._approvals,
                loop=self._loop,
                aside=self._aside,
                sigwrap_pids=frozenset({os.getpid(), front_pid, waited_for_pid}),
                end_run=self._on_limit,
                domain=domain,
            )
        self._job_control = JobControl(
            command_pid=launched.pid,
            waited_for_pid=waited_for_pid,
            bootloader_pid=0 if waited_for_pid == front_pid else waited_for_pid,
            prompt_holds_terminal=lambda: self._approvals.holds_terminal,
            beats=lambda: front.beats,
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
        )
        self._children = Children(
            command_pid=launched.pid,
            mediation=self._mediation,
            job_control=self._job_control,
            ending=self._ending,
            loop=self._loop,
        )
        self._front = FrontLink(
            channel=front,
            front_pid=front_pid,
            command_pid=launched.pid,
            recorder=recorder,
            ending=self._ending,
            loop=self._loop,
        )

    def run(self) -> RunEnd:
        loop, log, run = self._loop, self._recorder.log, self._ending.run
        self._processes.adopt_command(self._launched.pid)
        loop.watch(self._launched.channel.fileno(), self._on_launch_result)
        if self._launched.listener is not None:
            loop.watch(self._launched.listener.fd, self._on_listener, last=True)
        if self._limits.wall_time_s:
            loop.call_at(time.monotonic() + self._limits.wall_time_s, self._on_wall_time)
        self._recorder.on_full = self._on_log_full
        self._look_after_log()
        self._beat()
        self._launched.go()
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
            self._approvals.close()
            if self._mediation is not None:
                self._mediation.close()
        self._front.hear_out()
        return run

    @property
    def is_held_up(self) -> bool:
        """A thread of this process doesn't end, whatever is done."""
        return self._aside.is_held_up

    def _on_listener(self, happened: int) -> None:
        listener, mediation = self._launched.listener, self._mediation
        if listener is None or mediation is None:
            return
        if not happened & select.EPOLLIN:  # the last process under the filter is gone
            self._close_listener(listener)
            return
        notification = listener.receive()
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

    def _on_launch_result(self, _happened: int) -> None:
        channel = self._launched.channel
        error = self._launched.exec_failure()
        if error is not None:
            why = self._denial_of_command() if error == errno.EACCES else ""
            self._ending.on(CommandNotExecuted(error, why or os.strerror(error)))
            self.told_of_denial = bool(why)
        self._loop.unwatch(channel.fileno())
        channel.close()

    def _denial_of_command(self) -> str:
        """Nobody else has made an exec by then."""
        return "" if self._mediation is None else self._mediation.last_denial()

    def _on_wall_time(self) -> None:
        maximum = self._limits.wall_time_s
        self._on_limit(LimitReached("wall_time", maximum, f"wall_time: {maximum} s are over"))

    def _on_log_full(self, reached: LimitReached, refuses: bool) -> None:
        """Not at once: this is in the middle of a request."""
        if refuses:  # else it may be COMMAND's own end that is recorded
            self._ending.run.will_end(reached)
        self._loop.call_at(time.monotonic(), lambda: self._on_limit(reached))

    def _beat(self) -> None:
        # Who is looked at aside, and finds no helper time after time, waits as for the loop itself.
        if not (self._aside.somebody_found_none() and may_be_served()):
            self._channel.beat()
        self._loop.call_at(time.monotonic() + BEATS_EVERY_S, self._beat)

    def _look_after_log(self) -> None:
        self._loop.call_at(time.monotonic() + self._recorder.look(), self._look_after_log)

    def _on_limit(self, reached: LimitReached) -> None:
        self._ending.on(reached)

    def _on_process_end(self, process: Process, wait_status: int | None) -> None:
        if self._mediation is not None:
            self._mediation.process_ended(process)
        code = killer = None
        if wait_status is not None:
            if os.WIFSIGNALED(wait_status):
                killer = os.WTERMSIG(wait_status)
            else:
                code = os.WEXITSTATUS(wait_status)
        self._recorder.record(
            "process_exited",
            process.pid,
            {
                "ppid": process.ppid,
                "comm": process.last_name,
                "depth": process.depth,
                "exit_code": code,
                "signal": killer,
                "signal_name": None if killer is None else signal_name(killer),
            },
        )
