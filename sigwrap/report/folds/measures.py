"""What was done to the whole process tree: interrupts, limits, the kill switch, agent signals; and
how the session and its command ended by them."""

from __future__ import annotations

from dataclasses import replace

from sigwrap.bare import NamedTuple
from sigwrap.errors import COMMAND_ENDED, COMMAND_NOT_RUN
from sigwrap.events import Event, Payload
from sigwrap.report.folds.bounded import Latest
from sigwrap.report.folds.cause import ENDED_BY_ITSELF, Cause, Why, because, sent_to_sigwrap
from sigwrap.report.folds.incidents import with_new_keys
from sigwrap.text import printable

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
        self.in_force = Measure("", ())
        self.out_of_memory = ""  # the limit for which the kernel has killed
        self.log_is_full = ""  # since then every exec and signal is denied
        self.stopped: Stopped | None = None
        self.session_end: Payload | None = None
        self._stop: Event | None = None  # the SIGSTOP that was carried out last

    @property
    def interrupted(self) -> str:
        return f"interrupted by {sent_to_sigwrap(self.interrupted_by)}"

    def add(self, event: Event) -> None:
        payload = event.payload
        match event.type:
            case "interrupt_received":
                self.interrupt = payload
                if payload.get("taken_by") != "command":
                    self.interrupted_by = payload
            case "interrupt_forwarded":
                name = str(payload.get("signal_name") or "")
                # For an interrupt, sigwrap sends SIGTERM; it forwards other signals unchanged.
                came_as = self.interrupt if name == "SIGTERM" and self.interrupt else payload
                self.forwarded[event.pid, name] = _which_got(came_as)
            case "interrupt_withdrawn":
                self.interrupt = self.interrupted_by = {}
            case "interrupt_escalated":
                self.in_force = Measure(_stated(event), ("SIGKILL",))
            case "limit_exceeded":
                self._limit_exceeded(event)
            case "killswitch_activated":
                reason = payload.get("reason")
                why = printable(f"the kill switch: {reason}" if reason else "the kill switch")
                self.in_force = Measure(why, ("SIGKILL",))
            case "agent_signal" if payload.get("outcome") == "delivered":
                self._agent_signal(event)
            case "tree_frozen" if self._stop is not None:
                self.stopped = Stopped(self._stop.time_ns, _agent_signal(self._stop.payload))
            case "tree_thawed":
                self.stopped = None
            case "session_ended":
                self.session_end = payload

    def _limit_exceeded(self, event: Event) -> None:
        payload = event.payload
        limit = payload.get("limit")
        if payload.get("effect") != "refused":
            self.in_force = Measure(_stated(event), ("SIGTERM", "SIGKILL"))
            if limit == "memory" and payload.get("used") is None:
                self.out_of_memory = self.in_force.why
        elif limit == "log_size":
            self.log_is_full = _stated(event)

    def _agent_signal(self, event: Event) -> None:
        payload = event.payload
        name = payload.get("signal")
        # A limit has an event of its own, and a signal with a cause only follows another one.
        follows = payload.get("cause") or str(payload.get("source")).startswith("limit ")
        if name == "SIGSTOP":
            self._stop = event
        elif name in ("SIGTERM", "SIGBUDGET") and not follows:
            self.in_force = Measure(_agent_signal(payload), ("SIGTERM", "SIGKILL"))


def _stated(event: Event) -> str:
    payload = event.payload
    return with_new_keys(
        printable(str(payload.get("reason") or payload.get("limit") or event.type))
    )


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
    is_killed = recorded in (
        f"killed: {measures.in_force.why}",
        f"killed by {measures.in_force.why}",
    )
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
    if measures.in_force.why == reason.removeprefix("ended by ") and why.cause is Cause.SIGWRAP:
        how = " after the grace period" if why.signal_name == "SIGKILL" else ""
        return f"{reason}; the command died of {why.signal_name} from sigwrap{how}"
    if why.text.endswith((reason, measures.interrupted)):
        return why.text
    killed_for = why.text.removeprefix("SIGKILL from sigwrap: ")
    if reason.endswith((f"killed: {killed_for}", f"killed by {killed_for}")):
        return reason
    if why.text == ENDED_BY_ITSELF and why.status not in (None, 0, status):
        return f"{reason}; {why.text}, with exit status {why.status}"
    return f"{reason}; {why.text}"
