"""Record a session with sigwrap's own mediators, a simulated kernel and a simulated approver."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sigwrap
from sigwrap.approve.requests import Answer
from sigwrap.events import QUESTION_CHARACTERS, Event
from sigwrap.exec.facts import NOT_DUMPABLE, Basis, ExecFacts, Unseen, stalled
from sigwrap.exec.judge import ExecMediator
from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog
from sigwrap.network.judge import NetworkFacts, NetworkMediator, SocketAim
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.recorded import JUDGEMENT
from sigwrap.policy.judge.request import AskedFact, Program, TargetType, with_implied
from sigwrap.policy.judge.rules import Crowd
from sigwrap.policy.language.document import Source, policy_texts
from sigwrap.policy.language.parse import parse_policy
from sigwrap.report.check.decisions import Reproduction, ReproductionFold
from sigwrap.session import effects
from sigwrap.session.lineage import Process
from sigwrap.signal.facts import (
    EVERYBODY,
    UNRESOLVED,
    CallKind,
    RefusedCall,
    SignalFacts,
    TargetGroup,
)
from sigwrap.signal.judge import SignalMediator
from sigwrap.text import beginning
from tests.mediate.transcript import OURS, facts

Holding = effects.Held | effects.CannotHold
VARIABLES = {"HOME": "/home/ann", "PROJECT_ROOT": "/project"}
NO, YES = False, True
RULES = f"""\
command_rules:
  - {{name: push, commands: [git], subcommands: [push], decision: deny}}
  - {{name: pinned, commands: [tool], not_sha256: [{"a" * 64}], decision: deny}}
  - {{name: ask, commands: [npm], decision: approve}}
  - {{name: other, commands: [cat], decision: redirect, redirect_to: {{command: echo}}}}
  - {{name: stub, commands: [curl], decision: redirect, redirect_to: {{command: echo, via: stub}}}}
  - {{name: secret, commands: [aws], args_patterns: [hunter2], decision: deny}}
  - {{name: long, commands: [rm], truncated: true, decision: deny}}
  - {{name: rest, commands: ["*"], decision: allow}}
signal_rules:
  - {{name: ask, signals: [HUP], target: children, decision: approve}}
  - {{name: other, signals: [TERM], target: children, decision: redirect, redirect_to: INT}}
  - {{name: handled, signals: [USR1], target: children, handled: true, decision: deny}}
  - {{name: inside, signals: ["@all"], target: session, decision: allow}}
