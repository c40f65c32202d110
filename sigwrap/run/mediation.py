"""From a notification to the mediator of its family."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from sigwrap import calls
from sigwrap.calls import Family
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux.seccomp import Listener, ListenerBroken, Notification
from sigwrap.linux.signals.call import UnknownUse
from sigwrap.mediate import effects
from sigwrap.mediate.files import Refusals
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.refusal import UnknownCall, refuse_failed, refuse_unknown, refuse_x32
from sigwrap.mediate.run_end import LimitReached
from sigwrap.policy.judge.engine import Engine
from sigwrap.run.asking.approvals import Approvals
from sigwrap.run.execs.execs import Execs
from sigwrap.run.execs.gate import Gate
from sigwrap.run.files import Files, RefusedFiles
from sigwrap.run.forks import Forks
from sigwrap.run.loop import Loop
from sigwrap.run.perform import NO_HOLDINGS, Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.recording.recordings import Recordings
from sigwrap.run.restarts import Restarts
from sigwrap.run.signals import Signals
from sigwrap.run.watchers import Watchers
from sigwrap.run.workers import WorkerPool
from sigwrap.start.command import HostEnvironment

if TYPE_CHECKING:  # imported at the start, where a run has one
    from sigwrap.run.network import Network


class Mediation:
    def __init__(
        self,
        *,
        listener: Listener,
        waits_through_signals: bool,
        recorder: Recorder,
        engine: Engine,
        processes: Processes,
        approvals: Approvals,
        loop: Loop,
        pool: WorkerPool,
        watchers: Watchers,
        sigwrap_pids: frozenset[int],
        end_run: Callable[[LimitReached], None],
        domain: bool,
        environment: HostEnvironment,
        gate: Gate,
        child_signals_fd: int,
        on_waited: Callable[[Sequence[tuple[int, int]]], None],
        network: type[Network] | None,
        audits_files: bool,
        refusals: Refusals | None,
    ) -> None:
        """`network`: if the policy has rules for it. `refusals`: if it denies files."""
        self._listener = listener
        self._processes = processes
        self._recordings = Recordings(loop=loop, recorder=recorder, listener=listener)
        self._performer = performer = Performer(
            listener=listener,
            recorder=recorder,
            approvals=approvals,
            loop=loop,
            pool=pool,
            end_run=end_run,
            escalate=watchers.on_escalation,
        )
        policy = engine.policy
        self._refused = None
        if refusals is not None:
            self._refused = RefusedFiles(
                refusals, policy.name, recorder, loop, write=performer.write
            )
        self._restarts = restarts = Restarts(loop)
        self._execs = Execs(
            performer=performer,
            listener=listener,
            engine=engine,
            processes=processes,
            recordings=self._recordings,
            restarts=restarts,
            pool=pool,
            loop=loop,
            waits_through_signals=waits_through_signals,
            answer_now=self._answer_what_was_put_off,
            environment=environment,
            watchers=watchers,
            gate=gate,
            refused=self._refused,
        )
        self._signals = Signals(
            performer=performer,
            listener=listener,
            engine=engine,
            processes=processes,
            recordings=self._recordings,
            sigwrap_pids=sigwrap_pids,
            restarts=restarts,
            pool=pool,
            answer_now=self._answer_what_was_put_off,
            domain=domain,
        )
        self._families: dict[Family, Callable[[Notification, Process, str], None]] = {}
        if network is not None:
            self._families[Family.NETWORK] = network(
                performer=performer,
                listener=listener,
                engine=engine,
                processes=processes,
                sigwrap_pids=sigwrap_pids,
                pool=pool,
                loop=loop,
                answer_now=self._answer_what_was_put_off,
                on_connected=approvals.has_connected,
            ).begin
        if audits_files:
            self._families[Family.FILE] = Files(
                performer=performer,
                engine=engine,
                pool=pool,
                answer_now=self._answer_what_was_put_off,
            ).begin
        self._forks = Forks(
            performer=performer, restarts=restarts, limits=policy.limits, policy=policy.name
        )
        self._families |= {
            Family.EXEC: self._execs.begin,
            Family.SIGNAL: self._signals.begin,
            Family.FORK: self._forks.begin,
            Family.MOUNT: self._execs.begin_mount,
            Family.NONE: _unknown,
        }
        mediated = [call for call in calls.TABLE if call.family in self._families]
        self._begin = {
            arch: {number: (self._families[call.family], call.name) for number, call in row.items()}
            for arch, row in calls.by_number(mediated).items()
        }
        self._repeated = self._execs.repeated(
            listener=listener,
            recorder=recorder,
            child_signals_fd=child_signals_fd,
            on_waited=on_waited,
        )
        self.holds = self._execs.holds
        self.last_denial = self._execs.last_denial
        self.denied_last = self._execs.denied_last
        self.stop_forks = self._forks.stop
        self.grant_nothing = performer.grant_nothing

    def receive(self) -> Notification | None:
        """A request that waits for an answer; None where there is none any more."""
        if self._repeated is not None and self._repeated.may_serve():
            return self._repeated.serve()
        return self._listener.receive()

    def answer(self, notification: Notification) -> None:
        try:
            self._answer(notification)
        finally:
            self._execs.forget_look(notification)

    def _answer(self, notification: Notification) -> None:
        caller = None
        try:
            known = self._begin[notification.arch].get(notification.number)
            if known is not None and not self._processes.has(notification.tid):
                begin, syscall = known
                if begin == self._execs.begin and self._execs.is_over(notification, syscall):
                    return
            caller = self._processes.of_thread(notification.tid)
            if caller is None or known is None:
                self._refuse_unmediated(notification, caller)
            else:
                begin, syscall = known
                begin(notification, caller, syscall)
        except UnknownUse as unknown:
            self._refuse(notification, caller, str(unknown))
        except ListenerBroken:
            raise
        except Exception as bug:  # it denies this request, and the run goes on
            process = caller or _stranger(notification.tid)
            error = f"{type(bug).__name__}: {bug}"
            self._run(notification, process, refuse_failed(error, process.comm))

    def _refuse_unmediated(self, notification: Notification, caller: Process | None) -> None:
        if caller is None:
            # It ended while it waited. If it still waits, it is not where it should be.
            self._refuse(notification, caller, "not in this session's process tree")
        elif notification.arch == calls.X86_64 and notification.number & calls.X32_BIT:
            self._run(notification, caller, refuse_x32(notification.number, caller.comm))
        else:
            self._refuse(notification, caller, "sigwrap does not handle this call")

    def _answer_what_was_put_off(self, notification: Notification) -> None:
        """Its thread id may be another thread's by now."""
        if self._listener.is_waiting(notification.id):
            self.answer(notification)

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Whether it is a stop of tracing; job control sees to a child's own stops."""
        return self._execs.on_stop(tid, wait_status) or self._restarts.on_stop(tid, wait_status)

    def on_end(self, tid: int) -> None:
        self._execs.on_end(tid)
        self._restarts.on_end(tid)

    def process_ended(self, process: Process, status: int | None) -> None:
        """`status`: its exit status, where it is known and no signal killed it."""
        if self._refused is not None:
            self._refused.ended(process, status)
        self._recordings.forget(process)
        self._performer.process_ended(process)

    def close(self) -> None:
        if self._refused is not None:
            self._refused.close()
        self._recordings.close()
        self._performer.close()

    def _refuse(self, notification: Notification, caller: Process | None, reason: str) -> None:
        caller = caller or _stranger(notification.tid)
        unknown = UnknownCall(
            number=notification.number,
            arch=notification.arch,
            arguments=notification[6:],
            comm=caller.comm,
            reason=reason,
        )
        self._run(notification, caller, refuse_unknown(unknown))

    def _run(self, notification: Notification, caller: Process, steps: effects.Mediation) -> None:
        now_ns = time.perf_counter_ns()
        scope = Scope(notification.id, notification.tid, caller, steps, NO_HOLDINGS, now_ns)
        self._performer.begin(scope)


def _unknown(_notification: Notification, _caller: Process, syscall: str) -> None:
    raise UnknownUse(syscall)


def _stranger(tid: int) -> Process:
    return Process(pid=tid, start_time=0, parent=None, ppid=0, depth=0, comm="")
