"""Carries orders out through the sessions' control sockets, as `sigwrap approve` does. It returns
one printable line about the result, and may take seconds.
"""

from __future__ import annotations

import os
import threading

from sigwrap.approve.control_client import ask_one
from sigwrap.approve.control_socket import ControlReply, ControlRequest
from sigwrap.control import killswitch
from sigwrap.control.activation import Activated, activate
from sigwrap.errors import SessionError, StoreError
from sigwrap.events import counted, text, texts
from sigwrap.text import printable, shortened
from sigwrap.watch.board import Approve, Deny, Interrupt, KillAll, Lift, Order

_WHAT_CHARACTERS = 60

_switching = threading.Lock()  # turning it on writes its file again and again


def carry_out(store: str, order: Order) -> str:
    """Return what came of it; SigwrapError or OSError if it fails."""
    match order:
        case Approve(session_id, approval_id, always):
            request = {"do": "approve", "id": approval_id, "always": always}
            return _settled(approval_id, _asked(store, session_id, request))
        case Deny(session_id, approval_id, message):
            request = {"do": "deny", "id": approval_id, "message": message}
            return _settled(approval_id, _asked(store, session_id, request))
        case Interrupt(session_id):
            _asked(store, session_id, {"do": "signal", "signal": "SIGINT", "reason": ""})
            return f"interrupted session {printable(session_id)}, as Ctrl+C does"
        case KillAll(reason):
            with _switching:
                return _kill_all(store, reason)
        case Lift():
            with _switching:
                return _lift(store)


def _kill_all(store: str, reason: str) -> str:
    activated = activate(lambda: store, reason)
    ended = f"the kill switch is on: {ended_sessions(activated)}"
    if activated.without:
        raise StoreError(f"{ended}, but new sessions can start: {printable(activated.without[0])}")
    if not activated.is_complete:
        raise SessionError(f"{ended}, but one may still run", "run sigwrap killswitch on")
    return ended


def _lift(store: str) -> str:
    if failures := killswitch.remove(killswitch.stores(store, os.environ)):
        raise StoreError(failures[0], "the kill switch is still on")
    return "the kill switch is off: sessions can start again"


def _asked(store: str, session_id: str, request: ControlRequest) -> ControlReply:
    request = {**request, "session_id": session_id}  # another session's socket may have its name
    reply = ask_one(store, session_id, request)
    if reply.get("ok") is not True:
        message = printable(text(reply.get("message")) or "refused")
        raise SessionError(f"session {printable(session_id)}: {message}")
    return reply


def _settled(approval_id: str, reply: ControlReply) -> str:
    said = "approved" if reply.get("granted") is True else "denied"
    if reply.get("always") is True:
        said += " for this session"
    more = len(texts(reply.get("settled"))) - 1
    others = f", and {counted(more, 'identical request')}" if more > 0 else ""
    message = f" ({printable(text(reply.get('message')))})" if reply.get("message") else ""
    what = printable(shortened(text(reply.get("what")), _WHAT_CHARACTERS) or approval_id)
    return f"{said}{others}{message}: {what}"


def ended_sessions(activated: Activated) -> str:
    count = activated.ended + activated.forced
    killed = f" ({activated.forced} not responding, so killed)" if activated.forced else ""
    if count:
        return f"{counted(count, 'session')} ended{killed}"
    return "no session was running" if activated.is_complete else "no session has ended"
