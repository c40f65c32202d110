"""The client of the control protocol: it asks all running sessions of a store at once."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from sigwrap.errors import SessionError, StoreError
from sigwrap.escape import printable
from sigwrap.linux.peer import peer_is_supervised
from sigwrap.protocols.control import (
    SOCKET_SUFFIX,
    ControlReply,
    ControlRequest,
    control_folder,
    decode_reply,
    encode,
    socket_address,
)
from sigwrap.tuples import NamedTuple

PATIENCE_S = 3.0  # of a session that answered, the connection has to outlive those that don't
_AT_ONCE = 64
_MOST_SOCKETS = 512
_MAX_REPLY_BYTES = 16 << 20


class ControlClient(NamedTuple):
    """A connection to a running session, as `ask_everybody` gives it."""

    session_id: str
    connection: socket.socket

    def ask(self, request: ControlRequest) -> ControlReply:
        received = bytearray()
        try:
            try:
                self.connection.sendall(encode(request))
            except BrokenPipeError:
                pass  # a session that refuses a peer replies and closes before it reads
            ends_at_s = time.monotonic() + PATIENCE_S
            while not received.endswith(b"\n") and len(received) < _MAX_REPLY_BYTES:
                if time.monotonic() > ends_at_s:  # a byte now and then is no answer either
                    raise TimeoutError
                data = self.connection.recv(1 << 16)
                if not data:
                    break
                received += data
            return decode_reply(received)
        except TimeoutError as silence:
            raise SessionError(f"session {self.session_id} doesn't answer") from silence
        except (OSError, ValueError) as failure:
            raise SessionError(f"session {self.session_id} hung up") from failure


class Answered(NamedTuple):
    client: ControlClient
    reply: ControlReply


@contextmanager
def ask_everybody(
    store: str, request: ControlRequest
) -> Iterator[tuple[list[Answered], list[SessionError]]]:
    """What the running sessions reply, and what is wrong with those that don't. A socket that
    nobody listens on any more is left out. All at once: one that is stalled, or isn't what its name
    says, holds up no other."""
    answered: list[Answered] = []
    failures: list[SessionError] = []
    with ExitStack() as stack:
        folder_fd = _open_folder(control_folder(store))
        if folder_fd is None:
            yield answered, failures
            return
        stack.callback(os.close, folder_fd)
        names = sorted(name for name in os.listdir(folder_fd) if _is_of_a_session(name))
        if len(names) > _MOST_SOCKETS:
            failures.append(SessionError(f"{len(names) - _MOST_SOCKETS} sockets are not asked"))

        def ask(session_id: str) -> None:
            try:
                connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            except OSError as error:
                failures.append(SessionError(f"can't reach {session_id}: {error.strerror}"))
                return
            stack.callback(connection.close)
            try:
                client = _connected(connection, folder_fd, session_id)
                if client is not None:
                    answered.append(Answered(client, client.ask(request)))
            except SessionError as failure:
                failures.append(failure)

        for start in range(0, min(len(names), _MOST_SOCKETS), _AT_ONCE):
            some = [name.removesuffix(SOCKET_SUFFIX) for name in names[start : start + _AT_ONCE]]
            threads = [threading.Thread(target=ask, args=(each,)) for each in some]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        answered.sort(key=lambda each: each.client.session_id)
        yield answered, failures


def _is_of_a_session(name: str) -> bool:
    """Anybody of this user may name a file there, to have a line of ours broken by it."""
    return name.endswith(SOCKET_SUFFIX) and name != SOCKET_SUFFIX and printable(name) == name


def _open_folder(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"can't look into {path}: {error.strerror}") from error


def _connected(connection: socket.socket, folder_fd: int, session_id: str) -> ControlClient | None:
    # Not settimeout: a non-blocking connect fails with EAGAIN while the server's backlog is full, a
    # blocking one waits, for as long as SO_SNDTIMEO says.
    timeout = struct.pack("@ll", int(PATIENCE_S), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
    try:
        connection.connect(socket_address(folder_fd, session_id))
    except (ConnectionRefusedError, FileNotFoundError):
        return None
    except OSError as error:
        raise SessionError(f"can't reach session {session_id}: {error.strerror}") from error
    connection.settimeout(PATIENCE_S)
    if peer_is_supervised(connection):
        raise SessionError(
            f"what answers for session {session_id} may be a supervised process itself",
            "only a process outside of all sessions is believed",
        )
    return ControlClient(session_id, connection)
