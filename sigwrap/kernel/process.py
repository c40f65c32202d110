"""Processes: their ends, children, descendants, the end of a whole tree, pid namespaces, rights."""

from __future__ import annotations

import errno
import os
import resource
import struct
import time
from collections.abc import Callable, Iterator
from fcntl import ioctl

from sigwrap.bare import signal, suppress
from sigwrap.errors import DOCTOR, KernelError
from sigwrap.kernel import procfs, ptrace
from sigwrap.kernel.libc import syscall
from sigwrap.machine import NUMBERS

_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_EXIT = 1 << 3
_ORPHAN_ROUNDS = 500
_REAPED_AT_ONCE = 1000
_CHILDREN_BYTES = 1 << 16
_SHORTEST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.05
_GIVES_UP_AFTER_S = 10.0
_PIDFD_INFO = struct.Struct("<Q52xi")

# The kernel's own calls: the C library does not let us set 32 and 33, which are signals too.
_SYS_RT_SIGACTION = NUMBERS["rt_sigaction"]
_SYS_RT_SIGPROCMASK = NUMBERS["rt_sigprocmask"]
_SET_BYTES = 8
_UNBLOCK = 1
_DEFAULT_ACTION = bytes(4 * 8)  # handler, flags, restorer, mask

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_LIMIT = resource.RLIM_INFINITY
_NEARLY, _HARDLY = 0.75, 0.2
_UTIME, _STIME, _START_TIME = 11, 12, 19  # among the figures

_NS_GET_PARENT = 0xB702
_NS_GET_PID_FROM_PIDNS = 0x8004B706

_RIGHTS = {
    "user differs": (b"Uid",),
    "group differs": (b"Gid",),
    "groups differ": (b"Groups",),
    "capabilities differ": (b"CapPrm", b"CapEff", b"CapBnd", b"CapAmb"),
    "no_new_privs differ": (b"NoNewPrivs",),
    "seccomp filters differ": (b"Seccomp", b"Seccomp_filters"),
}
_PLACES = {
    "mount namespace differs": "ns/mnt",
    "pid namespace differs": "ns/pid",
    "network namespace differs": "ns/net",
    "user namespace differs": "ns/user",
    "ipc namespace differs": "ns/ipc",
    "uts namespace differs": "ns/uts",
    "root directory differs": "root",
}


def exit_status_by_pidfd(pidfd: int) -> int | None:
    """Return the wait(2) status of any process once its parent has reaped it (Linux 6.15)."""
    info = bytearray(_PIDFD_INFO.size)
    _PIDFD_INFO.pack_into(info, 0, _PIDFD_INFO_EXIT, 0)
    try:
        ioctl(pidfd, _PIDFD_GET_INFO, info, True)
    except OSError:
        return None
    mask, status = _PIDFD_INFO.unpack(info)
    return int(status) if mask & _PIDFD_INFO_EXIT else None


def exit_status_of_child(pidfd: int) -> int | None:
    """Return the wait(2) status of a zombie child, without reaping it."""
    try:
        found = os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except OSError:
        return None
    if found is None:
        return None
    return found.si_status << 8 if found.si_code == os.CLD_EXITED else found.si_status


def fork() -> int:
    try:
        return os.fork()
    except OSError as failure:
        error = failure.errno or errno.EAGAIN
        way_out = "raise the process limit: ulimit -u; " if error == errno.EAGAIN else ""
        raise KernelError(
            f"cannot start a process: {os.strerror(error)}", error, f"{way_out}{DOCTOR}"
        ) from failure


def descendants(ancestor: int) -> list[int]:
    """Return all processes below, except zombies: these need reaping, not killing."""
    return [found.pid for found in below(ancestor) if not found.has_ended]


def children(pid: int) -> list[int]:
    """Return the children of all its threads, with zombies."""
    if not has_children_files():
        return [found.pid for found in _by_parent().get(pid, ())]
    return [
        child
        for tid in procfs.threads(pid)
        for child in procfs.children(f"/proc/{pid}/task/{tid}/children")
    ]


