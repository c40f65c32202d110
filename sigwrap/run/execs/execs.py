"""The edge of the exec mediator: a request's facts in, its effects carried out."""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Callable, Sequence

from sigwrap.linux import procfs, ptrace
from sigwrap.linux.execs import secret
from sigwrap.linux.execs.asked import Asked, ExecRefused, only_asks
from sigwrap.linux.execs.environment import (
    NoHostValue,
    Variables,
    takes_from_the_host,
    variables_for,
)
from sigwrap.linux.execs.executable import Executable, resolve_replacement
from sigwrap.linux.execs.look import Seen, cwd_of, look
from sigwrap.linux.execs.ours import Ours
from sigwrap.linux.execs.restage import Redirection
from sigwrap.linux.memory import Unreadable, expect_served_memory
from sigwrap.linux.paths import MayWait
from sigwrap.linux.ptrace import Gone, NotTraceable
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.effects import (
    ContinueUnverified,
    Effect,
    Held,
    Hold,
    Image,
    Prepare,
    Prepared,
    PrepareStubCommand,
    ReadAgain,
    ReadContent,
    Replace,
    Unpreparable,
    VerifyThenContinue,
)
from sigwrap.mediate.exec import (
    ExecFacts,
    ExecMediator,
    OnlyAsks,
    Unseen,
    stalled,
)
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.limits import Crowd
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.mount import let_mount
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.named import Named
from sigwrap.policy.judge.request import Via
from sigwrap.run.aside import Aside, Done, Outcome, Raised
from sigwrap.run.execs.tracer import Tracee, Tracer
from sigwrap.run.execs.unheld import Unheld
from sigwrap.run.loop import Loop
from sigwrap.run.perform import NO_HOLDINGS, PAUSED, CallerGone, Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recording.recording import Recording
from sigwrap.run.recording.recordings import Expected, Recordings
from sigwrap.run.recording.stub_program import changed_stub_file, stub_line, stub_variables
from sigwrap.start import onefile
from sigwrap.tuples import NamedTuple

_NO_CROWD = Crowd(0, 0)
_A_STUB_OPENS = 24  # descriptors: what an interpreter reads at its start, and its own few


_Found = tuple[bytes, Executable]  # the path of a replacement, and what it would run


class _ExecHoldings:
    """What one exec holds."""

    __slots__ = (
        "asked",
        "at_exec_stop",
        "executable",
        "expected",
        "found_aside",
        "goes_on",
        "holds_secret",
        "name",
        "notification",
        "path",
        "recording",
        "replacement",
        "replacement_argv",
        "seen_again",
        "sets_environment",
        "syscall",
        "tracee",
        "tracer",
        "variables",
    )

    def __init__(self, notification: Notification, syscall: str, tracer: Tracer) -> None:
        self.notification = notification
        self.syscall = syscall
        self.tracer = tracer
        self.asked: Asked | None = None
        self.executable: Executable | None = None
        self.seen_again: _Facts | None = None
        self.tracee: Tracee | None = None
        self.goes_on = False
        # Of a replacement
        self.replacement: Executable | None = None
        self.found_aside: dict[str, _Found | None] = {}
        self.name = ""
        self.path = b""
        self.replacement_argv: Sequence[bytes] = ()
        self.sets_environment = False  # all of it, at the exec stop
        self.variables: Variables = ()
        self.holds_secret = False
        self.at_exec_stop: Callable[[int], str] | None = None
        # Of a stub's command
        self.expected: Expected | None = None
        self.recording: Recording | None = None

    def failed(self) -> None:
        if self.tracee is not None:
            self.tracer.refused(self.tracee)

    def close(self) -> None:
        found_aside = (found[1] for found in self.found_aside.values() if found is not None)
        for each in (self.executable, self.replacement, *found_aside):
            if each is not None:
                each.close()
        if self.recording is not None and not self.goes_on:
            self.recording.drop("the command was refused")


_Facts = Seen | Unseen | WouldFail | Exception


class _FindAside(Exception):
    """A replacement lies where a look may take its time."""

    def __init__(self, command: str, find: Callable[[], _Found]) -> None:
        super().__init__(command)
        self.command = command
        self.find = find


def _close_found(found: _Found | None) -> None:
    if found is not None:
        found[1].close()


class _Looked(NamedTuple):
    """What a look that was put off has found."""

    seen: _Facts
    started_ns: int


def _close(seen: _Facts) -> None:
    if isinstance(seen, Seen):
        seen.executable.close()


