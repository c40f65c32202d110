"""Gather the facts of an exec for its mediator, and carry out the mediator's effects."""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.exec.asked import only_asks
from sigwrap.exec.commands import Ours
from sigwrap.exec.compiled import is_available
from sigwrap.exec.facts import ExecFacts, Unseen, stalled
from sigwrap.exec.judge import ExecMediator, let_ask
from sigwrap.exec.look import ExecHoldings, Looked, Seen, folder_of, look, readings
from sigwrap.exec.repeated import limits_allow_repeats
from sigwrap.exec.replacements import Replacements
from sigwrap.exec.traced import TracedExecs
from sigwrap.exec.tracing import tracer_of
from sigwrap.exec.verify import Tracer
from sigwrap.kernel import procfs
from sigwrap.kernel.memory import expect_served_memory
from sigwrap.kernel.ptrace import Gone, NotTraceable
from sigwrap.kernel.seccomp import Notification
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.rules import Crowd
from sigwrap.session.effects import (
    CannotHold,
    Continue,
    ContinueWatched,
    Held,
    Hold,
    Image,
    Ran,
    Steps,
    TakeDigests,
    TellWatchers,
    Unrecorded,
    VerifyThenContinue,
)
from sigwrap.session.lineage import Process, WouldFail, cut_words
from sigwrap.session.loop import Done, Outcome
from sigwrap.session.perform import PAUSED, CallerGone, InWorker, Request
from sigwrap.session.processes import refresh_comm

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_NO_CROWD = Crowd(0, 0)
_TRACED_BY_US = "the caller has made sigwrap its tracer"
_READ_SLOWLY = "the caller is traced, and reading its program takes too long"
_THREADS = "the caller is traced and has other threads"


def _let_mount() -> Steps:
    yield Continue(Unrecorded.NO_RULE)


