"""The server of the control protocol (approve/control_protocol.py): a session's control socket.

No peer can hold up the loop: a line has a largest length, and a flood of refused peers pauses the
listener. Of too many connections the most silent one is closed, so idle peers keep no others out.

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
        store, session_id = approvals.store, session.recorder.log.session_id
        self._loop = loop = session.loop
        self._approvals = approvals
        self._connections: set[_Connection] = set()
        self._listener = GuardedListener(loop, self._on_arrival)
        self._closed = False
        self._name = session_id + SOCKET_SUFFIX
        self.path = os.path.join(control_folder(store), self._name)
        try:
            self._folder = private_folder(control_folder(store))
            try:
                if self._folder.status(self._name) is not None:
                    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
                self._end, self._found = self._new()
            except OSError:
                self._folder.close()
                raise
        except OSError as error:
            raise self._failure("opened", error) from error
        self._listener.open(self._end)

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
        self._listener.close()
        try:
            self._folder.make_again()
            old, (self._end, self._found) = self._end, self._new()
            let_go(old.detach())
        except OSError as error:
            raise self._failure("opened anew", error) from error
        finally:
            self._listener.open(self._end)

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
            self._refuse(accepted, peer)
            return
        if len(self._connections) >= MAX_CONNECTIONS:
            min(self._connections, key=lambda each: each.patience_ends_s).close()
        connection = _Connection(self, accepted, peer)
        self._connections.add(connection)
        try:
            connection.begin()
        except OSError:  # epoll takes no more
            connection.close()
            self._listener.pause()

    def _refuse(self, accepted: socket.socket, peer: Peer) -> None:
        self._approvals.refused(peer)
        reply = refusal(
            "inside" if peer.inside_session else "refused", f"refused: {peer.objection}"
        )
        self._listener.refuse(accepted, encode(reply))

    # For connections

    @property
    def loop(self) -> Loop:
        return self._loop

    def reply_to(self, line: bytes, peer: Peer) -> ControlReply:
        try:
            request = decode_request(line)
        except BadRequest as bad:
            return bad.reply
        return self._approvals.on_request(request, peer)

    def gone(self, connection: _Connection) -> None:
        self._connections.discard(connection)


class _Connection:
    """Serves one line a turn of the loop, and the next once the peer has read the reply."""

    def __init__(self, control: ControlSocket, end: socket.socket, peer: Peer) -> None:
        self._control = control
        self._end = end
        self._peer = peer
        self._received = b""
        self._to_send = b""
        self._at_end = False
        self._watched = 0
        self.patience_ends_s = 0.0
        self._be_patient()

    def begin(self) -> None:
        """Read what was sent already, so that a peer that asks at once is not closed in favour of
        peers that only connect."""
        self._watch(select.EPOLLIN)
        self._check_patience()
        self._on_event(select.EPOLLIN)

    def close(self) -> None:
        if not self._closed:
            self._watch(0)
            self._end.close()
            self._control.gone(self)

    @property
    def _closed(self) -> bool:
        return self._end.fileno() < 0

    def _on_event(self, _happened: int) -> None:
        try:
            if self._watched == select.EPOLLIN:
                try:
                    data = self._end.recv(MAX_LINE_BYTES)
                except BlockingIOError:
                    return
                self._received += data
                self._at_end = not data
            self._advance()
        except OSError:
            self.close()

    def _advance(self) -> None:
        if self._to_send:
            self._send()
        if self._to_send:
            self._watch(select.EPOLLOUT)
            return
        line, newline, rest = self._received.partition(b"\n")
        if newline:
            self._received = rest
            self._be_patient()
            self._to_send = encode(self._control.reply_to(line, self._peer))
            self._watch(0)
            self._control.loop.call_at(time.monotonic(), self._advance_later)
        elif len(line) > MAX_LINE_BYTES:
            self._to_send = encode(refusal("bad-request", "that line is too long"))
            self._send()
            self.close()
        elif self._at_end:
            self.close()
        else:
            self._watch(select.EPOLLIN)

    def _advance_later(self) -> None:
        if not self._closed:
            try:
                self._advance()
            except OSError:
                self.close()

    def _send(self) -> None:
        try:
            sent = self._end.send(self._to_send, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        self._to_send = self._to_send[sent:]
        self._be_patient()

    def _watch(self, events: int) -> None:
        if events == self._watched:
            return
        loop, fd = self._control.loop, self._end.fileno()
        if not events:
            loop.unwatch(fd)
        elif self._watched:
            loop.change(fd, events)
        else:
            loop.watch(fd, self._on_event, events)
        self._watched = events

    def _be_patient(self) -> None:
        self.patience_ends_s = time.monotonic() + PATIENCE_S

    def _check_patience(self) -> None:
        if self._closed:
            return
        if time.monotonic() >= self.patience_ends_s:
            self.close()
        else:
            self._control.loop.call_at(self.patience_ends_s, self._check_patience)


class GuardedListener:
    """Accepts connections in the loop. After many refusals it pauses, so that a flood cannot starve
    the loop; the backlog holds those who connect meanwhile."""

    def __init__(self, loop: Loop, on_arrival: Callable[[socket.socket, Peer], None]) -> None:
        """`on_arrival` gets a non-blocking connection and its peer."""
        self._loop = loop
        self._on_arrival = on_arrival
        self._end: socket.socket | None = None
        self._is_watched = False
        self._refusals = 0

    def open(self, end: socket.socket) -> None:
        """Accept connections to this listening socket."""
        self._end = end
        self._watch()

    def close(self) -> None:
        self._unwatch()
        self._end = None

    def pause(self) -> None:
        self._unwatch()
        self._watch_later()

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
        if self._is_watched or self._end is None:
            return
        try:
            self._loop.watch(self._end.fileno(), self._on_connection)
        except OSError:  # epoll takes no more
            self._watch_later()
        else:
            self._is_watched = True

    def _unwatch(self) -> None:
        if self._is_watched and self._end is not None:
            self._is_watched = False
            self._loop.unwatch(self._end.fileno())

    def _watch_later(self) -> None:
        self._loop.call_at(time.monotonic() + _PAUSE_S, self._watch)

    def _on_connection(self, _happened: int) -> None:
        if self._end is None:
            return
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
