"""Gather the facts of an exec for its mediator, and carry out the mediator's effects."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

from sigwrap.linux import procfs
from sigwrap.linux.execs.asked import Asked, only_asks
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.look import Seen, folder_of, look, look_first
from sigwrap.linux.execs.ours import Ours
from sigwrap.linux.execs.repeated import is_available
from sigwrap.linux.execs.tracing import tracer_of
from sigwrap.linux.memory import expect_served_memory
from sigwrap.linux.paths import MayWait
from sigwrap.linux.ptrace import Gone, NotTraceable
from sigwrap.linux.seccomp import Listener, Notification
from sigwrap.linux.signals.targets import refresh_comm
from sigwrap.mediate.diagnosis import cut_words
from sigwrap.mediate.effects import (
    CannotHold,
    ContinueWatched,
    Held,
    Hold,
    Image,
    Ran,
    ReadAgain,
    TellWatchers,
    VerifyThenContinue,
)
from sigwrap.mediate.exec import ExecMediator
from sigwrap.mediate.exec_facts import ExecFacts, OnlyAsks, Unseen, stalled
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.mount import let_mount
from sigwrap.mediate.repeats import limits_allow_repeats
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.limits import Crowd
from sigwrap.run.aside import Aside, Done, Outcome, Raised
from sigwrap.run.execs.gate import Gate
from sigwrap.run.execs.holdings import ExecHoldings, Looked
from sigwrap.run.execs.readings import readings
from sigwrap.run.execs.repeated import RepeatedExecs
from sigwrap.run.execs.replacements import Replacements
from sigwrap.run.execs.traced import TracedExecs
from sigwrap.run.execs.tracer import Tracer
from sigwrap.run.execs.turns import Turns
from sigwrap.run.loop import Loop
from sigwrap.run.perform import NO_HOLDINGS, PAUSED, CallerGone, Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.recording.recordings import Recordings
from sigwrap.run.refused_files import RefusedFiles
from sigwrap.run.restarts import Restarts
from sigwrap.run.watchers import Watchers
from sigwrap.start.command import HostEnvironment
from sigwrap.tuples import NamedTuple

_NO_CROWD = Crowd(0, 0)
_TRACED_BY_US = "the caller has made sigwrap its tracer"
_READ_SLOWLY = "the caller is traced, and reading its program takes too long"
_THREADS = "the caller is traced and has other threads"


class _PutOff(NamedTuple):
    """The result of a look that came before the request's turn, or from a worker."""

    seen: Looked
    started_ns: int


def _close(seen: Looked) -> None:
    if isinstance(seen, Seen):
        seen.executable.close()


def _outcome_of_look(outcome: Outcome, process: Process, syscall: str, why: str) -> Looked:
    match outcome:
        case Done(value=value):
            seen: Looked = value
            return seen
        case Raised(error=MayWait() as too_much):
            return stalled(process, syscall, str(too_much))
        case Raised(error=error):
            return error
        case _:
            return stalled(process, syscall, f"{outcome.why}: {why}")


def _outcome_of_digests(outcome: Outcome, seen: Seen, process: Process, syscall: str) -> Looked:
    if isinstance(outcome, Done):
        return seen
    seen.executable.close()
    return stalled(process, syscall, "computing the digest of such a large file takes too long")


