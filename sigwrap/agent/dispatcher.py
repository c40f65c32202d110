"""Deliver signals to a whole session, one after the other, in the order of sending.

               SIGSTOP
    RUNNING ────────────► STOPPED
       │    ◄────────────    │
       │       SIGCONT       │
       └──────────┬──────────┘
                  │ SIGINT, SIGTERM, SIGKILL
                  ▼
              TERMINATED

The dispatcher does nothing itself: `perform` carries each signal out, and the owner marks actions
in flight. All calls come from one thread. A signal that a handler or `perform` sends waits until
the current one is done. `on_outcome` hears of each outcome, of DELIVERED before `perform` runs; an
error that it raises then makes the signal FAILED, and `perform` does not run.

A signal's handlers are called first, then it is performed, then the state changes. For SIGKILL and
signals that escalate to it, the order is reversed, so that a handler cannot delay it. An Exception
of a handler goes into the history and changes nothing else. Other errors (KeyboardInterrupt, an
error of `perform`) are raised; the next call delivers the signals that are still queued.

A mask delays the signal that was sent, not those that it escalates to: a mask on SIGTERM does not
prevent SIGBUDGET from terminating.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count

from sigwrap.agent.signals import ALWAYS_ESCALATE, UNMASKABLE, AgentSignal, SignalInfo, checked
from sigwrap.bare import Enum, deque
from sigwrap.text import shortened

MAX_HISTORY = 1000
MAX_QUEUED = 256
MAX_TEXT = 500  # characters of a source, a reason or an error


class State(Enum):
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    TERMINATED = "TERMINATED"


class Outcome(Enum):
    """The state of a signal's delivery."""

    QUEUED = "queued"  # it is masked, or another one is being delivered
    PENDING = "pending"  # its handlers were called; it waits for the actions in flight
    DELIVERED = "delivered"
    NO_OP = "no-op"
    CANCELLED = "cancelled"  # a pending SIGSTOP, by SIGCONT
    MERGED = "merged"  # with another of its kind, since too many were queued
    FAILED = "failed"  # `perform` raised; the state is as before, and it can be sent again


class NotRunning(RuntimeError):
    """No action may start now. Check `may_act` first, and wait for SIGCONT."""


class Sent:
    """A signal and the state of its delivery."""

    __slots__ = ("errors", "follows", "info", "outcome", "state_after", "state_before")

    def __init__(self, info: SignalInfo, follows: AgentSignal | None) -> None:
        self.info = info
        self.follows = follows  # the signal that this one escalates to
        self.outcome = Outcome.QUEUED
        self.state_before: State | None = None  # until it is delivered
        self.state_after: State | None = None
        self.errors: list[str] = []

    def as_dict(self) -> dict[str, object]:
        info, before, after = self.info, self.state_before, self.state_after
        return {
            "sequence": info.sequence,
            "signal": info.signal.name,
            "timestamp": info.time_ns,
            "source": info.source,
            "reason": info.reason,
            "cause": None if info.cause is None else info.cause.sequence,
            "state_before": None if before is None else before.value,
            "state_after": None if after is None else after.value,
            "outcome": self.outcome.value,
            "errors": list(self.errors),
        }


class Scope:
    """A `with` block that can be entered again."""

    __slots__ = ("_begin", "_end", "_entered")

    def __init__(self, begin: Callable[[], None], end: Callable[[], None]) -> None:
        self._begin = begin
        self._end = end
        self._entered = 0

    def __enter__(self) -> None:
        self._begin()
        self._entered += 1

    def __exit__(self, *_: object) -> None:
        if not self._entered:
            raise RuntimeError("this scope was exited more often than it was entered")
        self._entered -= 1
        self._end()


Handler = Callable[[SignalInfo], object]

_STATE_AFTER = {
    AgentSignal.SIGSTOP: State.STOPPED,
    AgentSignal.SIGCONT: State.RUNNING,
    AgentSignal.SIGINT: State.TERMINATED,
    AgentSignal.SIGTERM: State.TERMINATED,
    AgentSignal.SIGKILL: State.TERMINATED,
}
_WAITS_FOR_ACTIONS = (AgentSignal.SIGSTOP, AgentSignal.SIGINT)
_LAST_ONE_COUNTS = (AgentSignal.SIGSTOP, AgentSignal.SIGCONT)


