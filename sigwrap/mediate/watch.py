"""Finds events that are attempts on sigwrap, or shadows of system commands."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare import NamedTuple
from sigwrap.events import EXEC_TYPES, Payload, number, text
from sigwrap.mediate.masking import masked_text
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP


class Attempt(NamedTuple):
    what: str  # not escaped
    peer_pid: int = 0  # the refused process: an attempt only if it is in this session's tree


class Shadow(NamedTuple):
    """An exec of a program that shadows a system command.

    It may be intended (the agent installed a tool), so it is not an attempt: `trust.path_shadow`
    decides what follows.
    """

    file: str
    what: str


def shadow_of(event: str, payload: Payload) -> Shadow | None:
    shadowed = payload.get("shadows")
    if not shadowed or event not in EXEC_TYPES:
        return None
    file = text(payload.get("path"))
    return Shadow(file, f"{file} shadows {shadowed}")


def attempt_on_boundary(event: str, payload: Payload) -> Attempt | None:
    """Return the attempt on sigwrap that an event reports, if any."""
    read = _READERS.get(event)
    return None if read is None else read(payload)


def _signal(payload: Payload) -> Attempt | None:
    """Return None for a signal to a whole group, which sigwrap may be in, and for PTRACE_TRACEME,
    which names no process."""
    target = payload.get("target_pid")
    if payload.get("rule_name") != PROTECTS_SIGWRAP.rule or not target or "correlation" in payload:
        return None
    sender = f"{text(payload.get('source_cmd'))} ({number(payload.get('source_pid'))})"
    signal, call = text(payload.get("signal_name")), text(payload.get("syscall"))
    return Attempt(f"{sender} tried to send {signal} by {call} to sigwrap ({target})")


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
    return Attempt(f"sigwrap killswitch on did not announce {path}")


_READERS: dict[str, Callable[[Payload], Attempt | None]] = {
    "signal_blocked": _signal,
    "control_refused": _peer,
    "store_tampered": _store,
    "own_files_changed": _own_files,
    "killswitch_invented": _kill_switch,
}
