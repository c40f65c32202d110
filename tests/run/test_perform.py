"""Nothing takes effect unrecorded. The listener and the log are stand-ins that write down what they
are told: what is tested is which of it the performer lets through, and in which order."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.approve.requests import Answer, ApprovalRequest
from sigwrap.calls import X86_64
from sigwrap.events import Payload
from sigwrap.kernel import terminals
from sigwrap.kernel.seccomp import ListenerBroken, Notification
from sigwrap.session.effects import (
    Ask,
    ChangeDescriptor,
    Continue,
    ContinueFork,
    Effect,
    EndRun,
    Escalation,
    Fail,
    Logged,
    Record,
    RecordRepeated,
    Send,
    SignalTarget,
    Succeed,
    Tell,
    Unrecorded,
    VerifyThenContinue,
)
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Outcome
from sigwrap.session.mediation import Asking
from sigwrap.session.perform import InWorker, Performer, Request
from sigwrap.session.run_end import LimitReached
from tests.support.stand_in import session_of

BASH = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
TARGET = SignalTarget(50, 5, "sleep", frozenset())
QUESTION = ApprovalRequest("exec", 40, "bash", 1, "git push", "ask", "", ("k",))
YES = Answer(granted=True, by="the terminal", message="", reason="granted")
REFUSED = f"fail 7 {errno.EPERM}"
LET_GO = [REFUSED, "failed", "let go"]
BROKE = ["record mediation_failed 40", *LET_GO]


def steps_of(*effects: Effect) -> Generator[Effect, Any, None]:
    """A tuple takes no replies, so this doesn't yield from it."""
    for effect in effects:  # noqa: UP028
        yield effect


def request_of(steps: Generator[Effect, Any, None], holdings: Any) -> Request:
    notification = Notification(7, 41, 0, 62, X86_64, 0, 0, 0, 0, 0, 0, 0)
    return Request(notification, BASH, "kill", steps, holdings=holdings)