class Dispatcher:
    def __init__(
        self,
        *,
        clock: Callable[[], int],
        perform: Callable[[SignalInfo], object] | None = None,
        escalations: Mapping[AgentSignal, AgentSignal] | None = None,
        on_outcome: Callable[[Sent], object] | None = None,
    ) -> None:
        """Create a dispatcher in the state RUNNING.

        `clock` returns nanoseconds, as time.time_ns. `perform` is called for each signal that is
        delivered; SIGSTOP and SIGINT wait for the actions in flight first. `escalations` maps a
        signal to the one that follows at once (signals.py derives them from a policy).
        """
        self._clock = clock
        self._perform = perform
        self._on_outcome = on_outcome
        given = (escalations or {}).items()
        self._escalations = {checked(each): checked(other) for each, other in given}
        self._escalations |= ALWAYS_ESCALATE
        self._state = State.RUNNING
        self._numbers = count(1)
        self._queue: deque[Sent] = deque()
        self._pending: deque[Sent] = deque()
        self._history: deque[Sent] = deque(maxlen=MAX_HISTORY)
        self._dropped = 0
        self._masks = dict.fromkeys(AgentSignal, 0)
        self._handlers: dict[AgentSignal, tuple[Handler, ...]] = dict.fromkeys(AgentSignal, ())
        self._in_flight = 0
        self._is_delivering = False

    # State

    @property
    def state(self) -> State:
        return self._state

    @property
    def may_act(self) -> bool:
        """Return whether an action may start: nothing is stopped, or about to stop."""
        return self._state is State.RUNNING and not self._pending

    def get_signal_history(self) -> list[dict[str, object]]:
        """Return the newest MAX_HISTORY signals, in the order of sending."""
        return [each.as_dict() for each in self._history]

    # Signals, masks, actions, handlers

    def send_signal(
        self, signal: AgentSignal, *, source: str = "", reason: str = "", escalates: bool = True
    ) -> Outcome:
        """Send a signal.

        Without `escalates`, only an escalation of ALWAYS_ESCALATE follows it this time.
        """
        sent = self.queue(signal, source, reason, escalates=escalates)
        self.deliver()
        return sent.outcome

    def queue(self, signal: AgentSignal, source: str, reason: str, *, escalates: bool) -> Sent:
        """Queue a signal until `deliver`."""
        always = ALWAYS_ESCALATE.get(checked(signal))
        follows = self._escalations.get(signal) if escalates else always
        sent = self._new(signal, source, reason, follows)
        self._enqueue(sent)
        return sent

    def find(self, sequence: int) -> Sent | None:
        """Return a signal of the history."""
        index = sequence - self._dropped - 1
        return self._history[index] if 0 <= index < len(self._history) else None

    def mask_signals(self, signals: Iterable[AgentSignal]) -> Scope:
        """Delay these signals within a `with` block, until the last mask on them ends."""
        masked = frozenset(map(checked, signals))
        refused = [each.name for each in UNMASKABLE if each in masked]
        if refused:
            all_names = ", ".join(each.name for each in UNMASKABLE)
            raise ValueError(f"cannot mask {' and '.join(refused)} (unmaskable: {all_names})")
        return Scope(lambda: self._mask(masked, 1), lambda: self._mask(masked, -1))

    def action(self) -> Scope:
        """Mark an action as in flight within a `with` block.

        SIGSTOP and SIGINT wait for the last one's end. Entering can raise NotRunning.
        """
        return Scope(self._begin_action, self._end_action)

    def register_handler(self, signal: AgentSignal, handler: Handler) -> None:
        """Register a handler. Handlers are called in order, duplicates too."""
        if not callable(handler):
            raise TypeError(f"a handler must be callable with a SignalInfo: {handler!r}")
        self._handlers[checked(signal)] += (handler,)

    # Masks and actions

    def _mask(self, signals: frozenset[AgentSignal], change: int) -> None:
        for each in signals:
            self._masks[each] += change
        self.deliver()

    def _begin_action(self) -> None:
        if not self.may_act:
            why = (
                f"{self._pending[0].info.signal.name} waits for the actions in flight"
                if self._pending
                else f"the agent is {self._state.value}"
            )
            raise NotRunning(f"cannot start an action: {why}")
        self._in_flight += 1

    def _end_action(self) -> None:
        self._in_flight -= 1
        self.deliver()

    # The queue

    def _new(
        self,
        signal: AgentSignal,
        source: str,
        reason: str,
        follows: AgentSignal | None,
        cause: SignalInfo | None = None,
    ) -> Sent:
        texts = shortened(source, MAX_TEXT), shortened(reason, MAX_TEXT)
        info = SignalInfo(signal, *texts, self._clock(), next(self._numbers), cause)
        if len(self._history) == MAX_HISTORY:
            self._dropped += 1
        sent = Sent(info, follows)
        self._history.append(sent)
        return sent

    def _enqueue(self, sent: Sent) -> None:
        """Queue a signal; beyond MAX_QUEUED, merge it with another of its kind.

        The last one of SIGSTOP and SIGCONT stays the last.
        """
        signal = sent.info.signal
        if len(self._queue) >= MAX_QUEUED:
            alike = [
                each
                for each in self._queue
                if each.info.signal is signal and (each.follows or not sent.follows)
            ]
            if alike and signal not in _LAST_ONE_COUNTS:
                self._settle(sent, Outcome.MERGED)
                return
            if alike:
                self._queue.remove(alike[0])
                self._settle(alike[0], Outcome.MERGED)
        self._queue.append(sent)

    def deliver(self) -> None:
        """Deliver what is ready, one signal after the other."""
        while not self._is_delivering:
            sent = self._next_ready()
            if sent is None:
                return
            self._is_delivering = True
            try:
                self._deliver(sent)
            finally:
                self._is_delivering = False

    def _next_ready(self) -> Sent | None:
        is_over = self._state is State.TERMINATED
        if self._pending and (is_over or not self._in_flight):
            return self._pending.popleft()
        for position, sent in enumerate(self._queue):
            if is_over or not self._masks[sent.info.signal]:
                del self._queue[position]
                return sent
        return None

    # One signal

    def _deliver(self, sent: Sent) -> None:
        sent.state_before = sent.state_after = self._state
        has_waited = sent.outcome is Outcome.PENDING  # its handlers were called then
        is_over = self._state is State.TERMINATED
        if is_over or (not has_waited and self._changes_nothing(sent.info.signal)):
            self._settle(sent, Outcome.NO_OP)
            return
        if has_waited:
            self._act_now(sent)
            return
        first, second, third = self._call_handlers, self._act, self._escalate
        if AgentSignal.SIGKILL in (sent.info.signal, sent.follows):
            first, second, third = second, third, first
        try:
            first(sent)
        finally:
            try:
                second(sent)
            finally:
                third(sent)

    def _changes_nothing(self, signal: AgentSignal) -> bool:
        will_stop = self._is_pending(AgentSignal.SIGSTOP)
        match signal:
            case AgentSignal.SIGSTOP:
                return self._state is State.STOPPED or will_stop
            case AgentSignal.SIGCONT:
                return self._state is State.RUNNING and not will_stop
            case _:
                return self._is_pending(signal)

    def _is_pending(self, signal: AgentSignal) -> bool:
        return any(each.info.signal is signal for each in self._pending)

    def _call_handlers(self, sent: Sent) -> None:
        for handler in self._handlers[sent.info.signal]:
            try:
                _refuse_coroutine(handler(sent.info), "a handler")
            except BaseException as error:
                sent.errors.append(_described(error))
                if not isinstance(error, Exception):
                    raise

    def _act(self, sent: Sent) -> None:
        if sent.info.signal in _WAITS_FOR_ACTIONS and (self._in_flight or self._pending):
            self._pending.append(sent)
            self._settle(sent, Outcome.PENDING)
        else:
            self._act_now(sent)

    def _act_now(self, sent: Sent) -> None:
        signal = sent.info.signal
        sent.state_after = _STATE_AFTER.get(signal, self._state)
        try:
            self._settle(sent, Outcome.DELIVERED)
            if self._perform is not None:
                _refuse_coroutine(self._perform(sent.info), "`perform`")
        except BaseException as error:
            sent.state_after = self._state
            sent.errors.append(_described(error))
            self._settle(sent, Outcome.FAILED)
            raise
        if signal is AgentSignal.SIGCONT:
            self._cancel_stop()
        self._state = sent.state_after

    def _cancel_stop(self) -> None:
        for sent in tuple(self._pending):
            if sent.info.signal is AgentSignal.SIGSTOP:
                self._pending.remove(sent)
                self._settle(sent, Outcome.CANCELLED)

    def _escalate(self, sent: Sent) -> None:
        if sent.follows is not None:
            info = sent.info
            self._deliver(self._new(sent.follows, info.source, info.reason, None, info))

    def _settle(self, sent: Sent, outcome: Outcome) -> None:
        sent.outcome = outcome
        if self._on_outcome is not None:
            self._on_outcome(sent)


def _refuse_coroutine(done: object, called: str) -> None:
    """Raise TypeError for a coroutine, which nothing would await."""
    if hasattr(done, "cr_await"):
        done.close()  # type: ignore[attr-defined]
        raise TypeError(f"{called} must not return a coroutine: start a task in it instead")


def _described(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "no message: its __str__ failed"
    return shortened(f"{type(error).__name__}: {text}", MAX_TEXT)
