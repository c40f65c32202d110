"""Find a running session, and check its replies."""

from __future__ import annotations

from sigwrap.approve.control_client import Unreachable
from sigwrap.approve.control_socket import ControlReply
from sigwrap.errors import SessionError
from sigwrap.kernel.peer import is_inside_a_session
from sigwrap.log.catalog import SessionFile, chosen, list_sessions, open_session
from sigwrap.text import did_you_mean, printable

_SHOWN = 5


def refuse_inside(message: str) -> None:
    """Refuse inside a session, before it is contacted: it would take that for an attack."""
    if is_inside_a_session():
        raise SessionError(message, "use a shell outside the session")


def check(session_id: str, reply: ControlReply, may_fail: tuple[str, ...] = ()) -> None:
    """Raise Unreachable if the session refuses, or if another one answers on its socket."""
    if reply.get("session_id", session_id) != session_id:
        raise Unreachable(f"another session answers for session {session_id}", session_id)
    if reply.get("ok") is True or reply.get("error") in may_fail:
        return
    message = printable(str(reply.get("message", "refused")))
    if reply.get("error") == "inside":
        raise Unreachable(
            message,
            session_id,
            "processes in a session can't answer requests or signal sessions",
        )
    raise Unreachable(f"session {session_id}: {message}", session_id)


def running_session(store: str, selector: str) -> str:
    """Return the id of a running session.

    `selector` is an id, its unique start or end, or a --name; empty for the latest session.
    """
    running = [each for each in list_sessions(store) if each.running]
    found = chosen(running, selector)
    if found is not None:
        return found.id
    if not selector:
        raise SessionError(f"no session is running in {store}", "choose another with --store")
    raise _no_such(store, selector, running)


def _no_such(store: str, selector: str, running: list[SessionFile]) -> SessionError:
    shown = printable(selector)
    known = [name for each in running for name in (each.id, each.name) if name]
    meant = did_you_mean(selector, known).rstrip()
    hint = meant or f"running: {', '.join(known[:_SHOWN]) or 'none'}"
    try:
        found = open_session(store, selector)
    except SessionError:
        return SessionError(f"no running session is called '{shown}' in {store}", printable(hint))
    return SessionError(f"session {printable(found.id)} has ended", printable(hint))
