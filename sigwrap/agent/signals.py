"""The agent signals, their effects, and the signal that a policy sends after one.

Most have the names of POSIX signals, and none has the same number.
"""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING, Enum, IntEnum, NamedTuple
from sigwrap.text import nearest_word, printable, shortened

if TYPE_CHECKING:
    from sigwrap.policy.judge.rules import Trust, Watch

_LONGEST_SHOWN = 40


class AgentSignal(IntEnum):
    SIGSTOP = 1
    SIGCONT = 2
    SIGINT = 3
    SIGKILL = 4
    SIGTERM = 5
    SIGUSR1 = 6
    SIGUSR2 = 7
    SIGPOLICY = 8
    SIGTRUST = 9
    SIGBUDGET = 10
    SIGLOOP = 11
    SIGDRIFT = 12


UNMASKABLE = (AgentSignal.SIGKILL, AgentSignal.SIGPOLICY, AgentSignal.SIGTRUST)

# Escalations that no policy can change.
ALWAYS_ESCALATE = {
    AgentSignal.SIGPOLICY: AgentSignal.SIGKILL,
    AgentSignal.SIGBUDGET: AgentSignal.SIGTERM,
}

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


class SignalInfo(NamedTuple):
    signal: AgentSignal
    source: str  # the sender; source and reason are not escaped
    reason: str
    time_ns: int
    sequence: int  # from 1, in the order of sending
    cause: SignalInfo | None = None  # the signal that escalated to this one


def agent_signal(name: str) -> AgentSignal:
    """Return the signal for `SIGTERM` or `term`."""
    known = known_signal(name)
    if known is None:
        near = nearest_word(_full(name)[3:], [each.name[3:] for each in AgentSignal])
        raise ValueError(unknown(name, f"SIG{near}" if near else ""))
    return known


def known_signal(name: str) -> AgentSignal | None:
    return AgentSignal.__members__.get(_full(name))


def unknown(word: str, nearest: str = "") -> str:
    meant = f'did you mean "{nearest}"? ' if nearest else ""
    known = ", ".join(f"{each.name} {each.value}" for each in AgentSignal)
    shown = printable(shortened(word, _LONGEST_SHOWN))
    return f'"{shown}" is not an agent signal; {meant}the agent signals are: {known}'


def checked(signal: AgentSignal) -> AgentSignal:
    """Refuse plain numbers: 9 is SIGTRUST here and signal.SIGKILL in POSIX."""
    if not isinstance(signal, AgentSignal):
        raise TypeError(f"{signal!r} is not an AgentSignal; agent_signal(name) returns one")
    return signal


def _full(name: str) -> str:
    upper = name.upper()
    return upper if upper.startswith("SIG") else f"SIG{upper}"