class Stage:
    """All that the performer drives, as one list of what happened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.happened: list[str] = []
        self.payloads: dict[str, Payload] = {}
        self.waits = True
        self.can_write = True
        self.is_broken = False
        self.answers_at_once: Answer | None = None
        self.on_answer: Any = None
        self.timers: list[Any] = []
        run = SimpleNamespace(
            limit_reached=lambda reached: self.happened.append(f"end {reached.limit}")
        )
        session = session_of(
            recorder=self,
            approvals=self,
            loop=self,
            pool=SimpleNamespace(run=self.do),
            ending=SimpleNamespace(run=run),
            watchers=self,
        )
        self.performer = Performer(session, self)
        self.asking = Asking(session, self.performer)
        monkeypatch.setattr(
            terminals,
            "Line",
            lambda pid, text, **_: self.line(pid, text),
        )

    def of(self, *effects: Effect) -> list[str]:
        return self.run(steps_of(*effects))

    def run(self, steps: Generator[Effect, Any, None]) -> list[str]:
        self.performer.begin(request_of(steps, self))
        return self.happened

    # The listener

    def is_waiting(self, notification_id: int) -> bool:
        return self.waits

    def resume(self, notification_id: int) -> bool:
        self.happened.append(f"resume {notification_id}")
        return True

    def fail(self, notification_id: int, error: int) -> bool:
        if self.is_broken:
            raise ListenerBroken("broken", errno.EBADF)
        self.happened.append(f"fail {notification_id} {error}")
        return True

    def succeed(self, notification_id: int, value: int) -> bool:
        self.happened.append(f"succeed {notification_id} {value}")
        return True

    # The log

    def record(self, event: str, pid: int, payload: Payload) -> bool:
        self.happened.append(f"record {event} {pid}")
        self.payloads[event] = payload
        return self.can_write

    # Approvals, the loop

    can_show = False

    def process_ended(self, pid: int) -> None:
        pass

    def how_to_answer(self, approval_id: str) -> str:
        return f"until 14:31:05; sigwrap approve {approval_id}"

    def ask(self, question: ApprovalRequest, on_answer: Any) -> str:
        self.happened.append("ask")
        self.on_answer = on_answer
        if self.answers_at_once is not None:
            on_answer(self.answers_at_once)
        return "a1b2c3"

    def withdraw(self, approval_id: str) -> None:
        self.happened.append(f"withdraw {approval_id}")
        self.on_answer(Answer(granted=False, by="", message="", reason="withdrawn"))

    def call_in(self, _seconds: float, call: Callable[..., None], *words: Any) -> None:
        self.timers.append(partial(call, *words))

    def on_escalation(self, escalation: Escalation) -> None:
        self.happened.append(f"escalate {escalation.what}")

    # Workers

    def line(self, pid: int, text: str) -> Any:
        return SimpleNamespace(
            write=lambda: self.happened.append(f"tell {pid} {text}"), close=lambda: None
        )

    def do(self, work: Any, then: Any, **_how: Any) -> None:
        found = work()
        self.timers.append(lambda: then(Done(found)))

    # Holdings

    def failed(self) -> None:
        self.happened.append("failed")

    def close(self) -> None:
        self.happened.append("let go")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def record(event: str = "signal_sent") -> Record:
    return Record(event, {})


# The promise


@pytest.mark.parametrize(
    ("effect", "done"),
    [(Continue(), "resume 7"), (Succeed(), "succeed 7 0"), (Fail(3), "fail 7 3")],
)
def test_an_answer_comes_after_its_event(stage: Stage, effect: Effect, done: str) -> None:
    happened = stage.of(record(), effect)
    assert happened[:2] == ["record signal_sent 40", done]
    assert happened[-1] == "let go"


@pytest.mark.parametrize("effect", [Continue(), Succeed(), Fail(3)])
def test_an_answer_without_an_event_is_refused_and_reported(stage: Stage, effect: Effect) -> None:
    assert stage.of(effect) == BROKE
    name = type(effect).__name__
    assert stage.payloads["mediation_failed"] == {
        "error": f"InternalError: {name} without an event",
        "comm": "bash",
        "answered": False,
    }


@pytest.mark.parametrize("effect", [Continue(), Succeed()])
def test_nothing_goes_on_after_an_event_that_could_not_be_written(
    stage: Stage, effect: Effect
) -> None:
    stage.can_write = False
    assert stage.of(record(), effect)[1:] == BROKE


@pytest.mark.parametrize("can_write", [True, False])
def test_a_rule_escalates_after_its_event_also_where_that_could_not_be_written(
    stage: Stage, can_write: bool
) -> None:
    stage.can_write = can_write
    escalates = record()._replace(escalation=Escalation("never", "mkfs"))
    happened = stage.of(escalates, Fail(3))
    assert happened[:3] == ["record signal_sent 40", "escalate mkfs", "fail 7 3"]


def test_a_call_fails_also_where_its_event_could_not_be_written(stage: Stage) -> None:
    stage.can_write = False
    assert stage.of(record(), Fail(3)) == ["record signal_sent 40", "fail 7 3", "failed", "let go"]


def test_one_written_event_does_not_stand_for_one_that_failed(stage: Stage) -> None:
    replies: list[Logged] = []

    def steps() -> Generator[Effect, Any, None]:
        replies.append((yield record()))
        stage.can_write = False
        replies.append((yield record()))
        yield Continue()

    assert "resume 7" not in stage.run(steps())
    assert replies == [Logged.WRITTEN, Logged.FAILED]
    assert all(isinstance(reply, Logged) for reply in replies)


def test_a_mediator_hears_what_came_of_a_repeated_event(stage: Stage) -> None:
    replies: list[Logged] = []
    repeated = RecordRepeated("signal_sent", {}, (BASH, 10), 1.0)

    def steps() -> Generator[Effect, Any, None]:
        replies.append((yield repeated))
        replies.append((yield repeated))
        stage.can_write = False
        replies.append((yield repeated._replace(key=(BASH, 12))))
        yield Fail(1)

    stage.run(steps())
    assert replies == [Logged.WRITTEN, Logged.COUNTED, Logged.FAILED]


@pytest.mark.parametrize("reason", list(Unrecorded))
def test_an_answer_that_says_why_needs_no_event(stage: Stage, reason: Unrecorded) -> None:
    assert stage.of(Continue(reason)) == ["resume 7", "let go"]


@pytest.mark.parametrize(
    ("effect", "reason", "allowed"),
    [
        (Send(TARGET, 9), None, False),
        (Send(TARGET, 9), Unrecorded.RULE_IS_UNLOGGED, True),
        (ChangeDescriptor(None), None, False),
        (ChangeDescriptor(None), Unrecorded.REACHES_NO_PROCESS, True),
        (ContinueFork(BASH), Unrecorded.NO_RULE, True),
        (VerifyThenContinue(), None, False),
    ],
)
def test_what_a_family_does_by_itself_is_held_to_the_same(
    stage: Stage, effect: Effect, reason: Unrecorded | None, allowed: bool
) -> None:
    def handle(request: Request, effect: Effect) -> None:
        stage.performer.demand_event(request, effect, reason)
        stage.happened.append("done")

    stage.performer.offer({type(effect): handle})
    assert ("done" in stage.of(effect)) is allowed
    stage.happened.clear()
    assert "done" in stage.of(record(), effect)


def test_a_request_is_answered_once(stage: Stage) -> None:
    happened = stage.of(record(), Continue(), Fail(3))
    assert happened.count("resume 7") == 1 and "fail 7 3" not in happened
    assert stage.payloads["mediation_failed"]["answered"] is True


# Whatever way it ends


def test_a_mediator_that_ends_without_an_answer_denies(stage: Stage) -> None:
    assert stage.of(record())[1:] == BROKE


def test_a_mediator_that_raises_denies_its_own_request(stage: Stage) -> None:
    def steps() -> Generator[Effect, Any, None]:
        yield record()
        raise RecursionError("deep")

    assert stage.run(steps())[1:] == BROKE
    assert stage.payloads["mediation_failed"]["error"] == "RecursionError: deep"


def test_a_caller_that_is_gone_leaves_no_event(stage: Stage) -> None:
    stage.waits = False
    assert stage.of(record(), Continue()) == LET_GO


def test_a_listener_that_broke_ends_the_run_and_lets_go(stage: Stage) -> None:
    stage.is_broken = True
    with pytest.raises(ListenerBroken):
        stage.of(record(), Fail(3))
    assert stage.happened[-1] == "let go"


def test_what_broke_while_its_mediator_waited_is_reported_once(stage: Stage) -> None:
    request = request_of(steps_of(record()), stage)
    stage.performer.broke(request, OSError("EIO"))
    assert stage.happened == BROKE
    assert stage.payloads["mediation_failed"]["error"] == "OSError: EIO"
    stage.performer.broke(request, OSError("EIO"))
    assert len(stage.happened) == 4


def test_a_dropped_request_is_let_go_once(stage: Stage) -> None:
    request = request_of(steps_of(record()), stage)
    stage.performer.finish(request)
    stage.performer.finish(request)
    stage.performer.resume(request, None)
    assert stage.happened == LET_GO


def test_a_restarted_call_is_answered_anew(stage: Stage) -> None:
    """The kernel makes it again, and it comes with another number."""

    def restart(request: Request, effect: Effect) -> object:
        stage.performer.restart(request, effect, 513)
        stage.performer.came_back(request, 8)
        return None

    stage.performer.offer({VerifyThenContinue: restart})
    happened = stage.of(record(), VerifyThenContinue(), Fail(3))
    assert happened[1:3] == ["fail 7 513", "fail 8 3"]


# Waiting


def asks() -> Generator[Effect, Any, None]:
    answer = yield Ask(QUESTION, "git push needs approval")
    yield record("exec_allowed" if answer.granted else "exec_denied")
    yield Fail(errno.EACCES)


def test_a_mediator_waits_for_an_answer_and_goes_on(stage: Stage) -> None:
    assert stage.run(asks()) == [
        "ask",
        "tell 40 sigwrap: request a1b2c3: git push needs approval; "
        "until 14:31:05; sigwrap approve a1b2c3",
    ]
    stage.happened.clear()
    stage.on_answer(YES)
    assert stage.happened[0] == "record exec_allowed 40"
    assert stage.happened[-1] == "let go"


def test_an_answer_that_is_there_at_once_needs_no_notice(stage: Stage) -> None:
    stage.answers_at_once = YES
    assert stage.run(asks())[:2] == ["ask", "record exec_allowed 40"]


def test_a_caller_that_died_while_it_waited_gets_no_event(stage: Stage) -> None:
    stage.run(asks())
    stage.happened.clear()
    stage.waits = False
    stage.on_answer(YES)
    assert stage.happened == LET_GO


def test_a_caller_that_dies_is_noticed_and_its_request_withdrawn(stage: Stage) -> None:
    stage.run(asks())
    stage.happened.clear()
    stage.timers.pop()()
    assert stage.happened == []
    stage.waits = False
    stage.timers.pop()()
    assert stage.happened == ["withdraw a1b2c3", REFUSED, "failed", "let go"]
    assert stage.timers == []


def test_the_end_of_its_process_withdraws_a_request(stage: Stage) -> None:
    stage.run(asks())
    other = Process(pid=41, start_time=1, parent=None, ppid=30, depth=1, comm="sh")
    stage.asking.process_ended(other)
    assert "withdraw a1b2c3" not in stage.happened
    stage.asking.process_ended(BASH)
    assert stage.happened[-4:] == ["withdraw a1b2c3", REFUSED, "failed", "let go"]


def test_a_withdrawal_at_once_is_the_end(stage: Stage) -> None:
    stage.answers_at_once = YES._replace(granted=False, reason="withdrawn")
    assert stage.run(asks()) == ["ask", REFUSED, "failed", "let go"]


def _value(outcome: Outcome) -> object:
    assert isinstance(outcome, Done)
    return outcome.value


def has_done(stage: Stage, work: Callable[[], object]) -> Request:
    """A request that waits for a worker; what is found too late is written down."""

    def handle(request: Request, _effect: Effect) -> object:
        def dropped(found: object) -> None:
            stage.happened.append(f"dropped {found}")

        return InWorker(work, lambda outcome: f"found {_value(outcome)}", dropped)

    def steps() -> Generator[Effect, Any, None]:
        stage.happened.append((yield VerifyThenContinue()))
        yield record()
        yield Continue()

    stage.performer.offer({VerifyThenContinue: handle})
    request = request_of(steps(), stage)
    stage.performer.begin(request)
    assert stage.happened == []
    return request


def test_what_a_worker_has_found_is_the_reply(stage: Stage) -> None:
    has_done(stage, lambda: 5)
    stage.timers.pop()()
    assert stage.happened == ["found 5", "record signal_sent 40", "resume 7", "let go"]


def test_what_a_worker_has_found_for_a_request_that_is_over_is_dropped(stage: Stage) -> None:
    request = has_done(stage, lambda: 5)
    stage.performer.finish(request)
    stage.timers.pop()()
    assert stage.happened == [*LET_GO, "dropped 5"]


def test_what_a_worker_has_found_after_the_kill_switch_is_dropped_and_the_call_fails(
    stage: Stage,
) -> None:
    has_done(stage, lambda: 5)
    stage.performer.grant_nothing()
    stage.timers.pop()()
    assert stage.happened == [*LET_GO, "dropped 5"]


# Events


def test_events_of_decisions_say_how_long_the_decision_took(stage: Stage) -> None:
    denied = steps_of(Record("exec_denied", {}), Record("exec_failed", {}), Fail(3))
    request = request_of(denied, stage)
    request.started_ns -= 5_000
    stage.performer.begin(request)
    assert stage.payloads["exec_denied"]["evaluation_us"] > 0
    assert "evaluation_us" not in stage.payloads["exec_failed"]


def test_repeated_events_are_one_and_a_count(stage: Stage) -> None:
    key = (BASH, 10, "own")
    repeated = [RecordRepeated("signal_sent", {"n": n}, key, 1.0) for n in range(4)]
    for each in repeated:
        assert "resume 7" in stage.of(each, Continue())
    assert stage.happened.count("record signal_sent 40") == 1
    stage.timers[0]()
    assert stage.happened.count("record signal_sent 40") == 2
    assert stage.payloads["signal_sent"] == {"n": 0, "evaluation_us": 0, "count": 3}


@pytest.mark.parametrize("ends", ["process", "session"])
def test_a_count_is_written_at_the_end_at_the_latest(stage: Stage, ends: str) -> None:
    for _ in range(2):
        stage.of(RecordRepeated("limit_exceeded", {}, (BASH,), 60.0), Fail(11))
    if ends == "process":
        stage.performer.process_ended(BASH)
    else:
        stage.performer.close()
    assert stage.payloads["limit_exceeded"] == {"count": 1}
    stage.timers[0]()
    assert stage.happened.count("record limit_exceeded 40") == 2


def test_a_single_event_has_no_count(stage: Stage) -> None:
    stage.of(RecordRepeated("limit_exceeded", {}, (BASH,), 60.0), Fail(11))
    stage.performer.close()
    assert stage.happened.count("record limit_exceeded 40") == 1


def test_a_repeated_event_that_cannot_be_written_is_tried_again(stage: Stage) -> None:
    stage.can_write = False
    stage.of(RecordRepeated("signal_sent", {}, (BASH,), 1.0), Fail(1))
    stage.can_write = True
    stage.happened.clear()
    assert stage.of(RecordRepeated("signal_sent", {}, (BASH,), 1.0), Continue())[0] == (
        "record signal_sent 40"
    )


def test_a_line_goes_to_the_caller_and_a_reason_to_end_reaches_the_run(stage: Stage) -> None:
    reached = LimitReached("max_execs", 1, "why")
    happened = stage.of(record(), Tell("no"), Fail(13), EndRun(reached))
    assert happened == ["record signal_sent 40", "tell 40 no"]
    stage.timers.pop()()  # the worker is done
    assert happened[2] == "fail 7 13"
    assert "end max_execs" in happened


def test_a_caller_that_ends_while_a_line_is_written_gets_no_answer(stage: Stage) -> None:
    request = request_of(steps_of(record(), Tell("no"), Fail(13)), stage)
    stage.performer.begin(request)
    stage.performer.finish(request)
    happened = list(stage.happened)
    stage.timers.pop()()
    assert stage.happened == happened


def test_nothing_is_granted_once_the_kill_switch_is_on(stage: Stage) -> None:
    stage.performer.grant_nothing()
    refused = ["record call_refused 40", REFUSED, "failed", "let go"]
    assert stage.of(record(), Continue()) == refused


def test_nor_to_whom_waits_already(stage: Stage) -> None:
    stage.run(asks())
    stage.performer.grant_nothing()
    stage.happened.clear()
    stage.on_answer(YES)
    assert stage.happened == LET_GO