class Execs:
    def __init__(
        self,
        *,
        performer: Performer,
        listener: Listener,
        engine: Engine,
        processes: Processes,
        recordings: Recordings,
        restarts: Restarts,
        aside: Aside,
        loop: Loop,
        waits_through_signals: bool,
        answer_now: Callable[[Notification], None],
        environment: HostEnvironment,
        watchers: Watchers,
        gate: Gate,
        refused: RefusedFiles | None,
    ) -> None:
        """`answer_now` handles a request that was put off."""
        self._gate = gate
        self._refused = refused
        self._performer = performer
        self._aside = aside
        self._looked: dict[int, _PutOff] = {}  # by the id of the request
        self._answer_now = answer_now
        self._mediator = ExecMediator(engine, is_watched=watchers.watch_execs)
        self._names_digests = any(
            rule.sha256 or rule.not_sha256 for rule in engine.policy.command_rules
        )
        self._limits = engine.policy.limits
        self._counts_crowd = self._limits.count_at_execs
        self._waits_through_signals = waits_through_signals
        self._watchers = watchers
        self._processes = processes
        self._recordings = recordings
        self._turns = turns = Turns()
        self._tracer = Tracer(
            performer,
            processes.loaded,
            aside,
            turns,
            restarts,
            waits_through_signals=waits_through_signals,
        )
        self._loop = loop
        self._traced = TracedExecs(performer, loop, turns, restarts, processes.loaded)
        # A variable that sigwrap removed and that is there again comes from the session.
        variables = {os.fsdecode(name): value for name, value in environment.given.items()}
        path = environment.own.get(b"PATH", b"")
        self._ours = Ours(variables, Named(engine.policy.command_rules), path)
        Replacements(
            performer=performer,
            listener=listener,
            recordings=recordings,
            aside=aside,
            tracer=self._tracer,
            ours=self._ours,
            environment=environment,
        )
        self.holds = self._tracer.holds
        performer.offer(
            {
                **readings(),
                ReadAgain: self._read_again,
                TellWatchers: watchers.on_exec,
                Hold: self._hold,
                VerifyThenContinue: self._verify_then_continue,
                ContinueWatched: self._continue_watched,
            }
        )

    def repeated(
        self,
        *,
        listener: Listener,
        recorder: Recorder,
        child_signals_fd: int,
        on_waited: Callable[[Sequence[tuple[int, int]]], None],
    ) -> RepeatedExecs | None:
        """Return None if each exec has to be judged anew."""
        if not (self._waits_through_signals and limits_allow_repeats(self._limits)):
            return None
        if self._watchers.looks_at_execs or not is_available():
            return None
        return RepeatedExecs(
            listener=listener,
            limits=self._limits,
            recorder=recorder,
            mediator=self._mediator,
            performer=self._performer,
            processes=self._processes,
            recordings=self._recordings,
            tracer=self._tracer,
            gate=self._gate,
            watchers=self._watchers,
            ours=self._ours,
            loop=self._loop,
            refused=self._refused,
            child_signals_fd=child_signals_fd,
            on_waited=on_waited,
        )

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Return whether the stop is one of an exec."""
        return self._tracer.on_stop(tid, wait_status) or self._traced.on_stop(tid, wait_status)

    def on_end(self, tid: int) -> None:
        self._tracer.on_end(tid)
        self._traced.on_end(tid)

    def last_denial(self) -> str:
        """Return the rule of the last denied exec, or ""."""
        return self._mediator.last_denial

    def denied_last(self) -> int:
        """Return the pid of the caller whose exec was denied last, or 0."""
        return self._mediator.denied_last

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        if self._tracer.take_back(notification):
            return
        if only_asks(notification, syscall):
            held = ExecHoldings(notification, syscall, self._tracer, self._gate)
            self._start(notification, process, OnlyAsks(), held)
        elif self._gate.is_closed:
            self._gate.hold(lambda: self._answer_now(notification))
        elif self._turns.is_taken(process):
            self._turns.put_off(process, lambda: self._answer_now(notification))
        else:
            self._look(notification, process, syscall)

    def is_over(self, notification: Notification, syscall: str) -> bool:
        """Return whether the call of an unknown caller fails because the file does not exist.

        Most such calls search along PATH. The tree does not have to know the caller for that.
        """
        started_ns = time.perf_counter_ns()
        if self._gate.is_closed or only_asks(notification, syscall):
            return False
        if self._tracer.holds(notification.tid) or notification.id in self._looked:
            return False
        seen = look_first(notification, syscall, self._ours)
        if isinstance(seen, WouldFail):
            self._performer.fail_as_the_kernel(notification.id, seen)
            return True
        if seen is not None:
            self._looked[notification.id] = _PutOff(seen, started_ns)
        return False

    def forget_look(self, notification: Notification) -> None:
        """Drop the result of a look that no request has used."""
        left = self._looked.pop(notification.id, None)
        if left is not None:
            _close(left.seen)

    def begin_mount(self, notification: Notification, process: Process, _syscall: str) -> None:
        expect_served_memory()
        now_ns, tid = time.perf_counter_ns(), notification.tid
        self._performer.begin(
            Scope(notification.id, tid, process, let_mount(), NO_HOLDINGS, now_ns)
        )

    def _look(self, notification: Notification, process: Process, syscall: str) -> None:
        looked = self._looked.pop(notification.id, None)
        if looked is None:
            started_ns = time.perf_counter_ns()
            try:
                seen = look(notification, process, syscall, self._ours)
            except MayWait as why:
                self._look_aside(notification, process, syscall, str(why), started_ns)
                return
        else:
            if isinstance(looked.seen, Exception):
                raise looked.seen
            seen, started_ns = looked.seen, looked.started_ns
        if isinstance(seen, WouldFail):  # most often in a search along PATH
            self._performer.fail_as_the_kernel(notification.id, seen)
            return
        held = ExecHoldings(notification, syscall, self._tracer, self._gate)
        facts: ExecFacts | Unseen
        if isinstance(seen, Seen):
            held.asked, held.executable = seen
            try:
                facts = known = self._facts(held, process, *seen)
                if self._names_digests and seen.executable.put_off_digests(
                    lambda: self._mediator.look_over(known)
                ):
                    self._digest_aside(notification, process, syscall, seen, started_ns)
                    return
            except BaseException:
                held.close()
                raise
        else:
            facts = seen
        self._start(notification, process, facts, held, started_ns)

    # In a worker

    def _look_aside(
        self,
        notification: Notification,
        process: Process,
        syscall: str,
        why: str,
        started_ns: int,
    ) -> None:
        def then(outcome: Outcome) -> None:
            seen = _outcome_of_look(outcome, process, syscall, why)
            self._go_on_with(notification, seen, started_ns)

        self._aside.do(
            lambda: look(notification, process, syscall, self._ours, may_wait=True), then, _close
        )

    def _digest_aside(
        self,
        notification: Notification,
        process: Process,
        syscall: str,
        seen: Seen,
        started_ns: int,
    ) -> None:
        def then(outcome: Outcome) -> None:
            found = _outcome_of_digests(outcome, seen, process, syscall)
            self._go_on_with(notification, found, started_ns)

        self._aside.do(seen.executable.take_digests, then)

    def _go_on_with(self, notification: Notification, seen: Looked, started_ns: int) -> None:
        self._looked[notification.id] = _PutOff(seen, started_ns)
        self._answer_now(notification)
        self.forget_look(notification)

    def _start(
        self,
        notification: Notification,
        process: Process,
        facts: ExecFacts | Unseen | OnlyAsks,
        held: ExecHoldings,
        started_ns: int = 0,
    ) -> None:
        steps = self._mediator.mediate(facts)
        scope = Scope(notification.id, notification.tid, process, steps, held, started_ns)
        if isinstance(facts, ExecFacts):
            if not self._performer.still_waits(scope):
                self._performer.drop(scope)
                return
            self._recordings.forget(
                process
            )  # a stub that executes something else is a stub no more
        self._performer.begin(scope)

    # Facts

    def _facts(
        self,
        held: ExecHoldings,
        process: Process,
        asked: Asked,
        executable: Executable,
    ) -> ExecFacts:
        expected = self._recordings.expected_of(process)
        if expected is not None and expected.is_of(asked.path, asked.argv, asked.truncated):
            held.expected = expected
        refresh_comm(process)
        held.facts = facts = ExecFacts(
            process,
            held.syscall,
            os.fsdecode(asked.path),
            folder_of(held.notification.tid, process.pid, self._ours),
            asked.truncated,
            executable.programs,
            executable.here,
            executable.readable,
            self._crowd(process),
            None if held.expected is None else held.expected.rule,
            executable.scripts,
            executable.script_wraps,
        )
        return facts

    def _crowd(self, process: Process) -> Crowd:
        if not self._counts_crowd:
            return _NO_CROWD
        siblings = 0 if process.parent is None else process.parent.known_children
        return Crowd(siblings, len(self._processes))

    # Effects

    def _read_again(self, scope: Scope, effect: ReadAgain) -> object:
        if self._gate.is_closed:  # it closed while the request waited for its approval
            self._gate.hold(lambda: self._performer.redo(scope, effect))
            return PAUSED
        held: ExecHoldings = scope.holdings
        if held.executable is not None:
            held.executable.close()
            held.executable = None
        seen, held.seen_again = held.seen_again, None
        if seen is None:
            try:
                seen = look(held.notification, scope.process, held.syscall, self._ours)
            except MayWait as why:
                return self._read_again_aside(scope, effect, str(why))
        if isinstance(seen, Exception):
            raise seen
        if not isinstance(seen, Seen):
            facts: object = seen
        else:
            facts = known = self._facts(held, scope.process, *seen)
            if self._names_digests and seen.executable.put_off_digests(
                lambda: self._mediator.look_over(known)
            ):
                return self._digest_again_aside(scope, effect, seen)
            held.asked, held.executable = seen
        scope.is_checked = False
        self._performer.check(scope)
        return facts

    def _digest_again_aside(self, scope: Scope, effect: ReadAgain, seen: Seen) -> object:
        def then(outcome: Outcome) -> None:
            if scope.is_over:
                seen.executable.close()
                return
            held: ExecHoldings = scope.holdings
            held.seen_again = _outcome_of_digests(outcome, seen, scope.process, held.syscall)
            self._performer.redo(scope, effect)

        self._aside.do(seen.executable.take_digests, then)
        return PAUSED

    def _read_again_aside(self, scope: Scope, effect: ReadAgain, why: str) -> object:
        held: ExecHoldings = scope.holdings

        def look_again() -> Seen | Unseen | WouldFail:
            return look(held.notification, scope.process, held.syscall, self._ours, may_wait=True)

        def then(outcome: Outcome) -> None:
            seen = _outcome_of_look(outcome, scope.process, held.syscall, why)
            if scope.is_over:
                _close(seen)
                return
            held.seen_again = seen
            self._performer.redo(scope, effect)

        self._aside.do(look_again, then, _close)
        return PAUSED

    def _hold(self, scope: Scope, effect: Hold) -> object:
        def redo() -> None:
            self._performer.redo(scope, effect)

        if self._gate.is_closed:
            scope.is_checked = False  # the caller can end while it waits
            self._gate.hold(redo)
            return PAUSED
        self._performer.check(scope)
        self._gate.passed(scope.holdings)
        if self._turns.is_taken(scope.process):  # another thread executes since
            self._turns.put_off(scope.process, redo)
            return PAUSED
        try:
            scope.holdings.tracee = self._tracer.hold(scope)
        except Gone as gone:
            raise CallerGone from gone
        except NotTraceable:
            return self._hold_its_tracer(scope, redo)
        return Held.YES

    def _hold_its_tracer(self, scope: Scope, redo: Callable[[], None]) -> object:
        tid = tracer_of(scope.tid)
        if not tid:  # the tracer has just ended, or there was none
            return self._hold_again(scope, redo)
        if tid == os.getpid():  # by PTRACE_TRACEME as its parent ended; its next stop ends that
            return CannotHold(_TRACED_BY_US)
        process = self._processes.of_thread(tid)
        if process is not None and scope.holdings.executable.is_read_slowly():
            held: object = CannotHold(_READ_SLOWLY)
        elif process is not None:
            held = self._traced.hold(scope, tid, process, redo)
        elif tracer_of(scope.tid) == tid:
            held = Held.NO
        else:
            self._loop.call_at(time.monotonic(), redo)  # the tracer has just ended
            return PAUSED
        is_unverified = held is Held.NO or isinstance(held, CannotHold)
        if is_unverified and len(procfs.threads(scope.process.pid)) > 1:
            # PTRACE_SEIZE of another thread would wait until this exec is over.
            return CannotHold(_THREADS, may_run=False)
        return held

    def _hold_again(self, scope: Scope, redo: Callable[[], None]) -> object:
        try:
            scope.holdings.tracee = self._tracer.hold(scope)
        except Gone as gone:
            raise CallerGone from gone
        except NotTraceable:
            if not tracer_of(scope.tid):
                self._performer.check_again(scope)
                return Held.NOT_DUMPABLE
            self._loop.call_at(time.monotonic(), redo)  # another process has just begun to trace it
            return PAUSED
        return Held.YES

    def _verify_then_continue(self, scope: Scope, effect: VerifyThenContinue) -> object:
        held: ExecHoldings = scope.holdings
        tracee = held.tracee
        assert tracee is not None, "held before"
        if effect.image is Image.ASKED:
            assert held.executable is not None, "judged before"
            tracee.judged = held.executable
            self._is_becoming_another(scope, held.executable.programs[0].argv)
        else:
            tracee.judged = held.replacement
            tracee.variables = held.variables
            tracee.at_exec_stop = held.at_exec_stop
            tracee.may_dump_core = not held.holds_secret
            self._is_becoming_another(scope, (held.name,))
        held.goes_on = True
        self._tracer.go_on(tracee, lambda: self._performer.let_go_on(scope, effect))
        return PAUSED

    def _continue_watched(self, scope: Scope, effect: ContinueWatched) -> object:
        executable = scope.holdings.executable
        self._is_becoming_another(scope, executable.programs[0].argv)
        if scope.holdings.let_tracer_go is None:
            self._processes.loads_unseen(scope.process)
            self._performer.let_go_on(scope, effect)
            return Ran()
        self._traced.go_on(scope, executable, lambda: self._performer.let_go_on(scope, effect))
        return PAUSED

    def _is_becoming_another(self, scope: Scope, argv: tuple[str, ...]) -> None:
        scope.process.becomes_another(cut_words(argv))
        if self._refused is not None:
            self._refused.goes_on(scope.process, argv, scope.holdings.facts.cwd)
