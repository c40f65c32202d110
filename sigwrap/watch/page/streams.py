"""Server-sent events: each stream starts with everything and goes on with what is new. A client
that reads slowly gets fewer and newer messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from sigwrap.watch.board import Board, EventLine
from sigwrap.watch.documents import board_text, lines_text
from sigwrap.watch.page.answers import Answer, plain
from sigwrap.watch.page.connection import Bounds, Connection

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
        with self._place() as has_place:
            if not has_place:
                connection.answer(plain(503, "too many tabs are open: close some"))
                return
            connection.is_stream = True
            connection.send(Answer(200, "text/event-stream", None).encoded)
            self._tell(connection, session_id)

    @contextmanager
    def _place(self) -> Iterator[bool]:
        """While a stream is open, sessions know that an approver is watching."""
        with self._lock:
            has_place = self._count < self._bounds.streams
            self._count += has_place
            if has_place and self._count == 1:
                self._source.attend(True)
        try:
            yield has_place
        finally:
            with self._lock:
                self._count -= has_place
                if has_place and not self._count:
                    self._source.attend(False)

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
