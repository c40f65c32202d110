"""Pure: signals to a whole session. No kernel, no file, no clock, no thread.

`sigwrap help signals` describes each signal and has an example of the library.

signals     names, numbers and effects, and the signal that a policy sends after one
dispatcher  states, masks, handlers, the order of delivery, the history
watches     detect repeated execs, and execs outside a profile
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
