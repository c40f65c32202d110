"""What a session says of itself as a whole, held against its events: what COMMAND was, under which
policy it ran, and how it ended.
"""

from __future__ import annotations

from sigwrap.events import Event, Payload, number, text, texts
from sigwrap.report.check.telling import exit_told_otherwise
from sigwrap.status import COMMAND_ENDED, INTERRUPTED, LIMIT_REACHED, from_signal

_DIED = "the command died of "
_INTERRUPTED = "interrupted"


class Account:
    def __init__(self, started: Payload) -> None:
        self._command = texts(started.get("command"))
        self._command_pid = number(started.get("command_pid"))
        self.has_begun = not self._command_pid
        self._is_joined = bool(started.get("joined"))
        self._status: int | None = None  # COMMAND's, where its end was seen
        self._seen: set[str] = set()
        self._notes = {
            "process_exited": self._exited,
            "interrupt_received": self._happened,
            "limit_exceeded": self._happened,
            "agent_signal": self._happened,
            "session_ended": self._ended,
        }

    def note(self, event: Event) -> str:
        """Of what decides nothing: empty where it agrees with what came before."""
        noted = self._notes.get(event.type)
        return "" if noted is None else noted(event)

    def first_exec(self, event: Event) -> str:
        """The first of a session is COMMAND's: before it there is nobody else."""
        self.has_begun = True
        argv = texts(event.payload.get("argv"))
        if self._is_joined:
            return ""
        if event.pid != self._command_pid:
            return f"the first exec is not the command's (pid {self._command_pid})"
        if argv and "cut" not in event.payload and argv != self._command:
            return "the first exec's argv differs from the session's command"
        return ""

    def _happened(self, event: Event) -> str:
        self._seen.add(event.type)
        return ""

    def _exited(self, event: Event) -> str:
        if event.pid == self._command_pid:
            died_of = number(event.payload.get("signal"))
            code = event.payload.get("exit_code")
            self._status = from_signal(died_of) if died_of else code if type(code) is int else None
        return exit_told_otherwise(event.payload)

    def _ended(self, event: Event) -> str:
        status, reason = event.payload.get("exit_status"), text(event.payload.get("reason"))
        is_own = reason == COMMAND_ENDED or reason.startswith(_DIED)
        if self._status == status:  # also where what it left behind was killed for another reason
            return ""
        if is_own:
            is_unseen = self._status is None
            return "" if is_unseen else f"the command's own status was {self._status}, not {status}"
        if status == INTERRUPTED and not self._seen & {"interrupt_received", "agent_signal"}:
            return "no event shows an interrupt of the session"
        if status == LIMIT_REACHED and not self._seen & {"limit_exceeded", "agent_signal"}:
            return "no event shows that a limit was exceeded"
        return ""
