"""The control protocol of a session: one request a line, one reply a line, both JSON.

    {"v": 1, "do": "approve", "id": "3f9a10"}    {"v": 1, "ok": true, ...}

A session listens on a socket in its store, control/<session id>.sock, as long as it runs. This
module has what both ends share; approve/control_socket.py is the server, and control_client.py
the client.
"""

from __future__ import annotations

import os
import stat

from sigwrap.bare import Any, NamedTuple, json, re, socket

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
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        end.sendto(text, socket_path(folder, session_id + CALLS_SUFFIX))
    except OSError:
        return False
    finally:
        end.close()
        os.close(folder)
    return True


# Find and remove the control sockets of sessions whose supervisor was killed.

_UNFINISHED = re.compile(rf"(?s)(.+)(?:{SOCKET_SUFFIX}(?:\.new-[0-9a-f]{{12}})?|{CALLS_SUFFIX})")


class LeftSocket(NamedTuple):
    session_id: str
    name: str


def left_sockets(store: str) -> list[LeftSocket]:
    """Return this user's sockets that have no listener."""
    fd = _open(store)
    if fd is None:
        return []
    try:
        return [
            LeftSocket(named[1], name)
            for name in sorted(os.listdir(fd))
            if (named := _UNFINISHED.fullmatch(name)) and is_left(fd, name)
        ]
    finally:
        os.close(fd)


def is_listened_at(store: str, session_id: str) -> bool:
    fd = _open(store)
    if fd is None:
        return False
    try:
        return _is_listened_at(fd, session_id + SOCKET_SUFFIX)
    finally:
        os.close(fd)


def remove_left(store: str, sockets: list[LeftSocket]) -> int:
    """Remove them unless they have a listener by now, and return how many were removed."""
    fd = _open(store) if sockets else None
    if fd is None:
        return 0
    count = 0
    try:
        for each in sockets:
            if is_left(fd, each.name):
                try:
                    os.unlink(each.name, dir_fd=fd)
                    count += 1
                except OSError:
                    continue  # another removed it
    finally:
        os.close(fd)
    return count


def _open(store: str) -> int | None:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(control_folder(store), flags)
    except OSError:
        return None


def is_left(folder_fd: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
    except OSError:
        return False
    is_ours = stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not _is_listened_at(folder_fd, name)


def _is_listened_at(folder_fd: int, name: str) -> bool:
    """Return whether it has a listener. A new socket, under a temporary name, has none yet."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        end.connect(socket_path(folder_fd, name))
    except (ConnectionRefusedError, FileNotFoundError):
        return False
    except OSError:
        return True  # it may be full
    finally:
        end.close()
    return True
