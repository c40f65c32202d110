"""One connection: one request, one answer. Browsers open another connection for the next request,
so nothing in a request can be mistaken for the start of another.

A thread serves it. Each step has a time limit, so a slow client holds up its own thread only.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress

from sigwrap.linux.taken import let_go
from sigwrap.tuples import NamedTuple
from sigwrap.watch.page.answers import Answer
from sigwrap.watch.page.requests import HEAD_BYTES, Request, head_size, read_head

_KERNEL_BYTES = 1 << 17  # of the send buffer
_PIECE = 1 << 16
_READ_WHILE_LEAVING = 1 << 18


class Bounds(NamedTuple):
    """How much one client, and all together, may use."""

    connections: int = 64
    streams: int = 24  # of those
    unknown: int = 400  # besides: connections whose process is not identified yet
    identified_s: float = 20.0  # from the connection until its process is identified
    request_s: float = 5.0  # from then to the end of the request
    sending_s: float = 10.0  # without a byte taken
    leaving_s: float = 1.0  # from the last byte until the client closes
    tick_s: float = 0.25  # between two messages of a stream
    beat_s: float = 10.0  # of silence in a stream
    first_lines: int = 300
    lines: int = 250  # in a tick


class Connection:
    def __init__(self, end: socket.socket, bounds: Bounds) -> None:
        self._end = end
        self._bounds = bounds
        self.is_stream = False
        self.is_let_in = False  # by its cookie
        self.is_cut = False
        self.heard_s = time.monotonic()
        with suppress(OSError):  # the client has left already
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _KERNEL_BYTES)

    def request(self) -> Request:
        """Read the request; BadRequest if it is wrong, OSError if the client leaves or is slow.

        What comes behind the request is not looked at.
        """
        until_s = time.monotonic() + self._bounds.request_s
        received = bytearray()
        while not (size := head_size(received)):
            received += self._receive(until_s)
        request, length = read_head(bytes(received[:size]))
        while len(received) < size + length:
            received += self._receive(until_s)
        return request._replace(body=bytes(received[size : size + length]))

    def answer(self, answer: Answer) -> None:
        self.send(answer.encoded)
        self._leave()

    def send(self, data: bytes) -> None:
        """OSError if the client leaves, or takes nothing for too long."""
        self._end.settimeout(self._bounds.sending_s)
        rest = memoryview(data)
        while rest:
            rest = rest[self._end.send(rest[:_PIECE], socket.MSG_NOSIGNAL) :]

    def has_left(self, within_s: float) -> bool:
        """Wait that long; a client that sends anything to a stream is closed as well."""
        self._end.settimeout(within_s)
        try:
            self._end.recv(1)
        except TimeoutError:
            return False
        return True

    def cut(self) -> None:
        """Make its thread stop, from another one."""
        self.is_cut = True
        with suppress(OSError):  # the client has left already
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        let_go(self._end.detach())  # a close can block where a client has sent other sockets

    def _receive(self, until_s: float) -> bytes:
        self._end.settimeout(max(until_s - time.monotonic(), 0.001))
        data = self._end.recv(HEAD_BYTES)
        if not data:
            raise ConnectionResetError
        self.heard_s = time.monotonic()
        return data

    def _leave(self) -> None:
        """Close once the client has read it all: an early close would discard unread data."""
        self._end.shutdown(socket.SHUT_WR)
        until_s, left = time.monotonic() + self._bounds.leaving_s, _READ_WHILE_LEAVING
        while left > 0:
            left -= len(self._receive(until_s))