class Execs:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._session = session
        self._refused = mediation.refused
        self._performer = performer = mediation.performer
        self._watchers = watchers = session.watchers
        is_watched = watchers.counts_execs or watchers.looks_at_execs
        self.mediator: ExecMediator = ExecMediator(session.engine, is_watched=is_watched)
        self._counts_crowd = session.policy.limits.count_at_execs
        self._processes = session.processes
        self._expected = mediation.recordings.expected
        self.turns = session.turns
        self.tracer: Tracer = Tracer(session, mediation)
        self._traced = TracedExecs(session, mediation)
        # If the session adds a removed variable again, it chose the value itself.
        environment = session.facts.environment
        variables = {os.fsdecode(name): value for name, value in environment.given.items()}
        path = environment.own.get(b"PATH", b"")
        self.ours: Ours = Ours(variables, Named(session.policy.command_rules), path)
        Replacements(session, mediation, self)
        performer.offer(
            {
                **readings(),
                TakeDigests: self._take_digests,
                TellWatchers: watchers.on_exec,
                Hold: self._hold,
                VerifyThenContinue: self._verify_then_continue,
                ContinueWatched: self._continue_watched,
            }
        )

    @property
    def may_repeat(self) -> bool:
        """Return whether execs may go on without being judged each time."""
        session = self._session
        return (
            session.facts.launched.waits_through_signals
            and limits_allow_repeats(session.policy.limits)
            and not self._watchers.looks_at_execs
            and is_available()
        )

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Return whether the stop belongs to an exec."""
        return self.tracer.on_stop(tid, wait_status) or self._traced.on_stop(tid, wait_status)

    def on_end(self, tid: int) -> None:
        self.tracer.on_end(tid)
        self._traced.on_end(tid)

    def last_denial(self) -> str:
        """Return the rule of the last denial; empty without one."""
        return self.mediator.last_denial

    def denied_last(self) -> int:
        """Return the pid of the process that was last denied; 0 without one."""
        return self.mediator.denied_last

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        if self.tracer.take_back(notification):
            return
        steps = let_ask() if only_asks(notification, syscall) else self.mediator.mediate()
        held = ExecHoldings(self)
        self._performer.begin(
            Request(notification, process, syscall, steps, family=self, holdings=held)
        )

    def begin_mount(self, notification: Notification, process: Process, syscall: str) -> None:
        expect_served_memory()
        self._performer.begin(Request(notification, process, syscall, _let_mount()))

    # Facts

    def look(self, request: Request, *, may_wait: bool) -> Looked:
        """Look at the caller's exec. Raises MayWait."""
        process, syscall = request.process, request.syscall
        return look(request.notification, process, syscall, self.ours, may_wait=may_wait)

    def facts(self, request: Request, seen: Looked) -> ExecFacts | Unseen | WouldFail:
        held: ExecHoldings = request.holdings
        if held.executable is not None:  # from an earlier look
            held.executable.close()
            held.executable = None
        if not isinstance(seen, Seen):
            return seen
        held.asked, held.executable = asked, executable = seen
        process = request.process
        expected = self._expected.get(process.parent)
        if expected is not None and expected.is_of(asked.path, asked.argv, asked.truncated):
            held.expected = expected
        refresh_comm(process)
        held.facts = facts = ExecFacts(
            process,
            request.syscall,
            os.fsdecode(asked.path),
            folder_of(request.tid, process.pid, self.ours),
            asked.truncated,
            executable.programs,
            executable.here,
            executable.readable,
            self._crowd(process),
            None if held.expected is None else held.expected.rule,
            executable.scripts,
            executable.script_wraps,
        )
        self._performer.check_again(request)
        self._expected.pop(process, None)  # a stub that makes another exec is no stub any more
        return facts

    def drop(self, seen: Looked) -> None:
        if isinstance(seen, Seen):
            seen.executable.close()

    def stalled(self, request: Request, why: str) -> Unseen:
        return stalled(request.process, request.syscall, why)

    def _crowd(self, process: Process) -> Crowd:
        if not self._counts_crowd:
            return _NO_CROWD
        siblings = 0 if process.parent is None else process.parent.known_children
        return Crowd(siblings, len(self._processes))

    # Effects

    def _take_digests(self, request: Request, _effect: TakeDigests) -> object:
        held: ExecHoldings = request.holdings
        facts, executable = held.facts, held.executable
        assert facts is not None and executable is not None, "looked at before"
        if not executable.put_off_digests(lambda: self.mediator.look_over(facts)):
            return True
        held.executable = None  # the worker may still read it when the request is over

        def work() -> bool:
            try:
                executable.take_digests()
            except OSError:
                return False
            return True

        def then(outcome: Outcome) -> object:
            if isinstance(outcome, Done):
                held.executable = executable
                return outcome.value
            executable.close()
            return False

        return InWorker(work, then, lambda _late: executable.close())

    def _hold(self, request: Request, _effect: Hold) -> object:
        self._performer.check(request)
        self.turns.begun(request.holdings)
        try:
            request.holdings.tracee = self.tracer.hold(request)
        except Gone as gone:
            raise CallerGone from gone
        except NotTraceable:
            return self._hold_its_tracer(request)
        return Held.YES

    def _hold_its_tracer(self, request: Request) -> object:
        tid = tracer_of(request.tid)
        if not tid:  # the tracer has just ended, or there was none
            return self._hold_again(request)
        if tid == os.getpid():  # by PTRACE_TRACEME; sigwrap releases it at its next stop
            return CannotHold(_TRACED_BY_US)
        process = self._processes.of_thread(tid)
        if process is not None and request.holdings.executable.is_read_slowly():
            held: object = CannotHold(_READ_SLOWLY)
        elif process is not None:
            held = self._traced.hold(request, tid, process)
        elif tracer_of(request.tid) == tid:
            held = Held.NO
        else:  # the tracer has just ended
            return self._performer.wake_at(time.monotonic(), request, Held.AGAIN)
        is_unverified = held is Held.NO or isinstance(held, CannotHold)
        if is_unverified and len(procfs.threads(request.process.pid)) > 1:
            # PTRACE_SEIZE of another thread would wait until this exec is over.
            return CannotHold(_THREADS, may_run=False)
        return held

    def _hold_again(self, request: Request) -> object:
        try:
            request.holdings.tracee = self.tracer.hold(request)
        except Gone as gone:
            raise CallerGone from gone
        except NotTraceable:
            if not tracer_of(request.tid):
                self._performer.check_again(request)
                return Held.NOT_DUMPABLE
            # Another process has just begun to trace it.
            return self._performer.wake_at(time.monotonic(), request, Held.AGAIN)
        return Held.YES

    def _verify_then_continue(self, request: Request, effect: VerifyThenContinue) -> object:
        held: ExecHoldings = request.holdings
        tracee = held.tracee
        assert tracee is not None, "held before"
        if effect.image is Image.ASKED:
            assert held.executable is not None, "judged before"
            tracee.judged = held.executable
            self._becomes_another(request, held.executable.programs[0].argv)
        else:
            tracee.judged = held.replacement
            tracee.variables = held.variables
            tracee.at_exec_stop = held.at_exec_stop
            tracee.may_dump_core = not held.holds_secret
            self._becomes_another(request, (held.name,))
        held.goes_on = True
        self.tracer.go_on(tracee, lambda: self._performer.let_go_on(request, effect))
        return PAUSED

    def _continue_watched(self, request: Request, effect: ContinueWatched) -> object:
        executable = request.holdings.executable
        self._becomes_another(request, executable.programs[0].argv)
        if request.holdings.let_tracer_go is None:
            self._processes.loads_unseen(request.process)
            self._performer.let_go_on(request, effect)
            return Ran()
        self._traced.go_on(request, executable, lambda: self._performer.let_go_on(request, effect))
        return PAUSED

    def _becomes_another(self, request: Request, argv: tuple[str, ...]) -> None:
        request.process.becomes_another(cut_words(argv))
        if self._refused is not None:
            self._refused.goes_on(request.process, argv, request.holdings.facts.cwd)
