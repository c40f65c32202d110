"""The effect of each agent signal, and the signal that a policy sends after it."""

from __future__ import annotations

from sigwrap.agent.dispatcher import ALWAYS_ESCALATE
from sigwrap.agent.signals import AgentSignal
from sigwrap.bare.enum import Enum
from sigwrap.policy.judge.rules import Trust, Watch

# A policy's reaction (REACTIONS in its schema) -> the signal that follows.
FOLLOWS: dict[str, AgentSignal | None] = {
    "log": None,
    "stop": AgentSignal.SIGSTOP,
    "kill": AgentSignal.SIGKILL,
}


class Effect(Enum):
    """Effects on the session; docs/signals.md quotes the values."""

    RECORD = "records an event, nothing else"
    STOP = "blocks new execs, then freezes the process tree"
    CONTINUE = "thaws the process tree and releases blocked execs in order"
    INTERRUPT = "interrupts the run, as Ctrl+C does"
    TERMINATE = "sends SIGTERM to the process tree, SIGKILL after the grace period"
    KILL = "sends SIGKILL to the whole process tree"
    DIAGNOSE = "reports processes, counters and open approval requests as an event and on stderr"
    CHECKPOINT = "saves the log's head, the process tree and a copy of the log"


# A signal that another one follows has no effect of its own; the other one has it.
EFFECTS: dict[AgentSignal, Effect] = {
    **dict.fromkeys(AgentSignal, Effect.RECORD),
    AgentSignal.SIGSTOP: Effect.STOP,
    AgentSignal.SIGCONT: Effect.CONTINUE,
    AgentSignal.SIGINT: Effect.INTERRUPT,
    AgentSignal.SIGKILL: Effect.KILL,
    AgentSignal.SIGTERM: Effect.TERMINATE,
    AgentSignal.SIGUSR1: Effect.DIAGNOSE,
    AgentSignal.SIGUSR2: Effect.CHECKPOINT,
}


def escalations(watch: Watch, trust: Trust) -> dict[AgentSignal, AgentSignal]:
    """Return which signal follows which, for a Dispatcher."""
    reactions = {
        AgentSignal.SIGTRUST: trust.boundary,
        AgentSignal.SIGDRIFT: watch.drift,
        AgentSignal.SIGLOOP: watch.loop.action if watch.loop is not None else "log",
    }
    followed = {signal: FOLLOWS[word] for signal, word in reactions.items()}
    return {
        **{signal: other for signal, other in followed.items() if other is not None},
        **ALWAYS_ESCALATE,
    }
