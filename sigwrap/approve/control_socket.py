"""The server of the control protocol (approve/control_protocol.py): a session's control socket.

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

from sigwrap.approve.control_protocol import (
    MAX_LINE_BYTES,
    SOCKET_SUFFIX,
    BadRequest,
    ControlReply,
    control_folder,
    decode_request,
    encode,
    refusal,
    socket_path,
)
from sigwrap.bare import TYPE_CHECKING, socket
from sigwrap.errors import StoreError
from sigwrap.kernel.descriptors import let_go, refuse_descriptors
from sigwrap.kernel.peer import Peer, examine
from sigwrap.kernel.sockets import file_of, named
from sigwrap.log.folder import Interfered, new_name, private_folder
from sigwrap.session.loop import Loop

if TYPE_CHECKING:
    from sigwrap.approve.approvals import Approvals
    from sigwrap.session.session import Session

MAX_CONNECTIONS = 32
PATIENCE_S = 5.0
_REFUSALS_AT_ONCE = 10
_PAUSE_S = 0.2
_BACKLOG = 64
_MODE = 0o600
_NUMBER = 0xFFFFFFFF  # the part of an inode number that the kernel reports for a socket's file


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
        try:
            return not self._closed and is_attended(self._folder.fd)
        except OSError:  # another process has closed the descriptor
            return False

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


# A lock on a directory that says that a process attends to it. The lock ends with that process.

_LOCK = struct.Struct("@hhqqi")  # struct flock: type, whence, start, length, pid


def attend(folder: int) -> None:
    """Take the lock; OSError if there are no such locks."""
    fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))


def is_attended(folder: int) -> bool:
    """Return whether any process has the lock, a process in a session included."""
    asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        found = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, asked)
    except OSError as failure:
        if failure.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS):
            return False
        raise
    return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)
