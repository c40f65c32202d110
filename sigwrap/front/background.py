"""The session of a name: connected to where it runs, and started in the background where it
doesn't. Who starts one takes its address first, and hands it on: the kernel gives it to one alone.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import sys
import time

from sigwrap.bare import json, signal, socket
from sigwrap.errors import SessionError, SigwrapError
from sigwrap.hints import Any
from sigwrap.linux import memory_library
from sigwrap.linux import process as linux_process
from sigwrap.linux.descriptors import close_all_but
from sigwrap.linux.peer import objection_to_listener, pid_and_uid
from sigwrap.protocols.joined import KIND, address
from sigwrap.start import onefile
from sigwrap.start.command import Inherited, restore_signals
from sigwrap.status import REFUSED

_READY_WITHIN_S = 30.0
_LISTENS_WITHIN_S = 40.0
_ENDS_WITHIN_S = 5.0
_LETS_IN_WITHIN_S = 10
_LOOKS_EVERY_S = 0.01


class NotStarted(SigwrapError):
    """The session has said why, and this is the status that it ended with."""

    def __init__(self, status: int) -> None:
        super().__init__("")
        self.status = status


class _NotBelieved(SessionError):
    """Or what is left of a session that ends: then there is another one soon."""


def connect_or_start(
    inherited: Inherited, *, store: str, name: str, settings: dict[str, Any]
) -> socket.socket:
    at = address(store, name, os.geteuid())
    began_s = time.monotonic()
    while True:
        try:
            connection = _connected(at, name)
        except _NotBelieved:
            if time.monotonic() - began_s > _ENDS_WITHIN_S:
                raise
        else:
            if connection is None and (door := _taken(at, name)) is not None:
                _start(inherited, settings, door)
                connection = _connected(at, name)
                if connection is None:
                    raise SessionError(f"session {name} was started but can't be joined")
            if connection is not None:
                return connection
        if time.monotonic() - began_s > _LISTENS_WITHIN_S:
            raise SessionError(
                f"session {name} is still starting after {_LISTENS_WITHIN_S:.0f} s",
                "try again, or choose another name",
            )
        time.sleep(_LOOKS_EVERY_S)


def _connected(at: bytes, name: str) -> socket.socket | None:
    """None where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, KIND)
    try:
        _wait_at_most(connection, _LETS_IN_WITHIN_S)
        connection.connect(at)
        _wait_at_most(connection, 0)
    except ConnectionRefusedError:
        connection.close()
        return None
    except BlockingIOError as silence:
        connection.close()
        raise SessionError(
            f"too many commands wait to join session {name}", "try again, or end the session"
        ) from silence
    except OSError as error:
        connection.close()
        raise SessionError(f"can't reach session {name}: {error.strerror}") from error
    _pid, uid = pid_and_uid(connection)
    objection = objection_to_listener(connection)
    if uid not in (os.geteuid(), 0):
        objection = "it belongs to another user"
    if objection:
        connection.close()
        raise _NotBelieved(
            f"can't trust the process that answers for session {name}: {objection}",
            "end that process (ss -lxp shows its pid), or choose another name",
        )
    return connection


def _wait_at_most(end: socket.socket, seconds: int) -> None:
    """For who is to let us in; 0: for ever."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", seconds, 0))


def _taken(at: bytes, name: str) -> socket.socket | None:
    """A socket that has this address; None where another one has it."""
    door = socket.socket(socket.AF_UNIX, KIND)
    try:
        door.bind(at)
    except OSError as error:
        door.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise SessionError(f"can't start session {name}: {error.strerror}") from error
    return door


def _start(inherited: Inherited, settings: dict[str, Any], door: socket.socket) -> None:
    readable, ready = os.pipe()
    said, words = os.pipe()
    whole = {**settings, "ready_fd": ready, "door_fd": door.fileno()}
    asked = memory_library.sealed("settings", json.dumps(whole).encode())
    pid = linux_process.fork()
    if pid == 0:
        try:
            _become(inherited, asked, (ready, door.fileno()), words)
        finally:
            os._exit(REFUSED)
    for fd in (ready, words, asked, door.detach()):  # it is the session's from now on
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
    close_all_but((asked, *its))
    for fd in (asked, *its):
        os.set_inheritable(fd, True)
    line = [*own_line(), "--as", "joined", str(asked)]
    restore_signals(inherited)
    os.execve(line[0], line, inherited.environment)


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
            raise SessionError(f"the session did not start within {_READY_WITHIN_S:.0f} s")
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
