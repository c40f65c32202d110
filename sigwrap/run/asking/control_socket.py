"""The server of the control protocol (protocols/control.py): a session's control socket.

No peer can hold up the loop: a line has a largest length, and a flood of refused peers pauses the
listener. Of too many connections the most silent one is closed, so idle peers keep no others out.

The process that connected decides who may speak (linux/peer.py); the modes of the directory (0700)
and the socket (0600) come on top.
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
from sigwrap.run.asking.listeners import GuardedListener, NamedSocket
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
        """Raises StoreError if it cannot be made."""
        self._loop = loop
        self._on_request = on_request
        self._on_refused = on_refused
        self._connections: set[_Connection] = set()
        self._listener = GuardedListener(loop, self._on_arrival)
        self._closed = False
        self.path = os.path.join(control_folder(store), session_id + SOCKET_SUFFIX)
        try:
            self._socket = NamedSocket(self.path)
        except OSError as error:
            raise self._failure("opened", error) from error
        self._listener.open(self._socket.end)

    @property
    def is_attended(self) -> bool:
        """Whether a screen or a page is open. The session can pretend that; then it waits."""
        return not self._closed and self._socket.is_attended

    def objection(self) -> str:
        """Return what another process has done to it, or an empty string."""
        return "" if self._closed else self._socket.objection()

    def restore(self) -> None:
        """Make another socket in its place, or raise StoreError."""
        self._listener.close()
        try:
            self._socket.restore()
        except OSError as error:
            raise self._failure("opened anew", error) from error
        finally:
            self._listener.open(self._socket.end)

    def _failure(self, what: str, error: OSError) -> StoreError:
        return StoreError(f"the control socket {self.path} can't be {what}: {error.strerror}")

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._listener.close()
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
        except OSError:  # epoll takes no more
            connection.close()
            self._listener.pause()

    def _refuse(self, accepted: socket.socket, peer: Peer) -> None:
        self._on_refused(peer)
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
        return self._on_request(request, peer)

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
