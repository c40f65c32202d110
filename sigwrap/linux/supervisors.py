"""Find all supervisors of this user, signal each that the kill switch is on, and kill those that do
not react.

A supervisor is a process with the supervisors' name, of this user, that blocks the signal. A
process in a session can look like one, and ends with its session.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import signal
from sigwrap.linux import proc_files, procfs
from sigwrap.linux.peer import SUPERVISOR_NAME, has_supervisor_above
from sigwrap.linux.pidfd import has_ended
from sigwrap.linux.process import descendants, send
from sigwrap.linux.sigfd import KILL_SWITCH_SIGNAL

_MOST_ROUNDS = 20
_SEALS_WITHIN_S = 5.0


class Supervisor:
    """A supervisor, held by a pidfd, since its pid may be reused."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self.is_killed = False
        self._pidfd = pidfd
        self._stopped: set[int] = set()
        self._rounds = 0
        self._had_some_s = 0.0
        found = procfs.stat(pid)
        self._above = [] if found is None else _own_processes_above(found.ppid, pid)

    @property
    def has_ended(self) -> bool:
        return has_ended(self._pidfd)

    def tell(self) -> bool:
        """Send the signal, and return whether it was sent."""
        return _tell(self._pidfd)

    def end_by_force(self) -> None:
        """Do one round: stop the tree's processes; once no new one appears, kill the supervisor,
        then the tree.

        In this order the supervisor cannot take the end of the command for an ordinary one, and no
        process is left that could start another.
        """
        if self.has_ended:
            return
        below = set(descendants(self.pid))
        now_s = time.monotonic()
        self._had_some_s = now_s if below or not self._had_some_s else self._had_some_s
        if not below and now_s - self._had_some_s < _SEALS_WITHIN_S:
            return  # the tree has ended, and sealing a large log takes time
        new = below - self._stopped
        for pid in new:
            send(pid, signal.SIGSTOP)
        self._stopped |= new
        self._rounds += 1
        if new and self._rounds < _MOST_ROUNDS:
            return
        self._kill()
        for pid in below:
            send(pid, signal.SIGKILL)
        for pid in self._above:  # stopped along with the command; now they clean up and exit
            send(pid, signal.SIGCONT)

    def _kill(self) -> None:
        self.is_killed = True
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except OSError:
            pass  # it has just ended


class Search:
    """Finds each supervisor once. `is_complete`: the last look has checked every process.

    A process below a supervisor ends with that session. It may be a nested session's supervisor, so
    it is signalled, or only look like one, so it is not killed.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self._known: dict[int, Supervisor] = {}
        self._told: set[tuple[int, int]] = set()  # in sessions: pid and start time

    def new_ones(self) -> list[Supervisor]:
        self.is_complete = True
        found = []
        for pid in proc_files.all_pids():
            process = procfs.stat(pid)
            if process is None or process.comm != SUPERVISOR_NAME or process.has_ended:
                continue
            if self._is_known(pid) or not _is_supervisor(pid):
                continue
            if has_supervisor_above(process.ppid):  # also if its parents end meanwhile
                self.is_complete = False
                self._tell_nested(pid, process.start_time)
            elif (supervisor := self._held(pid)) is not None:
                found.append(supervisor)
        return found

    def hidden_one(self, pid: int) -> Supervisor | None:
        """Return the supervisor with this pid, which /proc does not show, if it is new."""
        is_new = procfs.stat(pid) is None and not self._is_known(pid)
        return self._held(pid) if is_new else None

    def _is_known(self, pid: int) -> bool:
        known = self._known.get(pid)
        return known is not None and not known.has_ended

    def _held(self, pid: int) -> Supervisor | None:
        pidfd = self._opened(pid)
        if pidfd < 0:
            return None
        self._known[pid] = Supervisor(pid, pidfd)
        return self._known[pid]

    def _tell_nested(self, pid: int, start_time: int) -> None:
        if (pid, start_time) not in self._told and (pidfd := self._opened(pid)) >= 0:
            self._told.add((pid, start_time))
            _tell(pidfd)
            os.close(pidfd)

    def _opened(self, pid: int) -> int:
        """Return a pidfd of a supervisor; -1 if it has ended."""
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return -1
        except OSError:  # no descriptor is left
            self.is_complete = False
            return -1
        if procfs.stat(pid) is not None and not _is_supervisor(pid):
            os.close(pidfd)  # it ended meanwhile, and another process has its pid
            return -1
        return pidfd


def _tell(pidfd: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, KILL_SWITCH_SIGNAL)
    except OSError:
        return False
    return True


def _is_supervisor(pid: int) -> bool:
    credentials = procfs.credentials(pid)
    is_ours = credentials is not None and credentials.effective_uid == os.geteuid()
    return is_ours and procfs.blocks(pid, KILL_SWITCH_SIGNAL)


def hides_processes() -> bool:
    """Return whether /proc is mounted with hidepid: it does not show this user's supervisors."""
    return os.geteuid() != 0 and procfs.stat(1) is None


def lock_holder(path: str) -> int:
    """Return the pid of the process that holds a flock on a file, or 0.

    The kernel names it even if /proc does not show the process.
    """
    try:
        found = os.stat(path)
        lines = proc_files.all_contents("/proc/locks").splitlines()
    except OSError:
        return 0
    major, minor = os.major(found.st_dev), os.minor(found.st_dev)
    file = b"%02x:%02x:%d" % (major, minor, found.st_ino)
    for line in lines:
        fields = line.split()
        if b"FLOCK" in fields and file in fields:
            return max(int(fields[fields.index(file) - 1]), 0)
    return 0


def _own_processes_above(front_pid: int, supervisor: int) -> list[int]:
    """Return the front process and the one-file binary's outer one.

    After these have ended, another process is the supervisor's parent.
    """
    if not front_pid or not _may_be_front(front_pid, supervisor):
        return []
    front = procfs.stat(front_pid)
    outer = None if front is None else procfs.stat(front.ppid)
    if front is None or outer is None or outer.comm != front.comm:
        return [front_pid]
    return [front_pid, outer.pid]


def _may_be_front(pid: int, supervisor: int) -> bool:
    program = proc_files.linked(f"/proc/{pid}/exe")
    is_the_same = program != "" and program == proc_files.linked(f"/proc/{supervisor}/exe")
    return not procfs.is_dumpable(pid) or is_the_same
