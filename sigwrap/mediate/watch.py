"""What of the log is an attempt on sigwrap, or a shadow, and how often the same thing is told.

Who attempts something once can do so a thousand times a second, and each agent signal is an event
and maybe a line. So the first is told, and the next of its kind after a while.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from sigwrap.bare.enum import Enum
from sigwrap.events import EXEC_TYPES, Payload, number, text
from sigwrap.mediate.masking import masked_text
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP
from sigwrap.tuples import NamedTuple

MOST_TOLD = 100
TOLD_AGAIN_AFTER_S = 10.0


class Attempt(NamedTuple):
    what: str  # nothing in it is escaped
    peer_pid: int = 0  # who was refused: an attempt only where it is of this session's tree


class Shadow(NamedTuple):
    """An exec of a program that shadows a system command. It may be meant (the agent installed a
    tool), so it is no attempt, and `trust.path_shadow` says what follows."""

    file: str
    what: str


def shadow_of(event: str, payload: Payload) -> Shadow | None:
    shadowed = payload.get("shadows")
    if not shadowed or event not in EXEC_TYPES:
        return None
    file = text(payload.get("path"))
    return Shadow(file, f"{file} shadows {shadowed}")


def attempt_on_boundary(event: str, payload: Payload) -> Attempt | None:
    """None for what is none."""
    read = _READERS.get(event)
    return None if read is None else read(payload)


def _signal(payload: Payload) -> Attempt | None:
    """Return None for a signal to a whole group, which sigwrap may be in, and for PTRACE_TRACEME,
    which names no process."""
    target = payload.get("target_pid")
    if payload.get("rule_name") != PROTECTS_SIGWRAP.rule or not target or "correlation" in payload:
        return None
    who = f"{text(payload.get('source_cmd'))} ({number(payload.get('source_pid'))})"
    signal, call = text(payload.get("signal_name")), text(payload.get("syscall"))
    return Attempt(f"{who} tried to send {signal} by {call} to sigwrap ({target})")


def _peer(payload: Payload) -> Attempt | None:
    pid = number(payload.get("peer_pid"))
    if not payload.get("inside_session") or not pid:
        return None
    command = masked_text(text(payload.get("peer_cmd")))
    return Attempt(f"process {pid} connected to the control socket: {command}", peer_pid=pid)


def _store(payload: Payload) -> Attempt | None:
    return Attempt(f"{text(payload.get('what'))}: {text(payload.get('path'))}")


def _own_files(payload: Payload) -> Attempt | None:
    files = payload.get("files") or ["?"]
    more = number(payload.get("count")) - 1
    return Attempt(f"sigwrap's file {files[0]} was changed" + f" and {more} more" * (more > 0))


def _kill_switch(payload: Payload) -> Attempt | None:
    path = text(payload.get("path"))
    return Attempt(f"{path} was not created by sigwrap killswitch on")


_READERS: dict[str, Callable[[Payload], Attempt | None]] = {
    "signal_blocked": _signal,
    "control_refused": _peer,
    "store_tampered": _store,
    "own_files_changed": _own_files,
    "killswitch_invented": _kill_switch,
}


class Telling(Enum):
    TELL = "tell"
    TELL_AS_LAST = "tell it as the last one"
    LEAVE = "told before, or too many told"


class Once:
    """Each is told once, and no more than `most` of them."""

    def __init__(self, most: int = MOST_TOLD) -> None:
        self._most = most
        self._told: set[Hashable] = set()

    def about(self, key: Hashable) -> Telling:
        if key in self._told or len(self._told) >= self._most:
            return Telling.LEAVE
        self._told.add(key)
        return Telling.TELL if len(self._told) < self._most else Telling.TELL_AS_LAST


class Seldom:
    """Each kind is told again only after a while."""

    def __init__(self) -> None:
        self._told_s: dict[str, float] = {}

    def may_tell(self, kind: str, now_s: float) -> bool:
        told_s = self._told_s.get(kind)
        if told_s is not None and now_s - told_s < TOLD_AGAIN_AFTER_S:
            return False
        self._told_s[kind] = now_s
        return True
