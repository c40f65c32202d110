"""What was done to the whole tree: interrupts, limits, the kill switch, agent signals, and how the
session ended by them."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.escape import printable
from sigwrap.events import Event, Payload
from sigwrap.report.folds.cause import sent_to_sigwrap
from sigwrap.tuples import NamedTuple

_FORWARDED_LIMIT = 128


class Stopped(NamedTuple):
    """The session stands still, as a whole."""

    since_ns: int
    by: str  # printable


class Measure(NamedTuple):
    """What sigwrap ends the whole tree for, and by which signals."""

    why: str  # printable
    sends: tuple[str, ...]


class Measures:
    def __init__(self) -> None:
        self.interrupt: Payload = {}
        self.interrupted_by: Payload = {}  # the same, where the run ends by it
        self.forwarded: dict[tuple[int, str], str] = {}  # by whom it went to and its name
        self.taken = Measure("", ())
        self.out_of_memory = ""  # the limit for which the kernel has killed
        self.log_is_full = ""  # and every exec and signal denied since
        self.stopped: Stopped | None = None
        self.session_end: Payload | None = None
        self._stop: Event | None = None  # the SIGSTOP that was carried out last
        self.takers: dict[str, Callable[[Event], None]] = {
            "interrupt_received": self._interrupt_received,
            "interrupt_forwarded": self._interrupt_forwarded,
            "interrupt_withdrawn": self._interrupt_withdrawn,
            "interrupt_escalated": self._interrupt_escalated,
            "limit_exceeded": self.limit_exceeded,
            "killswitch_activated": self._switched_off,
            "agent_signal": self._agent_signal,
            "tree_frozen": self._frozen,
            "tree_thawed": self._thawed,
            "session_ended": self._session_ended,
        }

    @property
    def interrupted(self) -> str:
        return f"interrupted by {sent_to_sigwrap(self.interrupted_by)}"

    def ends_for(self, why: str) -> bool:
        return self.taken.why == why

    def _interrupt_received(self, event: Event) -> None:
        self.interrupt = event.payload
        if event.payload.get("taken_by") != "command":
            self.interrupted_by = event.payload

    def _interrupt_forwarded(self, event: Event) -> None:
        name = str(event.payload.get("signal_name") or "")
        # It sends SIGTERM of its own, for an interrupt; everything else as it came.
        came_as = self.interrupt if name == "SIGTERM" and self.interrupt else event.payload
        if len(self.forwarded) >= _FORWARDED_LIMIT:
            del self.forwarded[next(iter(self.forwarded))]
        self.forwarded[event.pid, name] = _which_got(came_as)

    def _interrupt_withdrawn(self, _event: Event) -> None:
        self.interrupt = self.interrupted_by = {}

    def _interrupt_escalated(self, event: Event) -> None:
        self.taken = Measure(_stated(event), ("SIGKILL",))

    def limit_exceeded(self, event: Event) -> None:
        payload = event.payload
        limit = payload.get("limit")
        if payload.get("effect") != "refused":
            self.taken = Measure(_stated(event), ("SIGTERM", "SIGKILL"))
            if limit == "memory" and payload.get("used") is None:
                self.out_of_memory = self.taken.why
        elif limit == "log_size":
            self.log_is_full = _stated(event)

    def _switched_off(self, event: Event) -> None:
        reason = event.payload.get("reason")
        why = printable(f"the kill switch: {reason}" if reason else "the kill switch")
        self.taken = Measure(why, ("SIGKILL",))

    def _agent_signal(self, event: Event) -> None:
        payload = event.payload
        if not _is_carried_out(payload):
            return
        match payload.get("signal"):
            case "SIGSTOP":
                self._stop = event
            case "SIGTERM" | "SIGBUDGET" if not _follows_a_limit(payload):
                self.taken = Measure(_agent_signal(payload), ("SIGTERM", "SIGKILL"))

    def _frozen(self, _event: Event) -> None:
        if self._stop is not None:
            self.stopped = Stopped(self._stop.time_ns, _agent_signal(self._stop.payload))

    def _thawed(self, _event: Event) -> None:
        self.stopped = None

    def _session_ended(self, event: Event) -> None:
        self.session_end = event.payload


def _stated(event: Event) -> str:
    payload = event.payload
    return printable(str(payload.get("reason") or payload.get("limit") or event.type))


def _is_carried_out(agent_signal: Payload) -> bool:
    """Of itself; what follows another one is that one's doing."""
    is_stop = agent_signal.get("signal") == "SIGSTOP"
    return agent_signal.get("outcome") == "delivered" and (is_stop or not agent_signal.get("cause"))


def _follows_a_limit(agent_signal: Payload) -> bool:
    """Whose own event has said it."""
    return str(agent_signal.get("source")).startswith("limit ")


def _agent_signal(payload: Payload) -> str:
    reason = f": {payload['reason']}" if payload.get("reason") else ""
    source = payload.get("source") or "an unknown sender"
    return printable(f"agent signal {payload.get('signal')} from {source}{reason}")


def _which_got(signal: Payload) -> str:
    is_told = "sender_pid" in signal or signal.get("origin") == "terminal"
    return f"which received {sent_to_sigwrap(signal)}" if is_told else "which forwarded it"
