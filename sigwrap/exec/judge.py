"""Decide about an exec, and follow it until it has succeeded or failed.

The policy decides. The mediator records the decision; then the exec goes on and is verified, is
replaced in place, is refused, or waits for an approval. Every error is a denial with an event.
"""

from __future__ import annotations

import errno
from collections.abc import Generator

from sigwrap.approve.requests import (
    Answer,
    denial,
    denied_by,
    killed,
    refusal,
    waiting,
    with_rules_message,
)
from sigwrap.bare import Any
from sigwrap.events import Payload
from sigwrap.exec.facts import (
    NOT_DUMPABLE,
    ApprovedScript,
    Basis,
    ExecFacts,
    Retries,
    Unseen,
    approval_request,
    command_key,
    exec_payload,
    is_unchanged,
    line_of,
    subject_of,
)
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action, Decision, Program
from sigwrap.policy.judge.rules import Crowd, exceeded, used_up
from sigwrap.session.effects import (
    Ask,
    CannotHold,
    ContinueWatched,
    Effect,
    EndRun,
    Escalation,
    ExecOutcome,
    ExecTurn,
    Fail,
    Held,
    Hold,
    Judgement,
    KernelRefused,
    LoadedOther,
    Look,
    Prepare,
    Prepared,
    PrepareStub,
    PrepareStubCommand,
    Ran,
    ReadBasis,
    Record,
    Replace,
    Restarted,
    Steps,
    Tampered,
    Tell,
    TellWatchers,
    Unpreparable,
    Unrecorded,
    VerifyThenContinue,
    WouldWait,
)
from sigwrap.session.lineage import Process, WouldFail
from sigwrap.session.run_end import LimitReached
from sigwrap.text import masked, printable

_ALLOWED = {Action.ALLOW: "exec_allowed", Action.AUDIT: "exec_audited"}
_NO_APPROVAL_WHILE_TRACED = (
    "it needs approval, and its caller is traced: a tracer could make it run another program"
)
_NO_APPROVAL_UNREADABLE = (
    "it needs approval, and sigwrap may not read its caller: it could not verify the program"
)
_STUB_COMMAND = "the command that its stub runs"
_SCRIPTS_KEPT = 256


