"""Connections to sigwrap's own sockets that it has made in the place of somebody inside: at their
other end the kernel names sigwrap itself."""

from __future__ import annotations

from sigwrap.bare import socket
from sigwrap.linux import peer
from sigwrap.linux.sockets.diag import PEER, SHOW_PEER, named, number_of, told_of

_MOST = 1000


class OwnConnections:
    def __init__(self) -> None:
        self._made: dict[int, int] = {}  # by the number of the end that is the caller's -> its pid
        peer.we_connect_for(self._for_whom)

    def note(self, fd: int, pid: int) -> None:
        """`fd` is connected to one of ours now, in the place of that process."""
        self._made[number_of(fd)] = pid
        if len(self._made) > _MOST:
            del self._made[next(iter(self._made))]

    def _for_whom(self, accepted: socket.socket) -> int:
        told = told_of(named(accepted.fileno()), SHOW_PEER)
        number = told.get(PEER, b"") if told is not None else b""
        return self._made.pop(int.from_bytes(number, "little"), 0)
