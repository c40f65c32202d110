"""The session of a name: connected to where it runs, and started in the background where it
doesn't. One is started at a time: who starts it holds a lock, and so does the session until it is
ready, also where who started it has been killed meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import time

from sigwrap.bare import json, signal, socket
from sigwrap.errors import SessionError, SigwrapError, StoreError
from sigwrap.hints import Any
from sigwrap.linux import kept_library
from sigwrap.linux import process as linux_process
from sigwrap.linux.peer import objection_to_listener, pid_and_uid
from sigwrap.protocols.control import socket_path
from sigwrap.protocols.joined import KIND, LOCK_SUFFIX, SOCKET_SUFFIX, joined_folder
from sigwrap.start import onefile
from sigwrap.start.command import Inherited, restore_signals
from sigwrap.status import REFUSED

_READY_WITHIN_S = 30.0
_LOCK_WITHIN_S = 40.0
_LOOKS_EVERY_S = 0.01
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOWEST = 3


class NotStarted(SigwrapError):
    """The session has said why, and this is the status that it ended with."""

    def __init__(self, status: int) -> None:
        super().__init__("")
        self.status = status


def connect_or_start(
    inherited: Inherited, *, store: str, name: str, settings: dict[str, Any]
) -> socket.socket:
    folder = _folder(joined_folder(store))
    try:
        connection = _connected(folder, name)
        if connection is not None:
            return connection
        lock = _locked(folder, name)
        try:
            connection = _connected(folder, name)  # by whoever held the lock before us
            if connection is None:
                _start(inherited, settings, lock)
                connection = _connected(folder, name)
        finally:
            os.close(lock)
    finally:
        os.close(folder)
    if connection is None:
        raise SessionError(f"session {name} was started, and can't be joined")
    return connection


def _folder(path: str) -> int:
    umask = os.umask(0o077)
    try:
        os.makedirs(path, exist_ok=True)
        return os.open(path, _FOLDER)
    except OSError as error:
        raise StoreError(
            f"can't make {path}: {error.strerror}", "choose another store with --store"
        ) from error
    finally:
        os.umask(umask)


def _connected(folder: int, name: str) -> socket.socket | None:
    """None where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, KIND)
    try:
        connection.connect(socket_path(folder, name + SOCKET_SUFFIX))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise SessionError(f"can't reach session {name}: {error.strerror}") from error
    objection = objection_to_listener(connection)
    if pid_and_uid(connection)[1] not in (os.geteuid(), 0):
        objection = "it belongs to another user"
    if objection:
        connection.close()
        raise SessionError(
            f"what answers for session {name} is not believed: {objection}",
            "only a process outside of all sessions is believed",
        )
    return connection


def _locked(folder: int, name: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(name + LOCK_SUFFIX, flags, 0o600, dir_fd=folder)
    except OSError as error:
        raise StoreError(f"can't lock session {name}: {error.strerror}") from error
    until_s = time.monotonic() + _LOCK_WITHIN_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            if time.monotonic() > until_s:
                os.close(lock)
                raise SessionError(
                    f"somebody has been starting session {name} for {_LOCK_WITHIN_S:.0f} s"
                ) from None
            time.sleep(_LOOKS_EVERY_S)


def _start(inherited: Inherited, settings: dict[str, Any], lock: int) -> None:
    readable, ready = os.pipe()
    said, words = os.pipe()
    whole = {**settings, "ready_fd": ready, "lock_fd": lock}
    asked = kept_library.written("settings", json.dumps(whole).encode())
    pid = linux_process.fork()
    if pid == 0:
        try:
            _become(inherited, asked, (ready, lock), words)
        finally:
            os._exit(REFUSED)
    for fd in (ready, words, asked):
        os.close(fd)
    try:
        _await(pid, readable, said)
    finally:
        os.close(readable)
        os.close(said)


def _become(inherited: Inherited, asked: int, its: tuple[int, ...], words: int) -> None:
    """What it says goes to us as long as we listen: nobody else's pipe is to wait for its end."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(words, 2)
    for first, last in _between(sorted((asked, *its))):
        os.closerange(first, last)
    for fd in (asked, *its):
        os.set_inheritable(fd, True)
    line = [*own_line(), "--as", "joined", str(asked)]
    restore_signals(inherited)
    os.execve(line[0], line, inherited.environment)


def _between(kept: list[int]) -> list[tuple[int, int]]:
    """The ranges of descriptors that are not kept, from the first after the standard streams."""
    starts = [_LOWEST, *(fd + 1 for fd in kept)]
    return list(zip(starts, [*kept, 1 << 20], strict=True))


def _await(pid: int, readable: int, said: int) -> None:
    """Until it is ready; it goes on without us."""
    os.set_blocking(said, False)
    poll = select.poll()
    poll.register(readable, select.POLLIN)
    poll.register(said, select.POLLIN)
    until_s = time.monotonic() + _READY_WITHIN_S
    is_over = False
    while not is_over:
        happened = [fd for fd, _ in poll.poll(max(0.0, until_s - time.monotonic()) * 1000)]
        if not happened:
            linux_process.send(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise SessionError(f"the session didn't get ready within {_READY_WITHIN_S:.0f} s")
        is_over = readable in happened
        if not _pass_on(said):
            poll.unregister(said)
            said = -1
    if not os.read(readable, 16):
        _, wait_status = os.waitpid(pid, 0)
        raise NotStarted(os.waitstatus_to_exitcode(wait_status))


def _pass_on(said: int) -> bool:
    """False where nothing more will be said."""
    while said >= 0:
        try:
            data = os.read(said, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        os.write(2, data)
    return True


def own_line() -> list[str]:
    """By which this very program is started again."""
    if onefile.unpacked_folder():
        return [sys.executable]
    return [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]]
