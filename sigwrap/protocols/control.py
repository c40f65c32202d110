"""The control protocol of a session: one request a line, one reply a line, both JSON.

    {"v": 1, "do": "approve", "id": "3f9a10"}    {"v": 1, "ok": true, ...}

A session listens on a socket in its store, control/<session id>.sock, as long as it runs. This
module has what both ends share, and the client; run/asking/control_socket.py is the server.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sigwrap.errors import SessionError, StoreError
from sigwrap.linux.peer import peer_is_supervised
from sigwrap.tuples import NamedTuple

PROTOCOL_VERSION = 1
SOCKET_SUFFIX = ".sock"
MAX_LINE_BYTES = 16 * 1024  # of a request

_CLIENT_TIMEOUT_S = 10.0
_MAX_REPLY_BYTES = 16 << 20

ControlRequest = dict[str, Any]
ControlReply = dict[str, Any]


class BadRequest(Exception):
    """A line is no request of this protocol; send `reply`."""

    def __init__(self, reply: ControlReply) -> None:
        super().__init__(reply["message"])
        self.reply = reply


def control_folder(store: str) -> str:
    return os.path.join(store, "control")


def socket_address(folder_fd: int, session_id: str) -> str:
    """A socket's address has room for 108 bytes, and a store may lie deeper."""
    return f"/proc/self/fd/{folder_fd}/{session_id}{SOCKET_SUFFIX}"


def refusal(error: str, message: str, **more: Any) -> ControlReply:
    return {"ok": False, "error": error, "message": message, **more}


def encode(message: ControlRequest | ControlReply) -> bytes:
    return json.dumps({"v": PROTOCOL_VERSION, **message}).encode() + b"\n"


def decode_request(line: bytes) -> ControlRequest:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest(refusal("bad-request", "that line is no JSON")) from error
    if not isinstance(request, dict):
        raise BadRequest(refusal("bad-request", "a request is a JSON object"))
    if request.get("v") != PROTOCOL_VERSION:
        raise BadRequest(
            refusal(
                "version",
                f"this session speaks version {PROTOCOL_VERSION} of the control protocol",
            )
        )
    return request


def decode_reply(line: bytes) -> ControlReply:
    """ValueError where the line is no JSON; what is no object is an empty reply."""
    try:
        reply = json.loads(line)
    except RecursionError as error:
        raise ValueError("a reply is nested too deep") from error
    return reply if isinstance(reply, dict) else {}


class ControlClient(NamedTuple):
    """A connection to a running session, as reachable_sessions yields it."""

    session_id: str
    connection: socket.socket

    def ask(self, request: ControlRequest) -> ControlReply:
        received = b""
        try:
            try:
                self.connection.sendall(encode(request))
            except BrokenPipeError:
                pass  # a session that refuses a peer replies and closes before it reads
            while not received.endswith(b"\n") and len(received) < _MAX_REPLY_BYTES:
                data = self.connection.recv(1 << 16)
                if not data:
                    break
                received += data
            return decode_reply(received)
        except TimeoutError as silence:
            raise SessionError(f"session {self.session_id} doesn't answer") from silence
        except (OSError, ValueError) as failure:
            raise SessionError(f"session {self.session_id} hung up: {failure}") from failure


def reachable_sessions(store: str) -> Iterator[ControlClient]:
    """One after the other, each connected until the next is asked for. A socket that nobody
    listens on any more is left out."""
    folder = control_folder(store)
    try:
        folder_fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"can't look into {folder}: {error.strerror}") from error
    try:
        for name in sorted(os.listdir(folder_fd)):
            if name.endswith(SOCKET_SUFFIX):
                with _connected(folder_fd, name.removesuffix(SOCKET_SUFFIX)) as client:
                    if client is not None:
                        yield client
    finally:
        os.close(folder_fd)


@contextmanager
def _connected(folder_fd: int, session_id: str) -> Iterator[ControlClient | None]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        # Not settimeout: a non-blocking connect fails with EAGAIN while the server's backlog is
        # full, a blocking one waits, for as long as SO_SNDTIMEO says.
        timeout = struct.pack("@ll", int(_CLIENT_TIMEOUT_S), 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
        try:
            connection.connect(socket_address(folder_fd, session_id))
        except (ConnectionRefusedError, FileNotFoundError):
            yield None
            return
        except OSError as error:
            raise SessionError(f"can't reach session {session_id}: {error.strerror}") from error
        connection.settimeout(_CLIENT_TIMEOUT_S)
        if peer_is_supervised(connection):
            raise SessionError(
                f"what answers for session {session_id} may be a supervised process itself",
                "only a process outside of all sessions is believed",
            )
        yield ControlClient(session_id, connection)
