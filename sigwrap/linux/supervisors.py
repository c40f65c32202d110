"""The supervisors of all sessions of this user, found by what no process inside can take away: the
list of all processes, and the address that each of them listens on.

Somebody inside can make any number of addresses that look like those, also in the name of
processes that have ended. So who is seen in the list comes first, and of the others only some are
looked at in one search.
"""

from __future__ import annotations

import os
import select
import time

from sigwrap.bare import signal, socket
from sigwrap.bare.collections import deque
from sigwrap.linux import proc_files, procfs, session_line
from sigwrap.linux.peer import SUPERVISOR_NAME, has_supervisor_above
from sigwrap.linux.pidfd import has_ended
from sigwrap.linux.process import descendants, send
from sigwrap.linux.session_line import Address, Addresses, Busy, Listener

_LISTENER = "anon_inode:seccomp notify"
_MOST_ROUNDS = 20
_SEALS_WITHIN_S = 5.0
_TRIES_FOR_S = 0.1
_READS_ADDRESSES_FOR_S = _LOOKS_AT_OTHERS_FOR_S = 0.05


class Supervisor:
    """Held by a pidfd, so that nobody else is taken for it. Of one in a pid namespace that isn't
    below ours there is nothing but its line."""

    def __init__(self, pid: int, pidfd: int, front_pid: int) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self.addresses: deque[Address] = deque()  # those that may be its own
        self.line: socket.socket | None = None
        self._stopped: set[int] = set()
        self._rounds = 0
        self._had_some_s = 0.0
        self.is_killed = False
        # Somebody inside can listen on such an address as well, and is of a session then.
        self._above = _of_sigwrap_above(front_pid, pid)
        found = procfs.stat(pid)
        self.is_inside = found is not None and has_supervisor_above(found.ppid)

    @property
    def has_ended(self) -> bool:
        """Or has heard what it was told, where nothing else can be known."""
        if self._pidfd >= 0:
            return has_ended(self._pidfd)
        poll = select.poll()
        if self.line is not None:
            poll.register(self.line, 0)
        return bool(poll.poll(0))

    def tell(self, message: bytes) -> bool:
        """False where it can't be told so far."""
        until_s = time.monotonic() + _TRIES_FOR_S
        while self.addresses and time.monotonic() < until_s and self.line is None:
            self._try(self.addresses.popleft())
        if self.line is None:
            return False
        try:
            self.line.send(message, socket.MSG_NOSIGNAL)
        except OSError:
            return False
        if self._pidfd >= 0:
            self.line.close()
        return True

    def _try(self, address: Address) -> None:
        """Others crowd it for a moment at most."""
        try:
            listener = session_line.listener_of(address)
        except Busy:
            self.addresses.append(address)
            return
        if listener is not None and listener.pid == self.pid and not _is_over(listener):
            self.line = listener.end
            os.close(listener.pidfd)
        else:
            _let_go(listener)

    def end_by_force(self) -> None:
        """A round, for one that is held up. First everybody below is stopped, until nobody new is
        there: then the supervisor is killed before its tree, so that COMMAND's end isn't taken for
        one of its own, and nobody is left who could make another process."""
        if self._pidfd < 0 or self.has_ended:
            return
        below = set(descendants(self.pid))
        now_s = time.monotonic()
        self._had_some_s = now_s if below or not self._had_some_s else self._had_some_s
        if not below and now_s - self._had_some_s < _SEALS_WITHIN_S:
            return  # nobody runs any more, and a large log takes its time
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
        for pid in self._above:  # they stop where COMMAND does; they see to the rest, and end
            send(pid, signal.SIGCONT)

    def _kill(self) -> None:
        self.is_killed = True
        try:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        except OSError:
            pass  # it has just ended


class Search:
    """Finds each of them once."""

    def __init__(self) -> None:
        self._addresses = Addresses()
        self._others: deque[Address] = deque()  # that nobody in the list is known to have
        self._known: dict[int, Supervisor] = {}
        self.begin_anew()

    def begin_anew(self) -> None:
        self._has_seen_all = True
        self._is_through = False
        self._addresses.begin_anew()

    @property
    def is_complete(self) -> bool:
        """Nobody can be left who was there when it began."""
        return self._has_seen_all and self._is_through

    def new_ones(self) -> list[Supervisor]:
        found = self._in_the_list()
        now_s = time.monotonic()
        self._others += self._addresses.new_ones(now_s + _READS_ADDRESSES_FOR_S)
        until_s = time.monotonic() + _LOOKS_AT_OTHERS_FOR_S
        for _ in range(len(self._others)):
            if time.monotonic() > until_s:
                break
            address = self._others.popleft()
            known = self._known.get(address.pid)
            if known is not None and not known.has_ended:
                known.addresses.append(address)
            else:
                found += self._that_listens(address)
        self._is_through |= self._addresses.were_all_read and not self._others
        return found

    def _is_known(self, pid: int) -> bool:
        known = self._known.get(pid)
        return known is not None and not known.has_ended

    def _in_the_list(self) -> list[Supervisor]:
        found = []
        for pid in proc_files.all_pids():
            process = procfs.stat(pid)
            if process is None or process.comm != SUPERVISOR_NAME or process.has_ended:
                continue
            if self._is_known(pid) or pid == os.getpid():
                continue
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            except OSError:  # no descriptor is to be had
                self._has_seen_all = False
                continue
            if _is_supervisor(pid):
                self._known[pid] = Supervisor(pid, pidfd, process.ppid)
                found.append(self._known[pid])
            else:
                os.close(pidfd)
        return found

    def _that_listens(self, address: Address) -> list[Supervisor]:
        """One that the list doesn't have: of another pid namespace, or the list hides it."""
        try:
            listener = session_line.listener_of(address)
        except Busy:
            self._others.append(address)
            return []
        if listener is None or _is_over(listener) or self._is_known(listener.pid):
            _let_go(listener)
            return []
        if (
            listener.pid
            and (seen := procfs.stat(listener.pid)) is not None
            and seen.comm != SUPERVISOR_NAME
        ):
            _let_go(listener)  # in the list, and no supervisor
            return []
        supervisor = Supervisor(listener.pid, listener.pidfd, address.front_pid)
        supervisor.line = listener.end
        if listener.pid:
            self._known[listener.pid] = supervisor
        return [supervisor]


def hides_processes() -> bool:
    """Whether /proc has been mounted so that it shows no processes of others."""
    return os.geteuid() != 0 and procfs.stat(1) is None


def _is_over(listener: Listener) -> bool:
    """It has ended, and somebody else has its socket."""
    return listener.pidfd >= 0 and has_ended(listener.pidfd)


def _let_go(listener: Listener | None) -> None:
    if listener is not None:
        listener.end.close()
        if listener.pidfd >= 0:
            os.close(listener.pidfd)


def _is_supervisor(pid: int) -> bool:
    """Not only by its name, which anybody may have."""
    credentials = procfs.credentials(pid)
    if credentials is None or credentials.effective_uid != os.geteuid():
        return False
    if not procfs.is_dumpable(pid):
        return True
    # So it looks to root, and in a user namespace of our own; but then it may be looked into.
    return any(proc_files.linked(f"/proc/{pid}/fd/{fd}") == _LISTENER for fd in _descriptors(pid))


def _descriptors(pid: int) -> list[str]:
    try:
        return proc_files.names(f"/proc/{pid}/fd")
    except OSError:
        return []


def _of_sigwrap_above(front_pid: int, supervisor: int) -> list[int]:
    """The front process, and the one-file binary's outer one. Where a supervisor has lost them,
    anybody is above it."""
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
