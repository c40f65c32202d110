"""A socket that listens, and who comes by it. Who is refused again and again is made to wait, lest
he takes the loop for himself; the backlog holds who comes meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sigwrap.bare import socket
from sigwrap.linux.foreign_fds import let_go
from sigwrap.linux.peer import Peer, examine
from sigwrap.run.loop import Loop

_REFUSALS_AT_ONCE = 10
_PAUSE_S = 0.2


class Entrance:
    def __init__(self, loop: Loop, on_arrival: Callable[[socket.socket, Peer], None]) -> None:
        """`on_arrival`: gets a connection that doesn't wait, and whose it is."""
        self._loop = loop
        self._on_arrival = on_arrival
        self._end: socket.socket | None = None
        self._is_watched = False
        self._refusals = 0

    def open(self, end: socket.socket) -> None:
        """Who connects to it is let in from now on."""
        self._end = end
        self._watch()

    def close(self) -> None:
        self._pause()
        self._end = None

    def pause(self) -> None:
        """For a moment."""
        self._pause()
        self._watch_in_a_moment()

    def refuse(self, accepted: socket.socket, reply: bytes) -> None:
        try:
            accepted.send(reply, socket.MSG_NOSIGNAL)
        except OSError:
            pass
        let_go(accepted.detach())  # there may be sockets in it that linger
        self._refusals += 1
        if self._refusals % _REFUSALS_AT_ONCE == 0:
            self.pause()

    def _watch(self) -> None:
        if self._is_watched or self._end is None:
            return
        try:
            self._loop.watch(self._end.fileno(), self._on_connection)
        except OSError:  # nothing more can be watched
            self._watch_in_a_moment()
        else:
            self._is_watched = True

    def _pause(self) -> None:
        if self._is_watched and self._end is not None:
            self._is_watched = False
            self._loop.unwatch(self._end.fileno())

    def _watch_in_a_moment(self) -> None:
        self._loop.call_at(time.monotonic() + _PAUSE_S, self._watch)

    def _on_connection(self, _happened: int) -> None:
        if self._end is None:
            return
        try:
            accepted, _address = self._end.accept()
        except OSError:  # it has left again; or there are no descriptors, and others leave too
            self.pause()
            return
        accepted.setblocking(False)
        self._on_arrival(accepted, examine(accepted))
