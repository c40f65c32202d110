"""Turn the kill switch on: end every session of this user, even if one stalls.

A signal tells each session to end with a sealed log. This process kills a session that has not
ended after half a second. A thread writes the files that block new sessions, since a file system
that a session serves may stall it. Once no session is left, it writes them again: a session may
have removed one.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable

from sigwrap.bare import NamedTuple, signal
from sigwrap.control import killswitch
from sigwrap.control.killswitch import State
from sigwrap.errors import StoreError
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.limits import lift, of_the_caller
from sigwrap.kernel.peer import SUPERVISOR_NAME, has_supervisor_above
from sigwrap.kernel.process import descendants, send, send_to_same
from sigwrap.kernel.signals import KILL_SWITCH_SIGNAL, has_ended

_FILES_FIRST_S = 0.25  # so that sessions that start later are refused
_SECOND_PASS_S = 0.5
_OWN_END_S = 0.5
_GIVES_UP_AFTER_S = 10.0  # after SIGKILL
_LOOKS_EVERY_S = 0.01
_SEARCHES_EVERY_S = 0.1
_SEARCHES_FOR_S = 3.0
_LAST_FILES_S = 3.0
_MOST_PASSES = 5
_SEALS_WITHIN_S = 5.0


class Activated(NamedTuple):
    state: State
    ended: int  # sessions that ended by themselves
    forced: int
    left: tuple[int, ...]  # supervisors that outlive SIGKILL
    unreached: tuple[str, ...]  # running sessions of the stores without a supervisor here
    may_be_more: bool  # some processes could not be checked
    without: tuple[str, ...]  # why the file is missing, for each store

    @property
    def is_complete(self) -> bool:
        return not (self.left or self.unreached or self.may_be_more)


def activate(store: Callable[[], str], reason: str) -> Activated:
    """Turn the switch on for this process's user. `store` raises StoreError if there is none."""
    lift(of_the_caller())  # each session takes a descriptor
    by = f"{os.environ.get('USER') or os.geteuid()} on {socket.gethostname()}"
    state = State(time.time_ns(), reason, by)
    files = _Files(store, state)
    files.stand(_FILES_FIRST_S, may_wait=False)
    announced = killswitch.announce(state)
    try:
        sessions = _Sessions()
        until_s = time.monotonic() + _SECOND_PASS_S
        for _ in range(_MOST_PASSES):
            while sessions.go_on() or time.monotonic() < until_s:
                time.sleep(_LOOKS_EVERY_S)
            files.stand(_LAST_FILES_S)
            known = len(sessions.found)
            if files.running and hides_processes():
                sessions.add_hidden(map(lock_holder, files.running.values()))
            sessions.search_anew()
            while sessions.go_on():
                time.sleep(_LOOKS_EVERY_S)
            if len(sessions.found) == known:  # no session has started while a file was missing
                break
    finally:
        os.close(announced)
    left = [each for each in sessions.found if not each.has_ended]
    ended = [each for each in sessions.found if each not in left]
    return Activated(
        state=files.state,
        ended=sum(not each.is_killed for each in ended),
        forced=sum(each.is_killed for each in ended),
        left=tuple(each.pid for each in left),
        unreached=() if left else tuple(files.running or ()),
        may_be_more=not sessions.is_complete or files.running is None or hides_processes(),
        without=files.failures,
    )


