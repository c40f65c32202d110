"""Turning the kill switch on: the end of every session of this user, whoever stalls.

Each session is told, and ends itself with its log sealed. Who hasn't ended after half a second, or
can't be told, is ended from here. The files that keep others from starting are kept by a thread of
their own, put there again where somebody took them away: a file system may keep that waiting for as
long as somebody inside likes, and be free when he is gone.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable

from sigwrap.errors import StoreError
from sigwrap.linux.limits import lift_open_files
from sigwrap.linux.supervisors import Search, Supervisor
from sigwrap.store import killswitch
from sigwrap.store.folder import Folder
from sigwrap.store.killswitch import State
from sigwrap.tuples import NamedTuple

_FILES_FIRST_S = 0.25  # so that who starts from then on is refused
_SECOND_PASS_S = 0.5
_OWN_END_S = 0.5
_GIVES_UP_AFTER_S = 10.0  # from SIGKILL on
_LOOKS_EVERY_S = 0.01
_SEARCHES_EVERY_S = 0.1
_SEARCHES_FOR_S = 3.0
_LAST_FILES_S = 3.0
_MOST_PASSES = 5


class Activated(NamedTuple):
    state: State
    ended: int  # sessions, by themselves
    forced: int
    left: tuple[int, ...]  # supervisors that outlive SIGKILL
    may_be_more: bool  # some could not be looked for
    without: tuple[str, ...]  # why there is no file, store by store


def activate(store: Callable[[], str], reason: str) -> Activated:
    """As of now, by whoever runs this. `store`: StoreError where there is none."""
    lift_open_files()
    by = f"{os.environ.get('USER') or os.geteuid()} on {socket.gethostname()}"
    state = State(time.time_ns(), reason, by)
    files = _Files(lambda: killswitch.stores(store(), os.environ), state)
    files.come(_FILES_FIRST_S)
    ends = _Ends(killswitch.as_message(state))
    until_s = time.monotonic() + _SECOND_PASS_S
    for _ in range(_MOST_PASSES):
        while ends.go_on() or time.monotonic() < until_s:
            time.sleep(_LOOKS_EVERY_S)
        files.stand()
        known = ends.found
        ends.search_anew()
        while ends.go_on():
            time.sleep(_LOOKS_EVERY_S)
        if ends.found == known:  # nobody has started while a file was away
            break
    files.finish()
    return Activated(
        files.state, ends.ended, ends.forced, ends.left, ends.may_be_more, files.failures
    )


class _Ends:
    """Of all sessions that there are, and that still come."""

    def __init__(self, message: bytes) -> None:
        self._message = message
        self._search = Search()
        self._searched_s = 0.0
        self._searches_until_s = time.monotonic() + _SEARCHES_FOR_S
        self._found: list[_End] = []

    @property
    def found(self) -> int:
        return len(self._found)

    @property
    def may_be_more(self) -> bool:
        return not self._search.is_complete

    def search_anew(self) -> None:
        self._search.begin_anew()
        self._searches_until_s = time.monotonic() + _SEARCHES_FOR_S

    def go_on(self) -> bool:
        """False where nobody is left, or those who are have had SIGKILL for long."""
        running = [each for each in self._found if each.goes_on()]
        now_s = time.monotonic()
        if not running or now_s - self._searched_s > _SEARCHES_EVERY_S:
            new = [_End(each, self._message) for each in self._search.new_ones()]
            self._searched_s = time.monotonic()
            self._found += new
            running += new
        if running:
            self._searches_until_s = now_s + _SEARCHES_FOR_S
        return bool(running) or (self.may_be_more and now_s < self._searches_until_s)

    @property
    def ended(self) -> int:
        return sum(not each.supervisor.is_killed for each in self._counted)

    @property
    def forced(self) -> int:
        return sum(each.supervisor.is_killed for each in self._counted)

    @property
    def left(self) -> tuple[int, ...]:
        return tuple(each.supervisor.pid for each in self._found if not each.supervisor.has_ended)

    @property
    def _counted(self) -> list[_End]:
        return [
            each
            for each in self._found
            if each.supervisor.has_ended and not each.supervisor.is_inside
        ]


class _End:
    def __init__(self, supervisor: Supervisor, message: bytes) -> None:
        self.supervisor = supervisor
        self._message = message
        self._is_told = False
        self._ends_itself_until_s = time.monotonic() + _OWN_END_S
        self._killed_s = 0.0

    def goes_on(self) -> bool:
        """It is told again and again where it can't be at once: others may crowd its line."""
        self._is_told = self._is_told or self.supervisor.tell(self._message)
        now_s = time.monotonic()
        if self._is_told and self.supervisor.has_ended:
            return False
        if self.supervisor.pid and self.supervisor.has_ended:
            return False
        if self._killed_s and now_s - self._killed_s > _GIVES_UP_AFTER_S:
            return False
        if now_s > self._ends_itself_until_s:
            self.supervisor.end_by_force()
            if self.supervisor.is_killed or not self.supervisor.pid:
                self._killed_s = self._killed_s or now_s
        return True


class _Files:
    def __init__(self, stores: Callable[[], tuple[str, ...]], state: State) -> None:
        self.state = state
        self.failures: tuple[str, ...] = ("the file system of a store does not respond",)
        self._stores = stores
        self._has_looked = threading.Event()
        self._is_to_finish = threading.Event()
        self._thread: threading.Thread | None = threading.Thread(target=self._keep, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the user may have no more processes: first others have to end
            self._thread = None

    def come(self, within_s: float) -> None:
        if self._thread is not None:
            self._has_looked.wait(within_s)

    def stand(self) -> None:
        """Until they have been looked at once more."""
        if self._thread is None:
            self._is_to_finish.set()
            self._keep()
        else:
            self._has_looked.clear()
            self._has_looked.wait(_LAST_FILES_S)

    def finish(self) -> None:
        self._is_to_finish.set()
        if self._thread is not None:
            self._thread.join(_LAST_FILES_S)

    def _keep(self) -> None:
        try:
            stores = self._stores()
        except StoreError as error:
            self.failures = (str(error),)
            self._has_looked.set()
            return
        self.state = _with_what_is_known(self.state, stores)
        files = [_File(store, self.state) for store in stores]
        while True:
            failures = tuple(failure for file in files if (failure := file.hold()))
            self.failures = failures
            self._has_looked.set()
            if self._is_to_finish.wait(_SEARCHES_EVERY_S if failures else _LOOKS_EVERY_S):
                return


def _with_what_is_known(state: State, stores: tuple[str, ...]) -> State:
    """It may be on already: since then, and for that reason where there is no other."""
    try:
        earlier = killswitch.known(stores)
    except StoreError:  # the file can't be put there either, and that is said
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
        self._doubt = ""  # whether it stays

    def hold(self) -> str:
        """Why it isn't there; empty where it is."""
        folder = self._folder
        if folder is not None and folder.is_reached and folder.has(killswitch.NAME, self._fd):
            return self._doubt
        self._let_go()
        try:
            self._folder, self._fd = killswitch.put(self._store, self._state)
        except OSError as error:
            if error.errno == errno.EROFS and self._is_there_already():
                return ""
            return f"cannot write {killswitch.path_in(self._store)}: {error.strerror}"
        if not self._folder.is_ours:
            self._doubt = f"{self._store} belongs to another user, who can remove the kill switch"
        return self._doubt

    def _is_there_already(self) -> bool:
        try:
            return killswitch.read(self._store) is not None
        except StoreError:
            return False

    def _let_go(self) -> None:
        if self._folder is not None:
            os.close(self._fd)
            self._folder.close()
            self._folder = None
