"""The state of a session, as an event and as lines for a person, cut to what fits; and the answers
to SIGUSR1 and SIGUSR2."""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, NamedTuple, json
from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.kernel import procfs
from sigwrap.kernel.process import below
from sigwrap.text import masked, printable, shell_words, shortened

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LONGEST_COMMAND, _LONGEST_REQUEST = 100, 100
_PROCESSES_CHARACTERS, _REQUESTS_CHARACTERS = 4_000, 800  # of JSON: an event has 8 KiB
_LINES_OF_PROCESSES, _LINES_OF_REQUESTS = 24, 6
_DEEPEST_INDENT = 12


class TreeProcess(NamedTuple):
    """A process of the tree."""

    pid: int
    ppid: int
    depth: int
    comm: str
    argv: tuple[str, ...]  # of its last exec, from cut_words; empty if unknown
    state: str  # the letter in /proc/PID/stat
    age_s: float


class Standstill(NamedTuple):
    """A stop of the whole session."""

    by: str
    for_s: float
    held: int  # execs that wait


class Diagnosis(NamedTuple):
    stopped: Standstill | None
    processes: list[TreeProcess]  # parents before their children
    requests: dict[str, str]  # for approval, by id
    limits: dict[str, tuple[float, float]]  # used, maximum
    counts: dict[str, int]  # of the events so far
    unrecorded: int
    log_bytes: int
    head: str


def payload_of(found: Diagnosis) -> Payload:
    processes = _fitting([_process(each) for each in found.processes], _PROCESSES_CHARACTERS)
    requests = _fitting(
        [{"id": name, "what": _what(what)} for name, what in found.requests.items()],
        _REQUESTS_CHARACTERS,
    )
    stopped = found.stopped
    return {
        "stopped": stopped and {**stopped._asdict(), "for_s": round(stopped.for_s, 1)},
        "processes": processes,
        "processes_left_out": len(found.processes) - len(processes),
        "approvals": requests,
        "approvals_left_out": len(found.requests) - len(requests),
        "limits": {name: [*use] for name, use in found.limits.items()},
        "counts": found.counts,
        "unrecorded": found.unrecorded,
        "log_bytes": found.log_bytes,
        "head": found.head,
    }


def lines_of(found: Diagnosis) -> list[str]:
    number = len(found.processes)
    lines = [f"diagnostic: {number} process{'es' * (number != 1)}, head {found.head}"]
    if found.stopped is not None:
        by, for_s, held = found.stopped
        waits = f"{held} exec{'s' * (held != 1)} wait{'s' * (held == 1)}"
        lines.append(f"stopped for {_age(for_s)} by {by}; {waits}")
    shown = found.processes[:_LINES_OF_PROCESSES]
    if shown:
        lines.append(f"{'pid':>9} {'ppid':>9} {'depth':>5} {'state':5} {'age':>8}  command")
    for each in shown:
        indent = "  " * min(each.depth, _DEEPEST_INDENT)
        age, pids = _age(each.age_s), f"{each.pid:>9} {each.ppid:>9}"
        lines.append(f"{pids} {each.depth:>5} {each.state:5} {age:>8}  {indent}{_command(each)}")
    lines += _more(number - len(shown), "processes")
    waiting = list(found.requests.items())[:_LINES_OF_REQUESTS]
    lines += [f"approval request {name}  {_what(what)}" for name, what in waiting]
    lines += _more(len(found.requests) - len(waiting), "approval requests")
    lines += [f"limit {name}: {used} of {most}" for name, (used, most) in found.limits.items()]
    counted = ", ".join(f"{name} {count}" for name, count in sorted(found.counts.items()))
    lines.append(f"events: {counted}")
    unrecorded = f"{found.unrecorded} event{'s' * (found.unrecorded != 1)}"
    lost = f", {unrecorded} could not be recorded" if found.unrecorded else ""
    lines.append(f"log: {found.log_bytes} bytes{lost}")
    return lines


def _fitting(items: list[Payload], characters: int) -> list[Payload]:
    for position, item in enumerate(items):
        characters -= len(json.dumps(item)) + 1
        if characters < 0:
            return items[:position]
    return items


def _process(process: TreeProcess) -> Payload:
    return {
        "pid": process.pid,
        "ppid": process.ppid,
        "depth": process.depth,
        "command": _command(process),
        "state": process.state,
        "age_s": round(process.age_s, 1),
    }


def _command(process: TreeProcess) -> str:
    """Return the command, or the name in brackets, as ps does, if the exec is unknown."""
    text = shell_words(masked(process.argv)) if process.argv else f"[{printable(process.comm)}]"
    return shortened(text, _LONGEST_COMMAND)


