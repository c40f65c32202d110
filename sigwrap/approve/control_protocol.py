"""The control protocol of a session: a line for the request, a line for the reply, both JSON.

    {"v": 1, "do": "approve", "id": "3f9a10"}    {"v": 1, "ok": true, ...}

A session listens on a socket in its store, control/<session id>.sock, as long as it runs. A
connection has one request. The server is approve/control_socket.py, the client control_client.py.
An approver who watches holds a lock, which is here too.
"""

from __future__ import annotations

import fcntl
import os
import struct

from sigwrap.bare import Any, json, socket

PROTOCOL_VERSION = 1
SOCKET_SUFFIX = ".sock"
CALLS_SUFFIX = ".calls"
MAX_LINE_BYTES = 16 * 1024  # of a request
MOST_CALL_BYTES = 16 * 1024

ControlRequest = dict[str, Any]
ControlReply = dict[str, Any]


class BadRequest(Exception):
    """The line is not a request of this protocol; the server answers with `reply`."""

    def __init__(self, reply: ControlReply) -> None:
        super().__init__(reply["message"])
        self.reply = reply


def control_folder(store: str) -> str:
    return os.path.join(store, "control")


def socket_path(folder_fd: int, name: str) -> str:
    """Return a short path: a socket address has room for 108 bytes."""
    return f"/proc/self/fd/{folder_fd}/{name}"


def refusal(error: str, message: str, **more: Any) -> ControlReply:
    return {"ok": False, "error": error, "message": message, **more}


def encode(message: ControlRequest | ControlReply) -> bytes:
    return json.dumps({"v": PROTOCOL_VERSION, **message}).encode() + b"\n"


def decode_request(line: bytes) -> ControlRequest:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest(refusal("bad-request", "the line is not JSON")) from error
    if not isinstance(request, dict):
        raise BadRequest(refusal("bad-request", "a request must be a JSON object"))
    if request.get("v") != PROTOCOL_VERSION:
        raise BadRequest(
            refusal(
                "version",
                f"this session speaks version {PROTOCOL_VERSION} of the control protocol",
            )
        )
    return request


def decode_reply(line: bytes | bytearray) -> ControlReply:
    """Return an empty reply for JSON that is no object; raise ValueError if it is no JSON."""
    try:
        reply = json.loads(line)
    except RecursionError as error:
        raise ValueError("a reply is nested too deeply") from error
    return reply if isinstance(reply, dict) else {}


def send_tool_call(store: str, session_id: str, payload: dict[str, Any]) -> bool:
    """Report a tool call that a hook judged to the supervisor, in one datagram.

    Returns False if there is no supervisor: the session has another store, or has ended.
    """
    text = json.dumps(payload).encode()
    if "/" in session_id or len(text) > MOST_CALL_BYTES:
        return False
    try:
        folder = os.open(control_folder(store), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as end:
            end.sendto(text, socket_path(folder, session_id + CALLS_SUFFIX))
    except OSError:
        return False
    finally:
        os.close(folder)
    return True


# A lock on the directory says that an approver watches. It ends with the approver's process.

_LOCK = struct.Struct("@hhqqi")  # struct flock: type, whence, start, length, pid


def attend(folder: int) -> None:
    """Take the lock. Raises OSError if there are no such locks."""
    fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))


def is_attended(folder: int) -> bool:
    """Return whether any process has the lock, a process in a session included."""
    asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        found = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, asked)
    except OSError:  # there are no such locks, or another process has closed the descriptor
        return False
    return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)
