"""Send signals, and check which are performed, and in which order."""

from __future__ import annotations

import itertools
import signal as posix

import pytest

from sigwrap.agent import AgentSignal, Dispatcher, NotRunning, Outcome, SignalInfo, State
from sigwrap.agent.dispatcher import MAX_HISTORY, MAX_QUEUED, MAX_TEXT, Sent
from tests.agent.session import Session

SIGSTOP, SIGCONT, SIGINT, SIGKILL = list(AgentSignal)[:4]
SIGTERM, SIGUSR1, SIGUSR2, SIGPOLICY = list(AgentSignal)[4:8]
SIGTRUST, SIGBUDGET, SIGLOOP, SIGDRIFT = list(AgentSignal)[8:]


@pytest.fixture
def session() -> Session:
    return Session()


# States


def test_a_stop_and_a_continue(session: Session) -> None:
    assert session.state == "RUNNING" and session.may_act()
    assert session.send(SIGSTOP) == ["delivered"]
    assert session.state == "STOPPED" and not session.may_act()
    with pytest.raises(NotRunning, match="the agent is STOPPED"):
        session.dispatcher.action().__enter__()
    assert session.send(SIGCONT) == ["delivered"]
    assert session.state == "RUNNING" and session.may_act()
    assert session.said() == ["SIGSTOP", "SIGCONT"]


def test_three_signals_terminate_it_running_or_stopped() -> None:
    for ends, before in itertools.product((SIGINT, SIGTERM, SIGKILL), ([], [SIGSTOP])):
        session = Session()
        session.send(*before, ends)
        assert session.dispatcher.state is State.TERMINATED
        assert session.said()[-1] == ends.name
        assert not session.may_act()


def test_a_stop_when_stopped_and_a_continue_when_running_do_nothing(session: Session) -> None:
    session.says(SIGSTOP, "stops")
    session.says(SIGCONT, "goes on")
    session.send(SIGCONT, SIGSTOP, SIGSTOP)
    assert session.said() == ["stops", "SIGSTOP"]
    assert session.history() == [
        ("SIGCONT", "RUNNING", "RUNNING", "no-op"),
        ("SIGSTOP", "RUNNING", "STOPPED", "delivered"),
        ("SIGSTOP", "STOPPED", "STOPPED", "no-op"),
    ]


# Escalations


def test_a_policy_violation_escalates_to_a_kill(session: Session) -> None:
    session.dispatcher.send_signal(SIGPOLICY, source="rule 3", reason="rm -rf /")
    assert session.said() == ["SIGPOLICY", "SIGKILL"]
    keys = ("sequence", "signal", "cause", "source", "reason", "state_after", "outcome")
    assert session.history(*keys) == [
        (1, "SIGPOLICY", None, "rule 3", "rm -rf /", "RUNNING", "delivered"),
        (2, "SIGKILL", 1, "rule 3", "rm -rf /", "TERMINATED", "delivered"),
    ]
    violation, kill = session.performed
    assert kill.cause == violation and violation.cause is None
    assert session.send(SIGPOLICY) == ["no-op"]
    assert len(session.history()) == 3


def test_a_used_up_budget_always_terminates(
    session: Session,
) -> None:
    session.send(SIGBUDGET)
    assert session.said() == ["SIGBUDGET", "SIGTERM"]
    assert session.state == "TERMINATED"
    session = Session({SIGPOLICY: SIGSTOP, SIGBUDGET: SIGCONT})
    session.send(SIGBUDGET)
    assert session.said() == ["SIGBUDGET", "SIGTERM"]


def test_an_escalation_to_a_stop_can_be_continued_and_does_not_escalate() -> None:
    session = Session({SIGLOOP: SIGSTOP})
    session.send(SIGLOOP, SIGLOOP)
    assert session.state == "STOPPED"
    assert session.history("signal", "cause", "outcome") == [
        ("SIGLOOP", None, "delivered"),
        ("SIGSTOP", 1, "delivered"),
        ("SIGLOOP", None, "delivered"),
        ("SIGSTOP", 3, "no-op"),
    ]
    assert session.send(SIGCONT) == ["delivered"]
    session = Session({SIGLOOP: SIGDRIFT, SIGDRIFT: SIGLOOP})
    session.send(SIGLOOP)
    assert session.said() == ["SIGLOOP", "SIGDRIFT"]
    session = Session({SIGTRUST: SIGKILL})
    session.dispatcher.send_signal(SIGTRUST, escalates=False)
    assert session.said() == ["SIGTRUST"]
    session.send(SIGTRUST)
    assert session.said() == ["SIGTRUST", "SIGKILL"]


