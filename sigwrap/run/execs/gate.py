"""An exec, from the caller's request to what becomes of it.

Read and resolved (exec_target), decided by the policy, recorded, and then: let go on and verified
(exec_verify), replaced in place (exec_redirect), refused, or held until somebody has answered.
Whatever goes wrong on the way is a denial with an event.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Callable

from sigwrap.errors import KernelError
from sigwrap.events import Payload
from sigwrap.linux import caller_stderr, procfs
from sigwrap.linux.execs.restage import Redirection
from sigwrap.linux.execs.target import (
    Asked,
    Target,
    WouldFail,
    is_check,
    resolve,
    resolve_replacement,
)
from sigwrap.linux.memory import Unreadable
from sigwrap.linux.paths import place_of
from sigwrap.linux.ptrace import Gone, NotTraceable
from sigwrap.linux.seccomp import Listener, Request
from sigwrap.linux.syscalls import NAMES
from sigwrap.mediate.execs import exec_payload, replacement_argv
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.masking import masked
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import (
    Action,
    CommandRedirect,
    CommandRequest,
    Decision,
    Program,
    Via,
)
from sigwrap.run.asking.approvals import Answer, Approvals, Question
from sigwrap.run.execs.environment import NoHostValue, Variables, variables_for
from sigwrap.run.execs.limits import exceeded_limit, used_up
from sigwrap.run.execs.verify import Held, Verifier
from sigwrap.run.loop import Loop
from sigwrap.run.processes import Processes
from sigwrap.run.recorder import Recorder
from sigwrap.run.recording.recordings import Expected, Recordings
from sigwrap.run.recording.stub_program import stub_line, stub_variables

_OUR_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_LOOK_AFTER_ASKERS_S = 1.0
_SHOWN_CHARACTERS = 1000
_NOT_DUMPABLE = "the caller may not be looked into: it, or its program's file, forbids reading"
_A_STUB_OPENS = 24  # descriptors: what an interpreter reads at its start, and its own few
# What `env` or `xargs` is going to exec can be denied early. But it is asked about or replaced when
# it is its turn: else somebody would be asked twice, or the wrapper's own doing be lost.
_ONCE_ONLY = frozenset({Action.APPROVE, Action.REDIRECT})


class ExecGate:
    def __init__(
        self,
        *,
        listener: Listener,
        recorder: Recorder,
        engine: Engine,
        processes: Processes,
        approvals: Approvals,
        recordings: Recordings,
        loop: Loop,
        waits_through_signals: bool,
        end_run: Callable[[str, Payload], None],
    ) -> None:
        """`end_run` gets why, and the facts of an event."""
        self._listener = listener
        self._recorder = recorder
        self._engine = engine
        self._processes = processes
        self._approvals = approvals
        self._recordings = recordings
        self._loop = loop
        self._end_run = end_run
        self._execs = 0  # that went on
        self._verifier = Verifier(
            listener,
            recorder,
            self.answer,
            processes.loaded,
            waits_through_signals=waits_through_signals,
        )
        self.on_stop = self._verifier.on_stop
        self.on_end = self._verifier.on_end
        self.holds = self._verifier.holds
        self._our_root = place_of(b"/")
        self._last_told: tuple[Process, str] | None = None
        # Refused at /usr/bin/X, a shell asks at /bin/X at once: the answer is still the same.
        self.last_refusal: tuple[Process, tuple[str, ...], str] | None = None
        self._askers: dict[int, str] = {}  # notification -> the approval it waits for
        caller_stderr.allow_writing_to_terminals()

    def answer(self, request: Request, process: Process) -> None:
        held = self._verifier.held(request.tid)
        if held is not None:
            if held.redirection is not None:
                self._answer_redirected(request, held)
                return
            self._verifier.forget(held)  # another thread of its process took its id
        if is_check(request):
            self._listener.resume(request.id)  # its flags are in a register: it stays a check
            return
        if self._verifier.put_off(request, process):
            return
        started_ns = time.perf_counter_ns()
        try:
            asked = Asked(request)
            target = resolve(request.tid, process.pid, asked, self._our_root)
        except Unreadable as unreadable:
            if _is_forbidden(unreadable):
                self._deny_unseen(request, process, _NOT_DUMPABLE, errno.EACCES)
            else:  # what a pointer that leads nowhere gets from the kernel
                reason = "its arguments point to memory that isn't there"
                self._deny_unseen(request, process, reason, errno.EFAULT)
        except (WouldFail, OSError) as failure:
            # The kernel's own errno, from here: it would look the path up anew, and by then the
            # caller could have put another in its place.
            error = failure.errno or errno.EACCES
            if error in _OUR_SHORTAGE:
                reason = f"sigwrap: {os.strerror(error)}"
                self._deny_unseen(request, process, reason, errno.EACCES)
            else:
                self._listener.fail(request.id, error)
        else:
            if self._listener.is_waiting(request.id):
                one = _Exec(self, request, process, asked, target)
                expected = self._recordings.expected_of(process)
                self._recordings.forget(process)  # a stub that execs is none any more
                if expected is not None and one.is_of(expected):
                    one.be_recorded(expected)
                else:
                    one.decide(started_ns)
            else:
                target.close()  # what was read may be of another process by now

    def _answer_redirected(self, request: Request, held: Held) -> None:
        if held.redirection is not None and held.redirection.is_intact(request):
            self._verifier.go_on(held, request)
        else:
            self._verifier.refuse(held, request, errno.EACCES)

    def _deny_unseen(self, request: Request, process: Process, reason: str, error: int) -> None:
        if not self._listener.is_waiting(request.id):
            return
        unseen = CommandRequest(
            programs=(Program(path="", name="", argv=()),), depth=process.depth, truncated=True
        )
        decision = Decision(action=Action.DENY, rule="builtin:unreadable", reason=reason)
        payload = exec_payload(
            unseen,
            decision,
            asked_path="",
            syscall=NAMES[request.arch][request.number],
            cwd="",
            comm=process.comm,
            ppid=process.ppid,
            verified=False,
        )
        self._recorder.record("exec_denied", process.pid, payload)
        self._listener.fail(request.id, error)

    def tell(self, process: Process, text: str) -> None:
        """A shell that is refused looks further along PATH, and is refused again at /bin/X what
        it was at /usr/bin/X: it is told once."""
        if self._last_told != (process, text):
            self._last_told = (process, text)
            caller_stderr.tell(process.pid, text)

    # Askers

    def wait_for_answer(self, request_id: int, approval_id: str) -> None:
        if not self._askers:
            self._look_after_askers_later()
        self._askers[request_id] = approval_id

    def stop_waiting(self, request_id: int) -> None:
        self._askers.pop(request_id, None)

    def _look_after_askers_later(self) -> None:
        self._loop.call_at(time.monotonic() + _LOOK_AFTER_ASKERS_S, self._look_after_askers)

    def _look_after_askers(self) -> None:
        """Nothing tells of a caller that died while it waited, if it never was ours to wait for."""
        for request_id, approval_id in tuple(self._askers.items()):
            if not self._still_waits(request_id):
                self._approvals.withdraw(approval_id)
        if self._askers:
            self._look_after_askers_later()

    def _still_waits(self, request_id: int) -> bool:
        try:
            return self._listener.is_waiting(request_id)
        except KernelError:  # with its last caller, the listener went too
            return False


class _Exec:
    """One request, read and resolved; it owns `target` until that is handed on or closed."""

    __slots__ = (
        "_asked",
        "_evaluation_us",
        "_gate",
        "_process",
        "_request",
        "_subject",
        "_target",
    )

    def __init__(
        self, gate: ExecGate, request: Request, process: Process, asked: Asked, target: Target
    ) -> None:
        self._gate = gate
        self._request = request
        self._process = process
        self._asked = asked
        self._target = target
        self._evaluation_us = 0
        self._subject = CommandRequest(
            programs=target.programs,
            depth=process.depth,
            truncated=asked.truncated,
            traced=not target.readable,
        )

    def decide(self, started_ns: int) -> None:
        gate = self._gate
        decision = gate._engine.decide_command(self._subject)
        if decision.action in _ONCE_ONLY and len(self._target.here) < len(self._target.programs):
            own = self._subject._replace(programs=self._target.here)
            decision = gate._engine.decide_command(own)
        limit = exceeded_limit(gate._engine.policy.limits, self._process, gate._processes)
        if limit is not None:
            decision = limit
        self._evaluation_us = (time.perf_counter_ns() - started_ns) // 1000
        try:
            if decision.action is Action.DENY or not self._is_one_too_many():
                self._carry_out(decision)
        except BaseException:
            self._target.close()
            raise

    def _is_one_too_many(self) -> bool:
        """And if so, the run is over."""
        limits = self._gate._engine.policy.limits
        denial = used_up(limits, self._gate._execs)
        if denial is None:
            return False
        self._deny(denial)
        facts = {"limit": "max_execs", "maximum": limits.max_execs, "effect": "terminated"}
        self._gate._end_run(denial.reason, facts)
        return True

    def _carry_out(self, decision: Decision) -> None:
        match decision.action:
            case Action.ALLOW:
                self._let_go_on(decision, "exec_allowed")
            case Action.AUDIT:
                self._let_go_on(decision, "exec_audited")
            case Action.REDIRECT:
                self._redirect(decision)
            case Action.APPROVE:
                self._ask(decision)
            case Action.DENY | Action.ABSORB:
                self._deny(decision)

    # As a stub's command

    def is_of(self, expected: Expected) -> bool:
        asked = self._asked
        given = (asked.path, asked.argv, asked.truncated)
        return given == (expected.path, expected.argv, False)

    def be_recorded(self, expected: Expected) -> None:
        """Once: this was decided when its caller became the stub."""
        gate, request, process = self._gate, self._request, self._process
        decision = Decision(
            action=Action.ALLOW, rule=expected.rule, reason="what its stub stands in for"
        )
        self._target.close()
        path = os.fsdecode(expected.path)
        try:
            _, self._target = resolve_replacement(
                request.tid, process.pid, path, expected.argv, gate._our_root
            )
        except (OSError, WouldFail, Unreadable):
            self._deny_because(decision, f"its replacement can't be run: {path}")
            return
        if self._target.inodes() != expected.inodes:
            self._deny_because(decision, f"its replacement is another file now: {path}")
            return
        try:
            recording = gate._recordings.begin(request.id, process)
        except OSError as failure:
            why = os.strerror(failure.errno or errno.EIO)
            self._deny_because(decision, f"its input and output can't be recorded: {why}")
            return
        if not self._let_go_on(
            decision, "exec_allowed", expected.variables, recording.command_runs
        ):
            recording.drop("the command was refused")

    # Going on

    def _let_go_on(
        self,
        decision: Decision,
        event: str,
        variables: Variables = (),
        at_exec_stop: Callable[[int], str] | None = None,
    ) -> bool:
        """Whether it does."""
        held = Held(
            self._request.tid,
            self._process,
            self._target,
            decision.rule,
            variables=variables,
            at_exec_stop=at_exec_stop,
        )
        verifier = self._gate._verifier
        try:
            verifier.hold(held)
        except Gone:
            self._target.close()
        except NotTraceable as refusal:
            if at_exec_stop is not None:
                self._deny_because(decision, "it is traced, so it can't be recorded")
            elif refusal.errno == errno.EPERM and not _is_traced(self._request.tid):
                # It is not dumpable by now: another thread turns that on and off.
                self._target.close()
                gate, request = self._gate, self._request
                gate._deny_unseen(request, self._process, _NOT_DUMPABLE, errno.EACCES)
            else:
                self._decide_as_traced()
        else:
            if self._record(event, decision, verified=self._target.readable):
                self._process.comm_is_current = False
                verifier.go_on(held, self._request)
                return True
            verifier.refuse(held, self._request, errno.EACCES)
        return False

    def _decide_as_traced(self) -> None:
        self._subject = self._subject._replace(traced=True)
        decision = self._gate._engine.decide_command(self._subject)
        match decision.action:
            case Action.ALLOW:
                self._let_go_on_unverified(decision, "exec_allowed")
            case Action.AUDIT:
                self._let_go_on_unverified(decision, "exec_audited")
            case _:
                self._deny(decision)

    def _let_go_on_unverified(self, decision: Decision, event: str) -> None:
        self._target.close()
        if self._record(event, decision, verified=False):
            self._process.comm_is_current = False
            self._gate._verifier.note_unheld(self._process, self._request.tid)
            self._gate._processes.loads_unseen(self._process)
            self._gate._listener.resume(self._request.id)
        else:
            self._fail()

    # Refusing

    def _deny(self, decision: Decision, why: str = "") -> None:
        """`why`: what the caller is told where the rule has no message of its own."""
        self._target.close()
        self._record("exec_denied", decision, verified=False)
        text = decision.message or why
        if text:
            name = self._subject.programs[0].name
            self._gate.tell(self._process, f"sigwrap: {name}: {text}")
        self._fail()

    def _deny_because(self, decision: Decision, reason: str) -> None:
        self._deny(decision._replace(action=Action.DENY, reason=reason), reason)

    def _fail(self) -> None:
        self._gate._listener.fail(self._request.id, errno.EACCES)

    # Replacing

    def _redirect(self, decision: Decision) -> None:
        redirect = decision.redirect_to
        if redirect is None:
            self._deny_because(decision, "the rule names no replacement")
        elif self._asked.truncated and redirect.append_args:
            self._deny_because(decision, "too many arguments to be passed on")
        else:
            self._redirect_in_place(decision, redirect)

    def _redirect_in_place(self, decision: Decision, redirect: CommandRedirect) -> None:
        gate, request, process = self._gate, self._request, self._process
        try:
            variables = variables_for(redirect, self._session())
        except NoHostValue as missing:
            self._deny_because(decision, f"sigwrap has no {missing.name} in its environment")
            return
        argv = replacement_argv(redirect, self._matched(decision).argv)
        try:
            path, replacement = resolve_replacement(
                request.tid, process.pid, redirect.command, argv, gate._our_root
            )
        except (OSError, WouldFail, Unreadable):
            self._deny_because(decision, f"its replacement can't be run: {redirect.command}")
            return
        shown = replacement.programs[0].path
        shown_argv = masked([os.fsdecode(word) for word in argv])
        at_exec_stop = None
        if redirect.record:
            expected = Expected(path, argv, replacement.inodes(), variables, decision.rule)
            replacement.close()
            program, argv = stub_line(path, argv)
            try:
                path, replacement = resolve_replacement(
                    request.tid, process.pid, program, argv, gate._our_root
                )
            except (OSError, WouldFail, Unreadable):
                self._deny_because(decision, f"sigwrap's own program can't be run: {program}")
                return
            if not _has_room_for_a_stub(process.pid):
                replacement.close()
                self._deny_because(decision, "too few descriptors are free to record it")
                return
            variables = stub_variables(procfs.ignored_signals(process.pid))
            at_exec_stop = _noting(gate._recordings, process, expected)
        # The environment of `via: stub` is set at the exec stop, all of it.
        environment: list[bytes] | None = [] if redirect.via is Via.STUB else None
        redirection = Redirection(request, path, argv, environment, self._asked.environment_at)
        held = Held(
            request.tid,
            process,
            replacement,
            decision.rule,
            redirection,
            variables,
            at_exec_stop,
        )
        try:
            gate._verifier.hold(held)
        except (Gone, NotTraceable):
            replacement.close()
            self._deny_because(decision, "the caller is traced, so it can't be redirected")
            return
        self._target.close()
        more = {
            "replacement": shown,
            "replacement_argv": shown_argv,
            "replacement_env": [name for name, _ in redirect.env],
            "via": redirect.via.value,
            "record": redirect.record,
        }
        verified = replacement.readable
        if self._record("exec_redirected", decision, verified=verified, more=more):
            self._process.comm_is_current = False
            if decision.message:
                name = self._subject.programs[0].name
                gate.tell(process, f"sigwrap: {name}: {decision.message}")
            gate._verifier.restart(held, request)
        else:
            held.redirection = None
            gate._verifier.refuse(held, request, errno.EACCES)

    def _matched(self, decision: Decision) -> Program:
        """The program that the decision is about: the file, its interpreter, an applet."""
        for program in self._target.here:
            if self._gate._engine.decide_program(program, self._subject) == decision:
                return program
        return self._target.here[0]

    def _session(self) -> bytes:
        for entry in self._asked.environment(self._request.tid) or ():
            if entry.startswith(b"SIGWRAP_SESSION="):
                return entry.partition(b"=")[2]
        return b""

    # Asking

    def _ask(self, decision: Decision) -> None:
        """The caller waits in its call meanwhile; everything else goes on."""
        gate = self._gate
        main = self._subject.programs[0]
        argv = masked(main.argv)
        answers: list[Answer] = []
        waiting = False

        def answered(answer: Answer) -> None:
            if waiting:
                gate.stop_waiting(self._request.id)
                self._after_answer(decision, answer)
            else:
                answers.append(answer)

        key = ("exec", decision.rule, main.path, *main.argv)
        if gate.last_refusal is not None and gate.last_refusal[:2] == (self._process, key):
            self._deny_because(decision, gate.last_refusal[2])
            return
        question = Question(
            kind="exec",
            pid=self._process.pid,
            process=self._process.comm,
            depth=self._process.depth,
            what=" ".join(argv)[:_SHOWN_CHARACTERS],
            rule=decision.rule,
            message=decision.message,
            key=key,
        )
        approval_id = gate._approvals.ask(question, answered)
        if answers:
            self._after_answer(decision, answers[0])
            return
        waiting = True
        gate.wait_for_answer(self._request.id, approval_id)
        how = f"sigwrap approve {approval_id}"
        text = f"sigwrap: {main.name}: waits for approval (rule {decision.rule}); {how}"
        gate.tell(self._process, text)

    def _after_answer(self, decision: Decision, answer: Answer) -> None:
        """What was asked about is what was read then: a caller that has changed its arguments
        meanwhile loads something else and is killed."""
        is_gone = answer.reason == "withdrawn"  # maybe the listener as well
        if is_gone or not self._gate._listener.is_waiting(self._request.id):
            self._target.close()
        elif not answer.granted:
            reason = _refusal(answer)
            main = self._subject.programs[0]
            key = ("exec", decision.rule, main.path, *main.argv)
            self._gate.last_refusal = (self._process, key, reason)
            self._deny_because(decision._replace(message=""), reason)
        elif self._gate._verifier.put_off(self._request, self._process):
            self._target.close()  # it will be asked again, and by then may be answered from memory
        elif not self._is_one_too_many():
            self._let_go_on(decision._replace(reason=f"approved by {answer.by}"), "exec_allowed")

    def _record(
        self, event: str, decision: Decision, *, verified: bool, more: Payload | None = None
    ) -> bool:
        payload = exec_payload(
            self._subject,
            decision,
            asked_path=os.fsdecode(self._asked.path) or self._subject.programs[0].path,
            syscall=self._asked.syscall,
            cwd=_cwd(self._request.tid),
            comm=self._process.comm,
            ppid=self._process.ppid,
            verified=verified,
        )
        payload["evaluation_us"] = self._evaluation_us
        if event != "exec_denied":
            self._process.argv = payload["argv"]
        if more:
            payload |= more
        if not self._gate._recorder.record(event, self._process.pid, payload):
            return False
        self._gate._execs += event != "exec_denied"
        return True


def _noting(recordings: Recordings, stub: Process, expected: Expected) -> Callable[[int], str]:
    def note(_pid: int) -> str:
        recordings.expect(stub, expected)
        return ""

    return note


def _has_room_for_a_stub(pid: int) -> bool:
    """Without, its interpreter would end in words of its own."""
    try:
        limit, _hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        taken = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    if limit == resource.RLIM_INFINITY or limit - len(taken) >= _A_STUB_OPENS:
        return True
    return limit - sum(_survives_exec(pid, name) for name in taken) >= _A_STUB_OPENS


def _survives_exec(pid: int, fd: str) -> bool:
    try:
        with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as info:
            flags = next(line for line in info if line.startswith("flags:"))
    except (OSError, StopIteration):
        return False
    return not int(flags.split()[1], 8) & os.O_CLOEXEC


def _refusal(answer: Answer) -> str:
    match answer.reason:
        case "denied":
            text = "not approved"
        case "expired":
            text = "not approved in time"
        case "nobody":
            text = "needs approval, and nobody can be asked"
        case _:
            text = f"needs approval: {answer.reason}"
    return f"{text}: {answer.message}" if answer.message else text


def _is_traced(tid: int) -> bool:
    return procfs.numbers(tid, "TracerPid") != [0]


def _is_forbidden(unreadable: Unreadable) -> bool:
    return isinstance(unreadable.__cause__, PermissionError)


def _cwd(tid: int) -> str:
    try:
        return os.readlink(f"/proc/{tid}/cwd")
    except OSError:
        return ""
