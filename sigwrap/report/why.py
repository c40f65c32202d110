"""Who ended a process: a fold over the events.

A recorded sender is the answer; where there is none, the signal's number may tell (SIGSEGV is the
kernel's); else the sender is unknown. A sender and its parent are named by what they ran when the
signal was sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.escape import printable
from sigwrap.events import EXEC_TYPES, Event, Payload, number, texts
from sigwrap.report.cause import (
    DELIVERED,
    Cause,
    Reason,
    Sender,
    Why,
    by_itself,
    by_signal,
    name_of_signal,
    sent_by,
    sent_to_sigwrap,
    shown_command,
    terminal_key,
    unended,
)
from sigwrap.report.times import local_time
from sigwrap.tuples import NamedTuple

DEATHS_LISTED = 50

_LIVING_LIMIT = 65_536
_ENDED_LIMIT = 10_000

_NOT_RUN = frozenset({"exec_denied", "exec_verification_failed"})


@dataclass(slots=True, kw_only=True)
class _Living:
    ppid: int
    command: str
    sent: dict[str, Sender]  # the last one of each signal
    command_before: str = ""
    child_death: Why | None = None


class Stopped(NamedTuple):
    """The session stands still, as a whole."""

    since_ns: int
    by: str  # printable


_NOT_SEEN = (Cause.OUTSIDE, Cause.UNKNOWN)


class WhyFold:
    def __init__(self) -> None:
        self._command_pid = 0
        self._command_ended = False
        self._living: dict[int, _Living] = {}
        self._ended: dict[int, Why] = {}
        self._deaths: list[Why] = []
        self._interrupt: Payload = {}
        self._interrupted_by: Payload = {}  # the same, where the run ends by it
        self._forwarded: dict[str, str] = {}
        self._sigwrap_kills = ""
        self._sigwrap_ends_by: tuple[str, ...] = ()
        self._mismatched: set[int] = set()
        self._stop: Event | None = None  # the SIGSTOP that was carried out last
        self.stopped: Stopped | None = None
        self._session_end: Payload | None = None

    def add(self, event: Event) -> None:
        payload = event.payload
        match event.type:
            case "session_started":
                self._command_pid = number(payload.get("command_pid"))
            case "process_exited":
                self._exit(event)
            case "interrupt_received":
                self._interrupt = payload
                if payload.get("taken_by") != "command":
                    self._interrupted_by = payload
            case "interrupt_forwarded":
                name = str(payload.get("signal_name") or "")
                # It sends SIGTERM of its own, for an interrupt; everything else as it came.
                came_as = self._interrupt if name == "SIGTERM" and self._interrupt else payload
                self._forwarded[name] = _which_got(came_as)
            case "interrupt_withdrawn":
                self._interrupt = self._interrupted_by = {}
            case "limit_exceeded" if payload.get("effect") == "refused":
                pass  # a new process, no more
            case "killswitch_activated":
                reason = f": {payload['reason']}" if payload.get("reason") else ""
                self._sigwrap_kills = printable(f"the kill switch{reason}")
                self._sigwrap_ends_by = ("SIGKILL",)
            case "agent_signal" if _is_carried_out(payload):
                self._agent_signal(event)
            case "tree_frozen" if self._stop is not None:
                self.stopped = Stopped(self._stop.time_ns, _agent_signal(self._stop.payload))
            case "tree_thawed":
                self.stopped = None
            case "interrupt_escalated" | "limit_exceeded":
                what = str(payload.get("reason") or payload.get("limit") or event.type)
                self._sigwrap_kills = printable(what)
                self._sigwrap_ends_by = (
                    ("SIGKILL",) if event.type == "interrupt_escalated" else ("SIGTERM", "SIGKILL")
                )
            case "exec_verification_failed":
                self._mismatched.add(event.pid)
            case "exec_failed":
                if (living := self._living.get(event.pid)) is not None:
                    living.command = living.command_before
            case "session_ended":
                self._session_end = payload
            case _ if event.type in EXEC_TYPES and event.type not in _NOT_RUN:
                self._exec(event)
            case _ if event.type in DELIVERED:
                self._signal(event)

    @property
    def deaths(self) -> tuple[Why, ...]:
        """By a signal: the first of them, as the report lists them."""
        return tuple(self._deaths)

    def knows(self, pid: int) -> bool:
        return pid in self._ended or pid in self._living

    def of(self, pid: int = 0) -> Why | None:
        """COMMAND where there is no pid; None where no such process was ever seen."""
        if not pid or pid == self._command_pid:
            return self._of_command()
        return self._of_process(pid)

    # What happens

    def _agent_signal(self, event: Event) -> None:
        payload = event.payload
        match payload.get("signal"):
            case "SIGSTOP":
                self._stop = event
            case "SIGTERM" | "SIGBUDGET" if not _follows_a_limit(payload):
                self._sigwrap_kills = _agent_signal(payload)
                self._sigwrap_ends_by = ("SIGTERM", "SIGKILL")

    def _exec(self, event: Event) -> None:
        payload = event.payload
        argv = texts(payload.get("replacement_argv")) or texts(payload.get("argv"))
        argv = argv or [str(payload.get("path") or "?")]
        living = self._living.get(event.pid)
        if living is None:
            living = self._meet(event.pid, number(payload.get("ppid")))
        living.command_before, living.command = living.command, shown_command(argv)

    def _signal(self, event: Event) -> None:
        payload = event.payload
        target = payload.get("target_pid")
        if not isinstance(target, int) or target <= 0:
            return
        source = number(payload.get("source_pid"))
        sender = self._living.get(source)
        parent_pid = sender.ppid if sender is not None else 0
        parent = self._living.get(parent_pid)
        name = str(payload.get("signal_name") or "")
        asked_for = payload.get("original_signal")
        living = self._living.get(target) or self._meet(target, 0)
        living.sent[name] = Sender(
            pid=source,
            command=sender.command
            if sender is not None and sender.command
            else printable(str(payload.get("source_cmd") or "?")),
            parent_pid=parent_pid,
            parent_command=parent.command if parent is not None else "",
            signal_name=printable(name),
            asked_for=""
            if asked_for in (None, payload.get("signal"))
            else name_of_signal(asked_for),
            decision=str(payload.get("decision") or ""),
            rule=printable(str(payload.get("rule_name") or "")),
            event_type=event.type,
        )

    def _meet(self, pid: int, ppid: int) -> _Living:
        living = self._living[pid] = _Living(ppid=ppid, command="", sent={})
        if len(self._living) > _LIVING_LIMIT:
            del self._living[next(iter(self._living))]
        return living

    def _exit(self, event: Event) -> None:
        payload = event.payload
        pid, ppid = event.pid, number(payload.get("ppid"))
        living = self._living.pop(pid, None) or _Living(ppid=ppid, command="", sent={})
        name = str(payload.get("signal_name") or "")
        code = payload.get("exit_code")
        if name:
            reason = self._killed(pid, name, living)
            status: int | None = 128 + number(payload.get("signal"))
        else:
            reason = by_itself(code, living.child_death)
            status = code if isinstance(code, int) else None
        why = Why(
            pid=pid,
            command=living.command or printable(str(payload.get("comm") or "?")),
            seq=event.seq,
            status=status,
            signal_name=printable(name),
            cause=reason.cause,
            text=reason.text,
            sender=reason.sender,
        )
        self._ended.pop(pid, None)
        self._ended[pid] = why
        if len(self._ended) > _ENDED_LIMIT:
            oldest = iter(self._ended)
            first = next(oldest)
            del self._ended[next(oldest) if first == self._command_pid else first]
        if name:
            if len(self._deaths) < DEATHS_LISTED:
                self._deaths.append(why)
            if ppid in self._living:
                self._living[ppid].child_death = why
        self._mismatched.discard(pid)
        if pid == self._command_pid:
            self._command_ended = True

    # Why

    def _killed(self, pid: int, name: str, living: _Living) -> Reason:
        shown = printable(name)
        sender = living.sent.get(name)
        if sender is not None:
            said = sent_by(sender, to_itself=sender.pid == pid)
            if sender.pid == pid and _is_key(self._interrupted_by, name):  # raised again
                said = f"{self._interrupted}; {said}"
            return Reason(Cause.RECORDED, said, sender)
        if pid in self._mismatched and name == "SIGKILL":
            return Reason(
                Cause.SIGWRAP, f"{shown} from sigwrap: what was loaded is not what had been judged"
            )
        if name in self._sigwrap_ends_by:
            return Reason(Cause.SIGWRAP, f"{shown} from sigwrap: {self._sigwrap_kills}")
        if pid == self._command_pid and name in self._forwarded:
            return Reason(Cause.SIGWRAP, f"{shown} from sigwrap, {self._forwarded[name]}")
        if self._command_ended and name in ("SIGTERM", "SIGKILL", "SIGHUP"):
            return Reason(
                Cause.SIGWRAP, f"{shown} from sigwrap, which clears what COMMAND left behind"
            )
        interrupt = self._interrupt
        if _is_key(interrupt, name):
            return Reason(Cause.TERMINAL, f"{shown} from the terminal{terminal_key(name)}")
        return by_signal(name)

    def _of_process(self, pid: int) -> Why | None:
        living = self._living.get(pid)
        if living is None:
            return self._ended.get(pid)
        if self._session_end is not None:
            return unended(pid, living.command, Cause.UNKNOWN, "its end was not seen")
        said = "no end of it is recorded yet"
        if self.stopped is not None:
            said = f"stopped since {local_time(self.stopped.since_ns)} by {self.stopped.by}"
        return unended(pid, living.command, Cause.RUNNING, said)

    def _of_command(self) -> Why | None:
        """The status is what sigwrap exited with, which may say more than the process's own."""
        why = self._of_process(self._command_pid)
        end = self._session_end
        if end is None:
            return why
        status = end.get("exit_status")
        reason = self._reason(str(end.get("reason") or "ended"), why)
        text = reason
        if why is not None and why.seq:
            is_own = why.cause is Cause.ITSELF or (
                bool(self._interrupted_by) and why.sender is not None and why.sender.pid == why.pid
            )
            said_already = why.status == status and not is_own
            by_sigwrap = why.text.removeprefix("SIGKILL from sigwrap: ")
            if why.cause in _NOT_SEEN and why.signal_name == self._interrupted_by.get(
                "signal_name"
            ):
                text = reason  # it went to the whole group
            elif why.cause in _NOT_SEEN and reason.startswith("killed: "):
                # The kernel sends SIGHUP to a stopped group that nobody is left to continue.
                text = f"{reason}; COMMAND died of {why.signal_name}"
            elif said_already or reason == "COMMAND ended" or why.text.startswith(f"{reason}; "):
                text = why.text
            elif reason == f"ended by {self._sigwrap_kills}" and why.cause is Cause.SIGWRAP:
                how = " after the grace" if why.signal_name == "SIGKILL" else ""
                text = f"{reason}; COMMAND died of {why.signal_name}{how}"
            elif not reason.endswith(f"killed: {by_sigwrap}"):
                text = f"{reason}; {why.text}"
        return Why(
            pid=self._command_pid,
            command=why.command if why is not None else "",
            seq=why.seq if why is not None else 0,
            status=status if isinstance(status, int) else None,
            signal_name=why.signal_name if why is not None else "",
            cause=why.cause if why is not None else Cause.SIGWRAP,
            text=text,
            sender=why.sender if why is not None else None,
        )

    def _reason(self, recorded: str, why: Why | None) -> str:
        """Of the session's end; with who interrupted it, unless COMMAND's own death says that."""
        is_said = why is not None and (
            why.cause is Cause.TERMINAL
            or (why.cause is Cause.SIGWRAP and why.signal_name in self._forwarded)
        )
        if not self._interrupted_by or is_said:
            return printable(recorded)
        if recorded == "interrupted":
            return self._interrupted
        is_killed = recorded == f"killed: {self._sigwrap_kills}"
        return f"{self._interrupted}; {printable(recorded)}" if is_killed else printable(recorded)

    @property
    def _interrupted(self) -> str:
        return f"interrupted by {sent_to_sigwrap(self._interrupted_by)}"


def _is_key(interrupt: Payload, name: str) -> bool:
    return interrupt.get("origin") == "terminal" and interrupt.get("signal_name") == name


def _is_carried_out(agent_signal: Payload) -> bool:
    """Of itself; what follows another one is that one's doing."""
    is_stop = agent_signal.get("signal") == "SIGSTOP"
    return agent_signal.get("outcome") == "delivered" and (is_stop or not agent_signal.get("cause"))


def _follows_a_limit(agent_signal: Payload) -> bool:
    """Whose own event has said it."""
    return str(agent_signal.get("source")).startswith("limit ")


def _agent_signal(payload: Payload) -> str:
    reason = f": {payload['reason']}" if payload.get("reason") else ""
    source = payload.get("source") or "nobody"
    return printable(f"agent signal {payload.get('signal')} from {source}{reason}")


def _which_got(signal: Payload) -> str:
    is_told = "sender_pid" in signal or signal.get("origin") == "terminal"
    return f"which got {sent_to_sigwrap(signal)}" if is_told else "which passed it on"
