"""What ended a process: a fold over the events.

The answer is the recorded sender. A process that raises a signal at itself passes one on, so the
sender of that one comes first. Without a sender, the answer is what sigwrap did until then, or the
signal's number (SIGSEGV is the kernel's). Otherwise the sender is unknown.
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
    Why,
    because,
    denied,
    like_its_child,
    sent_by,
    shortened,
    terminal_key,
    unsent,
)
from sigwrap.report.folds.ending import WHAT_ENDED_IT, Ending
from sigwrap.report.folds.lives import Lives, Living, Ran, shown
from sigwrap.report.folds.measures import Measures, Stopped, at_the_end
from sigwrap.report.forms.times import local_time
from sigwrap.tuples import NamedTuple

DEATHS_LISTED = 50

_ENDED_LIMIT = 10_000

_NOT_RUN = frozenset({"exec_denied", "exec_verification_failed"})
_NOT_EXECUTED = (126, 127)


class Explained(NamedTuple):
    """How the command and others ended, for a report."""

    command: str  # why the command ended, in one sentence; empty if nothing is known
    stopped: Stopped | None
    killed: dict[int, str]  # the first deaths by a signal, by the seq of the exit


class _Ended(NamedTuple):
    """The end of a process by itself; the sentence is made only when it is asked for."""

    seq: int
    code: object
    ran: Ran
    comm: str
    living: Living | None  # if there is more to say than that it ended


class WhyFold:
    def __init__(self) -> None:
        self._lives = Lives()
        self._command_pid = 0
        self.is_joined = False
        self._command_end: Why | _Ended | None = None
        self._ended: OrderedDict[int, Why | _Ended] = OrderedDict()
        self._deaths: list[Why] = []
        self._measures = Measures()
        self._asks: OrderedDict[int, str] = OrderedDict()  # approval requests, by pid
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
        """The first deaths by a signal."""
        return tuple(map(self._in_hindsight, self._deaths))

    def knows(self, pid: int) -> bool:
        return self._end_of(pid) is not None or pid in self._lives

    def nearest(self, pid: int, count: int) -> list[int]:
        """Return the known pids nearest to this one."""
        known = {*self._ended, *self._lives.pids(), self._command_pid} - {0}
        return sorted(sorted(known, key=lambda each: abs(each - pid))[:count])

    def explained(self, ending: Ending) -> Explained:
        why = self.of(ending=ending)
        may_go_on = ending in (Ending.RUNNING, Ending.MOMENT)
        return Explained(
            why.sentence if why is not None else "",
            self._measures.stopped if may_go_on else None,
            {each.seq: each.sentence for each in self.deaths},
        )

    def of(self, pid: int = 0, ending: Ending = Ending.RUNNING) -> Why | None:
        """Explain a process, or the command without a pid; None for an unknown process."""
        if not pid or pid == self._command_pid:
            return self._of_command(ending)
        return self._of_process(pid, ending)

    # What happens

    def _started(self, event: Event) -> None:
        self._command_pid = number(event.payload.get("command_pid"))
        self.is_joined = event.payload.get("joined") is True

    def _is_place_holder(self, pid: int) -> bool:
        """Return whether it only forks the commands that join a shared session."""
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
        """Tell the parent that reaped it before sigwrap did; whether it died of its last signal
        is told by the parent's own status."""
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
            first = self._first(event, name, living)
            if first is None:
                first = because(Cause.RECORDED, sent_by(raised, to_itself=True))
            reason = replace(first, sender=first.sender or raised)
        elif sent is not None:
            reason = because(Cause.RECORDED, sent_by(sent, to_itself=False), sent)
        else:
            reason = (
                self._by_sigwrap(event, name, living)
                or self._by_key(name)
                or unsent(name, event.payload)
            )
        return replace(
            reason,
            pid=event.pid,
            command=shown(living.ran) or shortened(event.payload.get("comm")),
            seq=event.seq,
            status=status,
            signal_name=printable(name),
        )

    def _first(self, event: Event, name: str, living: Living) -> Why | None:
        """Return who first sent the signal that a process raised again."""
        if (sent := living.last_sent(name)) is not None:
            return because(Cause.RECORDED, sent_by(sent, to_itself=False), sent)
        measures = self._measures
        by = measures.interrupted_by
        if by and (by.get("signal_name") == name or self._passed_on(event.pid, name, living)):
            return because(Cause.RECORDED, measures.interrupted)
        return self._by_sigwrap(event, name, living)

    def _by_sigwrap(self, event: Event, name: str, living: Living) -> Why | None:
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
        return because(Cause.SIGWRAP, f"{printable(name)} from sigwrap{said}")

    def _passed_on(self, pid: int, name: str, living: Living) -> str:
        """Say who sent the signal that sigwrap forwarded to the command or to a joined job."""
        forwarded = self._measures.forwarded
        to_parent = "" if living.ppid == self._command_pid else forwarded.get((living.ppid, name))
        return forwarded.get((pid, name)) or to_parent or ""

    def _ran_out_of_memory(self, event: Event) -> bool:
        """Return whether the OOM killer killed it; the limit's event may have come before."""
        measures = self._measures
        is_for_memory = bool(measures.out_of_memory) and measures.ends_for(measures.out_of_memory)
        return is_for_memory and number(event.payload.get("oom_kills")) > 0

    def _by_key(self, name: str) -> Why | None:
        interrupt = self._measures.interrupt
        if interrupt.get("origin") != "terminal" or interrupt.get("signal_name") != name:
            return None
        return because(Cause.TERMINAL, f"{printable(name)} from the terminal{terminal_key(name)}")

    def _by_itself(self, pid: int, ended: _Ended) -> Why:
        status = ended.code if isinstance(ended.code, int) else None
        command = shown(ended.ran) or ended.comm
        why = self._own_end(ended)
        return replace(why, pid=pid, command=command, seq=ended.seq, status=status)

    def _own_end(self, ended: _Ended) -> Why:
        living, code = ended.living, ended.code
        if living is not None and living.child is not None and living.child.status == code:
            return like_its_child(self._in_hindsight(living.child))
        if code is None:
            return because(Cause.UNKNOWN, "its exit status is unknown")
        if code == 0:
            return because(Cause.ITSELF, ENDED_BY_ITSELF)
        if living is not None and living.denied:
            return denied(living.denied)
        if living is not None and living.refused_file:
            return because(Cause.DENIED, f"{ENDED_BY_ITSELF}, probably after {living.refused_file}")
        if self._measures.log_is_full:
            return denied(f"sigwrap denied every exec and signal: {self._measures.log_is_full}")
        return because(Cause.ITSELF, ENDED_BY_ITSELF)

    def _in_hindsight(self, why: Why) -> Why:
        """Name the OOM killer, which is known only once the memory limit's event is there."""
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
            command = "" if living is None else shown(living.ran)
            return replace(because(Cause.RUNNING, said), pid=pid, command=command)
        if living is None:
            ended = self._end_of(pid)
            if isinstance(ended, _Ended):
                return self._by_itself(pid, ended)
            return None if ended is None else self._in_hindsight(ended)
        return replace(self._not_ended(ending), pid=pid, command=shown(living.ran))

    def _not_ended(self, ending: Ending) -> Why:
        if self._measures.session_end is not None:
            return because(Cause.UNKNOWN, "its end was not recorded")
        if ending is Ending.NOT_CLEAN:
            said = f"its end was not recorded: {WHAT_ENDED_IT}"
            return because(Cause.SUPERVISOR_DIED, said)
        said = "still running"
        if (stopped := self._measures.stopped) is not None:
            said = f"stopped since {local_time(stopped.since_ns)} by {stopped.by}"
        elif ending is Ending.MOMENT:
            said = "still running when the log was copied"
        return because(Cause.RUNNING, said)

    def _of_command(self, ending: Ending) -> Why | None:
        why = self._of_process(self._command_pid, ending)
        if self._measures.session_end is not None:
            return at_the_end(self._command_pid, why, self._measures, self._is_unexecuted(why))
        if ending is not Ending.NOT_CLEAN:
            return why
        if why is None:
            return replace(self._not_ended(ending), pid=self._command_pid)
        if not why.seq:
            return why
        said = f"{why.text}; the session's end was not recorded: {WHAT_ENDED_IT}"
        return replace(why, text=said)

    def _is_unexecuted(self, why: Why | None) -> bool:
        """Return whether the log was full before the first exec, which was denied for it."""
        ended = self._command_end
        return (
            why is not None
            and why.status in _NOT_EXECUTED
            and isinstance(ended, _Ended)
            and not ended.ran
            and self._measures.taken.why.startswith("log_size")
        )
