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
from sigwrap.outcomes import APPROVAL_ANSWERS
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
    shortened,
    terminal_key,
    unended,
    unsent,
)
from sigwrap.report.folds.command_end import at_the_end
from sigwrap.report.folds.ending import WHAT_ENDED_IT, Ending
from sigwrap.report.folds.lives import Lives, Living, Ran, shown
from sigwrap.report.folds.measures import Measures, Stopped
from sigwrap.report.forms.times import local_time
from sigwrap.tuples import NamedTuple

DEATHS_LISTED = 50

_ENDED_LIMIT = 10_000

_NOT_RUN = frozenset({"exec_denied", "exec_verification_failed"})
_NOT_EXECUTED = (126, 127)


class Explained(NamedTuple):
    """What a report says of the ends."""

    command: str  # why the command ended, in one sentence; empty where nothing is known of it
    stopped: Stopped | None
    killed: dict[int, str]  # by the seq of the exit, the first of those who died of a signal


class _Ended(NamedTuple):
    """By itself: what there is to say is made up only for who asks."""

    seq: int
    code: object
    ran: Ran
    comm: str
    living: Living | None  # where there is more to say than that it ended


def _is_its_own(code: object) -> bool:
    """That it says nothing of another process's end."""
    return isinstance(code, int) and code not in _NOT_EXECUTED