class ExecMediator:
    def __init__(self, engine: Engine, *, is_watched: bool = False) -> None:
        """Judge by a policy. `is_watched`: report each exec that may run to the watchers."""
        self._engine = engine
        self._is_watched = is_watched
        self._limits = engine.policy.limits
        self._rules_about_loading = frozenset(
            rule.name for rule in engine.policy.command_rules if rule.loads_code
        )
        self._execs = 0
        self.last_denial = ""  # the line that told of it
        self.last_denied_pid = 0  # the pid of its caller
        self._retries = Retries()
        self._last_line: tuple[Process, str] | None = None
        # A shell that is refused /usr/bin/X asks for /bin/X at once. The answer stays the same.
        self._last_refusal: tuple[Process, tuple[str, ...], str] | None = None
        self._approved_scripts: dict[Process, ApprovedScript] = {}  # until the next exec

    def mediate(self, process: Process, syscall: str) -> Steps:
        """Handle an exec, from its request to its outcome."""
        yield ExecTurn()
        facts: ExecFacts | Unseen | WouldFail = yield Look()
        match facts:
            case ExecFacts(stub_rule=rule):
                script = self._approved_scripts.pop(process, None)
                if rule is None:
                    yield from self._decide(facts, script)
                else:
                    yield from self._run_stub_command(facts, rule)
            case Unseen():
                yield from self._deny_unseen(process, syscall, facts)
            case WouldFail():  # mostly a search along PATH
                yield Fail(facts.errno, Unrecorded.NOTHING_HAPPENS)

    def has_approved_script(self, process: Process) -> bool:
        return process in self._approved_scripts

    def allowing_event(self, facts: ExecFacts) -> Record | None:
        """Return the event of an exec that may run at once, or None."""
        decision = self._judge(facts)
        event = _ALLOWED.get(decision.action)
        if event is None:
            return None
        payload = exec_payload(facts, decision, verified=facts.readable)
        return Record(event, payload, _escalation(facts, decision))

    def follow(self, facts: ExecFacts, rule: str) -> Steps:
        """Follow an exec that is recorded and answered already."""
        yield from self._continue(facts, facts.programs[0].path, rule, VerifyThenContinue())

    def look_over(self, facts: ExecFacts) -> None:
        """Judge the exec in every way that it may need: this shows which digests the rules need."""
        self._judge(facts)
        self._judge_as_traced(facts)

    def _decide(
        self, facts: ExecFacts, script: ApprovedScript | None = None, *, asked_before: bool = False
    ) -> Steps:
        """Judge an exec. `script`: the approved script that the process executed last."""
        decision = self._judge(facts)
        if decision.action is not Action.DENY:
            used = used_up(self._limits, self._execs)
            if used is not None:
                yield from self._deny_as_used_up(facts, used)
                return
        match decision.action:
            case Action.ALLOW | Action.AUDIT:
                yield from self._run(facts, decision)
            case Action.REDIRECT:
                yield from self._redirect(facts, decision)
            case Action.APPROVE:
                if (
                    script is not None
                    and script.executes(facts, decision.rule)
                    and script.covers((yield ReadBasis(besides=script.scripts)))
                ):
                    by = f"{script.answer.by} with {script.scripts[0]}, which it runs"
                    yield from self._run(facts, decision, script.answer._replace(by=by))
                else:
                    yield from self._ask(facts, decision, asked_before=asked_before)
            case Action.DENY | Action.ABSORB:
                yield from self._deny(facts, decision)

    def _judge(self, facts: ExecFacts) -> Decision:
        limit = exceeded(self._limits, facts.process.depth, facts.crowd)
        if limit is not None:
            return limit
        subject = subject_of(facts, traced=not facts.readable)
        return self._engine.decide_exec(subject, len(facts.here))

    def _judge_as_traced(self, facts: ExecFacts) -> Decision:
        decision = self._engine.decide_command(subject_of(facts, traced=True))
        if decision.action is Action.APPROVE:  # an approval would change nothing
            return _denied(decision, _NO_APPROVAL_WHILE_TRACED)
        return decision

    # Running

    def _run(
        self,
        facts: ExecFacts,
        decision: Decision,
        answer: Answer | None = None,
        script: ApprovedScript | None = None,
    ) -> Steps:
        """Run an exec. `answer`: its approval. `script`: if it is an approved script."""
        held = yield from _hold()
        used = used_up(self._limits, self._execs)  # by other execs, while this one waited
        if used is not None:
            yield from self._deny_as_used_up(facts, used)
            return
        match held:
            case Held.YES:
                if answer is not None:
                    decision = decision._replace(reason=f"approved by {answer.by}")
                payload = exec_payload(facts, decision, verified=facts.readable)
                if answer is not None and answer.id:
                    payload["approval_id"] = answer.id
                effect = VerifyThenContinue()
                runs = yield from self._record_and_continue(facts, decision, payload, effect)
                if runs and script is not None:
                    if len(self._approved_scripts) >= _SCRIPTS_KEPT:
                        del self._approved_scripts[next(iter(self._approved_scripts))]
                    self._approved_scripts[facts.process] = script
            case Held.NOT_DUMPABLE:  # another thread has just made it so
                yield from self._deny_unseen(facts.process, facts.syscall, NOT_DUMPABLE)
            case CannotHold() if not (held.may_run and self._engine.lets_everything_run):
                traced = Decision(action=Action.DENY, rule="builtin:traced", reason=held.reason)
                yield from self._deny(facts, traced, traced=True)
            case Held.BY_ITS_TRACER | Held.NO | CannotHold():
                is_watched = held is Held.BY_ITS_TRACER
                yield from self._run_traced(facts, verified=is_watched and facts.readable)

    def _run_traced(self, facts: ExecFacts, *, verified: bool) -> Steps:
        decision = self._judge_as_traced(facts)
        if decision.action not in _ALLOWED:
            yield from self._deny(facts, decision, traced=True)
            return
        payload = exec_payload(facts, decision, verified=verified, traced=True)
        yield from self._record_and_continue(facts, decision, payload, ContinueWatched())

    def _run_stub_command(self, facts: ExecFacts, rule: str) -> Steps:
        """Run a stub's command, which was judged when the stub's caller asked for it."""
        decision = Decision(action=Action.ALLOW, rule=rule, reason=_STUB_COMMAND)
        why = "its caller is traced, so it cannot be recorded"
        prepared = yield from self._prepare(facts, decision, PrepareStubCommand(), why)
        if prepared is None:
            return
        payload = exec_payload(facts, decision, verified=prepared.readable)
        effect = VerifyThenContinue(is_replacement=True)
        yield from self._record_and_continue(facts, decision, payload, effect, prepared.path)

    def _record_and_continue(
        self,
        facts: ExecFacts,
        decision: Decision,
        payload: Payload,
        effect: VerifyThenContinue | ContinueWatched,
        path: str = "",
    ) -> Judgement:
        """Return whether the program runs. `path`: the replacement's."""
        event = _ALLOWED.get(decision.action, "exec_allowed")  # or it is approved
        if not (yield from self._recorded(facts, decision, event, payload)):
            return False
        path = path or facts.programs[0].path
        return (yield from self._continue(facts, path, decision.rule, effect))

    def _recorded(
        self, facts: ExecFacts, decision: Decision, event: str, payload: Payload
    ) -> Judgement:
        """Record an exec that may run, and count it. Deny it if that fails."""
        if not (yield Record(event, payload, _escalation(facts, decision))):
            yield Fail(errno.EACCES)
            return False
        self._execs += 1
        if self._is_watched and facts.stub_rule is None:
            yield TellWatchers(facts, payload["traced"], event == "exec_redirected")
        return True

    def _continue(
        self, facts: ExecFacts, path: str, rule: str, effect: VerifyThenContinue | ContinueWatched
    ) -> Judgement:
        """Continue the call, and return whether the program runs."""
        outcome: ExecOutcome = yield effect
        if isinstance(outcome, KernelRefused):  # the log already says that it may run
            yield _exec_failed(path, rule, outcome.errno)
        elif isinstance(outcome, LoadedOther):
            payload = {
                "path": path,
                "reason": outcome.problem,
                "loaded_path": outcome.path,
                "loaded_argv": masked(outcome.argv),
                "rule_name": rule,
            }
            yield Record("exec_verification_failed", payload)
            if isinstance(effect, VerifyThenContinue):  # sigwrap kills it at its exec stop
                yield from self._tell(facts.process, killed(line_of(facts), outcome.problem))
        return isinstance(outcome, Ran)

    # Refusing

    def _deny(
        self, facts: ExecFacts, decision: Decision, *, traced: bool = False, told: str = ""
    ) -> Steps:
        """Deny an exec. `told` is a message to the caller with more than the rule's."""
        payload = exec_payload(facts, decision, verified=False, traced=traced)
        if self._retries.is_one(facts.process, payload):
            payload["retry"] = True
        yield Record("exec_denied", payload, _escalation(facts, decision))
        shown = decision._replace(message=told) if told else decision
        yield from self._tell_denial(facts.process, line_of(facts), shown)
        yield Fail(errno.EACCES)

    def _deny_unapproved(self, facts: ExecFacts, decision: Decision, reason: str) -> Steps:
        denied = decision._replace(action=Action.DENY, reason=reason)
        yield from self._deny(facts, denied, told=with_rules_message(reason, decision.message))

    def _deny_as_used_up(self, facts: ExecFacts, used: Decision) -> Steps:
        yield from self._deny(facts, used)
        maximum = self._limits.max_execs
        yield EndRun(LimitReached("max_execs", maximum, used.reason, self._execs))

    def _deny_unseen(self, process: Process, syscall: str, unseen: Unseen) -> Steps:
        nothing = (Program("", "", ()),)
        facts = ExecFacts(process, syscall, "", "", True, nothing, (), True, Crowd(0, 0), None)
        decision = Decision(action=Action.DENY, rule=unseen.rule, reason=unseen.reason)
        yield Record("exec_denied", exec_payload(facts, decision, verified=False))
        if unseen.errno == errno.EACCES:
            yield from self._tell_denial(process, f"{syscall} by {process.last_name}", decision)
        yield Fail(unseen.errno)

    def _tell_denial(self, process: Process, what: str, decision: Decision) -> Steps:
        rule, policy = decision.rule, self._engine.policy.name
        because = decision.message or (decision.reason if rule.startswith("builtin:") else "")
        self.last_denial = denied_by(rule, policy)  # the printed line has the rest
        self.last_denied_pid = process.pid
        yield from self._tell(process, denial(what, rule, policy, because))

    def _tell(self, process: Process, line: str) -> Steps:
        """Print a line once, because a shell that is refused /usr/bin/X tries /bin/X next."""
        if self._last_line != (process, line):
            self._last_line = (process, line)
            yield Tell(line)

    # Replacing

    def _redirect(self, facts: ExecFacts, decision: Decision) -> Steps:
        redirect = decision.redirect_to
        assert redirect is not None, "a policy has one for each rule that redirects"
        if facts.truncated and redirect.append_args:
            why = "it has too many arguments to pass on"
            yield from self._deny(facts, _denied(decision, why))
            return
        name = redirect.command.rpartition("/")[2]
        argv = (name, *redirect.arguments(self._matched(facts, decision).argv))
        why = "its caller is traced, so it cannot be redirected"
        effect = Prepare(redirect, argv, decision.rule)
        prepared = yield from self._prepare(facts, decision, effect, why)
        if prepared is None:
            return
        payload = exec_payload(facts, decision, verified=prepared.readable)
        payload |= {
            "replacement": prepared.path,
            "replacement_argv": masked(prepared.argv),
            "replacement_env": [name for name, _ in redirect.env],
            "via": redirect.via.value,
            "record": redirect.record,
        }
        if not (yield from self._recorded(facts, decision, "exec_redirected", payload)):
            return
        if decision.message:
            line = printable(f"sigwrap: {facts.programs[0].name}: {decision.message}")
            yield from self._tell(facts.process, line)
        yield from self._run_replacement(facts, prepared.path, decision.rule)

    def _run_replacement(self, facts: ExecFacts, path: str, rule: str) -> Judgement:
        """Restart the call as the replacement's, and return whether that runs."""
        came_back: Restarted | KernelRefused | Tampered = yield Replace()
        match came_back:
            case Restarted():
                effect = VerifyThenContinue(is_replacement=True)
                return (yield from self._continue(facts, path, rule, effect))
            case KernelRefused(errno=error):
                yield _exec_failed(path, rule, error)
            case Tampered():
                yield _exec_failed(path, rule, errno.EACCES)
                yield Fail(errno.EACCES)
        return False

    def _prepare(
        self, facts: ExecFacts, decision: Decision, effect: Effect, why_not_traced: str
    ) -> Generator[Effect, Any, Prepared | None]:
        """Prepare another program, and hold the caller. Deny the exec if either is impossible."""
        prepared: Prepared | Unpreparable = yield effect
        if isinstance(prepared, Unpreparable):
            why = prepared.why
        elif (yield from _hold()) is Held.YES:
            return prepared
        else:
            why = why_not_traced
        yield from self._deny(facts, _denied(decision, why))
        return None

    def _matched(self, facts: ExecFacts, decision: Decision) -> Program:
        """Return the program that the decision is about: the file, an interpreter or an applet."""
        subject = subject_of(facts, traced=not facts.readable)
        return next(
            program
            for program in facts.here
            if self._engine.decide_program(program, subject).rule == decision.rule
        )

    # Asking

    def _ask(self, facts: ExecFacts, decision: Decision, *, asked_before: bool) -> Steps:
        if not facts.readable:
            yield from self._deny(facts, _denied(decision, _NO_APPROVAL_UNREADABLE))
            return
        asked = (facts.process, (facts.cwd, *command_key(facts, decision)))
        if self._last_refusal is not None and self._last_refusal[:2] == asked:
            yield from self._deny_unapproved(facts, decision, self._last_refusal[2])
            return
        basis: Basis = yield self._read_basis(facts, decision.rule)
        if basis.location.traced:
            as_traced = self._judge_as_traced(facts)
            if as_traced.action not in _ALLOWED:
                yield from self._deny(facts, as_traced, traced=True)
                return
        request = approval_request(facts, basis, decision, asked_before=asked_before)
        if facts.process.depth and not facts.process.stub_of and (yield WouldWait(request)):
            stub: Prepared | Unpreparable = yield PrepareStub()
            if isinstance(stub, Prepared):
                yield from self._become_stub(facts, stub.path, decision)
                return
        notice = waiting(line_of(facts), decision.rule, self._engine.policy.name)
        answer: Answer = yield Ask(request, notice)
        if answer.granted:
            yield from self._run_if_unchanged(facts, basis, decision, answer, asked_before)
        else:
            reason = refusal(answer)
            self._last_refusal = (*asked, reason)
            yield from self._deny_unapproved(facts, decision, reason)

    def _read_basis(self, facts: ExecFacts, rule: str) -> ReadBasis:
        if rule not in self._rules_about_loading:
            return ReadBasis()
        names = [each.name for each in facts.programs]
        names += [each.path.rpartition("/")[2] for each in facts.programs]
        return ReadBasis(loading=tuple(dict.fromkeys(names)))

    def _become_stub(self, facts: ExecFacts, path: str, decision: Decision) -> Steps:
        """Turn the caller into a stub, whose own exec waits for the approval."""
        process = facts.process
        if (yield from _hold()) is not Held.YES:
            yield from self._deny(facts, _denied(decision, _NO_APPROVAL_WHILE_TRACED))
            return
        waiting_for = {"path": facts.path or facts.programs[0].path, "rule_name": decision.rule}
        if not (yield Record("exec_waiting", waiting_for)):
            yield Fail(errno.EACCES)
            return
        asker = process.comm
        if (yield from self._run_replacement(facts, path, decision.rule)):
            process.stub_of = asker

    def _run_if_unchanged(
        self,
        facts: ExecFacts,
        basis: Basis,
        decision: Decision,
        answer: Answer,
        asked_before: bool,
    ) -> Steps:
        """Let an approved exec go on if file, content, place and rule are the same as before.

        The environment may have changed. A later change makes the verification fail.
        """
        yield ExecTurn()
        now: ExecFacts | Unseen | WouldFail = yield Look()
        if isinstance(now, Unseen):
            yield from self._deny_unseen(facts.process, facts.syscall, now)
            return
        if isinstance(now, WouldFail):  # the file is gone
            yield _exec_failed(facts.programs[0].path, decision.rule, now.errno)
            yield Fail(now.errno)
            return
        basis_now: Basis = yield self._read_basis(now, decision.rule)
        judged = self._judge(now)
        if judged == decision and is_unchanged(facts, basis, now, basis_now):
            script, wraps = None, now.script_wraps
            if wraps is not None and not now.truncated:
                script = ApprovedScript(answer, decision.rule, now.scripts, wraps, basis_now)
            yield from self._run(now, decision, answer, script)
        elif asked_before and judged.action is Action.APPROVE:
            reason = "request denied: it changed again during the request"
            yield from self._deny(now, _denied(judged, reason))
        else:
            yield from self._decide(now, asked_before=True)


def _denied(decision: Decision, reason: str) -> Decision:
    """Return the decision to deny an exec for a reason that is not the rule's."""
    return decision._replace(action=Action.DENY, reason=reason, message=reason)


def _exec_failed(path: str, rule: str, error: int) -> Record:
    name = errno.errorcode.get(error, str(error))
    return Record("exec_failed", {"path": path, "error": name, "rule_name": rule})


def _hold() -> Generator[Effect, Any, Held | CannotHold]:
    """Hold the caller. Other execs of its process may have come first since it was judged."""
    held: Held | CannotHold = Held.AGAIN
    while held is Held.AGAIN:
        yield ExecTurn()
        held = yield Hold()
    return held


def _escalation(facts: ExecFacts, decision: Decision) -> Escalation | None:
    return Escalation(decision.rule, line_of(facts)) if decision.escalate else None