@pytest.mark.parametrize("signal", [SIGPOLICY, SIGBUDGET])
def test_a_fixed_escalation_cannot_be_left_out(session: Session, signal: AgentSignal) -> None:
    session.dispatcher.send_signal(signal, escalates=False)
    assert session.state == "TERMINATED"


# Order


def test_signals_of_handlers_and_perform_wait_their_turn(session: Session) -> None:
    def handler(info: SignalInfo) -> None:
        assert session.send(SIGUSR2, SIGSTOP, SIGCONT) == ["queued"] * 3
        session.log.append("handler ends")

    session.dispatcher.register_handler(SIGUSR1, handler)
    session.says(SIGUSR2, "handles SIGUSR2")
    session.send(SIGUSR1)
    assert session.said() == [
        *("handler ends", "SIGUSR1", "handles SIGUSR2", "SIGUSR2"),
        *("SIGSTOP", "SIGCONT"),
    ]
    sent: list[str] = []

    def perform(info: SignalInfo) -> None:
        if info.signal is SIGUSR1:
            assert dispatcher.send_signal(SIGUSR2) is Outcome.QUEUED
        sent.append(info.signal.name)

    dispatcher = Dispatcher(clock=lambda: 0, perform=perform)
    dispatcher.send_signal(SIGUSR1)
    assert sent == ["SIGUSR1", "SIGUSR2"]


def test_a_signal_to_itself_does_not_recurse(session: Session) -> None:
    """Signals are nested deeper than Python can recurse."""
    left = iter(range(5000))

    def handler(info: SignalInfo) -> None:
        if next(left, None) is not None:
            session.send(SIGUSR1)

    session.dispatcher.register_handler(SIGUSR1, handler)
    session.send(SIGUSR1)
    assert session.said() == ["SIGUSR1"] * 5001


def test_perform_is_optional() -> None:
    dispatcher = Dispatcher(clock=lambda: 7)
    dispatcher.send_signal(SIGPOLICY)
    assert dispatcher.state is State.TERMINATED


# Handlers


def test_handlers_are_called_in_the_order_of_registration(
    session: Session,
) -> None:
    for text in ("first", "second"):
        session.says(SIGUSR1, text)
    session.says(SIGUSR2, "another's")
    session.send(SIGUSR1)
    assert session.said() == ["first", "second", "SIGUSR1"]
    session = Session()
    got: list[SignalInfo] = []
    session.dispatcher.register_handler(SIGTRUST, got.append)
    session.dispatcher.send_signal(SIGTRUST, source="operator", reason="tried")
    assert got == [SignalInfo(SIGTRUST, "operator", "tried", time_ns=1000, sequence=1, cause=None)]
    session = Session()
    seen = []
    session.dispatcher.register_handler(SIGSTOP, lambda info: seen.append(session.state))
    session.send(SIGSTOP)
    assert seen == ["RUNNING"]


def test_an_error_of_a_handler_goes_into_the_history_only(session: Session) -> None:
    def handler(info: SignalInfo) -> None:
        raise LookupError("no such thing")

    session.dispatcher.register_handler(SIGSTOP, handler)
    session.says(SIGSTOP, "the next one")
    assert session.send(SIGSTOP) == ["delivered"]
    assert session.said() == ["the next one", "SIGSTOP"]
    assert session.history("outcome", "state_after", "errors") == [
        ("delivered", "STOPPED", ["LookupError: no such thing"])
    ]


def test_an_error_without_a_text_or_with_a_long_one(session: Session) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ValueError

    def silent(info: SignalInfo) -> None:
        raise Unspeakable

    def long(info: SignalInfo) -> None:
        raise ValueError("x" * 10**6)

    session.dispatcher.register_handler(SIGUSR1, silent)
    session.dispatcher.register_handler(SIGUSR1, long)
    session.send(SIGUSR1)
    ((errors,),) = session.history("errors")
    assert isinstance(errors, list)
    assert errors[0] == "Unspeakable: no message: its __str__ failed"
    assert len(errors[1]) == MAX_TEXT and errors[1].endswith("x…")