def count_descendants(ancestor: int) -> int:
    """Count all processes below, with zombies, which occupy a pid as well."""
    if not has_children_files():
        return len(below(ancestor))
    seen: set[int] = set()
    # Orphans become children of the subreaper meanwhile, so its children are read again.
    while level := [pid for pid in children(ancestor) if pid not in seen]:
        while level:
            seen.update(level)
            level = [child for pid in level for child in children(pid) if child not in seen]
    return len(seen)


def has_children_files() -> bool:
    """Return whether the kernel has these files, which save reading all of /proc."""
    return procfs.exists("/proc/thread-self/children")


def below(ancestor: int) -> list[procfs.Stat]:
    """Return all processes below, with zombies, each after its parent."""
    return [found for level in levels_below(ancestor) for found in level]


def levels_below(ancestor: int) -> Iterator[list[procfs.Stat]]:
    """Yield the children, then their children, and so on, with zombies."""
    by_parent = _by_parent()
    level = by_parent.get(ancestor, [])
    while level:
        yield level
        level = [child for found in level for child in by_parent.get(found.pid, ())]


def _by_parent() -> dict[int, list[procfs.Stat]]:
    found: dict[int, list[procfs.Stat]] = {}
    for pid in procfs.all_pids():
        process = procfs.stat(pid)
        if process is not None:
            found.setdefault(process.ppid, []).append(process)
    return found


