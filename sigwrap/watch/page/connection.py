"""A connection: one request, and one answer or a stream of server-sent events. Browsers connect
again for the next request, so nothing in a request can be mistaken for the start of another.

A thread serves it. Each step has a time limit, so a slow client holds up its own thread only. A
stream starts with everything and goes on with what is new; a client that reads slowly gets fewer
and newer messages.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Protocol

from sigwrap.bare import NamedTuple
from sigwrap.kernel.descriptors import let_go
from sigwrap.watch.board import Board, EventLine
from sigwrap.watch.documents import board_text, lines_text
from sigwrap.watch.page.messages import HEAD_BYTES, Answer, Request, head_size, plain, read_head

_KERNEL_BYTES = 1 << 17  # of the send buffer
_PIECE = 1 << 16
_READ_WHILE_LEAVING = 1 << 18


class Bounds(NamedTuple):
    """Limits for one client, and for all together."""

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


_BEAT = "event: beat\ndata: 0\n\n"  # a page that hears none knows that the server is gone
_NOW_IS_RIGHT_NS = 1_000_000_000  # the page sets its clock by the time in the board


class Events(Protocol):
    """The source of boards and events."""

    def board(self) -> Board: ...

    def lines(self, session_id: str, after_seq: int, most: int) -> tuple[list[EventLine], int]: ...

    def attend(self, is_watched: bool) -> None: ...


class Streams:
    def __init__(self, source: Events, bounds: Bounds) -> None:
        self._source = source
        self._bounds = bounds
        self._lock = threading.Lock()
        self._count = 0
        self._made: Board | None = None
        self._made_text = ""

    def serve(self, connection: Connection, session_id: str) -> None:
        """Send events until the client leaves."""
        if not self._count_in():
            connection.answer(plain(503, "too many tabs are open: close some"))
            return
        try:
            connection.is_stream = True
            connection.send(Answer(200, "text/event-stream", None).encoded)
            self._tell(connection, session_id)
        finally:
            with self._lock:
                self._count -= 1
                self._source.attend(self._count > 0)

    def _count_in(self) -> bool:
        """Count a stream, if there is room; while one is open, sessions know that an approver is
        watching."""
        with self._lock:
            if self._count == self._bounds.streams:
                return False
            self._count += 1
            self._source.attend(True)
            return True

    def _tell(self, connection: Connection, session_id: str) -> None:
        told: Board | None = None
        seq, most, told_s = 0, self._bounds.first_lines, 0.0
        while True:
            text = ""
            board = self._source.board()
            if told is None or board._replace(now_ns=0) != told:
                told = board._replace(now_ns=0)
                text = self._board_message(board)
            lines, left_out = self._source.lines(session_id, seq, most)
            if lines:
                seq, most = lines[-1].seq, self._bounds.lines
                text += _message("events", lines_text(session_id, lines, left_out))
            if not text and time.monotonic() - told_s >= self._bounds.beat_s:
                text = _BEAT
            if text:
                connection.send(text.encode())
                told_s = time.monotonic()
            if connection.has_left(self._bounds.tick_s):
                return

    def _board_message(self, board: Board) -> str:
        """Make the message once for all streams: a large board takes some 80 ms."""
        with self._lock:
            known = self._made
            if (
                known is None
                or known._replace(now_ns=board.now_ns) != board
                or board.now_ns - known.now_ns > _NOW_IS_RIGHT_NS
            ):
                self._made, self._made_text = board, _message("board", board_text(board))
            return self._made_text


def _message(kind: str, text: str) -> str:
    return f"event: {kind}\ndata: {text}\n\n"
