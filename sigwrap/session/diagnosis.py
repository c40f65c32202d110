"""Answer the agent signals SIGUSR1 and SIGUSR2: the state of the session, and a copy of its log."""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, json
from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.kernel import procfs
from sigwrap.kernel.process import below
from sigwrap.text import masked, printable, shell_words, shortened

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_GONE_ON = ("exec_allowed", "exec_audited", "exec_redirected")
_LONGEST_COMMAND, _LONGEST_REQUEST = 100, 100
# An event has 8 KiB. These are characters of JSON.
_PROCESSES_CHARACTERS, _REQUESTS_CHARACTERS, _PIDS_RECORDED = 4_000, 800, 500
_LINES_OF_PROCESSES, _LINES_OF_REQUESTS = 24, 6
_DEEPEST_INDENT = 12


class Diagnostic:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._recorder = session.recorder
        self._processes = session.processes
        self._limits = session.policy.limits
        self._started_s = time.monotonic()

    def tell(self) -> bool:
        """Record an event and write to standard error; return whether the event was recorded."""
        state = self._state()
        is_recorded = self._recorder.record("diagnostic", os.getpid(), state)
        for line in lines_of(state):
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

    def _state(self) -> Payload:
        recorder, processes = self._recorder, self._tree()
        open_ = self._session.approvals.open
        requests = {each.id: each.request.masked or each.request.what for each in open_}
        return payload_of(
            processes,
            requests,
            {
                "stopped": self._session.agent_signals.stopped,
                "limits": self._used(processes),
                "counts": dict(recorder.counts),
                "unrecorded": recorder.unrecorded,
                "log_bytes": recorder.log.size,
                "head": recorder.log.head,
            },
        )

    def _tree(self) -> list[Payload]:
        """Return parents before their children, and siblings in the order of their start."""
        now_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        by_parent: dict[int, list[procfs.Stat]] = {}
        for found in below(os.getpid()):
            by_parent.setdefault(found.ppid, []).append(found)
        seen: list[Payload] = []
        waiting = [(each, 0) for each in _last_first(by_parent.get(os.getpid(), []))]
        while waiting:
            found, above = waiting.pop()
            known = self._processes.known(found.pid, found.start_time)
            is_command = known is not None and known is self._processes.command
            depth = known.depth if known is not None else above + (not is_command)
            seen.append(
                {
                    "pid": found.pid,
                    "ppid": found.ppid,
                    "depth": depth,
                    "command": command_of(found.comm, () if known is None else known.argv),
                    "state": found.state,  # the letter in /proc/PID/stat
                    "age_s": round(max(0.0, now_s - found.start_time / _TICKS_PER_S), 1),
                }
            )
            waiting += [(each, depth) for each in _last_first(by_parent.get(found.pid, []))]
        return seen

    def _used(self, processes: list[Payload]) -> Payload:
        """Return what is used of each limit that the policy sets, and its maximum."""
        limits, counts, usage = self._limits, self._recorder.counts, self._session.usage
        measured = {} if usage is None else usage.used
        gone_on = sum(counts[name] for name in _GONE_ON)
        used: dict[str, tuple[float, float]] = {
            "max_depth": (max((each["depth"] for each in processes), default=0), limits.max_depth),
            "max_processes": (len(processes), limits.max_processes),
            "max_execs": (gone_on, limits.max_execs),
            "wall_time": (round(time.monotonic() - self._started_s), limits.wall_time_s),
            "cpu_time": (measured.get("cpu_time", 0), limits.cpu_time_s),
            "memory": (measured.get("memory", 0), limits.memory_bytes),
            "log_size": (self._recorder.log.size, self._recorder.maximum),
        }
        return {name: [*use] for name, use in used.items() if use[1]}


def payload_of(processes: list[Payload], requests: dict[str, str], rest: Payload) -> Payload:
    """Return the event, with as many processes and approval requests as fit into it."""
    shown = _fitting(processes, _PROCESSES_CHARACTERS)
    asked = [
        {"id": name, "what": shortened(printable(what), _LONGEST_REQUEST)}
        for name, what in requests.items()
    ]
    waiting = _fitting(asked, _REQUESTS_CHARACTERS)
    return {
        "processes": shown,
        "processes_left_out": len(processes) - len(shown),
        "approvals": waiting,
        "approvals_left_out": len(asked) - len(waiting),
        **rest,
    }


def lines_of(state: Payload) -> list[str]:
    """Return the event of `tell` as lines for a person."""
    number = len(state["processes"]) + state["processes_left_out"]
    lines = [f"diagnostic: {number} process{'es' * (number != 1)}, head {state['head']}"]
    if stopped := state["stopped"]:
        held = stopped["held"]
        waits = f"{held} exec{'s' * (held != 1)} wait{'s' * (held == 1)}"
        lines.append(f"stopped for {_age(stopped['for_s'])} by {stopped['by']}; {waits}")
    shown = state["processes"][:_LINES_OF_PROCESSES]
    if shown:
        lines.append(f"{'pid':>9} {'ppid':>9} {'depth':>5} {'state':5} {'age':>8}  command")
    for each in shown:
        pid, ppid, depth, command, status, age_s = each.values()
        indent = "  " * min(depth, _DEEPEST_INDENT)
        lines.append(
            f"{pid:>9} {ppid:>9} {depth:>5} {status:5} {_age(age_s):>8}  {indent}{command}"
        )
    lines += _more(number - len(shown), "processes")
    waiting = state["approvals"][:_LINES_OF_REQUESTS]
    lines += [f"approval request {each['id']}  {each['what']}" for each in waiting]
    left_out = len(state["approvals"]) + state["approvals_left_out"] - len(waiting)
    lines += _more(left_out, "approval requests")
    lines += [f"limit {name}: {used} of {most}" for name, (used, most) in state["limits"].items()]
    counted = ", ".join(f"{name} {count}" for name, count in sorted(state["counts"].items()))
    lines.append(f"events: {counted}")
    lost = state["unrecorded"]
    more = f", {lost} event{'s' * (lost != 1)} could not be recorded" if lost else ""
    lines.append(f"log: {state['log_bytes']} bytes{more}")
    return lines


def command_of(comm: str, argv: tuple[str, ...]) -> str:
    """Return the command, or the name in brackets, as ps does, if the exec is unknown."""
    text = shell_words(masked(argv)) if argv else f"[{printable(comm)}]"
    return shortened(text, _LONGEST_COMMAND)


def _fitting(items: list[Payload], characters: int) -> list[Payload]:
    for position, item in enumerate(items):
        characters -= len(json.dumps(item)) + 1
        if characters < 0:
            return items[:position]
    return items


def _more(left: int, what: str) -> list[str]:
    return [f"… and {left} more {what}"] if left > 0 else []


def _age(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} m" if hours else f"{minutes} m {rest:02} s"


def _last_first(found: list[procfs.Stat]) -> list[procfs.Stat]:
    return sorted(found, key=lambda each: (each.start_time, each.pid), reverse=True)
