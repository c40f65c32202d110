"""The kill switch as a file: while it is in the root of a store, no session starts.

Any process of the user can put it there, also one in a session. So it ends no session: `sigwrap
killswitch on` signals each supervisor (run/killswitch.py). A session that starts believes any file.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping

from sigwrap.bare import json
from sigwrap.bare.contextlib import suppress
from sigwrap.errors import SessionError, StoreError
from sigwrap.escape import printable
from sigwrap.events import HOOK_LOG
from sigwrap.linux import proc_files
from sigwrap.linux.file_state import mount_of
from sigwrap.linux.paths import refuse_magic_links
from sigwrap.linux.plain_file import open_plain_file
from sigwrap.store.folder import Folder, aside
from sigwrap.store.journal import writer_lives
from sigwrap.store.location import JOURNAL_SUFFIX, default_store, sessions_folder
from sigwrap.tuples import NamedTuple

NAME = "killswitch"
SCHEMA = "sigwrap.killswitch/1"
_ANNOUNCEMENT = "sigwrap-killswitch"
_MAX_BYTES = 1 << 16
_LONGEST_TEXT = 500
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class State(NamedTuple):
    since_ns: int = 0
    reason: str = ""
    by: str = ""

    def __str__(self) -> str:
        """Return a line for users; a file without content gives less."""
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
    return tuple({_real(each): _absolute(each) for each in found}.values())


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except OSError:  # the working directory is gone
        return path


def _absolute(path: str) -> str:
    try:
        return os.path.abspath(path)
    except OSError:
        return path


def read(store: str) -> State | None:
    """Return what the file says; None if there is none. Raises StoreError if that can't be known.

    An unreadable file only says that the switch is on.
    """
    path = path_in(store)
    try:
        refuse_magic_links(store)
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        why = f"can't check for {printable(path)}: {error.strerror}"
        raise StoreError(why, "check the permissions of its directories") from error
    try:
        with open_plain_file(path) as file:
            return _decoded(file.read(_MAX_BYTES))
    except OSError:
        return State()


def known(each_store: tuple[str, ...]) -> State | None:
    """Return the first file that says something; None if there is none. Raises StoreError."""
    found: list[State] = []
    unknown: StoreError | None = None
    for store in each_store:
        try:
            state = read(store)
        except StoreError as error:
            unknown = error
        else:
            found += [] if state is None else [state]
    if unknown is not None and not found:
        raise unknown
    return max(found, key=lambda each: bool(each.since_ns), default=None)


def refuse_if_on(each_store: tuple[str, ...], named: str | None) -> list[str]:
    """Raise SessionError if the switch is on. Return why a store could not be checked.

    `named`: a store that is not the default one, for the hint. A store can be in the home directory
    of another user, or locked by its owner.
    """
    unknown = []
    for store in each_store:
        try:
            state = read(store)
        except StoreError as error:
            unknown.append(f"the kill switch: {error.message}")
            continue
        if state is not None:
            option = f" --store {printable(store)}" if store == named else ""
            raise SessionError(f"{state}; nothing was run", f"sigwrap killswitch off{option}")
    return unknown


def put(store: str, state: State) -> tuple[Folder, int]:
    """Write the file; return its folder and descriptor. Raises OSError.

    On a full disk the file is empty, which turns the switch on as well.
    """
    refuse_magic_links(store)
    folder = Folder.make(store)
    try:
        return folder, folder.put_new(NAME, lambda fd: _fill(fd, state))
    except BaseException:
        folder.close()
        raise


def remove(each_store: tuple[str, ...]) -> list[str]:
    """Remove each file; return why the switch is still on."""
    failures = []
    for store in each_store:
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                _remove(store)
        except OSError as error:
            failures.append(f"can't remove {printable(path_in(store))}: {error.strerror}")
    return failures


def _remove(store: str) -> None:
    folder = os.open(store, _FOLDER_FLAGS)
    try:
        remove_from(folder)
    finally:
        os.close(folder)


def remove_from(folder: int) -> None:
    try:
        os.unlink(NAME, dir_fd=folder)
    except IsADirectoryError:  # sigwrap makes no directory
        os.rename(NAME, aside(NAME), src_dir_fd=folder, dst_dir_fd=folder)


def look_in(folder: int) -> State | None:
    """Return what the file says; None if there is none. Never waits for a file system."""
    try:
        found = os.open(NAME, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode) or mount_of(found) != mount_of(folder):
            return State()
        proc, path = proc_files.at(b"/proc/self/fd/%d" % found)
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
    """Write what the switch says into a memory file of this process, for sessions that it signals.

    Return the descriptor, to close when these have ended. No process in a session can change it.
    """
    fd = os.memfd_create(_ANNOUNCEMENT)
    os.write(fd, _encoded(state))
    return fd


def announced_by(pid: int) -> State | None:
    """Return what a process outside all sessions announces; None if that can't be read."""
    folder = f"/proc/{pid}/fd"
    try:
        for name in proc_files.names(folder):
            if proc_files.linked(f"{folder}/{name}") == f"/memfd:{_ANNOUNCEMENT} (deleted)":
                file = proc_files.open_file(f"{folder}/{name}")
                try:
                    return _decoded(os.pread(file, _MAX_BYTES, 0))
                finally:
                    os.close(file)
    except OSError:
        pass
    return None


def running(each_store: tuple[str, ...]) -> dict[str, str]:
    """Return the journals of the sessions of this user that run, by session id."""
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
