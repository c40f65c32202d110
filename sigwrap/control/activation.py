"""Turn the kill switch on: end every session of this user, even if one stalls.

A signal tells each session to end with a sealed log. This process kills a session that has not
ended after half a second. A separate thread keeps the files that block new sessions, and restores a
removed one, because a file system that a session serves may stall that thread.
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
from sigwrap.kernel.process import descendants, send
from sigwrap.kernel.signals import KILL_SWITCH_SIGNAL, has_ended
from sigwrap.log.folder import Folder

_FILES_FIRST_S = 0.25  # so that sessions that start later are refused
_SECOND_PASS_S = 0.5
_OWN_END_S = 0.5
_GIVES_UP_AFTER_S = 10.0  # after SIGKILL
_LOOKS_EVERY_S = 0.01
_SEARCHES_EVERY_S = 0.1
_SEARCHES_FOR_S = 3.0
_LAST_FILES_S = 3.0
_MOST_PASSES = 5


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
    files = _Files(lambda: killswitch.stores(store(), os.environ), state)
    files.come(_FILES_FIRST_S)
    announced = killswitch.announce(state)
    try:
        sessions = _Sessions()
        until_s = time.monotonic() + _SECOND_PASS_S
        for _ in range(_MOST_PASSES):
            while sessions.go_on() or time.monotonic() < until_s:
                time.sleep(_LOOKS_EVERY_S)
            files.stand()
            known = len(sessions.found)
            if files.running and hides_processes():
                sessions.add_hidden(map(lock_holder, files.running.values()))
            sessions.search_anew()
            while sessions.go_on():
                time.sleep(_LOOKS_EVERY_S)
            if len(sessions.found) == known:  # no session has started while a file was missing
                break
        files.finish()
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

    def __init__(self, stores: Callable[[], tuple[str, ...]], state: State) -> None:
        self.state = state
        self.failures: tuple[str, ...] = ("the file system of a store does not respond",)
        self.running: dict[str, str] | None = None
        self._stores = stores
        self._has_looked = threading.Event()
        self._is_to_finish = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(target=self._keep, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the user may have too many processes: sessions must end first
            self._thread = None

    def come(self, within_s: float) -> None:
        if self._thread is not None:
            self._has_looked.wait(within_s)

    def stand(self) -> None:
        """Wait until the files are checked once more, and the sessions are listed."""
        if self._thread is None:
            self._is_to_finish.set()
            self._keep()
            return
        until_s = time.monotonic() + _LAST_FILES_S
        for _ in range(2):  # the check that goes on now may have begun before
            self._has_looked.clear()
            if self._thread.is_alive():
                self._has_looked.wait(until_s - time.monotonic())

    def finish(self) -> None:
        self._is_to_finish.set()
        if self._thread is not None:
            self._thread.join(_LAST_FILES_S)

    def _keep(self) -> None:
        try:
            stores = self._stores()
        except StoreError as error:
            self.failures = (str(error),)
            self.running = {}
            self._has_looked.set()
            return
        self.state = _with_what_is_known(self.state, stores)
        files = [_File(store, self.state) for store in stores]
        while True:
            self.failures = failures = tuple(why for file in files if (why := file.hold()))
            self.running = killswitch.running(stores)
            self._has_looked.set()
            if self._is_to_finish.wait(_SEARCHES_EVERY_S if failures else _LOOKS_EVERY_S):
                return


def _with_what_is_known(state: State, stores: tuple[str, ...]) -> State:
    """Keep the time since which it is on, and its reason unless a new one was given."""
    try:
        earlier = killswitch.known(stores)
    except StoreError:  # writing the file fails as well, and shows the error
        return state
    if earlier is None or not earlier.since_ns:
        return state
    return earlier._replace(reason=state.reason or earlier.reason)


class _File:
    def __init__(self, store: str, state: State) -> None:
        self._store = store
        self._state = state
        self._folder: Folder | None = None
        self._fd = -1
        self._doubt = ""  # why the file may be removed

    def hold(self) -> str:
        """Return why the file is not there; empty if it is."""
        folder = self._folder
        if folder is not None and folder.is_reached and folder.has(killswitch.NAME, self._fd):
            return self._doubt
        self._let_go()
        try:
            self._folder, self._fd = killswitch.put(self._store, self._state)
        except OSError as error:
            if self._stays(error):
                return ""
            return f"cannot write {killswitch.path_in(self._store)}: {error.strerror}"
        if not self._folder.is_ours:
            self._doubt = f"{self._store} belongs to another user, who can remove the kill switch"
        return self._doubt

    def _stays(self, refusal: OSError) -> bool:
        """Return whether the file is there already, and no process can remove it either."""
        try:
            if refusal.errno == errno.EROFS:
                return killswitch.read(self._store) is not None
            return refusal.errno == errno.EPERM and killswitch.is_immutable_in(self._store)
        except (StoreError, OSError):
            return False

    def _let_go(self) -> None:
        if self._folder is not None:
            os.close(self._fd)
            self._folder.close()
            self._folder = None


# Find all supervisors of this user, signal each that the kill switch is on, and kill those that do
# not react.

_MOST_ROUNDS = 20
_SEALS_WITHIN_S = 5.0


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
                self._tell_nested(pid, process.start_time)
            else:
                self._add(pid)

    def _is_known(self, pid: int) -> bool:
        return any(each.pid == pid and not each.has_ended for each in self.found)

    def _add(self, pid: int) -> None:
        pidfd = self._opened(pid)
        if pidfd >= 0:
            self.found.append(_Supervisor(pid, pidfd))

    def _tell_nested(self, pid: int, start_time: int) -> None:
        if (pid, start_time) not in self._told and (pidfd := self._opened(pid)) >= 0:
            self._told.add((pid, start_time))
            _send(pidfd, KILL_SWITCH_SIGNAL)
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


class _Supervisor:
    """A supervisor, held by a pidfd, since its pid may be reused."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self.is_killed = False
        self._pidfd = pidfd
        self._is_told = False
        self._ends_itself_until_s = time.monotonic() + _OWN_END_S
        self._killed_s = 0.0
        self._stopped: set[int] = set()
        self._rounds = 0
        self._had_some_s = 0.0
        found = procfs.stat(pid)
        self._above = [] if found is None else _own_processes_above(found.ppid, pid)

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
        """Do one round: stop the tree's processes; once no new one appears, kill the supervisor,
        then the tree.

        In this order the supervisor cannot take the end of the command for an ordinary one, and no
        process is left that could start another.
        """
        below = set(descendants(self.pid))
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
        if not self.is_killed:
            self.is_killed, self._killed_s = True, now_s
        _send(self._pidfd, signal.SIGKILL)
        for pid in below:
            send(pid, signal.SIGKILL)
        for pid in self._above:  # stopped along with the command; now they clean up and exit
            send(pid, signal.SIGCONT)


def _send(pidfd: int, number: int) -> bool:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except OSError:  # it has just ended
        return False
    return True


def _is_supervisor(pid: int) -> bool:
    credentials = procfs.credentials(pid)
    is_ours = credentials is not None and credentials.effective_uid == os.geteuid()
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
    program = procfs.linked(f"/proc/{pid}/exe")
    is_the_same = program != "" and program == procfs.linked(f"/proc/{supervisor}/exe")
    return not procfs.is_dumpable(pid) or is_the_same