class WhyFold:
    def __init__(self, *, tells_of_each: bool = True) -> None:
        """Else only of COMMAND, and of those that a signal ended: the end of any other process is
        not kept."""
        self._tells_of_each = tells_of_each
        self._lives = Lives()
        self._command_pid = 0
        self.is_joined = False
        self._command_end: Why | _Ended | None = None
        self._ended: OrderedDict[int, Why | _Ended] = OrderedDict()
        self._deaths: list[Why] = []
        self._measures = Measures()
        self._asks: OrderedDict[int, str] = OrderedDict()  # by who waits for an answer
        self._takers: dict[str, Callable[[Event], None]] = {
            **self._measures.takers,
            **dict.fromkeys(set(EXEC_TYPES) - _NOT_RUN, self._lives.executed),
            **dict.fromkeys(DELIVERED, self._lives.signalled),
            "exec_denied": self._lives.exec_denied,
            "exec_failed": self._lives.exec_failed,
            "exec_verification_failed": self._lives.mismatched,
            "session_started": self._started,
            "process_exited": self._exited,
            "file_refused_likely": self._lives.file_refused,
            "limit_exceeded": self._limit_exceeded,
            "approval_requested": self._asked,
            **dict.fromkeys(APPROVAL_ANSWERS, self._answered),
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
        return self._measures.stopped if ending in (Ending.RUNNING, Ending.MOMENT) else None

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
        self.is_joined = event.payload.get("joined") is True

    def _is_place_holder(self, pid: int) -> bool:
        """Of a session that commands join: what these are forked from."""
        return self.is_joined and pid == self._command_pid

    def _limit_exceeded(self, event: Event) -> None:
        self._measures.limit_exceeded(event)
        payload = event.payload
        if payload.get("effect") == "refused" and payload.get("limit") != "log_size":
            self._lives.fork_refused(event)

    def _asked(self, event: Event) -> None:
        self._asks[event.pid] = shortened(event.payload.get("approval_id"))
        if len(self._asks) > _ENDED_LIMIT:
            self._asks.popitem(last=False)

    def _answered(self, event: Event) -> None:
        self._asks.pop(event.pid, None)

    def _exited(self, event: Event) -> None:
        payload, pid = event.payload, event.pid
        living = self._lives.end(pid)
        ended: Why | _Ended
        if payload.get("signal_name"):
            name, status = str(payload["signal_name"]), 128 + number(payload.get("signal"))
            ended = self._killed(event, name, status, living or Living(number(payload.get("ppid"))))
            if len(self._deaths) < DEATHS_LISTED and not self._is_place_holder(pid):
                self._deaths.append(ended)
            self._tell_parent(ended, payload)
        else:
            code = payload.get("exit_code")
            if not self._tells_of_each and pid != self._command_pid and _is_its_own(code):
                return
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
                reason = Reason(first.cause, first.text, first.sender or sender)
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
        measures = self._measures
        by = measures.interrupted_by
        if by and (by.get("signal_name") == name or self._passed_on(event.pid, name, living)):
            return Reason(Cause.RECORDED, measures.interrupted)
        return self._by_sigwrap(event, name, living)

    def _by_sigwrap(self, event: Event, name: str, living: Living) -> Reason | None:
        measures = self._measures
        if living.is_mismatched and name == "SIGKILL":
            said = ": the loaded program is not the one that sigwrap checked"
        elif name in measures.taken.sends and not self._ran_out_of_memory(event):
            said = f": {measures.taken.why}"
        elif passed_on := self._passed_on(event.pid, name, living):
            said = f", {passed_on}"
        elif self._command_end is not None and name in ("SIGTERM", "SIGKILL", "SIGHUP"):
            said = ", which ends the processes that the command left behind"
        else:
            return None
        return Reason(Cause.SIGWRAP, f"{printable(name)} from sigwrap{said}")

    def _passed_on(self, pid: int, name: str, living: Living) -> str:
        """From whom sigwrap had it. COMMAND got it alone; of a command that joined, all its job."""
        forwarded = self._measures.forwarded
        to_parent = "" if living.ppid == self._command_pid else forwarded.get((living.ppid, name))
        return forwarded.get((pid, name)) or to_parent or ""

    def _ran_out_of_memory(self, event: Event) -> bool:
        """Of a kill that the limit's own event may have come before; a kill of sigwrap's own tells
        nothing of the OOM killer."""
        measures = self._measures
        is_for_memory = bool(measures.out_of_memory) and measures.ends_for(measures.out_of_memory)
        return is_for_memory and number(event.payload.get("oom_kills")) > 0

    def _by_key(self, name: str) -> Reason | None:
        interrupt = self._measures.interrupt
        if interrupt.get("origin") != "terminal" or interrupt.get("signal_name") != name:
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
            return Reason(Cause.UNKNOWN, "its exit status is unknown")
        if code == 0:
            return Reason(Cause.ITSELF, ENDED_BY_ITSELF)
        if living is not None and living.refused is not None:
            what, rule = shown(living.refused.ran), shortened(living.refused.rule)
            return denied(f"sigwrap denied its exec of {what} (rule {rule})")
        if living is not None and living.refused_fork:
            return denied(f"sigwrap denied its fork (limit {shortened(living.refused_fork)})")
        if living is not None and living.refused_file:
            return Reason(Cause.DENIED, f"{ENDED_BY_ITSELF}, probably after {living.refused_file}")
        if self._measures.log_is_full:
            return denied(f"sigwrap denied every exec and signal: {self._measures.log_is_full}")
        return Reason(Cause.ITSELF, ENDED_BY_ITSELF)

    def _in_hindsight(self, why: Why) -> Why:
        """That it was the kernel's OOM killer is known only when the limit is recorded."""
        is_unseen = why.signal_name == "SIGKILL" and why.cause is Cause.OUTSIDE
        if not is_unseen or not self._measures.out_of_memory:
            return why
        said = f"SIGKILL from the kernel's OOM killer: {self._measures.out_of_memory}"
        return replace(why, cause=Cause.KERNEL, text=said)

    def _end_of(self, pid: int) -> Why | _Ended | None:
        return self._command_end if pid == self._command_pid else self._ended.get(pid)

    def _of_process(self, pid: int, ending: Ending) -> Why | None:
        living = self._lives.get(pid)
        if ending is Ending.RUNNING and (approval_id := self._asks.get(pid)):
            said = f"waiting for approval (sigwrap approve {approval_id})"
            return unended(pid, "" if living is None else shown(living.ran), Cause.RUNNING, said)
        if living is None:
            ended = self._end_of(pid)
            if isinstance(ended, _Ended):
                return self._by_itself(pid, ended)
            return None if ended is None else self._in_hindsight(ended)
        cause, said = self._not_ended(ending)
        return unended(pid, shown(living.ran), cause, said)

    def _not_ended(self, ending: Ending) -> tuple[Cause, str]:
        if self._measures.session_end is not None:
            return Cause.UNKNOWN, "its end was not recorded"
        if ending is Ending.NOT_CLEAN:
            said = f"its end was not recorded: {WHAT_ENDED_IT}"
            return Cause.SUPERVISOR_DIED, said
        if (stopped := self._measures.stopped) is not None:
            return Cause.RUNNING, f"stopped since {local_time(stopped.since_ns)} by {stopped.by}"
        if ending is Ending.MOMENT:
            return Cause.RUNNING, "still running when the log was copied"
        return Cause.RUNNING, "still running"

    def _of_command(self, ending: Ending) -> Why | None:
        why = self._of_process(self._command_pid, ending)
        if self._measures.session_end is not None:
            return at_the_end(self._command_pid, why, self._measures, self._is_unexecuted(why))
        if ending is not Ending.NOT_CLEAN:
            return why
        if why is None:
            return unended(self._command_pid, "", *self._not_ended(ending))
        if not why.seq:
            return why
        said = f"{why.text}; the session's end was not recorded: {WHAT_ENDED_IT}"
        return replace(why, text=said)

    def _is_unexecuted(self, why: Why | None) -> bool:
        """The log was full before the first exec, which was denied for it."""
        ended = self._command_end
        return (
            why is not None
            and why.status in _NOT_EXECUTED
            and isinstance(ended, _Ended)
            and not ended.ran
            and self._measures.taken.why.startswith("log_size")
        )