def _what(request: str) -> str:
    return shortened(printable(request), _LONGEST_REQUEST)


def _more(left: int, what: str) -> list[str]:
    return [f"… and {left} more {what}"] if left > 0 else []


def _age(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} m" if hours else f"{minutes} m {rest:02} s"


# Answer SIGUSR1 and SIGUSR2: the state of the session, and a copy of its log.

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PIDS_RECORDED = 500  # an event has 8 KiB
_GONE_ON = ("exec_allowed", "exec_audited", "exec_redirected")


class Diagnostic:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._recorder = session.recorder
        self._processes = session.processes
        self._limits = session.policy.limits
        self._started_s = time.monotonic()

    def tell(self) -> bool:
        """Record an event and write to standard error; return whether the event was recorded."""
        found = self._look()
        is_recorded = self._recorder.record("diagnostic", os.getpid(), payload_of(found))
        for line in lines_of(found):
            self._recorder.tell(line)
        return is_recorded

    def save(self) -> str:
        """Copy the log as it is and return the copy's path; raise StoreError if that fails."""
        recorder = self._recorder
        pids = [found.pid for found in below(os.getpid()) if not found.has_ended]
        log = recorder.log
        head, seq = log.head, log.seq
        payload = {
            "head": head,
            "seq": seq,
            "processes": pids[:_PIDS_RECORDED],
            "processes_left_out": max(0, len(pids) - _PIDS_RECORDED),
        }
        try:
            path = log.copy(self._session.channel.beat)
        except StoreError as failure:
            error = str(failure)
            recorder.record("checkpoint", os.getpid(), {"path": "", "error": error, **payload})
            recorder.tell(error)
            raise
        recorder.record("checkpoint", os.getpid(), {"path": path, "error": "", **payload})
        recorder.tell(f"checkpoint: {printable(path)}, {seq} events, head {head}")
        return path

    def _look(self) -> Diagnosis:
        recorder, queue = self._recorder, self._session.approvals.open
        seen = self._tree()
        return Diagnosis(
            stopped=self._session.agent_signals.stopped,
            processes=seen,
            requests={each.id: each.request.masked or each.request.what for each in queue},
            limits=self._used(seen),
            counts=dict(recorder.counts),
            unrecorded=recorder.unrecorded,
            log_bytes=recorder.log.size,
            head=recorder.log.head,
        )

    def _tree(self) -> list[TreeProcess]:
        """Return parents before their children, and siblings in the order of their start."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        by_parent: dict[int, list[procfs.Stat]] = {}
        for found in below(os.getpid()):
            by_parent.setdefault(found.ppid, []).append(found)
        seen: list[TreeProcess] = []
        waiting = [(each, 0) for each in _last_first(by_parent.get(os.getpid(), []))]
        while waiting:
            found, above = waiting.pop()
            known = self._processes.known(found.pid, found.start_time)
            is_command = known is not None and known is self._processes.command
            depth = known.depth if known is not None else above + (not is_command)
            seen.append(
                TreeProcess(
                    found.pid,
                    found.ppid,
                    depth,
                    found.comm,
                    () if known is None else known.argv,
                    found.state,
                    max(0.0, now_s - found.start_time / _TICKS_PER_S),
                )
            )
            waiting += [(each, depth) for each in _last_first(by_parent.get(found.pid, []))]
        return seen

    def _used(self, seen: list[TreeProcess]) -> dict[str, tuple[float, float]]:
        limits, counts, usage = self._limits, self._recorder.counts, self._session.usage
        measured = {} if usage is None else usage.used
        gone_on = sum(counts[name] for name in _GONE_ON)
        used: dict[str, tuple[float, float]] = {
            "max_depth": (max((each.depth for each in seen), default=0), limits.max_depth),
            "max_processes": (len(seen), limits.max_processes),
            "max_execs": (gone_on, limits.max_execs),
            "wall_time": (round(time.monotonic() - self._started_s), limits.wall_time_s),
            "cpu_time": (measured.get("cpu_time", 0), limits.cpu_time_s),
            "memory": (measured.get("memory", 0), limits.memory_bytes),
            "log_size": (self._recorder.log.size, self._recorder.budget.maximum),
        }
        return {name: use for name, use in used.items() if use[1]}


def _last_first(found: list[procfs.Stat]) -> list[procfs.Stat]:
    return sorted(found, key=lambda each: (each.start_time, each.pid), reverse=True)