@pytest.mark.parametrize("signal", [SIGKILL, SIGPOLICY])
def test_a_kill_waits_for_no_handler(session: Session, signal: AgentSignal) -> None:
    """A handler that never returns would otherwise act as a mask."""
    seen = []

    def handler(info: SignalInfo) -> None:
        seen.append((session.said(), session.state))
        raise OSError("no, don't")

    session.dispatcher.register_handler(signal, handler)
    session.send(signal)
    done = ["SIGKILL"] if signal is SIGKILL else ["SIGPOLICY", "SIGKILL"]
    assert seen == [(done, "TERMINATED")]
    assert session.history("errors")[0] == (["OSError: no, don't"],)


def test_a_keyboard_interrupt_is_raised_and_the_queue_stays(session: Session) -> None:
    def handler(info: SignalInfo) -> None:
        session.send(SIGUSR1, SIGUSR2)
        raise KeyboardInterrupt

    session.dispatcher.register_handler(SIGSTOP, handler)
    session.says(SIGSTOP, "is not called")
    with pytest.raises(KeyboardInterrupt):
        session.send(SIGSTOP)
    assert session.said() == ["SIGSTOP"] and session.state == "STOPPED"
    assert session.history("signal", "outcome", "errors") == [
        ("SIGSTOP", "delivered", ["KeyboardInterrupt: "]),
        ("SIGUSR1", "queued", []),
        ("SIGUSR2", "queued", []),
    ]
    session.send(SIGCONT)
    assert session.said() == ["SIGUSR1", "SIGUSR2", "SIGCONT"]


def test_handlers_cannot_prevent_an_escalation(session: Session) -> None:
    def handler(info: SignalInfo) -> None:
        raise SystemExit(1)

    session.dispatcher.register_handler(SIGBUDGET, handler)
    with pytest.raises(SystemExit):
        session.send(SIGBUDGET)
    assert session.said() == ["SIGBUDGET", "SIGTERM"]


def test_a_new_handler_is_called_from_the_next_signal_on(session: Session) -> None:
    def handler(info: SignalInfo) -> None:
        session.says(SIGUSR1, "new")

    session.dispatcher.register_handler(SIGUSR1, handler)
    session.send(SIGUSR1, SIGUSR1)
    assert session.said() == ["SIGUSR1", "new", "SIGUSR1"]


def test_a_coroutine_is_not_a_handler(session: Session) -> None:
    async def handler(info: SignalInfo) -> None: ...

    session.dispatcher.register_handler(SIGUSR1, handler)
    session.send(SIGUSR1)
    (entry,) = session.dispatcher.get_signal_history()
    assert "a handler must not return a coroutine" in str(entry["errors"])
    with pytest.raises(TypeError, match="with a SignalInfo: 'x'"):
        session.dispatcher.register_handler(SIGUSR1, "x")  # type: ignore[arg-type]


def test_a_scope_is_not_exited_more_often_than_entered(session: Session) -> None:
    mask, action = session.dispatcher.mask_signals({SIGUSR1}), session.dispatcher.action()
    for scope in (mask, action):
        with scope:
            pass
        with pytest.raises(RuntimeError, match="more often than it was entered"):
            scope.__exit__()
    with mask:
        assert session.send(SIGUSR1) == ["queued"]
    with action:
        assert session.dispatcher.send_signal(SIGSTOP) is Outcome.PENDING


# Errors of perform


def failing(error: BaseException) -> tuple[Dispatcher, list[str]]:
    """Each signal fails once."""
    log: list[str] = []

    def perform(info: SignalInfo) -> None:
        log.append(info.signal.name)
        if log.count(info.signal.name) == 1:
            raise error

    return Dispatcher(clock=lambda: 0, perform=perform), log


@pytest.mark.parametrize("signal", [SIGSTOP, SIGTERM, SIGKILL])
def test_a_failed_signal_raises_and_can_be_sent_again(
    signal: AgentSignal,
) -> None:
    dispatcher, _ = failing(OSError("no tree"))
    with pytest.raises(OSError, match="no tree"):
        dispatcher.send_signal(signal)
    assert dispatcher.state is State.RUNNING
    (entry,) = dispatcher.get_signal_history()
    assert (entry["outcome"], entry["errors"]) == ("failed", ["OSError: no tree"])
    assert dispatcher.send_signal(signal) is Outcome.DELIVERED
    assert dispatcher.state is not State.RUNNING


