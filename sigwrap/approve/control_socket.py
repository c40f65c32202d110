"""The control socket of a session and its protocol: a line for the request, a line for the reply,
both JSON.

    {"v": 1, "do": "approve", "id": "3f9a10"}    {"v": 1, "ok": true, ...}

A session listens on a socket in its store, control/<session id>.sock, as long as it runs. The
client is approve/control_client.py. A lock on the directory says that an approver watches; it ends
with the approver's process.

No peer can hold up the loop: a connection has one request, a line has a largest length, and a flood
of refused peers pauses the listener. Of too many connections the oldest one is closed, so idle
peers keep no others out.

The process that connected decides who may speak (kernel/peer.py); the modes of the directory (0700)
and the socket (0600) come on top.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import struct
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, Any, json, socket
from sigwrap.errors import StoreError
from sigwrap.kernel.descriptors import let_go, refuse_descriptors
from sigwrap.kernel.peer import Peer, examine, file_of, named
from sigwrap.log.folder import Interfered, new_name, private_folder

if TYPE_CHECKING:
    from sigwrap.approve.approvals import Approvals
    from sigwrap.session.loop import Loop
    from sigwrap.session.session import Session

PROTOCOL_VERSION = 1
SOCKET_SUFFIX = ".sock"
CALLS_SUFFIX = ".calls"
MAX_LINE_BYTES = 16 * 1024  # of a request
MOST_CALL_BYTES = 16 * 1024

ControlRequest = dict[str, Any]
ControlReply = dict[str, Any]

MAX_CONNECTIONS = 32
PATIENCE_S = 5.0
_REFUSALS_AT_ONCE = 10
_PAUSE_S = 0.2
_BACKLOG = 64
_MODE = 0o600
_NUMBER = 0xFFFFFFFF  # the part of an inode number that the kernel reports for a socket's file
_LOCK = struct.Struct("@hhqqi")  # struct flock: type, whence, start, length, pid


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


class ControlSocket:
    """Listens under a name in the store. Another process of the user can remove that file, change
    its mode or replace it; `restore` then makes a new socket under the name."""

    def __init__(self, session: Session, approvals: Approvals) -> None:
        """Raises StoreError if it cannot be made."""
        self.loop = session.loop
        self._approvals = approvals
        self._connections: dict[_Connection, None] = {}  # the oldest first
        self._closed = False
        self._name = session.recorder.log.session_id + SOCKET_SUFFIX
        self.path = os.path.join(control_folder(approvals.store), self._name)
        try:
            self._folder = private_folder(control_folder(approvals.store))
            try:
                if self._folder.status(self._name) is not None:
                    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
                self._end, self._found = self._new()
            except OSError:
                self._folder.close()
                raise
        except OSError as error:
            raise self._failure("opened", error) from error
        self._listener = GuardedListener(self.loop, self._end, self._on_arrival)

    @property
    def is_attended(self) -> bool:
        """Whether a screen or a page is open. The session can pretend that; then it waits."""
        return not self._closed and is_attended(self._folder.fd)

    def objection(self) -> str:
        """Return what another process has done to it, or an empty string."""
        if self._closed:
            return ""
        if not self._folder.is_reached:
            return "its directory was removed, moved, replaced or closed"
        found = self._folder.status(self._name)
        if found is None:
            return "it was removed"
        if not os.path.samestat(found, self._found):
            return "another file was put in its place"
        return "" if stat.S_IMODE(found.st_mode) == _MODE else "its mode was changed"

    def restore(self) -> None:
        """Make another socket in its place, or raise StoreError."""
        try:
            self._folder.make_again()
            end, found = self._new()
        except OSError as error:
            raise self._failure("opened anew", error) from error
        self._listener.close()
        let_go(self._end.detach())
        self._end, self._found = end, found
        self._listener = GuardedListener(self.loop, end, self._on_arrival)

    def _new(self) -> tuple[socket.socket, os.stat_result]:
        """Return a listening socket and the status of its file, which replaces any other."""
        unfinished = new_name(self._name)
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            umask = os.umask(0o777 & ~_MODE)
            try:
                end.bind(socket_path(self._folder.fd, unfinished))
            finally:
                os.umask(umask)
            found = self._folder.status(unfinished)
            its_file = file_of(named(end.fileno()))
            if found is None or (its_file and its_file[0] != found.st_ino & _NUMBER):
                raise Interfered("another process removes or replaces it")
            refuse_descriptors(end)
            end.listen(_BACKLOG)
            self._folder.put(unfinished, self._name)
        except BaseException:
            self._folder.remove(unfinished)
            end.close()
            raise
        return end, found

    def _failure(self, what: str, error: OSError) -> StoreError:
        return StoreError(f"the control socket {self.path} can't be {what}: {error.strerror}")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._listener.close()
        for connection in tuple(self._connections):
            connection.close()
        let_go(self._end.detach())
        found = self._folder.status(self._name)
        if found is not None and os.path.samestat(found, self._found):
            self._folder.remove(self._name)
        self._folder.close()

    def _on_arrival(self, accepted: socket.socket, peer: Peer) -> None:
        if peer.objection:
            self._approvals.refused(peer)
            error = "inside" if peer.inside_session else "refused"
            reply = refusal(error, f"refused: {peer.objection}")
            self._listener.refuse(accepted, encode(reply))
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            next(iter(self._connections)).close()
        connection = _Connection(self, accepted, peer)
        self._connections[connection] = None
        try:
            connection.begin()
        except OSError:  # epoll takes no more
            connection.close()
            self._listener.pause()

    # For connections

    def reply_to(self, line: bytes, peer: Peer) -> ControlReply:
        try:
            request = decode_request(line)
        except BadRequest as bad:
            return bad.reply
        return self._approvals.on_request(request, peer)

    def gone(self, connection: _Connection) -> None:
        self._connections.pop(connection, None)


class _Connection:
    """Serves one request: a line and its reply."""

    def __init__(self, control: ControlSocket, end: socket.socket, peer: Peer) -> None:
        self._control = control
        self._end = end
        self._peer = peer
        self._received = b""
        self._reply = b""

    def begin(self) -> None:
        """Read what was sent already, so that a peer that asks at once is not closed in favour of
        peers that only connect."""
        loop = self._control.loop
        loop.watch(self._end.fileno(), self._on_event)
        loop.call_at(time.monotonic() + PATIENCE_S, self.close)
        self._on_event(select.EPOLLIN)

    def close(self) -> None:
        if self._end.fileno() >= 0:
            self._control.loop.unwatch(self._end.fileno())
            self._end.close()
            self._control.gone(self)

    def _on_event(self, _happened: int) -> None:
        try:
            if not self._reply:
                self._read()
            if self._reply:
                self._reply = self._reply[self._end.send(self._reply, socket.MSG_NOSIGNAL) :]
                if not self._reply:
                    self.close()
        except BlockingIOError:
            return
        except OSError:
            self.close()

    def _read(self) -> None:
        data = self._end.recv(MAX_LINE_BYTES)
        self._received += data
        line, newline, _ = self._received.partition(b"\n")
        if newline:
            self._reply = encode(self._control.reply_to(line, self._peer))
        elif len(line) > MAX_LINE_BYTES:
            self._reply = encode(refusal("bad-request", "that line is too long"))
        elif not data:
            self.close()
        if self._reply and self._end.fileno() >= 0:
            self._control.loop.change(self._end.fileno(), select.EPOLLOUT)


class GuardedListener:
    """Accepts connections in the loop. After many refusals it pauses, so that a flood cannot starve
    the loop; the backlog holds those who connect meanwhile."""

    def __init__(
        self, loop: Loop, end: socket.socket, on_arrival: Callable[[socket.socket, Peer], None]
    ) -> None:
        """Accept connections to `end`. `on_arrival` gets each, non-blocking, and its peer."""
        self._loop = loop
        self._end = end
        self._on_arrival = on_arrival
        self._is_watched = self._is_closed = False
        self._refusals = 0
        self._watch()

    def close(self) -> None:
        """Accept no more. The caller closes the socket."""
        self._is_closed = True
        self._unwatch()

    def pause(self) -> None:
        self._unwatch()
        self._loop.call_at(time.monotonic() + _PAUSE_S, self._watch)

    def refuse(self, accepted: socket.socket, reply: bytes) -> None:
        try:
            accepted.send(reply, socket.MSG_NOSIGNAL)
        except OSError:
            pass
        let_go(accepted.detach())  # closing it here could block: sockets in it may linger
        self._refusals += 1
        if self._refusals % _REFUSALS_AT_ONCE == 0:
            self.pause()

    def _watch(self) -> None:
        if self._is_watched or self._is_closed:
            return
        try:
            self._loop.watch(self._end.fileno(), self._on_connection)
            self._is_watched = True
        except OSError:  # epoll takes no more
            self.pause()

    def _unwatch(self) -> None:
        if self._is_watched:
            self._is_watched = False
            self._loop.unwatch(self._end.fileno())

    def _on_connection(self, _happened: int) -> None:
        try:
            accepted, _address = self._end.accept()
        except OSError:  # the peer has left, or no descriptor is free now
            self.pause()
            return
        accepted.setblocking(False)
        self._on_arrival(accepted, examine(accepted))