class _Files:
    """The kill switch's files. `running`: the running sessions of the stores, or None before the
    first listing."""

    def __init__(self, store: Callable[[], str], state: State) -> None:
        self.state = state
        self.failures: tuple[str, ...] = ("the file system of a store does not respond",)
        self.running: dict[str, str] | None = None
        self._store = store
        self._stores: tuple[str, ...] = ()
        self._thread = threading.Thread()

    def stand(self, within_s: float, *, may_wait: bool = True) -> None:
        """Write the files, and list the sessions, in a thread that gets this much time.

        `may_wait`: without a thread if the user has too many processes for one.
        """
        if self._thread.is_alive():  # an earlier write, which a file system delays
            self._thread.join(within_s)
            if self._thread.is_alive():
                return
        thread = threading.Thread(target=self._write, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if may_wait:
                self._write()
            return
        self._thread = thread
        thread.join(within_s)

    def _write(self) -> None:
        try:
            if not self._stores:
                self._stores = killswitch.stores(self._store(), os.environ)
                self.state = _with_what_is_known(self.state, self._stores)
        except StoreError as error:
            self.failures = (str(error),)
            self.running = {}
            return
        self.failures = tuple(why for each in self._stores if (why := _put(each, self.state)))
        self.running = killswitch.running(self._stores)


def _with_what_is_known(state: State, stores: tuple[str, ...]) -> State:
    """Keep the time since which it is on, and its reason unless a new one was given."""
    try:
        earlier = killswitch.known(stores)
    except StoreError:  # writing the file fails as well, and shows the error
        return state
    if earlier is None or not earlier.since_ns:
        return state
    return earlier._replace(reason=state.reason or earlier.reason)


def _put(store: str, state: State) -> str:
    """Write the file; return why it is not there, or why it may be removed."""
    try:
        if killswitch.put(store, state):
            return ""
        return f"{store} belongs to another user, who can remove the kill switch"
    except OSError as error:
        if _stays(store, error.errno):
            return ""
        return f"cannot write {killswitch.path_in(store)}: {error.strerror}"


def _stays(store: str, refusal: int | None) -> bool:
    """Return whether an earlier file is there all the same."""
    try:
        if refusal in (errno.EROFS, errno.ENOSPC, errno.EDQUOT):
            return killswitch.read(store) is not None
        return refusal == errno.EPERM and killswitch.is_immutable_in(store)
    except (StoreError, OSError):
        return False


class _Sessions:
    """Finds all supervisors, also those that start meanwhile, and ends them. `is_complete`: the
    last search has checked every process.

    A process below a supervisor ends with that session. It may be a nested session's supervisor, so
    it is signalled, or only look like one, so it is not killed.
    """

    def __init__(self) -> None:
        self.found: list[_Supervisor] = []
        self.is_complete = False
        self._told: set[tuple[int, int]] = set()  # in sessions: pid and start time
        self.search_anew()

    def search_anew(self) -> None:
        self._searched_s = 0.0
        self._searches_until_s = time.monotonic() + _SEARCHES_FOR_S

    def add_hidden(self, pids: Iterable[int]) -> None:
        """Add supervisors that /proc does not show."""
        for pid in filter(None, pids):
            if procfs.stat(pid) is None and not self._is_known(pid):
                self._add(pid)

    def go_on(self) -> bool:
        """Return False once no supervisor is left, or those left got SIGKILL long ago."""
        running = bool([each for each in self.found if each.goes_on()])
        now_s = time.monotonic()
        if not running or now_s - self._searched_s > _SEARCHES_EVERY_S:
            known = len(self.found)
            self._search()
            self._searched_s = time.monotonic()
            running = running or len(self.found) > known
        if running:
            self._searches_until_s = now_s + _SEARCHES_FOR_S
        return running or (not self.is_complete and now_s < self._searches_until_s)

    def _search(self) -> None:
        self.is_complete = True
        for pid in procfs.all_pids():
            process = procfs.stat(pid)
            if process is None or process.comm != SUPERVISOR_NAME or process.has_ended:
                continue
            if self._is_known(pid) or not _is_supervisor(pid):
                continue
            if has_supervisor_above(process.ppid):  # also if its parents end meanwhile
                self.is_complete = False
                one = (pid, process.start_time)
                if one not in self._told and send_to_same(process, KILL_SWITCH_SIGNAL):
                    self._told.add(one)
            else:
                self._add(pid)

    def _is_known(self, pid: int) -> bool:
        return any(each.pid == pid and not each.has_ended for each in self.found)

    def _add(self, pid: int) -> None:
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        except OSError:  # no descriptor is left
            self.is_complete = False
            return
        if procfs.stat(pid) is None or _is_supervisor(pid):
            self.found.append(_Supervisor(pid, pidfd))
        else:
            os.close(pidfd)  # it ended meanwhile, and another process has its pid


class _Supervisor:
    """A supervisor, held by a pidfd, since its pid may be reused."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self.is_killed = False
        self._pidfd = pidfd
        self._is_told = False
        self._ends_itself_until_s = time.monotonic() + _OWN_END_S
        self._killed_s = 0.0
        self._had_some_s = 0.0
        self._above = _own_processes_above(pid)

    @property
    def has_ended(self) -> bool:
        return has_ended(self._pidfd)

    def goes_on(self) -> bool:
        """Signal it, later end it by force. Return whether it has yet to end."""
        self._is_told = self._is_told or _send(self._pidfd, KILL_SWITCH_SIGNAL)
        now_s = time.monotonic()
        if self.has_ended or (self.is_killed and now_s - self._killed_s > _GIVES_UP_AFTER_S):
            return False
        if now_s > self._ends_itself_until_s:
            self._end_by_force(now_s)
        return True

    def _end_by_force(self, now_s: float) -> None:
        """Kill it and its tree. The front process kills what is left of the tree."""
        below = descendants(self.pid)
        if below or not self._had_some_s:
            self._had_some_s = now_s
        if not below and now_s - self._had_some_s < _SEALS_WITHIN_S:
            return  # the tree has ended, and sealing a large log takes time
        if not self.is_killed:
            self.is_killed, self._killed_s = True, now_s
        for pid in below:
            send(pid, signal.SIGKILL)
        _send(self._pidfd, signal.SIGKILL)
        for pid in self._above:  # they may be stopped along with the command
            send(pid, signal.SIGCONT)


def _send(pidfd: int, number: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except OSError:  # it has just ended
        return False
    return True


def _is_supervisor(pid: int) -> bool:
    rights = procfs.rights(pid)
    is_ours = rights is not None and rights.effective_uid == os.geteuid()
    return is_ours and signals.blocks(pid, KILL_SWITCH_SIGNAL)


def hides_processes() -> bool:
    """Return whether /proc is mounted with hidepid: it does not show this user's supervisors."""
    return os.geteuid() != 0 and procfs.stat(1) is None


def lock_holder(path: str) -> int:
    """Return the pid of the process that holds a flock on a file, or 0.

    The kernel names it even if /proc does not show the process.
    """
    try:
        found = os.stat(path)
        lines = procfs.all_contents("/proc/locks").splitlines()
    except OSError:
        return 0
    major, minor = os.major(found.st_dev), os.minor(found.st_dev)
    file = b"%02x:%02x:%d" % (major, minor, found.st_ino)
    for line in lines:
        fields = line.split()
        if b"FLOCK" in fields and file in fields:
            return max(int(fields[fields.index(file) - 1]), 0)
    return 0


def _own_processes_above(supervisor: int) -> list[int]:
    """Return the front process and the one-file binary's outer one. If the front process is gone,
    another process is the parent: a SIGCONT does nothing to one that runs."""
    found = procfs.stat(supervisor)
    front = None if found is None else procfs.stat(found.ppid)
    outer = None if front is None else procfs.stat(front.ppid)
    if front is None:
        return []
    return [front.pid, outer.pid] if outer and outer.comm == front.comm else [front.pid]
