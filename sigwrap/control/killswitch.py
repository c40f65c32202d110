"""The kill switch: its file, and the signal that ends a session.

While the file is in the root of a store, no session starts.

Any process of the user can put it there, a supervised one too. So the file ends no session:
`sigwrap killswitch on` signals each of them, and such a signal is refused from a process in a
session. A session that starts obeys any such file.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping

from sigwrap.bare import TYPE_CHECKING, NamedTuple, json, suppress
from sigwrap.errors import SessionError, StoreError
from sigwrap.events import HOOK_LOG
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import PinnedPath
from sigwrap.kernel.file_state import is_immutable, mount_of
from sigwrap.kernel.paths import refuse_magic_links
from sigwrap.kernel.peer import Peer, examine_sender
from sigwrap.kernel.signals import KILL_SWITCH_SIGNAL, SignalFd
from sigwrap.log.folder import (
    JOURNAL_SUFFIX,
    Folder,
    default_store,
    displaced_name,
    sessions_folder,
)
from sigwrap.log.journal import writer_lives
from sigwrap.session.run_end import SwitchedOff
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

NAME = "killswitch"
SCHEMA = "sigwrap.killswitch/1"
_ANNOUNCEMENT = "sigwrap-killswitch"
_MAX_BYTES = 1 << 16
_LONGEST_TEXT = 500
_LOOKS_EVERY_S = 0.5
_DISBELIEVED_AT_LOOK = 7
_REFUSED_AGAIN_AFTER_S = 10.0
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class State(NamedTuple):
    since_ns: int = 0
    reason: str = ""
    by: str = ""

    def __str__(self) -> str:
        """Return a line for people, with the content of the file."""
        since = ""
        if self.since_ns:
            moment = time.localtime(self.since_ns // 1_000_000_000)
            since = time.strftime(" since %Y-%m-%d %H:%M:%S %Z", moment)
        by = f", by {printable(self.by)}" if self.by else ""
        reason = f": {printable(self.reason)}" if self.reason else ""
        return f"the kill switch is on{since}{by}{reason}"


def path_in(store: str) -> str:
    return os.path.join(store, NAME)


def stores(store: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the stores whose file counts for a session: its own, and the user's default ones."""
    found = [] if store is None else [store]
    for left_out in (("SIGWRAP_STORE",), ("SIGWRAP_STORE", "XDG_STATE_HOME")):
        rest = {name: value for name, value in environment.items() if name not in left_out}
        try:
            found.append(default_store(rest))
        except StoreError:
            pass  # there is no home directory
    try:
        return tuple({os.path.realpath(each): os.path.abspath(each) for each in found}.values())
    except OSError:  # the current directory is gone
        return tuple(each for each in found if os.path.isabs(each))


