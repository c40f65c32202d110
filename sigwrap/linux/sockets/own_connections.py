"""Connections to sigwrap's own sockets that it has made in the place of somebody inside: at their
other end the kernel names sigwrap itself."""

from __future__ import annotations

from sigwrap.bare import socket
from sigwrap.linux import peer
from sigwrap.linux.sockets.diag import PEER, SHOW_PEER, named, number_of, told_of

_MOST = 1000


class OwnConnections:
    def __init__(self) -> None:
        self._being_made: dict[int, int] = {}  # by the number of the caller's end -> its pid
        self._made: dict[int, int] = {}
        peer.we_connect_for(self._for_whom)

    def begin(self, fd: int, pid: int) -> None:
        """`fd` is going to be connected in the place of that process, maybe to one of ours, which
        can be asked about it before this thread knows that it is."""
        self._being_made[number_of(fd)] = pid

    def end(self, fd: int, *, is_to_ours: bool) -> None:
        number = number_of(fd)
        pid = self._being_made.pop(number, 0)
        if is_to_ours and pid:
            self._made[number] = pid
            if len(self._made) > _MOST:
                del self._made[next(iter(self._made))]

    def _for_whom(self, accepted: socket.socket) -> int:
        told = told_of(named(accepted.fileno()), SHOW_PEER)
        number = int.from_bytes((told or {}).get(PEER, b""), "little")
        return self._being_made.pop(number, 0) or self._made.pop(number, 0)
