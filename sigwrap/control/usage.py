"""Limits on the processor time and memory of a process tree, from /proc and from control groups.

The kernel keeps no sum for a tree. The times of an ended process are added to the parent that
waited for it, up to the supervisor, so a look reads each process before its children: a process
that ends in between is missed until the next look, and never counted twice.

Control groups also count what a look misses, and the kernel enforces their memory limit. They are
below sigwrap's own groups, if it may make them: in version 2, or in version 1 where that counts
memory or processor time. Sigwrap changes nothing in the groups above. A process that may write
there, such as root, can leave them; then only the extra counts are missing.

Imported only for a policy that has such limits.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import time
from collections.abc import Container, Iterable, Iterator

from sigwrap.bare import TYPE_CHECKING, NamedTuple, deque
from sigwrap.errors import KernelError
from sigwrap.kernel import limits as own_limits
from sigwrap.kernel import process, procfs
from sigwrap.kernel.libc import syscall
from sigwrap.machine import NUMBERS
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.loop import Done, Lane, Late, Outcome
from sigwrap.session.run_end import LimitReached

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_CLOSER_WITHIN_S = 10.0
SOONEST_S = 0.1
SOONEST_FOR_MEMORY_S = 0.05
LATEST_S = 5.0
LATEST_FOR_MEMORY_S = 1.0
# After a long look, the next comes later: looks may take a twentieth of the time.
REST_AFTER_LOOK = 20
# The rate at which two threads can allocate memory.
_GROWTH_BYTES_PER_S = 2 << 30
# A tree that grows by this factor after the limit is killed before its grace period ends.
_GROWTH_FACTOR = 1.25
_UNITS = (("G", 30), ("M", 20), ("K", 10))

_TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SYS_KCMP = NUMBERS["kcmp"]
_KCMP_VM = 1

_PREFIX = "sigwrap-"
_OF_A_SESSION = re.compile(_PREFIX + r"\d{8}-\d{6}-[0-9a-f]{6,16}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENDS_WITHIN_S = 0.2
_PAUSE_S = 0.005
# Pipes and sockets come on top of the sum that the limit applies to.
_LEEWAY_SHARE = 8
_LEAST_LEEWAY_BYTES = 16 << 20


class Usage:
    def __init__(self, limits: Limits, command_pid: int, session_id: str) -> None:
        """Prepare the measurements. To be called before the command's exec."""
        self._cpu_time_s, self._memory_limit = limits.cpu_time_s, limits.memory_bytes
        self._processors = os.cpu_count() or 1
        self._command_pid = command_pid
        self._time = ProcessorTime()
        self.used: dict[str, float] = {}  # by limit, as of the last look
        self._is_near: set[str] = set()
        self._is_reached: set[str] = set()
        self._was_over = False
        self._kill_above = 0  # bytes, above the limit
        self._looks_closer = self._is_stuck = False
        self._not_closer_before_s = 0.0
        self._groups = make_groups(session_id, command_pid, limits.memory_bytes)
        self.without: list[str] = []
        if self._cpu_time_s and not any(each.counts_time for each in self._groups):
            self.without.append(
                "cgroup for cpu_time: not all CPU time of unreaped children is counted"
            )
        if self._memory_limit and not any(each.counts_memory for each in self._groups):
            self.without.append(
                "cgroup for memory: files in memory (tmpfs) are not counted, and a fast process "
                "may exceed the limit until the next poll"
            )

    def begin(self, session: Session) -> None:
        self._loop = session.loop
        self._pool = session.pool
        self._recorder = session.recorder
        self._run = session.ending.run
        self._look()

    def close(self) -> None:
        for group in self._groups:
            group.remove()
        self._groups = []

    def _look(self) -> None:
        started_s = time.thread_time()
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = look(self._time.known)
        reaped_ms = int((reaped.ru_utime + reaped.ru_stime) * 1000)
        times_ms = [each.time_ms() for each in self._groups]
        self.cpu_used(max([self._time.add(found, reaped_ms), *times_ms]))
        if self._memory_limit:
            self._look_at_memory(found)
        self._loop.call_in(self.next_look_s(time.thread_time() - started_s), self._look)

    def next_look_s(self, took_s: float) -> float:
        """Return the seconds until the next look. `took_s`: how long the last one took."""
        wait_s = LATEST_S
        if self._cpu_time_s and "cpu_time" not in self._is_reached:
            left_s = self._cpu_time_s - self.used.get("cpu_time", 0.0)
            wait_s = min(wait_s, max(SOONEST_S, left_s / self._processors))
        if self._memory_limit:
            left = max(0.0, self._memory_limit - self.used.get("memory", 0))
            in_s = min(left / _GROWTH_BYTES_PER_S, LATEST_FOR_MEMORY_S)
            wait_s = min(wait_s, max(SOONEST_FOR_MEMORY_S, in_s))
        return max(wait_s, REST_AFTER_LOOK * took_s)

    def cpu_used(self, used_ms: int) -> None:
        limit, maximum = "cpu_time", self._cpu_time_s
        used_s = used_ms / 1000
        self.used[limit] = round(used_s, 1)
        if not maximum or limit in self._is_reached or used_s * 2 < maximum:
            return
        if used_s > maximum:
            rounded_up = -(-used_ms // 100) / 10
            why = f"cpu_time: used {rounded_up:.1f} s of {maximum} s of processor time"
            self._reached(LimitReached(limit, maximum, why, rounded_up))
        else:
            self._near(limit, maximum, int(used_s))

    def _look_at_memory(self, processes: list[ProcessUse]) -> None:
        if reached := self.limit_at_end():
            self._run.limit_reached(reached)
        in_cgroup = max((each.memory_bytes() for each in self._groups), default=0)
        at_most = max(
            in_cgroup,
            sum(each.memory_bytes for each in processes) + beyond_resident(processes),
        )
        if in_cgroup > self._memory_limit:
            self.memory_used(in_cgroup, is_certain=True)
        elif not self.is_worth_a_closer_look(at_most) or self._is_stuck:
            self.memory_used(at_most)
        elif not self._looks_closer and time.monotonic() >= self._not_closer_before_s:
            self._look_closer(processes, at_most, in_cgroup)

    def is_worth_a_closer_look(self, at_most_bytes: int) -> bool:
        """Return whether this upper bound may have passed half of the limit, or the limit."""
        share = 1 if "memory" in self._is_near | self._is_reached else 2
        return at_most_bytes * share >= self._memory_limit

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
            self.memory_used(max(used, in_cgroup))

        self._looks_closer = True
        self._pool.run(work, seen, lane=Lane.MEMORY, deadline_s=_CLOSER_WITHIN_S, over=over)

    def memory_used(self, used: int, *, is_certain: bool = False) -> None:
        """Note a memory sum. It is uncertain if processes were read in turn, since pages that moved
        between them may count twice. Then a second look must confirm it."""
        limit, maximum = "memory", self._memory_limit
        self.used[limit] = used
        is_over = used > maximum
        is_certain, self._was_over = is_certain or self._was_over, is_over
        if not (is_over and is_certain):
            if used * 2 >= maximum:
                self._near(limit, maximum, used)
        elif limit not in self._is_reached:
            self._kill_above = int(used * _GROWTH_FACTOR)
            why = f"memory: {_size(used)} in use, over the limit of {_size(maximum)}"
            self._reached(LimitReached(limit, maximum, why, used))
        elif 0 < self._kill_above < used:
            # It grows on: the memory must be kept for other programs.
            self._kill_above = 0
            why = f"memory: {_size(used)} in use by now, over the limit of {_size(maximum)}"
            self._run.kill(why)

    def limit_at_end(self) -> LimitReached | None:
        """Return the limit if the kernel killed a process because memory ran out, once."""
        limit, maximum = "memory", self._memory_limit
        if limit in self._is_reached or not any(each.ran_out_of_memory() for each in self._groups):
            return None
        self._is_reached.add(limit)
        why = f"memory: the kernel killed a process at the limit of {_size(maximum)}"
        return LimitReached(limit, maximum, why)

    def _near(self, limit: str, maximum: int, used: int) -> None:
        if limit not in self._is_near | self._is_reached:
            self._is_near.add(limit)
            payload = {"limit": limit, "maximum": maximum, "used": used}
            self._recorder.record("limit_near", self._command_pid, payload)

    def _reached(self, reached: LimitReached) -> None:
        self._is_reached.add(reached.limit)
        self._run.limit_reached(reached)


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


class _Counter(NamedTuple):
    """A figure in a file: the sum of these lines, or the only number, in this unit."""

    file: str
    lines: tuple[bytes, ...] = ()
    unit: int = 1


class _Controller(NamedTuple):
    """What a group of this controller counts. Memory excludes pages of files, which the kernel can
    drop, and includes tmpfs."""

    time: _Counter | None = None  # nanoseconds
    memory: tuple[_Counter, ...] = ()
    maximum: str = ""
    kills: _Counter = _Counter("")


_CONTROLLERS = {
    "": _Controller(  # version 2
        time=_Counter("cpu.stat", (b"usage_usec",), 1000),
        memory=(
            _Counter("memory.stat", (b"anon", b"shmem", b"pagetables")),
            _Counter("memory.swap.current"),
        ),
        maximum="memory.max",
        kills=_Counter("memory.events", (b"oom_kill",)),
    ),
    "cpuacct": _Controller(time=_Counter("cpuacct.usage")),
    "memory": _Controller(
        memory=(_Counter("memory.stat", (b"total_rss", b"total_shmem", b"total_swap")),),
        maximum="memory.limit_in_bytes",
        kills=_Counter("memory.oom_control", (b"oom_kill",)),
    ),
}


def make_groups(session_id: str, pid: int, memory_bytes: int) -> list[Group]:
    """Put a process that has done nothing yet into new groups, as far as they can be made."""
    above = own_limits.own_folders()
    found = []
    for controller in _CONTROLLERS.keys() & above.keys():
        try:
            group = Group(above[controller], _PREFIX + session_id, _CONTROLLERS[controller])
        except OSError:
            continue
        if group.take(pid, memory_bytes):
            found.append(group)
        else:
            group.remove()
    return found


class Group:
    """A control group, held by descriptors: mounts over its path do not matter. Its directory is
    locked while its supervisor lives, so that a later session can remove those of a killed one."""

    def __init__(self, above: str, name: str, controller: _Controller) -> None:
        self.counts_time = self.counts_memory = False
        self._name = name
        self._controller = controller
        self._above = os.open(above, _FOLDER)
        self._folder = -1
        try:
            os.mkdir(name, 0o755, dir_fd=self._above)
            self._folder = os.open(name, _FOLDER, dir_fd=self._above)
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_leftovers(self._above, name)
        except OSError:
            self.remove()
            raise

    def take(self, pid: int, memory_bytes: int) -> bool:
        """Return False if the group counts nothing, or cannot take the process."""
        counter = self._controller.time
        self.counts_time = counter is not None and os.access(
            counter.file, os.F_OK, dir_fd=self._folder
        )
        try:
            self.counts_memory = self._limits_memory(memory_bytes)
            if self.counts_time or self.counts_memory:
                self._write("cgroup.procs", pid)
                return True
        except OSError:
            pass
        return False

    def _limits_memory(self, memory_bytes: int) -> bool:
        """Limit the memory of the group a little above, if it can; return whether it does."""
        if not memory_bytes or not self._controller.memory:
            return False
        try:
            leeway = max(memory_bytes // _LEEWAY_SHARE, _LEAST_LEEWAY_BYTES)
            self._write(self._controller.maximum, memory_bytes + leeway)
        except OSError:
            return False
        return True

    def _write(self, name: str, value: int) -> None:
        fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            os.write(fd, str(value).encode())
        finally:
            os.close(fd)

    def time_ms(self) -> int:
        counter = self._controller.time
        return 0 if counter is None else self._figure(counter) // 1_000_000

    def memory_bytes(self) -> int:
        return sum(map(self._figure, self._controller.memory)) if self.counts_memory else 0

    def ran_out_of_memory(self) -> bool:
        return self.counts_memory and self._figure(self._controller.kills) > 0

    def _figure(self, counter: _Counter) -> int:
        """Return the figure, 0 if its file is gone."""
        try:
            fd = os.open(counter.file, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._folder)
            try:
                text = os.read(fd, 1 << 16)
            finally:
                os.close(fd)
        except OSError:
            return 0
        if not counter.lines:
            return int(text) * counter.unit
        pairs = (line.partition(b" ") for line in text.split(b"\n"))
        return sum(int(value) for name, _, value in pairs if name in counter.lines) * counter.unit

    def remove(self) -> None:
        """Remove it and the groups below it.

        The next session removes the rest, such as a group with a process from outside.
        """
        until_s = time.monotonic() + _ENDS_WITHIN_S
        while not _remove(self._above, self._name) and time.monotonic() < until_s:
            time.sleep(_PAUSE_S)  # a process that has just ended may still be in it
        for fd in (self._folder, self._above):
            if fd >= 0:
                os.close(fd)


def _remove_leftovers(above: int, ours: str) -> None:
    """Remove the groups of sessions whose supervisor has died."""
    for name in os.listdir(above):
        if name == ours or not _OF_A_SESSION.fullmatch(name):
            continue
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(above, name)
        except OSError:
            pass  # its supervisor lives
        finally:
            os.close(fd)


def _remove(above: int, name: str) -> bool:
    """Remove a group with all groups below it. Its files go with the directories."""
    try:
        for _, folders, _, fd in os.fwalk(name, topdown=False, dir_fd=above):
            for each in folders:
                os.rmdir(each, dir_fd=fd)
        os.rmdir(name, dir_fd=above)
    except FileNotFoundError:
        return True
    except (OSError, RecursionError):
        return False
    return True