def test_perform_must_not_be_a_coroutine_and_a_violation_kills_anyway() -> None:
    async def kill(info: SignalInfo) -> None: ...

    dispatcher = Dispatcher(clock=lambda: 0, perform=lambda info: kill(info))
    with pytest.raises(TypeError, match="must not return a coroutine"):
        dispatcher.send_signal(SIGKILL)
    assert dispatcher.state is State.RUNNING
    dispatcher, log = failing(OSError())
    with pytest.raises(OSError):
        dispatcher.send_signal(SIGPOLICY)
    assert log == ["SIGPOLICY", "SIGKILL"]


# Masks


def test_masked_signals_come_in_order_after_the_mask(session: Session) -> None:
    with session.dispatcher.mask_signals({SIGINT, SIGUSR1}):
        assert session.send(SIGUSR1, SIGUSR2, SIGINT, SIGUSR1) == [
            *("queued", "delivered", "queued", "queued")
        ]
        assert session.said() == ["SIGUSR2"]
    assert session.said() == ["SIGUSR1", "SIGINT"]
    assert session.history("signal", "state_before", "outcome") == [
        ("SIGUSR1", "RUNNING", "delivered"),
        ("SIGUSR2", "RUNNING", "delivered"),
        ("SIGINT", "RUNNING", "delivered"),
        ("SIGUSR1", "TERMINATED", "no-op"),
    ]
    session = Session()
    with session.dispatcher.mask_signals({SIGSTOP}):
        session.send(SIGSTOP)
        assert session.history() == [("SIGSTOP", None, None, "queued")]
        assert session.state == "RUNNING" and session.may_act()


def test_masks_end_in_any_order_and_after_an_error(session: Session) -> None:
    with session.dispatcher.mask_signals({SIGUSR1, SIGUSR2}):
        with session.dispatcher.mask_signals([SIGUSR1, SIGTERM]):
            session.send(SIGTERM, SIGUSR1, SIGUSR2)
        assert session.said() == ["SIGTERM"]
    assert session.said() == []
    session = Session()
    first = session.dispatcher.mask_signals({SIGUSR1})
    second = session.dispatcher.mask_signals({SIGUSR1, SIGUSR2})
    first.__enter__()
    second.__enter__()
    session.send(SIGUSR1, SIGUSR2)
    first.__exit__()
    assert session.said() == []
    second.__exit__()
    assert session.said() == ["SIGUSR1", "SIGUSR2"]
    session = Session()
    mask = session.dispatcher.mask_signals({SIGUSR1})
    assert session.send(SIGUSR1) == ["delivered"]
    for _ in range(2):
        with mask:
            assert session.send(SIGUSR1) == ["queued"]
    assert session.said() == ["SIGUSR1"] * 3
    session = Session()
    with pytest.raises(RuntimeError, match="critical"), session.dispatcher.mask_signals({SIGSTOP}):
        session.send(SIGSTOP)
        raise RuntimeError("critical")
    assert session.state == "STOPPED"


@pytest.mark.parametrize("signal", [SIGKILL, SIGPOLICY, SIGTRUST])
def test_three_signals_cannot_be_masked(session: Session, signal: AgentSignal) -> None:
    with pytest.raises(ValueError) as refused:
        session.dispatcher.mask_signals({SIGINT, signal})
    assert str(refused.value) == (
        f"cannot mask {signal.name} (unmaskable: SIGKILL, SIGPOLICY, SIGTRUST)"
    )
    assert session.send(SIGINT) == ["delivered"]


def test_a_kill_ignores_masks_and_queues_and_drops_what_waits(
    session: Session,
) -> None:
    with session.dispatcher.mask_signals(set(AgentSignal) - {SIGKILL, SIGPOLICY, SIGTRUST}):
        session.send(SIGTERM, SIGUSR1, SIGSTOP, SIGKILL)
        assert session.said() == ["SIGKILL"]
        assert session.history("outcome") == [("no-op",)] * 3 + [("delivered",)]
    assert session.said() == []
    session = Session()
    with session.dispatcher.mask_signals({SIGUSR1}):
        session.send(*[SIGUSR1] * MAX_QUEUED)
        assert session.send(SIGKILL) == ["delivered"]
    assert session.said() == ["SIGKILL"]


def test_a_mask_does_not_delay_an_escalation() -> None:
    session = Session({SIGTRUST: SIGSTOP})
    with session.dispatcher.mask_signals({SIGSTOP, SIGTERM}):
        session.send(SIGTRUST, SIGBUDGET)
        assert session.said() == ["SIGTRUST", "SIGSTOP", "SIGBUDGET", "SIGTERM"]