def send(pid: int, signal_number: int) -> bool:
    """Send a signal; return False if the process is gone or may not be signalled."""
    try:
        os.kill(pid, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def send_to_same(found: procfs.Stat, signal_number: int) -> bool:
    """Send a signal to a process that was seen earlier, unless its pid is another process's now."""
    try:
        pidfd = os.pidfd_open(found.pid)
    except OSError:
        return False
    try:
        now = procfs.stat(found.pid)
        if now is None or now.start_time != found.start_time:
            return False
        signal.pidfd_send_signal(pidfd, signal_number)
        return True
    except OSError:
        return False
    finally:
        os.close(pidfd)


def terminate(pid: int) -> None:
    send(pid, signal.SIGTERM)
    send(pid, signal.SIGCONT)  # a stopped process cannot end


def kill_below(ancestor: int) -> None:
    """Kill all processes below a subreaper that can't do it itself: orphans stay its children."""
    for _ in range(_ORPHAN_ROUNDS):
        found = descendants(ancestor)
        for pid in found:
            send(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(_SHORTEST_PAUSE_S)


Reaped = Callable[[int, int], None]


class Sweep:
    """Kills all processes below this one, a subreaper: no process leaves its tree, so the tree is
    empty when no child is left.

    A round stops all processes, then kills them. The next round stops those that were forked faster
    than this one read. In a relay, each process forks one and exits, so a round finds none: but its
    orphans become children of this process, which are killed between rounds as fast as they come.
    Their list is read from a file that is open from the start. So the tree ends even if no
    descriptor is left. Zombies are reaped meanwhile, or they would fill the process table.
    """

    def __init__(self, reaped: Reaped) -> None:
        self._reaped = reaped
        try:
            self._children_fd = procfs.open_file(f"/proc/self/task/{os.getpid()}/children")
        except OSError:
            self._children_fd = -1  # some kernels are built without the file
        self._killed: set[int] = set()
        self._last_progress_s = 0.0
        self.unkillable: list[int] = []
        self.spared = 0  # a child without children, which is left alone

    def run(self, *, timeout_s: float) -> bool:
        """Return False if processes are left after the time: call it again.

        Return True also if those that are left outlive SIGKILL, because they wait in the kernel.
        """
        deadline = time.monotonic() + timeout_s
        self._last_progress_s = self._last_progress_s or time.monotonic()
        while reap(self._on_reaped) and not self._is_clear():
            self._round()
            now = time.monotonic()
            idle_s = now - self._last_progress_s
            if idle_s > _GIVES_UP_AFTER_S:
                self.unkillable = self.alive()
                return True
            if now > deadline:
                return False
            if idle_s:
                time.sleep(max(_SHORTEST_PAUSE_S, min(idle_s, _LONGEST_PAUSE_S)))
        return True

    def _is_clear(self) -> bool:
        """Return whether only the spared child is left. Only we reap our children, so none of them
        leaves their list while it is read."""
        return self.spared != 0 and not (self._own_children() or self.alive())

    def _round(self) -> None:
        alive = self.alive()
        for pid in alive:
            if pid not in self._killed:
                send(pid, signal.SIGSTOP)
        fresh = [pid for pid in alive if send(pid, signal.SIGKILL) and pid not in self._killed]
        if fresh:
            self._killed.update(fresh)
            self._last_progress_s = time.monotonic()
        self._kill_orphans()

    def alive(self) -> list[int]:
        """Return all processes below, or only the children if no descriptor is left.

        Orphans become children of this process. So without a child there is no process below, and
        /proc need not be read.
        """
        if not _has_children():
            return []
        try:
            return [pid for pid in descendants(os.getpid()) if pid != self.spared]
        except OSError:
            return self._own_children()

    def _kill_orphans(self) -> None:
        for _ in range(_ORPHAN_ROUNDS):
            children = self._own_children()
            for pid in children:
                send(pid, signal.SIGKILL)
            if not children or not reap(self._on_reaped):
                return

    def _own_children(self) -> list[int]:
        if self._children_fd < 0:
            return []
        try:
            data = os.pread(self._children_fd, _CHILDREN_BYTES, 0)
        except OSError:
            return []
        found = map(int, data[: data.rfind(b" ")].split())
        return [pid for pid in found if pid != self.spared]

    def _on_reaped(self, pid: int, status: int) -> None:
        self._killed.discard(pid)
        self._last_progress_s = time.monotonic()
        self._reaped(pid, status)


def _has_children() -> bool:
    """Return whether there are children, or zombies."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT | ptrace.WALL
    try:
        os.waitid(os.P_ALL, 0, options)
    except ChildProcessError:
        return False
    return True


def reap(reaped: Reaped) -> bool:
    """Reap what has ended; return False if no child is left."""
    for _ in range(_REAPED_AT_ONCE):
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | ptrace.WALL)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if os.WIFSTOPPED(status):
            # SIGKILL does not end the stop of a traced process before its exit.
            with suppress(KernelError):  # it has ended
                ptrace.resume(pid)
        else:
            reaped(pid, status)
    return True


def die_of(signal_number: int) -> None:
    """End by this signal. Returns if it has no effect, as in the first process of a namespace."""
    keep_from_core(os.getpid())
    if signal_number not in (signal.SIGKILL, signal.SIGSTOP):
        number, action = signal_number, _DEFAULT_ACTION
        syscall("rt_sigaction", _SYS_RT_SIGACTION, number, action, 0, _SET_BYTES)
        alone = (1 << signal_number - 1).to_bytes(_SET_BYTES, "little")
        syscall("rt_sigprocmask", _SYS_RT_SIGPROCMASK, _UNBLOCK, alone, 0, _SET_BYTES)
    try:
        os.kill(os.getpid(), signal_number)
    except OSError:
        pass


def keep_from_core(pid: int) -> str:
    """Forbid core dumps for good; return why that fails, or "".

    With a limit of 1, the kernel starts no program to pipe it to either. For 0 it starts one.
    """
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
        if hard != 0:  # raising it is for root
            resource.prlimit(pid, resource.RLIMIT_CORE, (1, 1))
    except OSError as refusal:
        return f"cannot keep it from dumping core: {refusal.strerror}"
    return ""


def oom_kills() -> int | None:
    """Return how many processes the OOM killer has killed since the machine started, or None.

    It counts before it kills, so before the end can be seen.
    """
    lines = procfs.contents("/proc/vmstat") or b""
    _, _, rest = lines.partition(b"\noom_kill ")
    count = rest.partition(b"\n")[0]
    return int(count) if count.isdigit() else None


def used_up_cpu_limit(pid: int, start_time: int) -> int | None:
    """Return the process's hard RLIMIT_CPU in seconds if it has used that up, and 0 if not.

    Nothing else tells. None if it is unknown: the parent may have reaped the process.
    """
    figures = procfs.figures(pid)
    if figures is None or int(figures[_START_TIME]) != start_time:
        return None
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
    except (OSError, ValueError):
        return None
    # The kernel compares ticks with the limit, and shows what the scheduler measured: these differ
    # by some percent, and on a busy machine by much more.
    used_s = (int(figures[_UTIME]) + int(figures[_STIME])) / _TICKS_PER_S
    if hard == _NO_LIMIT or used_s < hard * _HARDLY:
        return 0
    return hard if used_s >= hard * _NEARLY else None


def namespace_level(pid: int) -> str:
    """Return how deep below /proc's pid namespace a process is.

    /proc shows only this namespace and those below, so a process on the same level is in the same
    namespace. A process that is not dumpable hides its ns/pid, but not this.
    """
    return str(len(procfs.numbers(pid, "NSpid")))


def pid_for(sender: int, number: int) -> int | None:
    """Return the pid or tid that `sender` knows as `number`."""
    try:
        return _translated(sender, number)
    except OSError as refusal:
        return _find(sender, number, "NSpid") if refusal.errno == errno.ENOTTY else None


def group_for(sender: int, number: int) -> int | None:
    try:  # most groups have their leader
        return _translated(sender, number)
    except OSError:
        return _find(sender, number, "NSpgid")


def _translated(sender: int, number: int) -> int:
    """Ask the kernel, without a search (Linux 6.11). Raises OSError if there is none."""
    fd = procfs.open_file(f"/proc/{sender}/ns/pid")
    try:
        return ioctl(fd, _NS_GET_PID_FROM_PIDNS, number)
    finally:
        os.close(fd)


def _find(sender: int, number: int, field: str) -> int | None:
    level = len(procfs.numbers(sender, "NSpid")) - 1
    wanted = procfs.linked(f"/proc/{sender}/ns/pid")
    if not wanted:
        return None
    for pid in procfs.all_pids():
        for tid in (pid,) if field == "NSpgid" else procfs.threads(pid):
            numbers = procfs.numbers(tid, field)
            if numbers and len(numbers) <= level:
                break  # its namespace is above, and so are its other threads'
            if numbers and numbers[level] == number and _is_within(pid, level, wanted):
                return numbers[0]
    return None


def _is_within(pid: int, level: int, wanted: str) -> bool:
    """Return whether a process is in the wanted namespace or below: levels have many namespaces."""
    depth = len(procfs.numbers(pid, "NSpid")) - 1
    if depth < level:
        return False
    try:
        fd = procfs.open_file(f"/proc/{pid}/ns/pid")
    except OSError:
        return False
    for _ in range(depth - level):
        try:
            parent = ioctl(fd, _NS_GET_PARENT)
        except OSError:
            os.close(fd)
            return False
        os.close(fd)
        fd = parent
    try:
        return f"pid:[{os.fstat(fd).st_ino}]" == wanted
    finally:
        os.close(fd)


class Rights:
    """The rights, namespaces and root that this process has now."""

    def __init__(self) -> None:
        self._own = _rights_of("self")

    def difference(self, pid: int) -> str:
        """Return how the process differs, or an empty string."""
        try:
            theirs = _rights_of(pid)
        except OSError as refusal:
            return f"cannot read its credentials: {refusal.strerror}"
        differing = [what for what, value in theirs.items() if value != self._own[what]]
        return f"its {differing[0]} from the session's" if differing else ""


def _rights_of(pid: int | str) -> dict[str, object]:
    status = procfs.contents(f"/proc/{pid}/status")
    if status is None:
        raise ProcessLookupError(0, "it has ended")
    found: dict[str, object] = {
        what: [line for line in status.split(b"\n") if line.partition(b":")[0] in names]
        for what, names in _RIGHTS.items()
    }
    for what, path in _PLACES.items():
        place = procfs.file_status(f"/proc/{pid}/{path}")
        found[what] = place.st_dev, place.st_ino
    return found
