"""Limits on the processor time and memory of a process tree, from /proc and from control groups.

The kernel keeps no sum for a tree. The times of an ended process are added to the parent that
waited for it, up to the supervisor, so a look reads each process before its children: a process
that ends in between is missed until the next look, and never counted twice.

Control groups (cgroups.py) also count what a look misses.

Imported only for a policy that has such limits.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Container, Iterable, Iterator

from sigwrap.bare import TYPE_CHECKING, NamedTuple, deque
from sigwrap.control.cgroups import SessionCgroup
from sigwrap.errors import KernelError
from sigwrap.kernel import process, procfs
from sigwrap.kernel.libc import syscall
from sigwrap.machine import NUMBERS
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.loop import Done, Lane, Late, Outcome
from sigwrap.session.run_end import KillDemanded, LimitReached

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_CLOSER_WITHIN_S = 10.0
SOONEST_S = 0.1
SOONEST_FOR_MEMORY_S = 0.05
LATEST_S = 5.0
LATEST_FOR_MEMORY_S = 1.0
# After a long look, the next comes later: looks may take a twentieth of the time.
REST_AFTER_LOOK = 20
# The rate at which one thread can allocate memory.
_GROWTH_BYTES_PER_S = 1 << 30
# A tree that grows by this factor after the limit is killed before its grace period ends.
_GROWTH_FACTOR = 1.25
_UNITS = (("G", 30), ("M", 20), ("K", 10))

_TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SYS_KCMP = NUMBERS["kcmp"]
_KCMP_VM = 1


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
        self._looks_closer = self._is_stuck = False
        self._not_closer_before_s = 0.0
        self._cgroup = SessionCgroup(session_id)
        self._cgroup.take(command_pid, limits.memory_bytes)
        self.without: list[str] = []
        if limits.cpu_time_s and not self._cgroup.counts_time:
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
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = look(self._time.known)
        reaped_ms = int((reaped.ru_utime + reaped.ru_stime) * 1000)
        time_ms = max(self._time.add(found, reaped_ms), self._cgroup.time_ms())
        self.used["cpu_time"] = round(time_ms / 1000, 1)
        self._take(self._limits.cpu_used(time_ms))
        if self._limits.memory_bytes:
            self._look_at_memory(found)
        wait_s = self._limits.next_look_s(time.thread_time() - started_s)
        self._loop.call_in(wait_s, self._look)

    def _look_at_memory(self, processes: list[ProcessUse]) -> None:
        if self._cgroup.ran_out_of_memory() and (reached := self._limits.memory_ran_out()):
            self._take([reached])
        in_cgroup = self._cgroup.memory_bytes()
        at_most = max(
            in_cgroup,
            sum(each.memory_bytes for each in processes) + beyond_resident(processes),
        )
        if in_cgroup > self._limits.memory_bytes:
            self._memory_used(in_cgroup, is_certain=True)
        elif not self._limits.is_worth_a_closer_look(at_most) or self._is_stuck:
            self._memory_used(at_most)
        elif not self._looks_closer and time.monotonic() >= self._not_closer_before_s:
            self._look_closer(processes, at_most, in_cgroup)

    def _look_closer(self, processes: list[ProcessUse], at_most: int, in_cgroup: int) -> None:
        """Divide shared memory among processes in a worker. A process that changes its mappings can
        delay it; then all memory counts in full."""
        tree = frozenset(each.pid for each in processes)
        took_s = 0.0

        def work() -> int:
            nonlocal took_s
            started_s = time.thread_time()
            used = sum(shared_out_memory(each, tree) for each in processes)
            took_s = time.thread_time() - started_s
            return used

        def over() -> None:
            self._looks_closer = self._is_stuck = False
            self._not_closer_before_s = time.monotonic() + REST_AFTER_LOOK * took_s

        def seen(outcome: Outcome) -> None:
            self._is_stuck = self._looks_closer and isinstance(outcome, Late)
            used = outcome.value if isinstance(outcome, Done) else at_most
            self._memory_used(max(used, in_cgroup))

        self._looks_closer = True
        self._pool.run(work, seen, lane=Lane.MEMORY, deadline_s=_CLOSER_WITHIN_S, over=over)

    def _memory_used(self, used: int, *, is_certain: bool = False) -> None:
        self.used["memory"] = used
        self._take(self._limits.memory_used(used, time.monotonic(), is_certain=is_certain))

    def _take(self, passed: list[Passed]) -> None:
        for each in passed:
            match each:
                case LimitNear(limit, maximum, used):
                    payload = {"limit": limit, "maximum": maximum, "used": used}
                    self._recorder.record("limit_near", self._command_pid, payload)
                case _:
                    self._ending.on(each)

    def limit_at_end(self) -> LimitReached | None:
        """Return the limit if the kernel killed the command because its memory ran out."""
        return self._limits.memory_ran_out() if self._cgroup.ran_out_of_memory() else None


class LimitNear(NamedTuple):
    limit: str
    maximum: int
    used: int


Passed = LimitNear | LimitReached | KillDemanded


class UsageLimits:
    def __init__(self, *, cpu_time_s: int, memory_bytes: int, processors: int) -> None:
        """Take the limits; 0 means no limit."""
        self.memory_bytes = memory_bytes
        self._cpu_time_s = cpu_time_s
        self._processors = processors
        self._cpu_left_s = 0.0
        self._memory_used = 0
        self._memory_at_s = 0.0
        self._growth = 0.0  # bytes per second
        self._is_near: set[str] = set()
        self._is_reached: set[str] = set()
        self._was_over = False
        self._kill_above = 0  # bytes, above the limit

    def cpu_used(self, used_ms: int) -> list[Passed]:
        limit, maximum = "cpu_time", self._cpu_time_s
        used_s = used_ms / 1000
        self._cpu_left_s = maximum - used_s
        if not maximum or limit in self._is_reached or used_s * 2 < maximum:
            return []
        if used_s > maximum:
            self._is_reached.add(limit)
            rounded_up = -(-used_ms // 100) / 10
            why = f"cpu_time: used {rounded_up:.1f} s of {maximum} s of processor time"
            return [LimitReached(limit, maximum, why, rounded_up)]
        return self._near(limit, maximum, int(used_s))

    def is_worth_a_closer_look(self, at_most_bytes: int) -> bool:
        """Return whether this upper bound may have passed half of the limit, or the limit."""
        if not self.memory_bytes:
            return False
        share = 1 if "memory" in self._is_near | self._is_reached else 2
        return at_most_bytes * share >= self.memory_bytes

    def memory_used(self, used: int, now_s: float, *, is_certain: bool) -> list[Passed]:
        """Note a memory sum. It is uncertain if processes were read in turn, since pages that moved
        between them may count twice. Then a second look must confirm it."""
        limit, maximum = "memory", self.memory_bytes
        if self._memory_at_s:
            passed_s = max(now_s - self._memory_at_s, 0.001)
            self._growth = max(0.0, (used - self._memory_used) / passed_s)
        self._memory_used, self._memory_at_s = used, now_s
        is_over = used > maximum
        is_certain, self._was_over = is_certain or self._was_over, is_over
        if is_over and is_certain:
            return self._memory_is_over(used, maximum)
        if used * 2 >= maximum:
            return self._near(limit, maximum, used)
        return []

    def memory_ran_out(self) -> LimitReached | None:
        """Note that the kernel killed a process for memory. Returns None if already reported."""
        if "memory" in self._is_reached:
            return None
        self._is_reached.add("memory")
        why = f"memory: the kernel killed a process at the limit of {_size(self.memory_bytes)}"
        return LimitReached("memory", self.memory_bytes, why)

    def next_look_s(self, took_s: float) -> float:
        """Return the seconds until the next look. `took_s`: how long the last one took."""
        wait_s = LATEST_S
        if self._cpu_time_s and "cpu_time" not in self._is_reached:
            wait_s = min(wait_s, max(SOONEST_S, self._cpu_left_s / self._processors))
        if self.memory_bytes:
            left = max(0, self.memory_bytes - self._memory_used)
            in_s = left / max(_GROWTH_BYTES_PER_S, 2 * self._growth)
            wait_s = min(wait_s, max(SOONEST_FOR_MEMORY_S, min(in_s, LATEST_FOR_MEMORY_S)))
        return max(wait_s, REST_AFTER_LOOK * took_s)

    def _memory_is_over(self, used: int, maximum: int) -> list[Passed]:
        if "memory" not in self._is_reached:
            self._is_reached.add("memory")
            self._kill_above = int(used * _GROWTH_FACTOR)
            why = f"memory: {_size(used)} in use, over the limit of {_size(self.memory_bytes)}"
            return [LimitReached("memory", maximum, why, used)]
        if not 0 < self._kill_above < used:
            return []
        self._kill_above = 0
        # It grows on: the memory must be kept for other programs.
        why = f"memory: {_size(used)} in use by now, over the limit of {_size(self.memory_bytes)}"
        return [KillDemanded(why)]

    def _near(self, limit: str, maximum: int, used: int) -> list[Passed]:
        if limit in self._is_near | self._is_reached:
            return []
        self._is_near.add(limit)
        return [LimitNear(limit, maximum, used)]


def _size(size: int) -> str:
    """Write a size as policies do, if it is a round figure."""
    for unit, bits in _UNITS:
        if size >> bits:
            return f"{size / (1 << bits):.1f}".removesuffix(".0") + unit
    return str(size)


class ProcessUse(NamedTuple):
    """The usage of one process. A zombie still has its times."""

    pid: int
    start_time: int
    ppid: int
    own_ms: int
    of_children_ms: int  # children that it has waited for, and their children
    memory_bytes: int  # an upper bound: shared memory is counted for each process


class ProcessorTime:
    """The processor time of the tree, summed over successive looks. Both of its sums may miss some:
    one counts what parents have waited for, the other each process that a look has seen."""

    def __init__(self) -> None:
        self.known: dict[int, ProcessUse] = {}
        self._ended_ms = 0
        self._before: tuple[int, int] | None = None
        self._used_ms = 0

    def add(self, processes: list[ProcessUse], reaped_ms: int) -> int:
        """Return the milliseconds since the first look. `reaped_ms`: the times of the processes
        that the supervisor has waited for."""
        found = {each.pid: each for each in processes}
        for before in self.known.values():
            now = found.get(before.pid)
            if now is None or now.start_time != before.start_time:
                self._ended_ms += before.own_ms
        self.known = found
        own_ms = sum(each.own_ms for each in processes)
        waited_for = own_ms + sum(each.of_children_ms for each in processes) + reaped_ms
        seen = own_ms + self._ended_ms
        first = self._before = self._before or (waited_for, seen)
        self._used_ms = max(self._used_ms, waited_for - first[0], seen - first[1])
        return self._used_ms


def look(known: dict[int, ProcessUse]) -> list[ProcessUse]:
    """Read the tree. `known`: the processes of the last look. The kernel may omit some of them
    while another child of the same parent ends."""
    found = {each.pid: each for each in _below(os.getpid())}
    for pid in known.keys() - found.keys():
        again = _read(pid)
        if again is not None and again.start_time == known[pid].start_time:
            found[pid] = again
    return list(found.values())


def beyond_resident(processes: Iterable[ProcessUse]) -> int:
    """Return swapped memory and page tables.

    A process that reads one page in every two megabytes of an empty mapping uses page tables only.
    """
    return sum(_in_status(each.pid, b"VmSwap", b"VmPTE") for each in processes)


def shared_out_memory(of: ProcessUse, tree: Container[int]) -> int:
    """Return the process's own part of resident and swapped memory, and its page tables.

    Pages of files do not count: the kernel can drop them. If the process is unreadable, count
    everything. The call waits for a process that changes its mappings.
    """
    if of.ppid in tree and _is_in_memory_of(of.pid, of.ppid):
        return 0
    tables = _in_status(of.pid, b"VmPTE")
    looks = {
        "smaps_rollup": (b"Pss_Anon", b"Pss_Shmem", b"SwapPss"),
        "status": (b"RssAnon", b"RssShmem", b"VmSwap"),
    }
    for path, names in looks.items():
        found = procfs.kilobytes(f"/proc/{of.pid}/{path}", *names)
        if found:
            return found * 1024 + tables
    return of.memory_bytes + tables


def _below(supervisor: int) -> Iterator[ProcessUse]:
    """Yield all processes below, each read before its children are listed."""
    if not process.has_children_files():
        yield from filter(None, [_read(found.pid) for found in process.below(supervisor)])
        return
    tree = {supervisor}
    waiting = deque(process.children(supervisor))
    while waiting:
        pid = waiting.popleft()
        read = None if pid in tree else _read(pid)
        if read is None or read.ppid not in tree:  # it has ended; the pid may be reused
            continue
        yield read
        tree.add(pid)
        waiting += process.children(pid)


def _read(pid: int) -> ProcessUse | None:
    fields = procfs.figures(pid)
    if fields is None:
        return None
    pages = int(fields[21])
    if pages <= 0 and int(fields[17]) > 1:  # its first thread has ended; another shows its memory
        threads = filter(None, map(procfs.figures, procfs.threads(pid)))
        pages = max((int(each[21]) for each in threads), default=0)
    return ProcessUse(
        pid,
        int(fields[19]),
        int(fields[1]),
        (int(fields[11]) + int(fields[12])) * _TICK_MS,
        (int(fields[13]) + int(fields[14])) * _TICK_MS,
        max(0, pages) * _PAGE_BYTES,
    )


def _in_status(pid: int, *names: bytes) -> int:
    """Return the sum of these lines of /proc/PID/status, in bytes."""

    def read(tid: int) -> int:
        return procfs.kilobytes(f"/proc/{tid}/status", *names) or 0

    found = read(pid)
    if not found:  # its first thread may have ended; another one shows its memory
        found = max(map(read, procfs.threads(pid)), default=0)
    return found * 1024


def _is_in_memory_of(pid: int, parent: int) -> bool:
    """Return whether both share memory, as between vfork and exec: count it once."""
    try:
        return syscall("kcmp", _SYS_KCMP, pid, parent, _KCMP_VM, 0, 0) == 0
    except KernelError:
        return False