defaults: {{command: deny, signal: deny}}
limits: {{max_execs: 50, max_children: 3, max_depth: 4}}
"""
CHILD = effects.SignalTarget(50, 5, "sleep", with_implied([TargetType.CHILDREN]))
OUTSIDE = effects.SignalTarget(70, 5, "postgres", with_implied([TargetType.USER]))
ABOVE = effects.SignalTarget(30, 5, "sh", frozenset({TargetType.ANCESTORS}))
REPLACED = effects.Prepared("/usr/bin/echo", ("echo",), True)
BASH = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")


Facts = ExecFacts | Unseen | SignalFacts | NetworkFacts


class Mediated:
    def __init__(self, store: Path, text: str) -> None:
        source = Source("policy.yaml", f"version: 1\nname: x\n{text}")
        policy = parse_policy(source, variables=VARIABLES, find_base=lambda _name, _source: None)
        self.execs = ExecMediator(Engine(policy))
        self.signals = SignalMediator(Engine(policy), domain=False)
        self.network = NetworkMediator(Engine(policy).network, policy.name)
        self.store = store
        self.log = SessionLog.create(str(store), "s1")
        self.process = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
        self._questions = 0
        self.outcome: effects.Ran | effects.KernelRefused | effects.LoadedOther = effects.Ran()
        by = {"sigwrap": sigwrap.__version__, "judgement": JUDGEMENT, "policy": policy.name}
        texts = policy_texts([source], VARIABLES)
        self.add("session_started", 1, session_id="s1", keyed=False, **by, **texts)

    def add(self, type_name: str, pid: int, **payload: Any) -> None:
        self.log.append(type_name, pid, payload, 1)

    def run(
        self,
        *programs: Program,
        held: Holding = effects.Held.YES,
        says: bool = YES,
        **different: Any,
    ) -> None:
        different = {"process": self.process, "crowd": Crowd(0, 0), **different}
        found = facts(different.pop("process"), *programs, **different)
        self._carry_out(self.execs.mediate(found.process, "execve"), found, held, says)

    def signal(self, facts: SignalFacts, *, says: bool = YES) -> None:
        self._carry_out(self.signals.mediate(), facts, effects.Held.YES, says)

    def connection(self, aim: SocketAim, *, says: bool = YES) -> None:
        facts = NetworkFacts(self.process, "connect", aim)
        self._carry_out(self.network.mediate(), facts, effects.Held.YES, says)

    def _carry_out(self, steps: effects.Steps, facts: Facts, held: Holding, says: bool) -> None:
        location = OURS._replace(folder=facts.cwd) if isinstance(facts, ExecFacts) else OURS
        replies: dict[type[effects.Effect], Any] = {
            effects.Hold: held,
            effects.VerifyThenContinue: self.outcome,
            effects.ContinueWatched: self.outcome,
            effects.Prepare: REPLACED,
            effects.PrepareStubCommand: REPLACED,
            effects.Replace: effects.Restarted(),
            effects.Look: facts,
            effects.LookUpNames: frozenset(),
            effects.ReadBasis: Basis(location, ("content",)),
            effects.LookAgain: True,
            effects.Send: 0,
            effects.ChangeDescriptor: 0,
            effects.Reach: effects.Reached(0),
        }
        reply: Any = None
        while True:
            try:
                effect = steps.send(reply)
            except StopIteration:
                return
            reply = replies.get(type(effect))
            if isinstance(effect, effects.Record | effects.RecordRepeated):
                self.log.append(effect.event, self.process.pid, effect.payload, 1)
                reply = effects.Logged.WRITTEN
            elif isinstance(effect, effects.Ask):
                reply = self._answer(effect, says)

    def _answer(self, asked: effects.Ask, says: bool) -> Answer:
        self._questions += 1
        approval_id, question = f"a{self._questions}", asked.request
        about = {
            "approval_id": approval_id,
            "kind": question.kind,
            "what": beginning(question.masked or question.what, QUESTION_CHARACTERS),
            "rule_name": question.rule,
        }
        told = {**about, "files": question.files, "cwd": question.folder}
        self.log.append("approval_requested", question.pid, told, 1)
        reason = "granted" if says else "denied"
        answer = {**about, "reason": reason, "by": "ann"}
        self.log.append(f"approval_{reason}", question.pid, answer, 1)
        return Answer(granted=says, by="ann", message="", reason=reason, id=approval_id)

    @property
    def session(self) -> Session:
        return Session("s1", self.log.path)

    def reproduction(self) -> Reproduction:
        return reproduction(self.session)

    def forged(self, change: Callable[[Event], Event]) -> Session:
        """Write the changed events to a new log with a valid chain."""
        forgeries = self.store / "forged"
        number = len(list(forgeries.iterdir())) if forgeries.exists() else 0
        log = SessionLog.create(str(forgeries / str(number)), "s1")
        for event in map(change, self.session.events()):
            log.append(event.type, event.pid, event.payload, event.time_ns)
        log.close()
        return Session("s1", log.path)

    def edited(self, seq: int, **fields: Any) -> Reproduction:
        """Change one row into an exec that was allowed."""

        def change(event: Event) -> Event:
            if event.seq != seq:
                return event
            return event._replace(type="exec_allowed", payload={**event.payload, **fields})

        return reproduction(self.forged(change))


def reproduction(session: Session) -> Reproduction:
    fold = ReproductionFold(sigwrap.__version__)
    for event in session.events():
        fold.add(event)
    return fold.result()


def program(name: str, *argv: str, **different: Any) -> Program:
    return Program(path=f"/usr/bin/{name}", name=name, argv=(name, *argv))._replace(**different)


CALLS = {CallKind.CHANGE: "prlimit64", CallKind.OWNER: "fcntl", CallKind.PIDFD: "pidfd_send_signal"}
CALLS[CallKind.TRACE] = "ptrace"


def kill(
    number: int, aim: Any, kind: CallKind = CallKind.NUMBER, handles: bool = False
) -> SignalFacts:
    call = CALLS.get(kind, "kill")
    return SignalFacts(BASH, call, number, kind, aim, 4711, (), lambda _pid, _signal: handles)


def everything(made: Mediated) -> None:
    """Make one decision of each kind."""
    made.run(program("ls"))
    made.run(program("git", "push"))
    made.run(program("npm", "test"), says=YES)
    made.run(program("npm", "ci"), says=NO)
    made.run(program("cat", "x"))
    made.run(program("curl", "x"))
    made.run(program("echo"), stub_rule="stub", process=child_of_stub())
    made.run(program("ls"), held=effects.CannotHold("it would run on"))
    made.run(program("ls"), held=effects.Held.BY_ITS_TRACER)
    made.outcome = effects.KernelRefused(errno.ENOEXEC)
    made.run(program("ls", "-l"))
    made.run(program("npm", "run"), says=YES)
    made.outcome = effects.LoadedOther("another file", "/tmp/x", ("x",))
    made.run(program("ls", "-l"))
    made.outcome = effects.Ran()
    made.run(program("npm", "i"), held=effects.Held.NO)
    made.run(program("ls"), crowd=Crowd(4, 9))
    made.run(program("ls"), crowd=Crowd(3, 9))
    made.run(program("rm", *map(str, range(5_000))))
    for wrapped in (program("git", "push", path="/opt/git"), program("npm", "i")):
        env = program("env", *wrapped.argv)
        made.run(env, wrapped, here=(env,))
    made.run(program("tool", sha256=AskedFact(lambda: "b" * 64)))
    made.run(program("tool", sha256=AskedFact(lambda: "a" * 64)))
    made.run(program("ls", elsewhere=True))
    made.run(program("ls", path="/tmp/ls", shadows="/usr/bin/ls", found="./ls"))
    made.run(program("x", path=".../x"))
    for unseen in (NOT_DUMPABLE, stalled("so")):
        made._carry_out(made.execs.mediate(BASH, "execve"), unseen, effects.Held.YES, YES)
    made.signal(kill(15, CHILD))
    made.signal(kill(1, CHILD), says=YES)
    made.signal(kill(1, CHILD), says=NO)
    for handles in (True, False):
        made.signal(kill(10, CHILD, handles=handles))
    for aim in (
        OUTSIDE,
        RefusedCall(EVERYBODY),
        RefusedCall(UNRESOLVED),
        TargetGroup((CHILD, OUTSIDE)),
    ):
        made.signal(kill(9, aim))
    made.signal(kill(9, TargetGroup((CHILD, OUTSIDE)), kind=CallKind.CHANGE))
    made.signal(kill(9, OUTSIDE, kind=CallKind.TRACE))
    made.signal(kill(9, ABOVE, kind=CallKind.CHANGE)._replace(changes_its_shell=True))
    made.signal(kill(9, effects.SignalTarget(2, 1, "sigwrap", frozenset({TargetType.SIGWRAP}))))


def child_of_stub() -> Process:
    return Process(pid=41, start_time=1, parent=None, ppid=40, depth=2, comm="stub")
