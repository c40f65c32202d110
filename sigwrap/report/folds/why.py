"""What ended a process: a fold over the events.

The answer is the recorded sender. A process that raises a signal at itself passes one on, so the
sender of that one comes first. Without a sender, the answer is what sigwrap did until then, or the
signal's number (SIGSEGV is the kernel's). Otherwise the sender is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from sigwrap.bare import NamedTuple
from sigwrap.events import APPROVAL_ANSWERS, EXEC_TYPES, Event, Payload, number, text
from sigwrap.policy.judge.signals import signal_number
from sigwrap.report.folds.bounded import Latest
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
from sigwrap.report.folds.measures import Measures, Stopped, at_the_end
from sigwrap.report.folds.tree import Process, Processes
from sigwrap.report.forms.times import local_time
from sigwrap.text import printable

DEATHS_LISTED = 50

_ENDED_LIMIT = 10_000

_NOT_EXECUTED = (126, 127)


class Explained(NamedTuple):
    """How the command and others ended, for a report."""

    command: str  # why the command ended, in one sentence; empty if nothing is known
    stopped: Stopped | None
    killed: dict[int, str]  # the first deaths by a signal, by the seq of the exit


class WhyFold:
    def __init__(self) -> None:
        self.processes = Processes()
        self._command_pid = 0
        self.is_joined = False  # the command only forks the commands that join
        self._command_end: Why | Process | None = None
        self._ended: Latest[int, Why | Process] = Latest(_ENDED_LIMIT)
        self._deaths: list[Why] = []
        self._measures = Measures()
        self._requests: Latest[int, str] = Latest(_ENDED_LIMIT)  # approval ids by pid

    def add(self, event: Event) -> None:
        processes, payload = self.processes, event.payload
        match event.type:
            case "process_exited":
                self.exited(event)
            case name if name in EXEC_TYPES:
                processes.executed(event)
            case "exec_failed":
                processes.exec_failed(event)
            case "exec_verification_failed":
                processes.mismatched(event)
            case "file_refused_likely":
                processes.file_refused(event)
            case name if name in DELIVERED:
                processes.signalled(event)
            case name if name in APPROVAL_ANSWERS:
                self._requests.pop(event.pid, None)
            case "approval_requested":
                self._requests[event.pid] = shortened(payload.get("approval_id"))
            case "session_started":
                self._command_pid = number(payload.get("command_pid"))
                self.is_joined = payload.get("joined") is True
            case name:
                if name == "limit_exceeded" and payload.get("effect") == "refused":
                    processes.fork_refused(event)
                self._measures.add(event)

    @property
    def deaths(self) -> tuple[Why, ...]:
        """The first deaths by a signal."""
        return tuple(map(self._in_hindsight, self._deaths))

    def knows(self, pid: int) -> bool:
        return self._end_of(pid) is not None or pid in self.processes

    def nearest(self, pid: int, count: int) -> list[int]:
        """Return the known pids nearest to this one."""
        known = {*self._ended, *self.processes.pids(), self._command_pid} - {0}
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

    def exited(self, event: Event) -> Process:
        """Take the end of a process, and return the process."""
        payload, pid = event.payload, event.pid
        process = self.processes.end(event)
        ended: Why | Process = process  # which makes a sentence only when a user wants it
        if payload.get("signal_name"):
            name, status = str(payload["signal_name"]), 128 + number(payload.get("signal"))
            ended = self._killed(event, name, status, process)
            is_place_holder = self.is_joined and pid == self._command_pid
            if len(self._deaths) < DEATHS_LISTED and not is_place_holder:
                self._deaths.append(ended)
            self._tell_parent(ended, payload)
        else:
            code = payload.get("exit_code")
            process.end_seq, process.exit_code = event.seq, code
            process.comm = text(payload.get("comm"))
            if code in _NOT_EXECUTED and process.is_explained:
                self._tell_parent(self._by_itself(pid, process), payload)
            elif code is None and (last := signal_number(process.last_signal)) is not None:
                # The parent reaped it before sigwrap did: its status tells how this one ended.
                name = process.last_signal
                self._tell_parent(self._killed(event, name, 128 + last, process), payload)
        # Its signals explain nothing from here on, and 10,000 processes are kept.
        process.sent = process.raised = None
        if pid == self._command_pid:
            self._command_end = ended
        else:
            self._ended.pop(pid, None)  # of an earlier process with this pid
            self._ended[pid] = ended
        return process

    def _tell_parent(self, ended: Why, exited: Payload) -> None:
        ppid = number(exited.get("ppid"))
        if (parent := self.processes.get(ppid)) is not None:
            parent.child = ended
            return
        # If both end at once, sigwrap may see the parent's end first.
        late = self._end_of(ppid)
        if isinstance(late, Process) and late.exit_code == ended.status:
            late.child = ended

    # Why

    def _killed(self, event: Event, name: str, status: int, process: Process) -> Why:
        sent, raised = (process.sent or {}).get(name), (process.raised or {}).get(name)
        if raised is not None:
            reason = self._first(event, name, process)
            if reason is None:
                reason = because(Cause.RECORDED, sent_by(raised, to_itself=True))
            reason = replace(reason, sender=reason.sender or raised)
        elif sent is not None:
            reason = because(Cause.RECORDED, sent_by(sent, to_itself=False), sent)
        else:
            reason = (
                self._by_sigwrap(event, name, process)
                or self._by_key(name)
                or unsent(name, event.payload)
            )
        return replace(
            reason,
            pid=event.pid,
            command=process.shown or shortened(event.payload.get("comm")),
            seq=event.seq,
            status=status,
            signal_name=printable(name),
        )

    def _first(self, event: Event, name: str, process: Process) -> Why | None:
        """Return the first sender of a signal that a process raised again."""
        if (sent := (process.sent or {}).get(name)) is not None:
            return because(Cause.RECORDED, sent_by(sent, to_itself=False), sent)
        by = self._measures.interrupted_by
        if by and (by.get("signal_name") == name or self._passed_on(event.pid, name, process)):
            return because(Cause.RECORDED, self._measures.interrupted)
        return self._by_sigwrap(event, name, process)

    def _by_sigwrap(self, event: Event, name: str, process: Process) -> Why | None:
        measures = self._measures
        is_out_of_memory = (  # the OOM killer killed it; the limit's event may have come before
            bool(measures.out_of_memory)
            and measures.in_force.why == measures.out_of_memory
            and number(event.payload.get("oom_kills")) > 0
        )
        if process.is_mismatched and name == "SIGKILL":
            said = ": the loaded program is not the one that sigwrap checked"
        elif name in measures.in_force.sends and not is_out_of_memory:
            said = f": {measures.in_force.why}"
        elif passed_on := self._passed_on(event.pid, name, process):
            said = f", {passed_on}"
        elif self._command_end is not None and name in ("SIGTERM", "SIGKILL", "SIGHUP"):
            said = ", which ends the processes that the command left behind"
        else:
            return None
        return because(Cause.SIGWRAP, f"{printable(name)} from sigwrap{said}")

    def _passed_on(self, pid: int, name: str, process: Process) -> str:
        """Name the sender of a signal that sigwrap forwarded to the command or to a joined job."""
        forwarded = self._measures.forwarded
        ppid = process.ppid
        to_parent = "" if ppid == self._command_pid else forwarded.get((ppid, name), "")
        return forwarded.get((pid, name)) or to_parent

    def _by_key(self, name: str) -> Why | None:
        interrupt = self._measures.interrupt
        if interrupt.get("origin") != "terminal" or interrupt.get("signal_name") != name:
            return None
        return because(Cause.TERMINAL, f"{printable(name)} from the terminal{terminal_key(name)}")

    def _by_itself(self, pid: int, process: Process) -> Why:
        status = process.exit_code if isinstance(process.exit_code, int) else None
        command = process.shown or shortened(process.comm)
        why = self._own_end(process)
        return replace(why, pid=pid, command=command, seq=process.end_seq, status=status)

    def _own_end(self, process: Process) -> Why:
        code = process.exit_code
        if process.child is not None and process.child.status == code:
            return like_its_child(self._in_hindsight(process.child))
        if code is None:
            return because(Cause.UNKNOWN, "its exit status is unknown")
        if code == 0:
            return because(Cause.ITSELF, ENDED_BY_ITSELF)
        if process.denied:
            return denied(process.denied)
        if process.refused_file:
            said = f"{ENDED_BY_ITSELF}, probably after {process.refused_file}"
            return because(Cause.DENIED, said)
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

    def _end_of(self, pid: int) -> Why | Process | None:
        return self._command_end if pid == self._command_pid else self._ended.get(pid)

    def _of_process(self, pid: int, ending: Ending) -> Why | None:
        process = self.processes.get(pid)
        if ending is Ending.RUNNING and (approval_id := self._requests.get(pid)):
            said = f"waiting for approval (sigwrap approve {approval_id})"
            command = "" if process is None else process.shown
            return replace(because(Cause.RUNNING, said), pid=pid, command=command)
        if process is not None:
            return replace(self._not_ended(ending), pid=pid, command=process.shown)
        ended = self._end_of(pid)
        if isinstance(ended, Process):
            return self._by_itself(pid, ended)
        return None if ended is None else self._in_hindsight(ended)

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
            return at_the_end(self._command_pid, why, self._measures)
        if ending is not Ending.NOT_CLEAN:
            return why
        if why is None:
            return replace(self._not_ended(ending), pid=self._command_pid)
        if not why.seq:
            return why
        said = f"{why.text}; the session's end was not recorded: {WHAT_ENDED_IT}"
        return replace(why, text=said)
