"""A session as sigwrap's own mediators write it, with a kernel and people who answer as told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sigwrap
from sigwrap.escape import beginning
from sigwrap.events import QUESTION_CHARACTERS
from sigwrap.mediate.effects import (
    Ask,
    CannotHold,
    ContinueWatched,
    Held,
    Hold,
    KernelRefused,
    LoadedOther,
    Logged,
    LookAgain,
    Mediation,
    Prepare,
    Prepared,
    PrepareStubCommand,
    Ran,
    Reach,
    Reached,
    ReadAgain,
    ReadContent,
    ReadEnvironment,
    ReadLoaded,
    ReadWhereabouts,
    Record,
    RecordRepeated,
    Replace,
    Restarted,
    Send,
    SetOwner,
    VerifyThenContinue,
)
from sigwrap.mediate.exec import ExecMediator
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.network import NetworkMediator
from sigwrap.mediate.network_facts import Aim, NetworkFacts
from sigwrap.mediate.questions import Answer
from sigwrap.mediate.signal import SignalMediator
from sigwrap.mediate.signal_facts import SignalFacts
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.limits import Crowd
from sigwrap.policy.judge.recorded import JUDGEMENT
from sigwrap.policy.judge.request import Program
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.policy.language.texts import policy_texts
from sigwrap.report.check.reproduce import Reproduction, ReproductionFold
from sigwrap.store.reader import Session
from sigwrap.store.writer import SessionLog
from tests.mediate.transcript import OURS

VARIABLES = {"HOME": "/home/ann", "PROJECT_ROOT": "/project"}
NO, YES = False, True


class Mediated:
    def __init__(self, store: Path, text: str) -> None:
        source = Source("policy.yaml", f"version: 1\nname: x\n{text}")
        policy = parse_policy(source, variables=VARIABLES, find_base=lambda _name, _source: None)
        self.execs = ExecMediator(Engine(policy))
        self.signals = SignalMediator(Engine(policy), domain=False)
        self.network = NetworkMediator(Engine(policy).network, policy.name)
        self.log = SessionLog.create(str(store), "s1")
        self.process = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
        self._questions = 0
        self.outcome: Ran | KernelRefused | LoadedOther = Ran()
        self.add(
            "session_started",
            1,
            session_id="s1",
            sigwrap=sigwrap.__version__,
            judgement=JUDGEMENT,
            keyed=False,
            policy=policy.name,
            **policy_texts([source], VARIABLES),
        )

    def add(self, type_name: str, pid: int, **payload: Any) -> None:
        self.log.append(type_name, pid, payload, 1)

    def run(
        self,
        *programs: Program,
        held: Held | CannotHold = Held.YES,
        says: bool = YES,
        **different: Any,
    ) -> None:
        values: dict[str, Any] = {
            "process": self.process,
            "syscall": "execve",
            "path": programs[0].path,
            "cwd": "/project",
            "truncated": False,
            "programs": programs,
            "here": programs,
            "readable": True,
            "crowd": Crowd(0, 0),
            "stub_rule": None,
        }
        facts = ExecFacts(**(values | different))
        self._carry_out(self.execs.mediate(facts), facts, held, says)

    def signal(self, facts: SignalFacts, *, says: bool = YES) -> None:
        self._carry_out(self.signals.mediate(facts), None, Held.YES, says)

    def connection(self, aim: Aim, *, says: bool = YES) -> None:
        facts = NetworkFacts(self.process, "connect", aim)
        self._carry_out(self.network.mediate(facts), None, Held.YES, says)

    def _carry_out(
        self, steps: Mediation, facts: ExecFacts | None, held: Held | CannotHold, says: bool
    ) -> None:
        reply: Any = None
        while True:
            try:
                effect = steps.send(reply)
            except StopIteration:
                return
            match effect:
                case Record() | RecordRepeated():
                    self.log.append(effect.event, self.process.pid, effect.payload, 1)
                    reply = Logged.WRITTEN
                case Hold():
                    reply = held
                case VerifyThenContinue() | ContinueWatched():
                    reply = self.outcome
                case Prepare() | PrepareStubCommand():
                    reply = Prepared("/usr/bin/echo", ("echo",), True)
                case Replace():
                    reply = Restarted()
                case Ask():
                    reply = self._answer(effect, says)
                case ReadAgain():
                    reply = facts
                case ReadWhereabouts():
                    reply = OURS
                case ReadContent():
                    reply = ("content",)
                case ReadLoaded():
                    reply = ()
                case ReadEnvironment():
                    reply = "environment"
                case LookAgain():
                    reply = True
                case Send() | SetOwner():
                    reply = 0
                case Reach():
                    reply = Reached(0)
                case _:
                    reply = None

    def _answer(self, asked: Ask, says: bool) -> Answer:
        self._questions += 1
        approval_id, question = f"a{self._questions}", asked.question
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


def reproduction(session: Session) -> Reproduction:
    fold = ReproductionFold(sigwrap.__version__)
    for event in session.events():
        fold.add(event)
    return fold.result()


def program(name: str, *argv: str, **different: Any) -> Program:
    return Program(path=f"/usr/bin/{name}", name=name, argv=(name, *argv))._replace(**different)
