"""Control groups of the session's own, which count time and memory, and limit memory.

They also count what a look at /proc misses. They are below sigwrap's own groups, if it may make
them: in version 2, or in version 1 where that counts memory or processor time. Sigwrap changes
nothing in the groups above. A process that may write there, such as root, can leave them; then only
the extra counts are missing.
"""

from __future__ import annotations

import fcntl
import os
import re
import time

from sigwrap.bare import NamedTuple
from sigwrap.kernel import limits

_PREFIX = "sigwrap-"
_OF_A_SESSION = re.compile(_PREFIX + r"\d{8}-\d{6}-[0-9a-f]{6}")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ENDS_WITHIN_S = 0.2
_PAUSE_S = 0.005
# Pipes and sockets come on top of the sum that the limit applies to.
_LEEWAY_SHARE = 8
_LEAST_LEEWAY_BYTES = 16 << 20


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


class SessionCgroup:
    """The groups of a session, as far as they can be made."""

    def __init__(self, session_id: str) -> None:
        self._name = _PREFIX + session_id
        self._groups: list[_Group] = []

    def take(self, pid: int, memory_bytes: int) -> None:
        """Put a process that has done nothing yet into new groups."""
        above = limits.own_folders()
        for controller in _CONTROLLERS.keys() & above.keys():
            try:
                group = _Group(above[controller], self._name, _CONTROLLERS[controller])
            except OSError:
                continue
            if group.take(pid, memory_bytes):
                self._groups.append(group)
            else:
                group.remove()

    @property
    def counts_time(self) -> bool:
        return any(each.counts_time for each in self._groups)

    @property
    def counts_memory(self) -> bool:
        return any(each.counts_memory for each in self._groups)

    def time_ms(self) -> int:
        return max((each.time_ms() for each in self._groups), default=0)

    def memory_bytes(self) -> int:
        return max((each.memory_bytes() for each in self._groups), default=0)

    def ran_out_of_memory(self) -> bool:
        return any(each.ran_out_of_memory() for each in self._groups)

    def remove(self) -> None:
        for group in self._groups:
            group.remove()
        self._groups.clear()


class _Group:
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
