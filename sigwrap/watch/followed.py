"""The log of a running session, as it grows: its last events, and its counts."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import islice

from sigwrap.approve.control_socket import ControlReply
from sigwrap.errors import StoreError
from sigwrap.events import ANSWER_OF, DENIED, Event, how_many, number, outcome
from sigwrap.log.codec import decode_row
from sigwrap.log.folder import journal_path
from sigwrap.log.journal import JournalFile
from sigwrap.log.reader import Session
from sigwrap.report.folds.selection import ASKED
from sigwrap.report.forms.detail import detail
from sigwrap.text import printable
from sigwrap.watch.board import EventLine

LINES_KEPT = 500
_FIRST_BYTES = 1 << 18  # read of a log that is long already
_MOST_BEHIND_BYTES = 4 << 20
_READS_FOR_S = 0.05
_TYPE_CHARACTERS = 40
_REQUEST = "approval_requested"
_OF_REQUESTS = frozenset({_REQUEST, *ANSWER_OF})


class Followed:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._path = journal_path(session.path)
        self._has_ended = False
        self._journal: JournalFile | None = None
        self._seq = 0
        self._lines: deque[EventLine] = deque(maxlen=LINES_KEPT)
        self._lock = threading.Lock()  # of the lines, which another thread shows
        self._read_counts = [0, 0]
        self._told_counts = [0, 0]
        self.problem = ""

    @property
    def last(self) -> EventLine | None:
        return self._lines[-1] if self._lines else None

    @property
    def denied(self) -> int:
        return max(self._read_counts[0], self._told_counts[0])

    @property
    def asked(self) -> int:
        return max(self._read_counts[1], self._told_counts[1])

    def take_counts(self, reply: ControlReply) -> None:
        """Take the counts that the session tells: a part of its log may not have been read."""
        told = (number(reply.get("denied")), number(reply.get("asked")))
        self._told_counts = [*map(max, self._told_counts, told)]

    def lines(self, after_seq: int) -> list[EventLine]:
        with self._lock:
            return [each for each in self._lines if each.seq > after_seq]

    def read_on(self) -> bool:
        """Read what is new, for a limited time; return whether some of it is about a request.

        If a session writes faster, a part of its events is left out.
        """
        try:
            return self._read_on()
        except (StoreError, OSError) as failure:
            self.problem = str(failure)
            self.close()
            return False

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _read_on(self) -> bool:
        if self._journal is None or not self._journal.is_in_place:
            self.close()
            self._journal = JournalFile.open(self._path)
            if self._journal is None:
                self._read_end()
                return False
            self._journal.skip_to(_FIRST_BYTES)
        elif self._journal.unread_bytes > _MOST_BEHIND_BYTES:
            self._journal.skip_to(_FIRST_BYTES)
        is_of_request = False
        until_s = time.monotonic() + _READS_FOR_S
        for row in self._journal.new_rows():
            if row.seq > self._seq:
                self._take(decode_row(row))
                is_of_request |= row.type in _OF_REQUESTS
            if time.monotonic() > until_s:
                break
        return is_of_request

    def _read_end(self) -> None:
        """Read the last events from the database: an ended session has no journal."""
        if not self._has_ended and self._seq:
            self._has_ended = True
            for event in islice(self._session.events(after_seq=self._seq), LINES_KEPT):
                self._take(event)

    def _take(self, event: Event) -> None:
        self._seq = event.seq
        if outcome(event) == DENIED:
            self._read_counts[0] += how_many(event.type, event.payload)
        self._read_counts[1] += event.type == _REQUEST
        with self._lock:
            self._lines.append(line_of(event))


def line_of(event: Event) -> EventLine:
    kind = printable(event.type[:_TYPE_CHARACTERS])  # any process can put a log into the store
    what = ASKED if event.type == _REQUEST else ANSWER_OF.get(event.type) or outcome(event)
    return EventLine(event.seq, event.time_ns, event.pid, kind, what, detail(event))