# Actions in flight


@pytest.mark.parametrize("signal", [SIGSTOP, SIGINT])
def test_stop_and_interrupt_wait_for_the_last_action(session: Session, signal: AgentSignal) -> None:
    session.says(signal, "handled")
    first, second = session.dispatcher.action(), session.dispatcher.action()
    first.__enter__()
    second.__enter__()
    assert session.send(signal) == ["pending"]
    assert session.said() == ["handled"] and session.state == "RUNNING"
    first.__exit__()
    assert session.said() == []
    second.__exit__()
    assert session.said() == [signal.name] and session.state != "RUNNING"


def test_no_action_begins_while_a_stop_waits(session: Session) -> None:
    with session.dispatcher.action():
        session.send(SIGSTOP, SIGINT)
        assert not session.may_act()
        with (
            pytest.raises(NotRunning, match="SIGSTOP waits for the actions in flight"),
            session.dispatcher.action(),
        ):
            pass
    assert session.said() == ["SIGSTOP", "SIGINT"]


def test_a_continue_cancels_a_waiting_stop_but_no_interrupt(
    session: Session,
) -> None:
    """SIGCONT is still delivered, and releases what waited since the stop."""
    with session.dispatcher.action():
        session.send(SIGSTOP, SIGCONT)
        assert session.said() == ["SIGCONT"]
        assert session.may_act()
    assert session.said() == []
    assert session.history() == [
        ("SIGSTOP", "RUNNING", "RUNNING", "cancelled"),
        ("SIGCONT", "RUNNING", "RUNNING", "delivered"),
    ]
    session = Session()
    with session.dispatcher.action():
        assert session.send(SIGINT, SIGCONT) == ["pending", "no-op"]
    assert session.said() == ["SIGINT"]
    session = Session()
    with session.dispatcher.action():
        assert session.send(SIGSTOP, SIGSTOP, SIGINT, SIGINT) == ["pending", "no-op"] * 2
    assert session.said() == ["SIGSTOP", "SIGINT"]


def test_termination_drops_what_waits_and_a_failed_action_ends(
    session: Session,
) -> None:
    with session.dispatcher.action():
        session.send(SIGSTOP, SIGINT, SIGTERM)
        assert session.history("signal", "state_before", "outcome") == [
            ("SIGSTOP", "TERMINATED", "no-op"),
            ("SIGINT", "TERMINATED", "no-op"),
            ("SIGTERM", "RUNNING", "delivered"),
        ]
    assert session.said() == ["SIGTERM"]
    session = Session()
    with pytest.raises(ZeroDivisionError), session.dispatcher.action():
        session.send(SIGSTOP)
        raise ZeroDivisionError
    assert session.state == "STOPPED"


def test_a_signal_that_waited_for_an_action_comes_before_later_ones(session: Session) -> None:
    """The action ends within a handler, which has sent something before."""
    action = session.dispatcher.action()
    action.__enter__()
    session.send(SIGSTOP)

    def handler(info: SignalInfo) -> None:
        session.send(SIGUSR2)
        action.__exit__()

    session.dispatcher.register_handler(SIGUSR1, handler)
    session.send(SIGUSR1)
    assert session.said() == ["SIGUSR1", "SIGSTOP", "SIGUSR2"]
    session = Session()
    action = session.dispatcher.action()
    action.__enter__()
    session.send(SIGSTOP)
    session.dispatcher.register_handler(SIGINT, lambda info: action.__exit__())
    session.send(SIGINT)
    assert session.said() == ["SIGSTOP", "SIGINT"]


# on_outcome


def test_on_outcome_gets_each_outcome_and_a_delivery_before_perform() -> None:
    log: list[str] = []

    def on_outcome(sent: Sent) -> None:
        log.append(f"{sent.info.signal.name} {sent.outcome.value} {sent.state_after}")
        if sent.info.reason == "refused" and sent.outcome is Outcome.DELIVERED:
            raise LookupError

    dispatcher = Dispatcher(
        clock=lambda: 0, perform=lambda info: log.append(info.signal.name), on_outcome=on_outcome
    )
    with dispatcher.action():
        dispatcher.send_signal(SIGSTOP)
        dispatcher.send_signal(SIGCONT)
    with pytest.raises(LookupError):
        dispatcher.send_signal(SIGTERM, reason="refused")
    dispatcher.send_signal(SIGCONT)
    assert log == [
        "SIGSTOP pending State.RUNNING",
        "SIGCONT delivered State.RUNNING",
        "SIGCONT",
        "SIGSTOP cancelled State.RUNNING",
        "SIGTERM delivered State.TERMINATED",
        "SIGTERM failed State.RUNNING",
        "SIGCONT no-op State.RUNNING",
    ]
    found = dispatcher.find(3)
    assert found is not None and found.info.reason == "refused"
    assert dispatcher.find(0) is dispatcher.find(5) is None


