"""Properties that hold for any order of signals, masks and actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from sigwrap.agent import AgentSignal, NotRunning, SignalInfo, State
from sigwrap.agent.dispatcher import MAX_HISTORY
from sigwrap.agent.signals import UNMASKABLE
from tests.agent.session import Session

SIGNALS = st.sampled_from(list(AgentSignal))
MASKABLE = st.sampled_from([each for each in AgentSignal if each not in UNMASKABLE])
WAITS_FOR_ACTIONS = (AgentSignal.SIGSTOP, AgentSignal.SIGINT)

# (what happens, to which signals)
STEPS = st.lists(
    st.tuples(st.just("send"), st.lists(SIGNALS, min_size=1, max_size=3))
    | st.tuples(st.just("mask"), st.lists(MASKABLE, max_size=4))
    | st.tuples(st.sampled_from(["unmask first", "unmask last", "act", "end"]), st.just([])),
    max_size=25,
)
# signal -> what its handler sends, once, and whether it raises then
HANDLERS = st.dictionaries(SIGNALS, st.tuples(st.lists(SIGNALS, max_size=3), st.booleans()))
ESCALATIONS = st.dictionaries(
    st.sampled_from([AgentSignal.SIGTRUST, AgentSignal.SIGLOOP, AgentSignal.SIGDRIFT]),
    st.sampled_from([AgentSignal.SIGSTOP, AgentSignal.SIGKILL]),
)
Steps = list[tuple[str, list[AgentSignal]]]
Handlers = dict[AgentSignal, tuple[list[AgentSignal], bool]]
Escalations = dict[AgentSignal, AgentSignal]


class Run(Session):
    """Run the steps, then end every mask and action."""

    def __init__(self, steps: Steps, handlers: Handlers, escalations: Escalations) -> None:
        super().__init__(escalations)
        self.states: list[tuple[SignalInfo, State]] = []
        self.masked: list[bool] = []
        self.in_flight = 0
        self._ends: list[Callable[[], None]] = []
        self._actions: list[Callable[[], None]] = []
        for signal, (sends, raises) in handlers.items():
            self.dispatcher.register_handler(signal, self._handler(sends, raises))
        for what, signals in steps:
            self._step(what, signals)
        for end in (*self._ends, *self._actions):
            end()

    def _perform(self, info: SignalInfo) -> None:
        super()._perform(info)
        self.states.append((info, self.dispatcher.state))
        self.masked.append(self.dispatcher._masks[info.signal] > 0)
        if info.signal in WAITS_FOR_ACTIONS:
            assert self.in_flight == 0

    def _handler(self, sends: list[AgentSignal], raises: bool) -> Callable[[SignalInfo], None]:
        left = list(sends)

        def handler(info: SignalInfo) -> None:
            while left:
                self.dispatcher.send_signal(left.pop())
            if raises:
                raise ValueError

        return handler

    def _step(self, what: str, signals: list[AgentSignal]) -> None:
        match what:
            case "send":
                self.send(*signals)
            case "mask":
                mask = self.dispatcher.mask_signals(signals)
                mask.__enter__()
                self._ends.append(mask.__exit__)
            case "unmask first" | "unmask last" if self._ends:
                self._ends.pop(0 if what == "unmask first" else -1)()
            case "act":
                self._act()
            case "end" if self._actions:
                self._actions.pop()()

    def _act(self) -> None:
        may_act = self.dispatcher.may_act
        action = self.dispatcher.action()
        try:
            action.__enter__()
        except NotRunning:
            assert not may_act
            return
        assert may_act
        self.in_flight += 1

        def end() -> None:
            self.in_flight -= 1
            action.__exit__()

        self._actions.append(end)


@given(STEPS, HANDLERS, ESCALATIONS)
def test_any_order_of_steps(steps: Steps, handlers: Handlers, escalations: Escalations) -> None:
    run = Run(steps, handlers, escalations)
    ever_masked = {each for what, signals in steps if what == "mask" for each in signals}
    check_nothing_is_performed_after_the_end(run)
    check_the_order_of_sending(run, ever_masked)
    check_masks(run)
    check_the_history(run)


def check_nothing_is_performed_after_the_end(run: Run) -> None:
    assert State.TERMINATED not in [state for _, state in run.states]
    ends = [info for info in run.performed if info.signal.name in ("SIGKILL", "SIGTERM", "SIGINT")]
    assert ends == ([run.performed[-1]] if run.state == "TERMINATED" else [])


def check_the_order_of_sending(run: Run, ever_masked: set[AgentSignal]) -> None:
    """Signals of one kind stay in order, and so do those that are never delayed.

    An escalation follows its cause at once.
    """
    sent = [info for info in run.performed if info.cause is None]
    for signal in AgentSignal:
        is_in_order(info for info in sent if info.signal is signal)
    is_in_order(info for info in sent if info.signal not in (*ever_masked, *WAITS_FOR_ACTIONS))
    for before, info in zip(run.performed, run.performed[1:], strict=False):
        if info.cause is not None and info.signal not in WAITS_FOR_ACTIONS:
            assert info.cause == before


def is_in_order(infos: Iterable[SignalInfo]) -> None:
    sequences = [info.sequence for info in infos]
    assert sequences == sorted(set(sequences))


def check_masks(run: Run) -> None:
    """Escalations and signals that waited for actions are exceptions."""
    for info, masked in zip(run.performed, run.masked, strict=True):
        assert not masked or info.cause is not None or info.signal in WAITS_FOR_ACTIONS


def check_the_history(run: Run) -> None:
    entries = run.dispatcher.get_signal_history()
    assert len(entries) <= MAX_HISTORY
    numbers = [each["sequence"] for each in entries]
    assert numbers == list(range(1, len(entries) + 1))
    history = dict(zip(numbers, entries, strict=True))
    delivered = {number for number in history if history[number]["outcome"] == "delivered"}
    assert delivered == {info.sequence for info in run.performed}
    state: object = "RUNNING"
    for info in run.performed:
        entry = history[info.sequence]
        assert entry["state_before"] == state
        state = entry["state_after"]
    assert state == run.state
    ended = {each["outcome"] for each in history.values()}
    assert ended <= {"delivered", "no-op", "cancelled"}
