"""Pure: signals to a session as a whole. No kernel, no file, no clock, no thread.

`sigwrap help signals` says what each signal is for, and shows the library at work.

signals     their names and numbers, and a signal as it was sent
dispatcher  states, masks, handlers, the order in which signals are delivered, their history
reactions   what each signal comes to, under a policy's words for it
watches     who notices an exec that comes over and over, or one outside of a profile
"""

from __future__ import annotations

from sigwrap.agent.dispatcher import Dispatcher, NotRunning, Outcome, State
from sigwrap.agent.signals import AgentSignal, SignalInfo, agent_signal

__all__ = [
    "AgentSignal",
    "Dispatcher",
    "NotRunning",
    "Outcome",
    "SignalInfo",
    "State",
    "agent_signal",
]
