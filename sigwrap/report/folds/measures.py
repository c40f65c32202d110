"""What was done to the whole process tree: interrupts, limits, the kill switch, agent signals; and
how the session and its command ended by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sigwrap.escape import printable
from sigwrap.events import Event, Payload
from sigwrap.report.folds.bounded import Latest
from sigwrap.report.folds.cause import ENDED_BY_ITSELF, Cause, Why, because, sent_to_sigwrap
from sigwrap.report.folds.incidents import with_new_keys
from sigwrap.status import COMMAND_ENDED, COMMAND_NOT_RUN
from sigwrap.tuples import NamedTuple

_FORWARDED_LIMIT = 128


class Stopped(NamedTuple):
    """Since when the whole session is stopped, and by what."""

    since_ns: int
    by: str  # printable


class Measure(NamedTuple):
    """Why sigwrap ends the whole tree, and by which signals."""

    why: str  # printable
    sends: tuple[str, ...]


class Measures:
    def __init__(self) -> None:
        self.interrupt: Payload = {}
        self.interrupted_by: Payload = {}  # the same, if the run ends by it
        self.forwarded: Latest[tuple[int, str], str] = Latest(_FORWARDED_LIMIT)  # by pid and signal
        self.taken = Measure("", ())
        self.out_of_memory = ""  # the limit for which the kernel has killed
        self.log_is_full = ""  # since then every exec and signal is denied
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

    def _interrupt_received(self, event: Event) -> None:
        self.interrupt = event.payload
        if event.payload.get("taken_by") != "command":
            self.interrupted_by = event.payload

    def _interrupt_forwarded(self, event: Event) -> None:
        name = str(event.payload.get("signal_name") or "")
        # For an interrupt, sigwrap sends SIGTERM; it forwards every other signal unchanged.
        came_as = self.interrupt if name == "SIGTERM" and self.interrupt else event.payload
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
            # A limit has an event of its own.
            case "SIGTERM" | "SIGBUDGET" if not str(payload.get("source")).startswith("limit "):
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
    """Return whether sigwrap acted on it. A signal with a cause only follows another one."""
    is_stop = agent_signal.get("signal") == "SIGSTOP"
    return agent_signal.get("outcome") == "delivered" and (is_stop or not agent_signal.get("cause"))


def _agent_signal(payload: Payload) -> str:
    reason = f": {payload['reason']}" if payload.get("reason") else ""
    source = payload.get("source") or "an unknown sender"
    return with_new_keys(printable(f"agent signal {payload.get('signal')} from {source}{reason}"))


def _which_got(signal: Payload) -> str:
    is_told = "sender_pid" in signal or signal.get("origin") == "terminal"
    return f"which received {sent_to_sigwrap(signal)}" if is_told else "which forwarded it"


def at_the_end(pid: int, why: Why | None, measures: Measures) -> Why:
    """Explain how the command ended, once the session has.

    sigwrap's exit status may say more than the command's own. `why`: the command as a process;
    None if the log has no event of it.
    """
    end = measures.session_end or {}
    status = end.get("exit_status")
    text = _reason(with_new_keys(printable(str(end.get("reason") or "ended"))), why, measures)
    if why is None:
        why = because(Cause.SIGWRAP, text)
    elif why.seq:
        text = _with_death(text, why, status, measures)
    return replace(why, pid=pid, status=status if isinstance(status, int) else None, text=text)


def _reason(recorded: str, why: Why | None, measures: Measures) -> str:
    """Return why the session ended, with the interrupt unless the command's death says it."""
    is_said = why is not None and (
        why.cause is Cause.TERMINAL
        or (why.cause is Cause.SIGWRAP and (why.pid, why.signal_name) in measures.forwarded)
    )
    if not measures.interrupted_by or is_said:
        return recorded
    if recorded == "interrupted":
        return measures.interrupted
    is_killed = recorded in (f"killed: {measures.taken.why}", f"killed by {measures.taken.why}")
    return f"{measures.interrupted}; {recorded}" if is_killed else recorded


def _with_death(reason: str, why: Why, status: object, measures: Measures) -> str:
    """Add to the reason of the session's end what the command's own end says."""
    interrupted_by = measures.interrupted_by
    has_raised = bool(interrupted_by) and why.sender is not None and why.sender.pid == why.pid
    is_own = why.cause in (Cause.ITSELF, Cause.DENIED) or has_raised
    is_unseen = why.cause in (Cause.OUTSIDE, Cause.UNKNOWN)
    if reason.startswith(COMMAND_NOT_RUN) or (has_raised and why.signal_name):
        return reason  # a command that raises the signal again ends by it
    if is_unseen and why.signal_name == interrupted_by.get("signal_name"):
        return reason  # it went to the whole group
    if is_unseen and reason.startswith("killed"):
        # The kernel sends SIGHUP to a stopped group that no process is left to continue.
        return f"{reason}; the command died of {why.signal_name}"
    if (why.status == status and not is_own) or reason == COMMAND_ENDED:
        return why.text
    if measures.taken.why == reason.removeprefix("ended by ") and why.cause is Cause.SIGWRAP:
        how = " after the grace period" if why.signal_name == "SIGKILL" else ""
        return f"{reason}; the command died of {why.signal_name} from sigwrap{how}"
    if reason in why.text or why.text == measures.interrupted:
        return why.text
    killed_for = why.text.removeprefix("SIGKILL from sigwrap: ")
    if reason.endswith((f"killed: {killed_for}", f"killed by {killed_for}")):
        return reason
    if why.text == ENDED_BY_ITSELF and why.status not in (None, 0, status):
        return f"{reason}; {why.text}, with exit status {why.status}"
    return f"{reason}; {why.text}"
