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

from sigwrap.errors import StoreError
from sigwrap.linux.limits import lift_open_files
from sigwrap.linux.supervisors import Search, Supervisor, hides_processes, lock_holder
from sigwrap.store import killswitch
from sigwrap.store.folder import Folder
from sigwrap.store.killswitch import State
from sigwrap.tuples import NamedTuple

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
    lift_open_files()
    by = f"{os.environ.get('USER') or os.geteuid()} on {socket.gethostname()}"
    state = State(time.time_ns(), reason, by)
    files = _Files(lambda: killswitch.stores(store(), os.environ), state)
    files.come(_FILES_FIRST_S)
    announced = killswitch.announce(state)
    try:
        ends = _Ends()
        until_s = time.monotonic() + _SECOND_PASS_S
        for _ in range(_MOST_PASSES):
            while ends.go_on() or time.monotonic() < until_s:
                time.sleep(_LOOKS_EVERY_S)
            files.stand()
            known = ends.found
            if files.running and hides_processes():
                ends.add_hidden(map(lock_holder, files.running.values()))
            ends.search_anew()
            while ends.go_on():
                time.sleep(_LOOKS_EVERY_S)
            if ends.found == known:  # no session has started while a file was missing
                break
        files.finish()
    finally:
        os.close(announced)
    return Activated(
        state=files.state,
        ended=ends.ended,
        forced=ends.forced,
        left=ends.left,
        unreached=() if ends.left else tuple(files.running or ()),
        may_be_more=not ends.is_complete or files.running is None or hides_processes(),
        without=files.failures,
    )


class _Ends:
    """Ends all sessions, including those that start meanwhile."""

    def __init__(self) -> None:
        self._search = Search()
        self._searched_s = 0.0
        self._searches_until_s = time.monotonic() + _SEARCHES_FOR_S
        self._found: list[_End] = []

    @property
    def found(self) -> int:
        return len(self._found)

    @property
    def is_complete(self) -> bool:
        return self._search.is_complete

    def search_anew(self) -> None:
        self._searched_s = 0.0
        self._searches_until_s = time.monotonic() + _SEARCHES_FOR_S

    def add_hidden(self, pids: Iterable[int]) -> None:
        for supervisor in map(self._search.hidden_one, filter(None, pids)):
            if supervisor is not None:
                self._found.append(_End(supervisor))

    def go_on(self) -> bool:
        """Return False once no supervisor is left, or those left got SIGKILL long ago."""
        running = [each for each in self._found if each.goes_on()]
        now_s = time.monotonic()
        if not running or now_s - self._searched_s > _SEARCHES_EVERY_S:
            new = [_End(each) for each in self._search.new_ones()]
            self._searched_s = time.monotonic()
            self._found += new
            running += new
        if running:
            self._searches_until_s = now_s + _SEARCHES_FOR_S
        return bool(running) or (not self.is_complete and now_s < self._searches_until_s)

    @property
    def ended(self) -> int:
        return sum(not each.is_killed for each in self._over)

    @property
    def forced(self) -> int:
        return sum(each.is_killed for each in self._over)

    @property
    def left(self) -> tuple[int, ...]:
        return tuple(each.supervisor.pid for each in self._found if not each.supervisor.has_ended)

    @property
    def _over(self) -> list[Supervisor]:
        return [each.supervisor for each in self._found if each.supervisor.has_ended]


class _End:
    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self._ends_itself_until_s = time.monotonic() + _OWN_END_S
        self._is_told = False
        self._killed_s = 0.0

    def goes_on(self) -> bool:
        self._is_told = self._is_told or self.supervisor.tell()
        now_s = time.monotonic()
        if self.supervisor.has_ended:
            return False
        if self._killed_s and now_s - self._killed_s > _GIVES_UP_AFTER_S:
            return False
        if now_s > self._ends_itself_until_s:
            self.supervisor.end_by_force()
            if self.supervisor.is_killed:
                self._killed_s = self._killed_s or now_s
        return True


class _Files:
    """The kill switch's files. `running`: the running sessions of the stores, or None before the
    first listing."""

    def __init__(self, stores: Callable[[], tuple[str, ...]], state: State) -> None:
        self.state = state
        self.failures: tuple[str, ...] = ("the file system of a store does not respond",)
        self.running: dict[str, str] | None = None
        self._stores = stores
        self._has_looked = threading.Event()
        self._is_to_list = False
        self._has_listed = threading.Event()
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
        self._has_listed.clear()
        self._is_to_list = True
        if self._thread is None:
            self._is_to_finish.set()
            self._keep()
        elif self._thread.is_alive():
            self._has_listed.wait(_LAST_FILES_S)

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
            lists = self._is_to_list
            failures = tuple(failure for file in files if (failure := file.hold()))
            self.failures = failures
            self._has_looked.set()
            if lists:
                self._is_to_list = False
                self.running = killswitch.running(stores)
                self._has_listed.set()
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
