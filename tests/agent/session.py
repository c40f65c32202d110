"""A dispatcher with a clock that ticks at every call, and a log of performed signals."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from sigwrap.agent import AgentSignal, Dispatcher, Outcome, SignalInfo


class Session:
    def __init__(self, escalations: Mapping[AgentSignal, AgentSignal] | None = None) -> None:
        self.log: list[str] = []
        self.performed: list[SignalInfo] = []
        self.dispatcher = Dispatcher(
            clock=count(1000).__next__, perform=self._perform, escalations=escalations
        )

    def _perform(self, info: SignalInfo) -> None:
        self.performed.append(info)
        self.log.append(info.signal.name)

    def send(self, *signals: AgentSignal) -> list[str]:
        outcomes = [self.dispatcher.send_signal(each) for each in signals]
        assert all(isinstance(each, Outcome) for each in outcomes)
        return [each.value for each in outcomes]

    def says(self, signal: AgentSignal, text: str) -> None:
        """Register a handler that logs `text`."""
        self.dispatcher.register_handler(signal, lambda info: self.log.append(text))

    def said(self) -> list[str]:
        """Return the log since the previous call."""
        said, self.log = self.log, []
        return said

    @property
    def state(self) -> str:
        return self.dispatcher.state.value

    def may_act(self) -> bool:
        return self.dispatcher.may_act

    def history(self, *keys: str) -> list[tuple[object, ...]]:
        keys = keys or ("signal", "state_before", "state_after", "outcome")
        return [tuple(map(each.get, keys)) for each in self.dispatcher.get_signal_history()]
