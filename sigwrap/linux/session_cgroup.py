"""Control groups of the session's own, below those that sigwrap is in, where it may make them: they
count what no look at processes can, and the kernel itself holds them at a limit of memory.

Of version 2, or of version 1 where the memory or processor time is counted there. What would change
the groups above them, as to have a controller handed down, is left alone. Whoever may write there,
as root inside may, can leave them: that only costs what they alone could count.

Each folder is locked as long as its session's supervisor lives, so that the next session can tell
what a killed one has left behind.
"""

from __future__ import annotations

import fcntl
import os
import re
import time

from sigwrap.bare.contextlib import suppress
from sigwrap.linux import cgroups
from sigwrap.tuples import NamedTuple

_PREFIX = "sigwrap-"
_OF_A_SESSION = re.compile(_PREFIX + r"\d{8}-\d{6}-[0-9a-f]{6}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 3  # another session may take a new one for a leftover, until it is locked
_ENDS_WITHIN_S = 0.2
_PAUSE_S = 0.005
# Pipes, sockets and the like come on top of what is counted.
_LEEWAY_SHARE = 8
_LEAST_LEEWAY_BYTES = 16 << 20


class _Counter(NamedTuple):
    """Where a figure stands: the sum of these lines, or the only number; in how many bytes or
    nanoseconds."""

    file: str
    lines: tuple[bytes, ...]
    unit: int


_TIME = {
    "": _Counter("cpu.stat", (b"usage_usec",), 1000),
    "cpuacct": _Counter("cpuacct.usage", (), 1),
}
# What the kernel can drop (pages of files) is not in it; what lies in a tmpfs is.
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
    """A folder, by descriptors: what is mounted over the way to it later doesn't matter."""

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

    def figure(self, counter: _Counter) -> int:
        """0 where the file isn't there, or any more."""
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
        """Those that were made below it, too. What cannot be removed is left to the next session:
        somebody from outside may be in it."""
        until_s = time.monotonic() + _ENDS_WITHIN_S
        while not _remove(self._above, self.name) and time.monotonic() < until_s:
            time.sleep(_PAUSE_S)  # who has just ended may still be in it
        for fd in (self._folder, self._above):
            if fd >= 0:
                os.close(fd)


class SessionCgroup:
    def __init__(self, session_id: str) -> None:
        self._groups: dict[str, _Group] = {}  # by controller; "" is version 2
        self._time: tuple[_Group, _Counter] | None = None
        self._memory: tuple[_Group, str] | None = None
        self._name = _PREFIX + session_id

    def take(self, pid: int, *, counts_time: bool, memory_bytes: int) -> None:
        """A process that has done nothing yet. What can't be had is done without."""
        above = cgroups.own_folders()
        wanted = [""]
        wanted += ["cpuacct"] * counts_time + ["memory"] * bool(memory_bytes)
        for controller in wanted:
            if controller not in above:
                continue
            if controller == "cpuacct" and self._time is not None:
                continue
            if controller == "memory" and self._memory is not None:
                continue
            group = _made(above[controller], self._name)
            if group is None:
                continue
            if not self._use(group, controller, counts_time, memory_bytes):
                group.remove()
                continue
            try:
                group.write("cgroup.procs", pid)
            except OSError:
                self._forget(group)
                group.remove()
                continue
            self._groups[controller] = group

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
        for group in self._groups.values():
            group.remove()
        self._groups.clear()
        self._time = self._memory = None

    def _use(self, group: _Group, controller: str, counts_time: bool, memory_bytes: int) -> bool:
        """Whether it is good for anything."""
        if counts_time and controller in _TIME and group.has(_TIME[controller].file):
            self._time = (group, _TIME[controller])
        if memory_bytes and controller in _MAXIMUM and group.has(_MAXIMUM[controller]):
            leeway = max(memory_bytes // _LEEWAY_SHARE, _LEAST_LEEWAY_BYTES)
            with suppress(OSError):
                group.write(_MAXIMUM[controller], memory_bytes + leeway)
                self._memory = (group, controller)
        return any(used is not None and used[0] is group for used in (self._time, self._memory))

    def _forget(self, group: _Group) -> None:
        if self._time is not None and self._time[0] is group:
            self._time = None
        if self._memory is not None and self._memory[0] is group:
            self._memory = None


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
    """Of sessions whose supervisor lives no more."""
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
    """With all groups below it, as far as that goes: of a group, folders can be removed, and need
    be."""
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
