"""Who ended a process: a fold over the events.

A recorded sender is the answer. A process that raises a signal at itself passes one on that it had
got, so whoever sent it that comes first. Where there is no sender, what sigwrap did by then may
tell, then the signal's number (SIGSEGV is the kernel's); else the sender is unknown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from sigwrap.escape import printable
from sigwrap.events import EXEC_TYPES, Event, Payload, number
from sigwrap.policy.judge.signals import signal_number
from sigwrap.report.folds.cause import (
    DELIVERED,
    ENDED_BY_ITSELF,
    Cause,
    Reason,
    Why,
    denied,
    like_its_child,
    sent_by,
    sent_to_sigwrap,
    shortened,
    terminal_key,
    unended,
    unsent,
)
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.lives import Lives, Living, Ran, shown
from sigwrap.report.forms.times import local_time
from sigwrap.tuples import NamedTuple

DEATHS_LISTED = 50

_ENDED_LIMIT = 10_000
_FORWARDED_LIMIT = 128

_NOT_RUN = frozenset({"exec_denied", "exec_verification_failed"})
_NOT_EXECUTED = (126, 127)
_NOT_SEEN = (Cause.OUTSIDE, Cause.UNKNOWN)


class Explained(NamedTuple):
    """What a report says of the ends."""

    command: str  # why COMMAND ended, in one sentence; empty where nothing is known of it
    stopped: Stopped | None
    killed: dict[int, str]  # by the seq of the exit, the first of those who died of a signal


class Stopped(NamedTuple):
    """The session stands still, as a whole."""

    since_ns: int
    by: str  # printable


class _Measure(NamedTuple):
    """What sigwrap ends the whole tree for, and by which signals."""

    why: str  # printable
    sends: tuple[str, ...]


class _Ended(NamedTuple):
    """By itself: what there is to say is made up only for who asks."""

    seq: int
    code: object
    ran: Ran
    comm: str
    living: Living | None  # where there is more to say than that it ended


class WhyFold:
    def __init__(self) -> None:
        self._lives = Lives()
        self._command_pid = 0
        self._command_end: Why | _Ended | None = None
        self._ended: OrderedDict[int, Why | _Ended] = OrderedDict()
        self._deaths: list[Why] = []
        self._interrupt: Payload = {}
        self._interrupted_by: Payload = {}  # the same, where the run ends by it
        self._forwarded: dict[str, str] = {}
        self._measure = _Measure("", ())
        self._out_of_memory = ""  # the limit for which the kernel has killed
        self._log_is_full = ""  # and every exec and signal denied since
        self._stop: Event | None = None  # the SIGSTOP that was carried out last
        self._stopped: Stopped | None = None
        self._session_end: Payload | None = None
        self._takers: dict[str, Callable[[Event], None]] = {
            **dict.fromkeys(set(EXEC_TYPES) - _NOT_RUN, self._lives.executed),
            **dict.fromkeys(DELIVERED, self._lives.signalled),
            "exec_denied": self._lives.exec_denied,
            "exec_failed": self._lives.exec_failed,
            "exec_verification_failed": self._lives.mismatched,
            "session_started": self._started,
            "process_exited": self._exited,
            "interrupt_received": self._interrupt_received,
            "interrupt_forwarded": self._interrupt_forwarded,
            "interrupt_withdrawn": self._interrupt_withdrawn,
            "interrupt_escalated": self._interrupt_escalated,
            "limit_exceeded": self._limit_exceeded,
            "killswitch_activated": self._switched_off,
            "agent_signal": self._agent_signal,
            "tree_frozen": self._frozen,
            "tree_thawed": self._thawed,
            "session_ended": self._session_ended,
        }

    def add(self, event: Event) -> None:
        take = self._takers.get(event.type)
        if take is not None:
            take(event)

    @property
    def deaths(self) -> tuple[Why, ...]:
        """By a signal: the first of them, as the report lists them."""
        return tuple(map(self._in_hindsight, self._deaths))

    def stopped_at(self, ending: Ending) -> Stopped | None:
        return self._stopped if ending in (Ending.RUNNING, Ending.MOMENT) else None

    def knows(self, pid: int) -> bool:
        return self._end_of(pid) is not None or pid in self._lives

    def nearest(self, pid: int, count: int) -> list[int]:
        """Of the processes that are known."""
        known = {*self._ended, *self._lives.pids(), self._command_pid} - {0}
        return sorted(sorted(known, key=lambda each: abs(each - pid))[:count])

    def explained(self, ending: Ending) -> Explained:
        why = self.of(ending=ending)
        return Explained(
            why.sentence if why is not None else "",
            self.stopped_at(ending),
            {each.seq: each.sentence for each in self.deaths},
        )

    def of(self, pid: int = 0, ending: Ending = Ending.RUNNING) -> Why | None:
        """COMMAND where there is no pid; None where no such process was ever seen."""
        if not pid or pid == self._command_pid:
            return self._of_command(ending)
        return self._of_process(pid, ending)

    # What happens

    def _started(self, event: Event) -> None:
        self._command_pid = number(event.payload.get("command_pid"))

    def _interrupt_received(self, event: Event) -> None:
        self._interrupt = event.payload
        if event.payload.get("taken_by") != "command":
            self._interrupted_by = event.payload

    def _interrupt_forwarded(self, event: Event) -> None:
        name = str(event.payload.get("signal_name") or "")
        # It sends SIGTERM of its own, for an interrupt; everything else as it came.
        came_as = self._interrupt if name == "SIGTERM" and self._interrupt else event.payload
        if len(self._forwarded) < _FORWARDED_LIMIT:
            self._forwarded[name] = _which_got(came_as)

    def _interrupt_withdrawn(self, _event: Event) -> None:
        self._interrupt = self._interrupted_by = {}

    def _interrupt_escalated(self, event: Event) -> None:
        self._measure = _Measure(_stated(event), ("SIGKILL",))

    def _limit_exceeded(self, event: Event) -> None:
        payload = event.payload
        limit = payload.get("limit")
        if payload.get("effect") != "refused":
            self._measure = _Measure(_stated(event), ("SIGTERM", "SIGKILL"))
            if limit == "memory" and payload.get("used") is None:
                self._out_of_memory = self._measure.why
        elif limit == "log_size":
            self._log_is_full = _stated(event)
        else:
            self._lives.fork_refused(event)

    def _switched_off(self, event: Event) -> None:
        reason = event.payload.get("reason")
        why = printable(f"the kill switch: {reason}" if reason else "the kill switch")
        self._measure = _Measure(why, ("SIGKILL",))

    def _agent_signal(self, event: Event) -> None:
        payload = event.payload
        if not _is_carried_out(payload):
            return
        match payload.get("signal"):
            case "SIGSTOP":
                self._stop = event
            case "SIGTERM" | "SIGBUDGET" if not _follows_a_limit(payload):
                self._measure = _Measure(_agent_signal(payload), ("SIGTERM", "SIGKILL"))

    def _frozen(self, _event: Event) -> None:
        if self._stop is not None:
            self._stopped = Stopped(self._stop.time_ns, _agent_signal(self._stop.payload))

    def _thawed(self, _event: Event) -> None:
        self._stopped = None

    def _session_ended(self, event: Event) -> None:
        self._session_end = event.payload

    def _exited(self, event: Event) -> None:
        payload, pid = event.payload, event.pid
        living = self._lives.end(pid)
        ended: Why | _Ended
        if payload.get("signal_name"):
            name, status = str(payload["signal_name"]), 128 + number(payload.get("signal"))
            ended = self._killed(event, name, status, living or Living(number(payload.get("ppid"))))
            if len(self._deaths) < DEATHS_LISTED:
                self._deaths.append(ended)
            self._tell_parent(ended, payload)
        else:
            code = payload.get("exit_code")
            ran: Ran = living.ran if living is not None else ""
            is_plain = living is None or living.is_plain
            comm = "" if ran else shortened(payload.get("comm"))
            ended = _Ended(event.seq, code, ran, comm, None if is_plain else living)
            if code in _NOT_EXECUTED and not is_plain:
                self._tell_parent(self._by_itself(pid, ended), payload)
            elif code is None and living is not None:
                self._tell_unseen(event, living)
        if pid == self._command_pid:
            self._command_end = ended
            return
        self._ended[pid] = ended
        self._ended.move_to_end(pid)
        if len(self._ended) > _ENDED_LIMIT:
            self._ended.popitem(last=False)

    def _tell_unseen(self, event: Event, living: Living) -> None:
        """Whose parent had reaped it first: the parent's status tells whether it died of what it
        had got last."""
        name = living.last_name()
        number_of = signal_number(name)
        if number_of is not None:
            self._tell_parent(self._killed(event, name, 128 + number_of, living), event.payload)

    def _tell_parent(self, ended: Why, exited: Payload) -> None:
        ppid = number(exited.get("ppid"))
        if (parent := self._lives.get(ppid)) is not None:
            parent.child = ended
            return
        # Of two that end at once, the parent's end may be seen first.
        late = self._end_of(ppid)
        if isinstance(late, _Ended) and late.code == ended.status:
            living = late.living or Living(0)
            living.child = ended
            late = late._replace(living=living)
            if ppid == self._command_pid:
                self._command_end = late
            else:
                self._ended[ppid] = late

    # Why

    def _killed(self, event: Event, name: str, status: int, living: Living) -> Why:
        sent, raised = living.last_sent(name), living.last_raised(name)
        if raised is not None:
            sender = raised.sender
            said = sent_by(sender, to_itself=True)
            first = self._first(event, name, living)
            reason = Reason(Cause.RECORDED, said, sender)
            if first is not None:
                reason = Reason(first.cause, f"{first.text}; {said}", first.sender or sender)
        elif sent is not None:
            reason = Reason(Cause.RECORDED, sent_by(sent.sender, to_itself=False), sent.sender)
        else:
            reason = (
                self._by_sigwrap(event, name, living)
                or self._by_key(name)
                or unsent(name, event.payload)
            )
        return Why(
            pid=event.pid,
            command=shown(living.ran) or shortened(event.payload.get("comm")),
            seq=event.seq,
            status=status,
            signal_name=printable(name),
            cause=reason.cause,
            text=reason.text,
            sender=reason.sender,
        )

    def _first(self, event: Event, name: str, living: Living) -> Reason | None:
        """From whom a process had got what it has raised again."""
        if (sent := living.last_sent(name)) is not None:
            return Reason(Cause.RECORDED, sent_by(sent.sender, to_itself=False), sent.sender)
        is_forwarded = event.pid == self._command_pid and name in self._forwarded
        if self._interrupted_by and (
            is_forwarded or self._interrupted_by.get("signal_name") == name
        ):
            return Reason(Cause.RECORDED, self._interrupted)
        return self._by_sigwrap(event, name, living)

    def _by_sigwrap(self, event: Event, name: str, living: Living) -> Reason | None:
        if living.is_mismatched and name == "SIGKILL":
            said = ": what was loaded is not what had been judged"
        elif name in self._measure.sends and not self._ran_out_of_memory(event):
            said = f": {self._measure.why}"
        elif event.pid == self._command_pid and name in self._forwarded:
            said = f", {self._forwarded[name]}"
        elif self._command_end is not None and name in ("SIGTERM", "SIGKILL", "SIGHUP"):
            said = ", which clears what COMMAND left behind"
        else:
            return None
        return Reason(Cause.SIGWRAP, f"{printable(name)} from sigwrap{said}")

    def _ran_out_of_memory(self, event: Event) -> bool:
        """Of a kill that the limit's own event may have come before; a kill of sigwrap's own tells
        nothing of the OOM killer."""
        is_for_memory = bool(self._out_of_memory) and self._out_of_memory == self._measure.why
        return is_for_memory and number(event.payload.get("oom_kills")) > 0

    def _by_key(self, name: str) -> Reason | None:
        if self._interrupt.get("origin") != "terminal":
            return None
        if self._interrupt.get("signal_name") != name:
            return None
        return Reason(Cause.TERMINAL, f"{printable(name)} from the terminal{terminal_key(name)}")

    def _by_itself(self, pid: int, ended: _Ended) -> Why:
        reason = self._own_end(ended)
        return Why(
            pid=pid,
            command=shown(ended.ran) or ended.comm,
            seq=ended.seq,
            status=ended.code if isinstance(ended.code, int) else None,
            signal_name="",
            cause=reason.cause,
            text=reason.text,
            sender=reason.sender,
        )

    def _own_end(self, ended: _Ended) -> Reason:
        living, code = ended.living, ended.code
        if living is not None and living.child is not None and living.child.status == code:
            return like_its_child(self._in_hindsight(living.child))
        if code is None:
            return Reason(Cause.UNKNOWN, "how it ended could not be seen")
        if code == 0:
            return Reason(Cause.ITSELF, ENDED_BY_ITSELF)
        if living is not None and living.refused is not None:
            what, rule = shown(living.refused.ran), shortened(living.refused.rule)
            return denied(f"its exec of {what} was denied by rule {rule}")
        if living is not None and living.refused_fork:
            return denied(f"a fork of it was refused by limit {shortened(living.refused_fork)}")
        if self._log_is_full:
            return denied(f"every exec and signal was denied: {self._log_is_full}")
        return Reason(Cause.ITSELF, ENDED_BY_ITSELF)

    def _in_hindsight(self, why: Why) -> Why:
        """That it was the kernel's OOM killer is known only when the limit is recorded."""
        is_unseen = why.signal_name == "SIGKILL" and why.cause is Cause.OUTSIDE
        if not is_unseen or not self._out_of_memory:
            return why
        said = f"SIGKILL from the kernel's OOM killer: {self._out_of_memory}"
        return replace(why, cause=Cause.KERNEL, text=said)

    def _end_of(self, pid: int) -> Why | _Ended | None:
        return self._command_end if pid == self._command_pid else self._ended.get(pid)

    def _of_process(self, pid: int, ending: Ending) -> Why | None:
        living = self._lives.get(pid)
        if living is None:
            ended = self._end_of(pid)
            if isinstance(ended, _Ended):
                return self._by_itself(pid, ended)
            return None if ended is None else self._in_hindsight(ended)
        cause, said = self._not_ended(ending)
        return unended(pid, shown(living.ran), cause, said)

    def _not_ended(self, ending: Ending) -> tuple[Cause, str]:
        if self._session_end is not None:
            return Cause.UNKNOWN, "its end was not seen"
        if ending is Ending.NOT_CLEAN:
            said = "sigwrap's supervisor died before it could record an end"
            return Cause.SUPERVISOR_DIED, said
        if self._stopped is not None:
            since = local_time(self._stopped.since_ns)
            return Cause.RUNNING, f"stopped since {since} by {self._stopped.by}"
        if ending is Ending.MOMENT:
            return Cause.RUNNING, "it had not ended when the log was copied"
        return Cause.RUNNING, "no end of it is recorded yet"

    def _of_command(self, ending: Ending) -> Why | None:
        """The status is what sigwrap exited with, which may say more than the process's own."""
        why = self._of_process(self._command_pid, ending)
        end = self._session_end
        if end is None:
            return self._before_the_end(why, ending)
        status = end.get("exit_status")
        recorded = str(end.get("reason") or "ended")
        text = self._reason(recorded, why)
        if why is not None and why.seq:
            text = self._with_death(text, why, status)
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

    def _before_the_end(self, why: Why | None, ending: Ending) -> Why | None:
        if ending is not Ending.NOT_CLEAN or self._session_end is not None:
            return why
        if why is None:
            return unended(self._command_pid, "", *self._not_ended(ending))
        if not why.seq:
            return why
        said = f"{why.text}; sigwrap's supervisor died before the end of the session"
        return replace(why, text=said)

    def _with_death(self, reason: str, why: Why, status: object) -> str:
        """`reason` of the session's end, and what COMMAND's own end has to add."""
        if reason.startswith("COMMAND could not be executed") or self._is_unexecuted(why):
            return reason if why.status == status else f"{reason}; COMMAND was not executed"
        is_own = why.cause in (Cause.ITSELF, Cause.DENIED) or (
            bool(self._interrupted_by) and why.sender is not None and why.sender.pid == why.pid
        )
        said_already = why.status == status and not is_own
        if why.cause in _NOT_SEEN and why.signal_name == self._interrupted_by.get("signal_name"):
            return reason  # it went to the whole group
        if why.cause in _NOT_SEEN and reason.startswith("killed: "):
            # The kernel sends SIGHUP to a stopped group that nobody is left to continue.
            return f"{reason}; COMMAND died of {why.signal_name}"
        if said_already or reason == "COMMAND ended" or why.text.startswith(f"{reason}; "):
            return why.text
        is_measure = reason in (self._measure.why, f"ended by {self._measure.why}")
        if is_measure and why.cause is Cause.SIGWRAP:
            how = ", after the grace" if why.signal_name == "SIGKILL" else ""
            return f"{reason}; COMMAND died of {why.signal_name} from sigwrap{how}"
        if why.cause is Cause.KERNEL and reason == self._out_of_memory:
            return why.text
        if reason.endswith(f"killed: {why.text.removeprefix('SIGKILL from sigwrap: ')}"):
            return reason
        return f"{reason}; {why.text}"

    def _is_unexecuted(self, why: Why) -> bool:
        """The log was full before the first exec, which was denied for it."""
        ended = self._command_end
        return (
            isinstance(ended, _Ended)
            and not ended.ran
            and self._measure.why.startswith("log_size")
            and why.status in _NOT_EXECUTED
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
        is_killed = recorded == f"killed: {self._measure.why}"
        return f"{self._interrupted}; {printable(recorded)}" if is_killed else printable(recorded)

    @property
    def _interrupted(self) -> str:
        return f"interrupted by {sent_to_sigwrap(self._interrupted_by)}"


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
    source = payload.get("source") or "nobody"
    return printable(f"agent signal {payload.get('signal')} from {source}{reason}")


def _which_got(signal: Payload) -> str:
    is_told = "sender_pid" in signal or signal.get("origin") == "terminal"
    return f"which got {sent_to_sigwrap(signal)}" if is_told else "which passed it on"
