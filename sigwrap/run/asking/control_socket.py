"""The server of the control protocol (protocols/control.py): a session's control socket.

No peer can hold the loop up: the length of a line, the number of connections and the time that a
connection may be silent are bounded, and a peer that floods the socket is made to wait. Where there
are too many, the one that has been silent for longest is closed: idle peers keep nobody out.

Who may speak is decided by the process that connected (linux/peer.py); that the folder has mode
0700 and the socket 0600 comes on top.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from sigwrap.bare import socket
from sigwrap.errors import StoreError
from sigwrap.linux.peer import Peer
from sigwrap.protocols.control import (
    MAX_LINE_BYTES,
    SOCKET_SUFFIX,
    BadRequest,
    ControlReply,
    ControlRequest,
    control_folder,
    decode_request,
    encode,
    refusal,
)
from sigwrap.run.asking.named_socket import NamedSocket
from sigwrap.run.entrance import Entrance
from sigwrap.run.loop import Loop

MAX_CONNECTIONS = 32
PATIENCE_S = 5.0


class ControlSocket:
    def __init__(
        self,
        store: str,
        session_id: str,
        loop: Loop,
        *,
        on_request: Callable[[ControlRequest, Peer], ControlReply],
        on_refused: Callable[[Peer], None],
    ) -> None:
        """StoreError where there can't be one."""
        self._loop = loop
        self._on_request = on_request
        self._on_refused = on_refused
        self._connections: set[_Connection] = set()
        self._entrance = Entrance(loop, self._on_arrival)
        self._closed = False
        self.path = os.path.join(control_folder(store), session_id + SOCKET_SUFFIX)
        try:
            self._socket = NamedSocket(self.path)
        except OSError as error:
            raise self._failure("opened", error) from error
        self._entrance.open(self._socket.end)

    @property
    def is_attended(self) -> bool:
        """A place to answer at is in use. Whoever is inside can pretend that, and waits then."""
        return not self._closed and self._socket.is_attended

    def objection(self) -> str:
        """What somebody has done to it; empty where nobody has."""
        return "" if self._closed else self._socket.objection()

    def restore(self) -> None:
        """Another socket in its place; StoreError where there can't be one."""
        self._entrance.close()
        try:
            self._socket.restore()
        except OSError as error:
            raise self._failure("opened anew", error) from error
        finally:
            self._entrance.open(self._socket.end)

    def _failure(self, what: str, error: OSError) -> StoreError:
        return StoreError(f"the control socket {self.path} can't be {what}: {error.strerror}")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._entrance.close()
        for connection in tuple(self._connections):
            connection.close()
        self._socket.close()

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
        except OSError:  # nothing more can be watched
            connection.close()
            self._entrance.pause()

    def _refuse(self, accepted: socket.socket, peer: Peer) -> None:
        self._on_refused(peer)
        reply = refusal(
            "inside" if peer.inside_session else "refused", f"refused: {peer.objection}"
        )
        self._entrance.refuse(accepted, encode(reply))

    # For connections

    @property
    def loop(self) -> Loop:
        return self._loop

    def reply_to(self, line: bytes, peer: Peer) -> ControlReply:
        try:
            request = decode_request(line)
        except BadRequest as bad:
            return bad.reply
        return self._on_request(request, peer)

    def gone(self, connection: _Connection) -> None:
        self._connections.discard(connection)


class _Connection:
    """Serves one line a turn, and reads on when the reply has been taken."""

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
        """With what was sent already: whoever asks at once isn't closed for those who only come."""
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