def read(store: str) -> State | None:
    """Return the state, or None if it is off. An unreadable file gives an empty state: on.

    Raises StoreError if it is unknown whether the file is there.
    """
    try:
        refuse_magic_links(store)
        folder = os.open(store, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return look_in(folder)
        finally:
            os.close(folder)
    except (NotADirectoryError, FileNotFoundError, ValueError):
        return None
    except OSError as error:
        why = f"can't check for {printable(path_in(store))}: {error.strerror}"
        raise StoreError(why, "check the permissions of its directories") from error


def known(each_store: tuple[str, ...]) -> State | None:
    """Return the first state that has a time; None if the switch is off.

    Raises StoreError if that is unknown.
    """
    found, unknown = _states(each_store)
    if unknown and not found:
        raise unknown[0]
    return max(found.values(), key=lambda each: bool(each.since_ns), default=None)


def refuse_if_on(each_store: tuple[str, ...], named: str | None) -> list[str]:
    """Raise SessionError if it is on; return why some stores could not be checked.

    Such a store may be in another user's home directory. `named` is the store that --store names.
    """
    found, unknown = _states(each_store)
    for store, state in found.items():
        option = f" --store {printable(store)}" if store == named else ""
        raise SessionError(f"{state}; nothing was run", f"sigwrap killswitch off{option}")
    return [f"the kill switch: {error.message}" for error in unknown]


def _states(each_store: tuple[str, ...]) -> tuple[dict[str, State], list[StoreError]]:
    """Return the states by store, and why others are unknown."""
    found: dict[str, State] = {}
    unknown = []
    for store in each_store:
        try:
            state = read(store)
        except StoreError as error:
            unknown.append(error)
            continue
        if state is not None:
            found[store] = state
    return found, unknown


def put(store: str, state: State) -> bool:
    """Write the file; return whether only this user or root can remove it. Raises OSError if
    writing fails.

    If the disk is full, the file is empty; that counts as on.
    """
    refuse_magic_links(store)
    folder = Folder.make(store)
    try:
        os.close(folder.put_new(NAME, lambda fd: _fill(fd, state)))
        return folder.is_ours
    finally:
        folder.close()


def remove(each_store: tuple[str, ...]) -> list[str]:
    """Remove the file from all stores; return why it is still on."""
    failures = []
    for store in each_store:
        path = printable(path_in(store))
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                if is_immutable_in(store):
                    failures.append(f"{path} is immutable; first, as root: chattr -i {path}")
                else:
                    _remove(store)
        except OSError as error:
            failures.append(f"can't remove {path}: {error.strerror}")
    return failures


def is_immutable_in(store: str) -> bool:
    """Return whether the file is there and immutable: root has to change that before it is
    removed. Raises OSError if that is unknown."""
    folder = os.open(store, _FOLDER_FLAGS)
    try:
        return is_immutable(folder, NAME.encode())
    finally:
        os.close(folder)


def _remove(store: str) -> None:
    folder = os.open(store, _FOLDER_FLAGS)
    try:
        os.unlink(NAME, dir_fd=folder)
    except IsADirectoryError:  # not from sigwrap
        os.rename(NAME, displaced_name(NAME), src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        os.close(folder)


def look_in(folder: int) -> State | None:
    """Return the state, without waiting for a file system mounted over the file."""
    try:
        found = os.open(NAME, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode) or mount_of(found) != mount_of(folder):
            return State()
        proc, path = procfs.at(b"/proc/self/fd/%d" % found)
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return State()
    finally:
        os.close(found)
    try:
        return _decoded(os.read(file, _MAX_BYTES))
    except OSError:
        return State()
    finally:
        os.close(file)


def announce(state: State) -> int:
    """Write the state into a memory file of this process, for the sessions that it signals.

    Returns the descriptor, to close when these have ended. No process in a session can change it.
    """
    fd = os.memfd_create(_ANNOUNCEMENT)
    os.write(fd, _encoded(state))
    return fd


def announced_by(pid: int) -> State | None:
    """Return the state that a process outside all sessions announces; None if unreadable."""
    folder = f"/proc/{pid}/fd"
    try:
        for name in procfs.names(folder):
            if procfs.linked(f"{folder}/{name}") == f"/memfd:{_ANNOUNCEMENT} (deleted)":
                file = procfs.open_file(f"{folder}/{name}")
                try:
                    return _decoded(os.pread(file, _MAX_BYTES, 0))
                finally:
                    os.close(file)
    except OSError:
        pass
    return None


def running(each_store: tuple[str, ...]) -> dict[str, str]:
    """Return the journals of this user's running sessions, by session id."""
    found = {}
    for store in each_store:
        folder = sessions_folder(store)
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(JOURNAL_SUFFIX) and not name.startswith(HOOK_LOG) and _runs(path):
                found[name.removesuffix(JOURNAL_SUFFIX)] = path
    return found


def _runs(journal: str) -> bool:
    try:
        return os.lstat(journal).st_uid == os.geteuid() and writer_lives(journal)
    except OSError:
        return False


def _fill(fd: int, state: State) -> None:
    try:
        os.write(fd, _encoded(state))
    except OSError:
        os.ftruncate(fd, 0)


def _encoded(state: State) -> bytes:
    content = {
        "schema": SCHEMA,
        "since_ns": state.since_ns,
        "reason": state.reason[:_LONGEST_TEXT],
        "by": state.by[:_LONGEST_TEXT],
    }
    return json.dumps(content).encode() + b"\n"


def _decoded(data: bytes) -> State:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return State()
    if not isinstance(content, dict):
        return State()
    since_ns, reason, by = (content.get(name) for name in State._fields)
    return State(
        since_ns if isinstance(since_ns, int) and 0 < since_ns < 1 << 62 else 0,
        reason[:_LONGEST_TEXT] if isinstance(reason, str) else "",
        by[:_LONGEST_TEXT] if isinstance(by, str) else "",
    )


class KillSwitch:
    """Ends a session when `sigwrap killswitch on` signals it. It refuses this signal from a process
    in a session."""

    def __init__(self, session: Session) -> None:
        self._places = [_Place(store) for store in session.plan.stores]
        self._session = session
        self._loop = session.loop
        self._recorder = session.recorder
        self._is_on = False
        self._refused_s = 0.0
        self._unannounced = 0
        self._signals = SignalFd({KILL_SWITCH_SIGNAL})
        self._loop.watch(self._signals.fd, self._on_signal)
        self._look_regularly()

    def close(self) -> None:
        """Stop listening: the process tree has ended."""
        self._is_on = True
        self._loop.unwatch(self._signals.fd)
        self._signals.close()

    def _on_signal(self, _happened: int) -> None:
        for info in self._signals.read():
            if self._is_on:
                return
            peer = examine_sender(info)
            if peer.objection:
                self._note_refused(peer)
            else:
                self._is_on = True
                state = self._state(peer.pid)
                switched = SwitchedOff(state.reason, state.by, state.since_ns)
                self._session.ending.run.switch_off(switched)

    def _state(self, sender_pid: int) -> State:
        """Return what the sender says, or else the file. The sender is unreadable in another
        namespace, but a process in a session can change the file."""
        said = announced_by(sender_pid) if sender_pid else None
        if said is not None:
            return said
        for place in self._places:
            state = place.look()
            if state is not None:
                return state
        return State()

    def _note_refused(self, peer: Peer) -> None:
        now_s = time.monotonic()
        if not self._refused_s or now_s - self._refused_s > _REFUSED_AGAIN_AFTER_S:
            self._refused_s = now_s
            self._session.approvals.refused(peer)

    def _look_regularly(self) -> None:
        if self._is_on:
            return
        for place in self._places:
            state = place.look()
            place.looks = 0 if state is None else place.looks + 1
            if state is not None and place.looks == _DISBELIEVED_AT_LOOK:
                self._note_unannounced(place, state)
        self._loop.call_in(_LOOKS_EVERY_S, self._look_regularly)

    def _note_unannounced(self, place: _Place, state: State) -> None:
        """Record a file that came without a signal.

        It stays, as the user may have turned the switch on in another container.
        """
        path = path_in(place.path)
        if not self._unannounced:
            self._recorder.tell(
                f"{path} keeps new sessions from starting, but sigwrap killswitch on "
                "did not signal this session: if you did not turn it on, sigwrap killswitch off"
            )
        self._unannounced += 1
        payload = {"path": path, "reason": state.reason, "count": self._unannounced}
        self._recorder.record("killswitch_invented", os.getpid(), payload)


class _Place:
    """A store, on the mounts that it had at the start: a later mount could block the look."""

    def __init__(self, store: str) -> None:
        self.path = os.path.abspath(store)
        self.looks = 0  # in a row that found the file
        self._pinned = PinnedPath(os.path.realpath(self.path))

    def look(self) -> State | None:
        """Return what the file says; None if there is no file."""
        try:
            folder = self._pinned.open(os.O_DIRECTORY)
            try:
                return look_in(folder)
            finally:
                os.close(folder)
        except OSError:  # the log is in one of the stores: its checks report a missing one
            return None