def _outcome_of_look(outcome: Outcome, process: Process, syscall: str, why: str) -> _Facts:
    match outcome:
        case Done(value=value):
            seen: _Facts = value
            return seen
        case Raised(error=MayWait() as too_much):
            return stalled(process, syscall, str(too_much))
        case Raised(error=error):
            return error
        case _:
            return stalled(process, syscall, f"{outcome.why}: {why}")


class Execs:
    def __init__(
        self,
        *,
        performer: Performer,
        engine: Engine,
        processes: Processes,
        recordings: Recordings,
        aside: Aside,
        loop: Loop,
        waits_through_signals: bool,
        answer_now: Callable[[Notification], None],
    ) -> None:
        """`answer_now` gets a request that was put off, when its turn has come."""
        self._performer = performer
        self._aside = aside
        self._looked: dict[int, _Looked] = {}  # by the id of a request whose facts were put off
        self._answer_now = answer_now
        self._mediator = ExecMediator(engine)
        self._names_digests = any(rule.sha256 for rule in engine.policy.command_rules)
        self._counts_crowd = engine.policy.limits.count_at_execs
        self._processes = processes
        self._recordings = recordings
        self.tracer = Tracer(
            performer, processes.loaded, aside, waits_through_signals=waits_through_signals
        )
        self._unheld = Unheld(performer, loop, processes.loaded)
        own = onefile.original_environment(dict(os.environb))
        variables = {os.fsdecode(name): value for name, value in own.items()}
        self._ours = Ours(variables, Named(engine.policy.command_rules))
        performer.offer(
            {
                ReadContent: self._read_content,
                ReadAgain: self._read_again,
                Hold: self._hold,
                VerifyThenContinue: self._verify_then_continue,
                ContinueUnverified: self._continue_unverified,
                Prepare: self._prepare,
                PrepareStubCommand: self._prepare_stub_command,
                Replace: self._replace,
            }
        )

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        if self.tracer.take_back(notification):
            return
        if self._unheld.is_other(process, notification.tid):
            self._performer.fail_as_the_kernel(notification.id, WouldFail(errno.EACCES))
        elif only_asks(notification, syscall):
            held = _ExecHoldings(notification, syscall, self.tracer)
            self._start(notification, process, OnlyAsks(), held)
        elif self.tracer.is_busy(process):
            self.tracer.put_off(process, lambda: self._answer_now(notification))
        else:
            self._look(notification, process, syscall)

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
        if isinstance(seen, WouldFail):  # mostly a search along PATH
            self._performer.fail_as_the_kernel(notification.id, seen)
            return
        held = _ExecHoldings(notification, syscall, self.tracer)
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

    # What the loop must not wait for

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
            found: _Facts = seen
            if not isinstance(outcome, Done):
                seen.executable.close()
                why = "the digest of so large a file takes too long"
                found = stalled(process, syscall, why)
            self._go_on_with(notification, found, started_ns)

        self._aside.do(seen.executable.take_digests, then)

    def _go_on_with(self, notification: Notification, seen: _Facts, started_ns: int) -> None:
        self._looked[notification.id] = _Looked(seen, started_ns)
        self._answer_now(notification)
        left = self._looked.pop(notification.id, None)  # its caller is gone, or waits for its turn
        if left is not None:
            _close(left.seen)

    def _start(
        self,
        notification: Notification,
        process: Process,
        facts: ExecFacts | Unseen | OnlyAsks,
        held: _ExecHoldings,
        started_ns: int = 0,
    ) -> None:
        steps = self._mediator.mediate(facts)
        scope = Scope(notification.id, notification.tid, process, steps, held, started_ns)
        if isinstance(facts, ExecFacts):
            if not self._performer.still_waits(scope):
                self._performer.drop(scope)
                return
            self._recordings.forget(process)  # a stub that execs is none any more
        self._performer.begin(scope)

    # Facts

    def _facts(
        self,
        held: _ExecHoldings,
        process: Process,
        asked: Asked,
        executable: Executable,
    ) -> ExecFacts:
        expected = self._recordings.expected_of(process)
        if expected is not None and expected.is_of(asked.path, asked.argv, asked.truncated):
            held.expected = expected
        return ExecFacts(
            process,
            held.syscall,
            os.fsdecode(asked.path),
            cwd_of(held.notification.tid),
            asked.truncated,
            executable.programs,
            executable.here,
            executable.readable,
            self._crowd(process),
            None if held.expected is None else held.expected.rule,
        )

    def _crowd(self, process: Process) -> Crowd:
        if not self._counts_crowd:
            return _NO_CROWD
        siblings = 0 if process.parent is None else process.parent.known_children
        return Crowd(siblings, len(self._processes))

    # Effects

    def _read_content(self, scope: Scope, _effect: ReadContent) -> tuple[str, ...]:
        held: _ExecHoldings = scope.holdings
        assert held.executable is not None, "judged before"
        return held.executable.read_content()

    def _read_again(self, scope: Scope, effect: ReadAgain) -> object:
        held: _ExecHoldings = scope.holdings
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
        if isinstance(seen, Seen):
            held.asked, held.executable = seen
        scope.is_checked = False
        self._performer.check(scope)
        return self._facts(held, scope.process, *seen) if isinstance(seen, Seen) else seen

    def _read_again_aside(self, scope: Scope, effect: ReadAgain, why: str) -> object:
        held: _ExecHoldings = scope.holdings

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
        self._performer.check(scope)
        if self.tracer.is_busy(scope.process):  # since it was asked for
            self.tracer.put_off(scope.process, lambda: self._performer.redo(scope, effect))
            return PAUSED
        try:
            scope.holdings.tracee = self.tracer.hold(scope)
        except Gone as gone:
            raise CallerGone from gone
        except NotTraceable as refusal:
            if refusal.errno == errno.EPERM and not _is_traced(scope.tid):
                return Held.NOT_DUMPABLE
            return Held.TRACED
        return Held.YES

    def _verify_then_continue(self, scope: Scope, effect: VerifyThenContinue) -> object:
        held: _ExecHoldings = scope.holdings
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
        self.tracer.go_on(tracee, lambda: self._performer.let_go_on(scope, effect))
        return PAUSED

    def _continue_unverified(self, scope: Scope, effect: ContinueUnverified) -> object:
        process = scope.process
        executable = scope.holdings.executable
        self._is_becoming_another(scope, executable.programs[0].argv)
        self.tracer.note_unheld(process, scope.tid)
        self._processes.loads_unseen(process)
        self._unheld.go_on(scope, executable, lambda: self._performer.let_go_on(scope, effect))
        return PAUSED

    def _is_becoming_another(self, scope: Scope, argv: tuple[str, ...]) -> None:
        scope.process.comm_is_current = False
        scope.process.argv = argv[:1]

    def _prepare(self, scope: Scope, effect: Prepare) -> object:
        try:
            return self._prepared(scope, effect)
        except _FindAside as wanted:
            return self._find_aside(scope, effect, wanted)

    def _prepare_stub_command(self, scope: Scope, effect: PrepareStubCommand) -> object:
        try:
            return self._stub_command(scope)
        except _FindAside as wanted:
            return self._find_aside(scope, effect, wanted)

    def _find_aside(self, scope: Scope, effect: Effect, wanted: _FindAside) -> object:
        """Then it is prepared from the start."""
        held: _ExecHoldings = scope.holdings

        def then(outcome: Outcome) -> None:
            found = outcome.value if isinstance(outcome, Done) else None
            if scope.is_over:
                _close_found(found)
                return
            held.found_aside[wanted.command] = found
            scope.is_checked = False
            self._performer.redo(scope, effect)

        self._aside.do(wanted.find, then, _close_found)
        return PAUSED

    def _prepared(self, scope: Scope, effect: Prepare) -> Prepared | Unpreparable:
        held: _ExecHoldings = scope.holdings
        redirect, pid = effect.redirect, scope.process.pid
        held.sets_environment = redirect.via is Via.STUB
        host = onefile.original_environment(dict(os.environb))
        try:
            held.variables = variables_for(redirect, host, self._session_of(scope))
        except NoHostValue as missing:
            return Unpreparable(f"sigwrap has no {missing.name} in its environment")
        held.holds_secret = takes_from_the_host(redirect)
        if held.holds_secret and (problem := secret.objection(scope.tid)):
            return Unpreparable(problem)
        held.name = effect.argv[0]  # also where a stub stands in for it
        argv = [os.fsencode(word) for word in effect.argv]
        if problem := self._find_replacement(scope, redirect.command, argv):
            return Unpreparable(problem)
        assert held.replacement is not None
        shown = held.replacement.programs[0].path
        if redirect.record:
            expected = Expected(
                held.path,
                argv,
                held.replacement.inodes(),
                held.variables,
                held.holds_secret,
                effect.rule,
            )
            if changed := changed_stub_file():
                return Unpreparable(f"sigwrap's own file has changed: {changed}")
            program, line = stub_line(held.path, argv)
            if problem := self._find_replacement(scope, program, line):
                return Unpreparable(f"for sigwrap's own program, {problem}")
            if not _has_room_for_a_stub(pid):
                return Unpreparable("too few descriptors are free to record it")
            held.holds_secret = False  # the stub
            held.variables = stub_variables(procfs.ignored_signals(pid))
            held.at_exec_stop = _noting(self._recordings, scope.process, expected)
        return Prepared(shown, effect.argv, held.replacement.readable)

    def _stub_command(self, scope: Scope) -> Prepared | Unpreparable:
        self._performer.check(scope)
        held: _ExecHoldings = scope.holdings
        expected = held.expected
        assert expected is not None, "a stub's command"
        if changed := changed_stub_file():  # what the stub has loaded since
            return Unpreparable(f"sigwrap's own file has changed: {changed}")
        held.holds_secret = expected.is_secret
        if held.holds_secret and (problem := secret.objection(scope.tid)):
            return Unpreparable(problem)
        path = os.fsdecode(expected.path)
        if problem := self._find_replacement(scope, path, expected.argv):
            return Unpreparable(problem)
        assert held.replacement is not None
        if held.replacement.inodes() != expected.inodes:
            return Unpreparable(f"its replacement is another file now: {path}")
        try:
            held.recording = self._recordings.begin(scope.id, scope.process)
        except OSError as failure:
            why = os.strerror(failure.errno or errno.EIO)
            return Unpreparable(f"its input and output can't be recorded: {why}")
        held.variables = expected.variables
        held.at_exec_stop = held.recording.command_runs
        argv = tuple(map(os.fsdecode, expected.argv))
        held.name = argv[0]
        return Prepared(held.replacement.programs[0].path, argv, held.replacement.readable)

    def _find_replacement(self, scope: Scope, command: str, argv: Sequence[bytes]) -> str:
        """Why there is none, or nothing. Raises _FindAside."""
        held: _ExecHoldings = scope.holdings
        if held.replacement is not None:
            held.replacement.close()
            held.replacement = None

        def find(*, may_wait: bool = True) -> _Found:
            pid = scope.process.pid
            return resolve_replacement(
                scope.tid, pid, command, list(argv), self._ours, may_wait=may_wait
            )

        try:
            if command in held.found_aside:
                found = held.found_aside.pop(command)
            else:
                found = find(may_wait=False)
        except MayWait as why:
            raise _FindAside(command, find) from why
        except (OSError, ExecRefused, Unreadable):
            found = None
        if found is None:
            return f"its replacement can't be run: {command}"
        held.path, held.replacement = found
        held.replacement_argv = argv
        if any(each.elsewhere for each in held.replacement.programs):
            return f"its replacement would be another file than sigwrap's own: {command}"
        return ""

    def _replace(self, scope: Scope, effect: Replace) -> object:
        held: _ExecHoldings = scope.holdings
        tracee, asked = held.tracee, held.asked
        assert tracee is not None and asked is not None, "held and prepared before"
        # Where the environment is set at the exec stop, the call itself has an empty one.
        environment: list[bytes] | None = [] if held.sets_environment else None
        redirection = Redirection(
            held.notification,
            held.path,
            held.replacement_argv,
            environment,
            asked.environment_at,
        )
        scope.process.comm_is_current = False
        self.tracer.restart(
            tracee,
            redirection,
            lambda: self._performer.restart(scope, effect, ptrace.ERESTARTNOINTR),
        )
        return PAUSED

    def _session_of(self, scope: Scope) -> bytes:
        asked: Asked | None = scope.holdings.asked
        assert asked is not None, "what is redirected was looked at"
        return asked.variable(scope.tid, b"SIGWRAP_SESSION") or b""


def _noting(recordings: Recordings, stub: Process, expected: Expected) -> Callable[[int], str]:
    def note(_pid: int) -> str:
        recordings.expect(stub, expected)
        return ""

    return note


def _has_room_for_a_stub(pid: int) -> bool:
    """Without, its interpreter would end in words of its own."""
    try:
        limit, _hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = procfs.names(f"/proc/{pid}/fd")
    except OSError:
        return False
    if limit == resource.RLIM_INFINITY or limit - len(taken) >= _A_STUB_OPENS:
        return True
    return limit - sum(_survives_exec(pid, name) for name in taken) >= _A_STUB_OPENS


def _survives_exec(pid: int, fd: str) -> bool:
    info = procfs.contents(f"/proc/{pid}/fdinfo/{fd}") or b""
    flags = next((line for line in info.splitlines() if line.startswith(b"flags:")), None)
    return flags is not None and not int(flags.split()[1], 8) & os.O_CLOEXEC


def _is_traced(tid: int) -> bool:
    return procfs.numbers(tid, "TracerPid") != [0]
