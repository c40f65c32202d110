"""Gather the facts of an exec for its mediator, and carry out the effects of execs alone."""

from __future__ import annotations

import errno
import os

from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.exec.asked import Asked, Environment, cwd_of, only_asks
from sigwrap.exec.content import ExecRefused
from sigwrap.exec.executable import Executable
from sigwrap.exec.facts import NOT_DUMPABLE, UNMAPPED, Basis, ExecFacts, Unseen, stalled
from sigwrap.exec.host import HostView
from sigwrap.exec.judge import ExecMediator
from sigwrap.exec.replacements import Replacements
from sigwrap.exec.traced import TracedExecs
from sigwrap.exec.verify import ExecHoldings, Tracer, tracer_of
from sigwrap.kernel.memory import Memory, Unreadable, expect_served_memory
from sigwrap.kernel.paths import Caller, WouldBlock
from sigwrap.kernel.ptrace import Gone, NotTraceable
from sigwrap.kernel.seccomp import Notification
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.rules import Crowd
from sigwrap.session.effects import (
    Continue,
    ContinueWatched,
    Held,
    Hold,
    Ran,
    ReadBasis,
    Steps,
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

_OUR_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_DIGEST_TAKES_LONG = "computing the digest of such a large file takes too long"
_NO_CROWD = Crowd(0, 0)


class ExecLookup(NamedTuple):
    """What an exec asks for, and what that would run."""

    asked: Asked
    executable: Executable  # holds descriptors, and has to be closed


LookResult = ExecLookup | Unseen | WouldFail


def _let_mount() -> Steps:
    yield Continue(Unrecorded.NO_RULE)


class Execs:
    """The handler of execs."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._refused_files = mediation.refused
        self._performer = performer = mediation.performer
        watchers = session.watchers
        is_watched = watchers.counts_execs or watchers.looks_at_execs
        self.mediator: ExecMediator = ExecMediator(session.engine, is_watched=is_watched)
        rules = session.policy.command_rules
        self._names_digests = any(rule.sha256 or rule.not_sha256 for rule in rules)
        self._counts_crowd = session.policy.limits.count_at_execs
        self._processes = session.processes
        self._expected = mediation.recordings.expected
        self.turns = session.exec_turns
        self.tracer: Tracer = Tracer(session, mediation)
        self.traced: TracedExecs = TracedExecs(session, mediation)
        # If the session adds a removed variable again, it chose the value itself.
        environment = session.facts.environment
        variables = {os.fsdecode(name): value for name, value in environment.given.items()}
        path = environment.own.get(b"PATH", b"")
        self.ours: HostView = HostView(variables, Named(rules), path)
        Replacements(session, mediation, self)
        performer.offer(
            {
                ReadBasis: _read_basis,
                TellWatchers: watchers.on_exec,
                Hold: self._hold,
                VerifyThenContinue: self._verify_then_continue,
                ContinueWatched: self._continue_watched,
            }
        )

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Return whether the stop belongs to an exec."""
        return self.tracer.on_stop(tid, wait_status) or self.traced.on_stop(tid, wait_status)

    def on_end(self, tid: int) -> None:
        self.tracer.on_end(tid)
        self.traced.on_end(tid)

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        if self.tracer.take_back(notification):
            return
        if only_asks(notification, syscall):  # its flags are in a register
            self._performer.leave_to_the_kernel(notification.id)
            return
        self.traced.execs_again(process, notification.tid)
        steps, held = self.mediator.mediate(process, syscall), ExecHoldings(self)
        self._performer.begin(
            Request(notification, process, syscall, steps, handler=self, holdings=held)
        )

    def begin_mount(self, notification: Notification, process: Process, syscall: str) -> None:
        expect_served_memory()
        self._performer.begin(Request(notification, process, syscall, _let_mount()))

    # Facts

    def look(self, request: Request, *, may_wait: bool) -> LookResult:
        """Look at what an exec asks for, and what that would run.

        Raises WouldBlock, unless it may wait, in a worker.
        """
        tid, pid = request.tid, request.process.pid
        try:
            with Memory(tid, may_wait=may_wait) as memory:
                asked = Asked(request.notification, request.syscall, memory)
                try:
                    caller = Caller(tid, pid, may_wait=may_wait)
                except OSError as refusal:
                    raise Unreadable from refusal
                environment = Environment(asked, self.ours.variables)
                if may_wait:  # later a rule asks for them in the loop, which must not wait
                    environment.read(may_wait=True)
                return ExecLookup(asked, Executable(caller, asked, self.ours, environment))
        except Unreadable as unreadable:
            if isinstance(unreadable.__cause__, PermissionError):
                return NOT_DUMPABLE
            return UNMAPPED
        except (ExecRefused, OSError) as refusal:
            error = refusal.errno or errno.EACCES
            if error in _OUR_SHORTAGE:
                return Unseen(f"sigwrap: {os.strerror(error)}")
            return WouldFail(error)

    def facts(self, request: Request, seen: LookResult) -> object:
        held: ExecHoldings = request.holdings
        if held.executable is not None:  # from an earlier look
            held.executable.close()
            held.executable = None
        if not isinstance(seen, ExecLookup):
            return seen
        held.asked, held.executable = asked, executable = seen
        process = request.process
        expected = self._expected.get(process.parent) if process.parent else None
        words = (asked.path, asked.argv, asked.truncated)
        if expected is not None and words == (expected.path, expected.argv, False):
            held.expected = expected
        refresh_comm(process)
        held.facts = facts = ExecFacts(
            process,
            request.syscall,
            os.fsdecode(asked.path),
            cwd_of(request.tid),
            asked.truncated,
            executable.programs,
            executable.here,
            executable.readable,
            self._crowd_of(process),
            None if held.expected is None else held.expected.rule,
            executable.scripts,
            executable.script_wraps,
        )
        self._performer.check_again(request)
        self._expected.pop(process, None)  # a stub that makes another exec is no stub any more
        try:
            if self._names_digests:
                self.mediator.look_over(facts)
            return facts
        except WouldBlock:
            pass  # a worker has to take the digests of large files
        held.executable = None  # the worker may still read it when the request is over

        def then(outcome: Outcome) -> ExecFacts | Unseen:
            if isinstance(outcome, Done):
                held.executable = executable
                return facts
            executable.close()
            return stalled(_DIGEST_TAKES_LONG)

        return InWorker(executable.take_large_digests, then, lambda _late: executable.close())

    def drop(self, seen: LookResult) -> None:
        if isinstance(seen, ExecLookup):
            seen.executable.close()

    def stalled(self, _request: Request, why: str) -> Unseen:
        return stalled(why)

    def _crowd_of(self, process: Process) -> Crowd:
        if not self._counts_crowd:
            return _NO_CROWD
        siblings = 0 if process.parent is None else process.parent.known_children
        return Crowd(siblings, len(self._processes))

    # Effects

    def _hold(self, request: Request, _effect: Hold) -> object:
        self._performer.check(request)
        self.turns.begun(request.holdings)
        for _ in range(2):  # its tracer may have just ended
            try:
                self.tracer.hold(request)
                return Held.YES
            except Gone as gone:
                raise CallerGone from gone
            except NotTraceable:
                if tid := tracer_of(request.tid):
                    return self.traced.hold(request, tid)
        self._performer.check_again(request)
        return Held.NOT_DUMPABLE

    def _verify_then_continue(self, request: Request, effect: VerifyThenContinue) -> object:
        held: ExecHoldings = request.holdings
        held.judged = judged = held.replacement if effect.is_replacement else held.executable
        assert judged is not None, "judged before"
        argv = (held.name,) if effect.is_replacement else judged.programs[0].argv
        self._becomes_another(request, argv)
        held.is_continued = True
        self.tracer.continue_call(request, effect)
        return PAUSED

    def _continue_watched(self, request: Request, effect: ContinueWatched) -> object:
        executable = request.holdings.executable
        self._becomes_another(request, executable.programs[0].argv)
        if request.holdings.held_tracer is None:
            self._processes.loads_unseen(request.process)
            self._performer.continue_call(request, effect)
            return Ran()
        self.traced.go_on(request, effect)
        return PAUSED

    def _becomes_another(self, request: Request, argv: tuple[str, ...]) -> None:
        request.process.becomes_another(cut_words(argv))
        if self._refused_files is not None:
            self._refused_files.note_exec(request.process, argv, request.holdings.facts.cwd)


def _read_basis(request: Request, effect: ReadBasis) -> Basis:
    executable: Executable | None = request.holdings.executable
    assert executable is not None and executable.environment is not None, "judged before"
    environment = executable.environment
    is_traced = tracer_of(request.tid) not in (0, os.getpid())
    return Basis(
        executable.where.read()._replace(traced=is_traced),
        executable.read_content(effect.besides),
        environment.loaded(effect.loading) if effect.loading else (),
        environment.digest(matters=bool(effect.besides)),
    )
