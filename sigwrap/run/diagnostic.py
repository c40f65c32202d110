"""Answer SIGUSR1 and SIGUSR2: the state of the session, and a copy of its log.

The arguments are those of the judged exec, and all else is from the kernel. /proc/PID/cmdline is
the process's own memory, which it can change, and which can block a reader.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import StoreError
from sigwrap.escape import printable
from sigwrap.linux import procfs
from sigwrap.linux.process import below
from sigwrap.mediate.diagnosis import (
    Diagnosis,
    LimitUse,
    OpenRequest,
    TreeProcess,
    lines_of,
    payload_of,
)

if TYPE_CHECKING:
    from sigwrap.run.session import Session

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
            requests=[
                OpenRequest(each.id, each.question.masked or each.question.what) for each in queue
            ],
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

    def _used(self, seen: list[TreeProcess]) -> list[LimitUse]:
        limits, counts, usage = self._limits, self._recorder.counts, self._session.usage
        measured = {} if usage is None else usage.used
        gone_on = sum(counts[name] for name in _GONE_ON)
        used = [
            LimitUse("max_depth", max((each.depth for each in seen), default=0), limits.max_depth),
            LimitUse("max_processes", len(seen), limits.max_processes),
            LimitUse("max_execs", gone_on, limits.max_execs),
            LimitUse("wall_time", round(time.monotonic() - self._started_s), limits.wall_time_s),
            LimitUse("cpu_time", measured.get("cpu_time", 0), limits.cpu_time_s),
            LimitUse("memory", measured.get("memory", 0), limits.memory_bytes),
            LimitUse("log_size", self._recorder.log.size, self._recorder.budget.maximum),
        ]
        return [each for each in used if each.maximum]


def _last_first(found: list[procfs.Stat]) -> list[procfs.Stat]:
    return sorted(found, key=lambda each: (each.start_time, each.pid), reverse=True)
