"""Browsers that are told what happens, by server-sent events: at first everything, then what is
new, at most so many messages and lines at a time."""

from __future__ import annotations

import time
from typing import Protocol

from sigwrap.run.loop import Loop
from sigwrap.watch.board import Board, Line
from sigwrap.watch.page.answers import headers
from sigwrap.watch.page.bounds import Bounds
from sigwrap.watch.page.connection import Connection
from sigwrap.watch.page.documents import board_text, lines_text

_BEAT = "event: beat\ndata: 0\n\n"  # a page that hears none knows that nobody is there any more


class Seen(Protocol):
    """What a stream tells of."""

    @property
    def wakes(self) -> int: ...

    def calm(self) -> None: ...

    def board(self) -> Board: ...

    def lines(self, session_id: str, after_seq: int, most: int) -> tuple[list[Line], int]: ...

    def attend(self, somebody_looks: bool) -> None: ...


class _Stream:
    def __init__(self, connection: Connection, session_id: str) -> None:
        self.connection = connection
        self.session_id = session_id
        self.told_seq = 0


class Streams:
    def __init__(self, loop: Loop, source: Seen, bounds: Bounds) -> None:
        self._loop = loop
        self._source = source
        self._bounds = bounds
        self._streams: list[_Stream] = []
        self._told: Board | None = None
        self._text = ""
        self._next_tick_s = 0.0
        self._is_due = False
        self._is_attended = False
        loop.watch(source.wakes, self._on_news)
        self._beat()

    def add(self, connection: Connection, session_id: str) -> bool:
        """False where there are too many."""
        self._forget_those_that_left()
        if len(self._streams) >= self._bounds.streams:
            return False
        stream = _Stream(connection, session_id)
        self._streams.append(stream)
        self._attend()
        connection.start_stream(headers("text/event-stream"))
        self._look()
        # With the moment as it is now: by that the page's clock goes.
        connection.tell(_message("board", board_text(self._source.board())))
        self._tell_lines(stream, self._bounds.first_lines)
        return True

    def close(self) -> None:
        self._loop.unwatch(self._source.wakes)
        self._streams.clear()
        self._attend()

    def _on_news(self, _happened: int) -> None:
        self._source.calm()
        if not self._is_due:
            self._is_due = True
            self._loop.call_at(max(self._next_tick_s, time.monotonic()), self._tick)

    def _tick(self) -> None:
        self._is_due = False
        self._next_tick_s = time.monotonic() + self._bounds.tick_s
        self._forget_those_that_left()
        is_new = bool(self._streams) and self._look()
        for stream in self._streams:
            if is_new:
                stream.connection.tell(_message("board", self._text))
            self._tell_lines(stream, self._bounds.lines)

    def _look(self) -> bool:
        """Whether there is anything to see that wasn't there before."""
        board = self._source.board()
        if self._told is not None and board._replace(now_ns=0) == self._told._replace(now_ns=0):
            return False
        self._told, self._text = board, board_text(board)
        return True

    def _tell_lines(self, stream: _Stream, most: int) -> None:
        if not stream.session_id or stream.connection.is_closed:
            return
        lines, left_out = self._source.lines(stream.session_id, stream.told_seq, most)
        if lines or left_out:
            stream.told_seq = lines[-1].seq if lines else stream.told_seq
            text = lines_text(stream.session_id, lines, left_out)
            stream.connection.tell(_message("events", text))

    def _beat(self) -> None:
        self._forget_those_that_left()
        for stream in self._streams:
            stream.connection.tell(_BEAT)
        self._loop.call_at(time.monotonic() + self._bounds.beat_s, self._beat)

    def _forget_those_that_left(self) -> None:
        self._streams = [each for each in self._streams if not each.connection.is_closed]
        self._attend()

    def _attend(self) -> None:
        if self._is_attended != bool(self._streams):
            self._is_attended = bool(self._streams)
            self._source.attend(self._is_attended)


def _message(kind: str, text: str) -> str:
    return f"event: {kind}\ndata: {text}\n\n"
