"""Connections: who comes, and who goes where there are too many: the one that has been silent
longest, of those that haven't been let in by their cookie, as long as there are any. A browser that
is being told what happens never goes for others."""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from sigwrap.linux.peer import Peer, examine
from sigwrap.run.loop import Loop
from sigwrap.watch.page.answers import plain
from sigwrap.watch.page.bounds import Bounds
from sigwrap.watch.page.connection import Connection
from sigwrap.watch.page.gate import Asked
from sigwrap.watch.page.peers import Peers, addresses

_PAUSE_S = 0.1
_KERNEL_BYTES = 1 << 17  # of what it keeps for one client
_TAKEN_AT_ONCE = 64
_REFUSALS_ANSWERED = 30  # in a second


class Server:
    def __init__(
        self,
        loop: Loop,
        listener: socket.socket,
        bounds: Bounds,
        peers: Peers,
        *,
        on_asked: Callable[[Connection, Asked], None],
        on_refused: Callable[[Peer], None],
    ) -> None:
        self.loop = loop
        self.bounds = bounds
        self._listener = listener
        self._peers = peers
        self._on_asked = on_asked
        self._on_refused = on_refused
        self._connections: set[Connection] = set()
        self._unknown: set[Connection] = set()  # besides: whose peers are being looked for
        self._refused: deque[float] = deque(maxlen=_REFUSALS_ANSWERED)
        self._is_watched = False
        self._watch()

    def close(self) -> None:
        self._pause()
        for connection in (*self._connections, *self._unknown):
            connection.close()

    # For connections

    def asked(self, connection: Connection, asked: Asked) -> None:
        self._on_asked(connection, asked)

    def gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._unknown.discard(connection)

    # Who comes

    def _watch(self) -> None:
        if not self._is_watched:
            self.loop.watch(self._listener.fileno(), self._on_arrivals)
            self._is_watched = True

    def _pause(self) -> None:
        if self._is_watched:
            self.loop.unwatch(self._listener.fileno())
            self._is_watched = False

    def _pause_for_a_moment(self) -> None:
        """Those who come meanwhile wait in the kernel."""
        self._pause()
        self.loop.call_at(time.monotonic() + _PAUSE_S, self._watch)

    def _on_arrivals(self, _happened: int) -> None:
        for _ in range(_TAKEN_AT_ONCE):
            if len(self._unknown) >= self.bounds.unknown:
                self._pause_for_a_moment()
                return
            try:
                end, _address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError:  # it has left again; or there are no descriptors
                self._pause_for_a_moment()
                return
            self._on_arrival(end)

    def _on_arrival(self, end: socket.socket) -> None:
        end.setblocking(False)
        with suppress(OSError):  # it has left again
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)
        connection = Connection(self, end)
        self._unknown.add(connection)
        try:
            connection.wait()
        except OSError:  # nothing more can be watched
            self._unknown.discard(connection)
            end.close()
            self._pause_for_a_moment()
            return

        def known(peer: Peer) -> None:
            if connection.is_closed:
                return
            self._unknown.discard(connection)
            if peer.objection:
                self._refuse(connection, peer)
            else:
                self._admit(connection)
                connection.begin()

        if end.family == socket.AF_UNIX:
            known(examine(end))
            return
        try:
            theirs, ours = addresses(end)
        except OSError:  # it has left again
            connection.close()
        else:
            self._peers.examine(theirs, ours, known)

    def _refuse(self, connection: Connection, peer: Peer) -> None:
        """Of a flood some are told why."""
        self._on_refused(peer)
        now_s = time.monotonic()
        is_flood = len(self._refused) == _REFUSALS_ANSWERED and now_s - self._refused[0] < 1.0
        self._refused.append(now_s)
        if is_flood:
            connection.close()
        else:
            self._admit(connection)
            connection.answer(plain(403, f"the page refused this browser: {peer.objection}"))

    def _admit(self, connection: Connection) -> None:
        if len(self._connections) >= self.bounds.connections:
            others = [each for each in self._connections if not each.is_stream]
            min(others, key=lambda each: (each.is_let_in, each.heard_s)).close()
        self._connections.add(connection)
