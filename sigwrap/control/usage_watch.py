"""Measure CPU time and memory of the process tree, as often as control/usage_limits.py says.
Imported only for a policy that limits them."""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.control import usage
from sigwrap.control.usage import SessionCgroup
from sigwrap.control.usage_limits import (
    REST_AFTER_LOOK,
    GrowsOn,
    LimitNear,
    Passed,
    ProcessorTime,
    ProcessUse,
    UsageLimits,
)
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.loop import Done, Lane, Outcome
from sigwrap.session.run_end import KillDemanded, LimitReached

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_PATIENCE_S = 3.0  # with one process
_PATIENCE_WITH_ALL_S = 10.0


class Usage:
    def __init__(self, limits: Limits, command_pid: int, session_id: str) -> None:
        """Prepare the measurements. To be called before the command's exec."""
        self._limits = UsageLimits(
            cpu_time_s=limits.cpu_time_s,
            memory_bytes=limits.memory_bytes,
            processors=os.cpu_count() or 1,
        )
        self._command_pid = command_pid
        self._time = ProcessorTime()
        self.used: dict[str, float] = {}  # by limit, as of the last look
        self._closer = _CloserLook()
        self._cgroup = SessionCgroup(session_id)
        counts_time = bool(limits.cpu_time_s)
        self._cgroup.take(command_pid, counts_time=counts_time, memory_bytes=limits.memory_bytes)
        self.without: list[str] = []
        if counts_time and not self._cgroup.counts_time:
            self.without.append(
                "cgroup for cpu_time: CPU time of an unreaped child after the last poll is not "
                "counted"
            )
        if limits.memory_bytes and not self._cgroup.counts_memory:
            self.without.append(
                "cgroup for memory: files in memory (tmpfs) are not counted, and a fast process "
                "may exceed the limit until the next poll"
            )

    def begin(self, session: Session) -> None:
        self._loop = session.loop
        self._pool = session.pool
        self._recorder = session.recorder
        self._ending = session.ending
        self._look()

    def close(self) -> None:
        self._cgroup.remove()

    def _look(self) -> None:
        started_s = time.thread_time()
        found = usage.look(self._time.known)
        time_ms = max(self._time.add(found), self._cgroup.time_ms())
        self.used["cpu_time"] = round(time_ms / 1000, 1)
        self._take(self._limits.cpu_used(time_ms))
        if self._limits.memory_bytes:
            self._look_at_memory(found.processes)
        wait_s = self._limits.next_look_s(time.thread_time() - started_s)
        self._loop.call_at(time.monotonic() + wait_s, self._look)

    def _look_at_memory(self, processes: tuple[ProcessUse, ...]) -> None:
        if self._cgroup.ran_out_of_memory() and (reached := self._limits.memory_ran_out()):
            self._take([reached])
        in_cgroup = self._cgroup.memory_bytes()
        at_most = max(in_cgroup, _in_full(processes) + usage.beyond_resident(processes))
        if in_cgroup > self._limits.memory_bytes:
            self._memory_used(in_cgroup, is_certain=True)
        elif not self._limits.is_worth_a_closer_look(at_most) or self._closer.is_stuck():
            self._memory_used(at_most)
        elif self._closer.may_begin():
            self._look_closer(processes, at_most, in_cgroup)

    def _look_closer(self, processes: tuple[ProcessUse, ...], at_most: int, in_cgroup: int) -> None:
        def seen(outcome: Outcome) -> None:
            self._closer.is_over()
            used = outcome.value if isinstance(outcome, Done) else at_most
            self._memory_used(max(used, in_cgroup))

        self._pool.run(
            lambda: self._closer.look(processes), seen, lane=Lane.MEMORY, deadline_s=None
        )

    def _memory_used(self, used: int, *, is_certain: bool = False) -> None:
        self.used["memory"] = used
        self._take(self._limits.memory_used(used, time.monotonic(), is_certain=is_certain))

    def _take(self, passed: list[Passed]) -> None:
        for each in passed:
            match each:
                case LimitNear(limit, maximum, used):
                    payload = {"limit": limit, "maximum": maximum, "used": used}
                    self._recorder.record("limit_near", self._command_pid, payload)
                case LimitReached():
                    self._ending.on(each)
                case GrowsOn(why=why):
                    self._ending.on(KillDemanded(why))

    def limit_at_end(self) -> LimitReached | None:
        """Return the limit if the kernel killed the command because its memory ran out."""
        return self._limits.memory_ran_out() if self._cgroup.ran_out_of_memory() else None


class _CloserLook:
    """Divides shared memory among processes in a worker, one look at a time. A process that changes
    its mappings can delay it. If it makes no progress for some time, all memory counts in full. A
    busy machine, or a large process tree, gets more time."""

    def __init__(self) -> None:
        self._began_s = 0.0  # 0 if none is running
        self._last_s = 0.0  # when it came to its current process
        self._not_before_s = 0.0
        self._took_s = 0.0

    def look(self, processes: tuple[ProcessUse, ...]) -> int:
        """Run in a thread of its own."""
        started_s = time.thread_time()
        tree = frozenset(each.pid for each in processes)
        used = 0
        for each in processes:
            self._last_s = time.monotonic()
            used += usage.shared_out_memory(each, tree)
        self._took_s = time.thread_time() - started_s
        return used

    def may_begin(self) -> bool:
        now_s = time.monotonic()
        if self._began_s or now_s < self._not_before_s:
            return False
        self._began_s = self._last_s = now_s
        return True

    def is_stuck(self) -> bool:
        now_s = time.monotonic()
        return self._began_s > 0 and (
            now_s > self._last_s + _PATIENCE_S or now_s > self._began_s + _PATIENCE_WITH_ALL_S
        )

    def is_over(self) -> None:
        self._began_s = 0.0
        self._not_before_s = time.monotonic() + REST_AFTER_LOOK * self._took_s


def _in_full(processes: tuple[ProcessUse, ...]) -> int:
    return sum(each.memory_bytes for each in processes)
