"""The resource use of a process tree, from /proc and from control groups of the session's own.

A look reads a process before it lists its children, so before any of them may end and be counted in
the parent's times.

Control groups also count what a look misses, and the kernel enforces their memory limit. They are
below sigwrap's own groups, if it may make them: in version 2, or in version 1 where that counts
memory or processor time. Sigwrap changes nothing in the groups above. A process that may write
there, such as root, can leave them; then only the extra counts are missing. Each directory is
locked while its supervisor lives, so that a later session can remove those of a killed one.
"""

from __future__ import annotations

import fcntl
import os
import re
import resource
import time
from collections.abc import Container, Iterable, Iterator, Mapping

from sigwrap.bare import NamedTuple, deque
from sigwrap.errors import KernelError
from sigwrap.kernel import limits, process, procfs
from sigwrap.kernel.libc import syscall
from sigwrap.machine import NUMBERS

_TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SYS_KCMP = NUMBERS["kcmp"]
_KCMP_VM = 1

_PREFIX = "sigwrap-"
_OF_A_SESSION = re.compile(_PREFIX + r"\d{8}-\d{6}-[0-9a-f]{6}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 3  # another session may remove a new directory before it is locked
_ENDS_WITHIN_S = 0.2
_PAUSE_S = 0.005
# Pipes and sockets come on top of the sum that the limit applies to.
_LEEWAY_SHARE = 8
_LEAST_LEEWAY_BYTES = 16 << 20


class ProcessUse(NamedTuple):
    """The usage of one process. A zombie still has its times."""

    pid: int
    start_time: int
    ppid: int
    own_ms: int
    of_children_ms: int  # children that it has waited for, and their children
    memory_bytes: int  # an upper bound: shared memory is counted for each process


class Look(NamedTuple):
    supervisor: int
    reaped_ms: int  # of the processes that the supervisor has waited for
    processes: tuple[ProcessUse, ...]
    ended: frozenset[int]  # processes of the last look that ended before this one


def look(known: Mapping[int, ProcessUse]) -> Look:
    """Look at the tree. `known` are the processes of the last look."""
    supervisor = os.getpid()
    ended = frozenset(pid for pid in known if not _is_there(pid))  # before any of them is read
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {each.pid: each for each in _below(supervisor)}
    for pid, before in known.items():
        # The kernel may omit children while another child of the same parent ends.
        if pid not in found and pid not in ended:
            again = _read(pid)
            if again is not None and again[0].start_time == before.start_time:
                found[pid] = again[0]
    reaped_ms = int((reaped.ru_utime + reaped.ru_stime) * 1000)
    return Look(supervisor, reaped_ms, tuple(found.values()), ended)


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
    if not process.has_children_files():
        for found in process.below(supervisor):
            if read := _read(found.pid):
                yield read[0]
        return
    tree = {supervisor}
    waiting = deque(process.children(supervisor))
    while waiting:
        pid = waiting.popleft()
        read = None if pid in tree else _read(pid)
        if read is None or read[0].ppid not in tree:  # it has ended; the pid may be reused
            continue
        yield read[0]
        tree.add(pid)
        if read[1] == 1:  # thread
            waiting += procfs.children(f"/proc/{pid}/task/{pid}/children")
        else:
            waiting += process.children(pid)


def _read(pid: int) -> tuple[ProcessUse, int] | None:
    """Return the use of a process, and its number of threads."""
    fields = procfs.figures(pid)
    if fields is None:
        return None
    threads = int(fields[17])
    pages = int(fields[21])
    if pages <= 0 and threads > 1:  # its first thread has ended; another one shows its memory
        pages = max((int(each[21]) for each in _threads(pid)), default=0)
    found = ProcessUse(
        pid,
        int(fields[19]),
        int(fields[1]),
        (int(fields[11]) + int(fields[12])) * _TICK_MS,
        (int(fields[13]) + int(fields[14])) * _TICK_MS,
        max(0, pages) * _PAGE_BYTES,
    )
    return found, threads


def _in_status(pid: int, *names: bytes) -> int:
    """Return the sum of these lines of /proc/PID/status, in bytes."""

    def read(tid: int) -> int:
        return procfs.kilobytes(f"/proc/{tid}/status", *names) or 0

    found = read(pid)
    if not found:  # its first thread may have ended; another one shows its memory
        found = max(map(read, procfs.threads(pid)), default=0)
    return found * 1024


def _threads(pid: int) -> Iterator[list[bytes]]:
    for tid in procfs.threads(pid):
        fields = procfs.figures(tid)
        if fields is not None:
            yield fields


def _is_there(pid: int) -> bool:
    try:
        os.getpgid(pid)  # works for any process
    except ProcessLookupError:
        return False
    return True


def _is_in_memory_of(pid: int, parent: int) -> bool:
    """Return whether both share memory, as between vfork and exec: count it once."""
    try:
        return syscall("kcmp", _SYS_KCMP, pid, parent, _KCMP_VM, 0, 0) == 0
    except KernelError:
        return False


class _Counter(NamedTuple):
    """A figure in a file: the sum of these lines, or the only number, in this unit."""

    file: str
    lines: tuple[bytes, ...]
    unit: int


_TIME = {
    "": _Counter("cpu.stat", (b"usage_usec",), 1000),
    "cpuacct": _Counter("cpuacct.usage", (), 1),
}
# Excludes pages of files, which the kernel can drop, and includes tmpfs.
_MEMORY = {
    "": (
        _Counter("memory.stat", (b"anon", b"shmem", b"pagetables"), 1),
        _Counter("memory.swap.current", (), 1),
    ),
    "memory": (_Counter("memory.stat", (b"total_rss", b"total_shmem", b"total_swap"), 1),),
}
_MAXIMUM = {"": "memory.max", "memory": "memory.limit_in_bytes"}
_KILLS = {
    "": _Counter("memory.events", (b"oom_kill",), 1),
    "memory": _Counter("memory.oom_control", (b"oom_kill",), 1),
}


class _Group:
    """A control group, held by descriptors: mounts over its path do not matter."""

    def __init__(self, above: str, name: str) -> None:
        self.name = name
        self._above = os.open(above, _FOLDER)
        self._folder = -1
        try:
            os.mkdir(name, 0o755, dir_fd=self._above)
            self._folder = os.open(name, _FOLDER, dir_fd=self._above)
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.remove()
            raise

    def has(self, name: str) -> bool:
        return os.access(name, os.F_OK, dir_fd=self._folder)

    def write(self, name: str, value: int) -> None:
        fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            os.write(fd, str(value).encode())
        finally:
            os.close(fd)

    def limits_memory(self, file: str, memory_bytes: int) -> bool:
        """Limit the memory of the group a little above, if it can; return whether it does."""
        if not self.has(file):
            return False
        try:
            leeway = max(memory_bytes // _LEEWAY_SHARE, _LEAST_LEEWAY_BYTES)
            self.write(file, memory_bytes + leeway)
        except OSError:
            return False
        return True

    def figure(self, counter: _Counter) -> int:
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
        while not _remove(self._above, self.name) and time.monotonic() < until_s:
            time.sleep(_PAUSE_S)  # a process that has just ended may still be in it
        for fd in (self._folder, self._above):
            if fd >= 0:
                os.close(fd)


class SessionCgroup:
    def __init__(self, session_id: str) -> None:
        self._name = _PREFIX + session_id
        self._groups: list[_Group] = []
        self._time: tuple[_Group, _Counter] | None = None
        self._memory: tuple[_Group, str] | None = None  # with its controller

    def take(self, pid: int, *, counts_time: bool, memory_bytes: int) -> None:
        """Put a process that has done nothing yet into new groups, if these can be made."""
        above = limits.own_folders()
        for controller in ("", "cpuacct", "memory"):  # "" is version 2
            wants_time = counts_time and not self.counts_time and controller in _TIME
            wants_memory = memory_bytes and not self.counts_memory and controller in _MEMORY
            if controller not in above or not (wants_time or wants_memory):
                continue
            group = _made(above[controller], self._name)
            if group is None:
                continue
            wants_time = wants_time and group.has(_TIME[controller].file)
            wants_memory = wants_memory and group.limits_memory(_MAXIMUM[controller], memory_bytes)
            try:
                if wants_time or wants_memory:
                    group.write("cgroup.procs", pid)
            except OSError:
                wants_time = wants_memory = False
            if not (wants_time or wants_memory):
                group.remove()
                continue
            self._groups.append(group)
            if wants_time:
                self._time = (group, _TIME[controller])
            if wants_memory:
                self._memory = (group, controller)

    @property
    def counts_time(self) -> bool:
        return self._time is not None

    @property
    def counts_memory(self) -> bool:
        return self._memory is not None

    def time_ms(self) -> int:
        if self._time is None:
            return 0
        group, counter = self._time
        return group.figure(counter) // 1_000_000

    def memory_bytes(self) -> int:
        if self._memory is None:
            return 0
        group, controller = self._memory
        return sum(group.figure(counter) for counter in _MEMORY[controller])

    def ran_out_of_memory(self) -> bool:
        if self._memory is None:
            return False
        group, controller = self._memory
        return group.figure(_KILLS[controller]) > 0

    def remove(self) -> None:
        for group in self._groups:
            group.remove()
        self._groups.clear()
        self._time = self._memory = None


def _made(above: str, name: str) -> _Group | None:
    for _ in range(_TRIES):
        try:
            group = _Group(above, name)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        _remove_leftovers(above, name)
        return group
    return None


def _remove_leftovers(above: str, ours: str) -> None:
    """Remove the groups of sessions whose supervisor has died."""
    try:
        folder = os.open(above, _FOLDER)
    except OSError:
        return
    try:
        for name in os.listdir(folder):
            if name != ours and _OF_A_SESSION.fullmatch(name):
                _remove_leftover(folder, name)
    except OSError:
        return
    finally:
        os.close(folder)


def _remove_leftover(above: int, name: str) -> None:
    try:
        fd = os.open(name, _FOLDER, dir_fd=above)
    except OSError:
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(above, name)
    except OSError:
        return
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