# History and bounds


def test_the_history_is_complete_bounded_and_a_copy(session: Session) -> None:
    session.dispatcher.send_signal(SIGSTOP, source="user", reason="lunch")
    assert session.dispatcher.get_signal_history() == [
        {
            "sequence": 1,
            "signal": "SIGSTOP",
            "timestamp": 1000,
            "source": "user",
            "reason": "lunch",
            "cause": None,
            "state_before": "RUNNING",
            "state_after": "STOPPED",
            "outcome": "delivered",
            "errors": [],
        }
    ]
    session = Session()
    session.send(SIGUSR1)
    entry = session.dispatcher.get_signal_history()[0]
    entry["errors"] = entry.pop("signal")
    assert session.history("signal", "errors") == [("SIGUSR1", [])]
    session = Session()
    session.send(*[SIGUSR1] * MAX_HISTORY)
    session.send(SIGUSR2, SIGUSR2)
    history = session.history("sequence")
    assert (len(history), history[0], history[-1]) == (MAX_HISTORY, (3,), (MAX_HISTORY + 2,))
    session = Session()
    session.dispatcher.send_signal(SIGUSR1, source="s" * 10**6, reason="r" * MAX_TEXT)
    assert session.performed[0].source == "s" * (MAX_TEXT - 1) + "…"
    assert session.performed[0].reason == "r" * MAX_TEXT


def test_too_many_of_a_kind_are_merged_unless_only_one_escalates(session: Session) -> None:
    with session.dispatcher.mask_signals({SIGUSR1, SIGUSR2}):
        session.send(*[SIGUSR1] * MAX_QUEUED)
        assert session.send(SIGUSR1, SIGUSR2, SIGUSR2) == ["merged", "queued", "merged"]
    assert session.said() == ["SIGUSR1"] * MAX_QUEUED + ["SIGUSR2"]
    session = Session()
    session = Session({SIGDRIFT: SIGSTOP})
    with session.dispatcher.mask_signals({SIGUSR1, SIGDRIFT}):
        session.send(*[SIGUSR1] * MAX_QUEUED)
        session.dispatcher.send_signal(SIGDRIFT, escalates=False)
        assert session.send(SIGDRIFT, SIGDRIFT) == ["queued", "merged"]
        late = session.dispatcher.send_signal(SIGDRIFT, escalates=False)
        assert late is Outcome.MERGED
    assert session.said()[MAX_QUEUED:] == ["SIGDRIFT", "SIGDRIFT", "SIGSTOP"]
    session = Session()
    pairs = MAX_QUEUED // 2
    with session.dispatcher.mask_signals({SIGSTOP, SIGCONT}):
        session.send(*[SIGSTOP, SIGCONT] * pairs, SIGSTOP)
        assert session.history("signal", "outcome")[0] == ("SIGSTOP", "merged")
    assert session.state == "STOPPED"
    assert len(session.said()) == MAX_QUEUED - 1  # a SIGCONT came first, while it ran


# POSIX signals


def test_a_posix_signal_is_refused_wherever_one_is_given(session: Session) -> None:
    """signal.SIGKILL has the number of SIGTRUST, which would only be logged."""
    wrong: AgentSignal = posix.SIGKILL  # type: ignore[assignment]
    for call in (
        lambda: session.dispatcher.send_signal(wrong),
        lambda: session.dispatcher.mask_signals({wrong}),
        lambda: session.dispatcher.register_handler(wrong, print),
        lambda: Dispatcher(clock=lambda: 0, escalations={wrong: SIGKILL}),
        lambda: Dispatcher(clock=lambda: 0, escalations={SIGDRIFT: wrong}),
    ):
        with pytest.raises(TypeError, match="is not an AgentSignal"):
            call()
    assert session.history() == []
