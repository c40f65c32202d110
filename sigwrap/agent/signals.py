"""The agent signals. Most have the names of POSIX signals, and none has the same number."""

from __future__ import annotations

from sigwrap.bare.enum import IntEnum
from sigwrap.escape import printable, shortened
from sigwrap.nearest import nearest_word
from sigwrap.tuples import NamedTuple

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
