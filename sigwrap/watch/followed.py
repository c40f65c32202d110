"""The log of a session that runs, as it grows: its last events, and what is told of it."""

from __future__ import annotations

import threading
import time
from collections import deque
from itertools import islice

from sigwrap.errors import StoreError
from sigwrap.escape import printable
from sigwrap.events import Event
from sigwrap.outcomes import APPROVAL_ANSWERS, DENIED, how_many, outcome
from sigwrap.report.folds.selection import ANSWERED, ASKED
from sigwrap.report.forms.detail import detail
from sigwrap.store.codec import decode_row
from sigwrap.store.journal_reader import JournalFile
from sigwrap.store.location import journal_path
from sigwrap.store.reader import Session
from sigwrap.watch.board import Line

LINES_KEPT = 500
_FIRST_BYTES = 1 << 18  # of a log that is long already
_MOST_BEHIND_BYTES = 4 << 20
_READS_FOR_S = 0.05
_TYPE_CHARACTERS = 40
_ASKED_OR_ANSWERED = frozenset({"approval_requested", *APPROVAL_ANSWERS})


class Followed:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._path = journal_path(session.path)
        self._has_ended = False
        self._journal: JournalFile | None = None
        self._seq = 0
        self._lines: deque[Line] = deque(maxlen=LINES_KEPT)
        self._lock = threading.Lock()  # of the lines: who shows them is another thread
        self.denied = self.asked = 0  # of what was read
        self.problem = ""

    @property
    def last(self) -> Line | None:
        return self._lines[-1] if self._lines else None

    def lines(self, after_seq: int) -> list[Line]:
        with self._lock:
            return [each for each in self._lines if each.seq > after_seq]

    def read_on(self) -> bool:
        """Whether there was something new of a question. No longer than the others can wait: who
        writes faster than that is read is left out in part."""
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
        is_of_a_question = False
        until_s = time.monotonic() + _READS_FOR_S
        for row in self._journal.new_rows():
            if row.seq > self._seq:
                self._seq = row.seq
                event = decode_row(row)
                with self._lock:
                    self._take(event)
                is_of_a_question |= row.type in _ASKED_OR_ANSWERED
            if time.monotonic() > until_s:
                break
        return is_of_a_question

    def _read_end(self) -> None:
        """What came last is in the database alone: once it has ended, it has no journal."""
        if self._has_ended or not self._seq:
            return
        self._has_ended = True
        with self._lock:
            for event in islice(self._session.events(after_seq=self._seq), LINES_KEPT):
                self._seq = event.seq
                self._take(event)

    def _take(self, event: Event) -> None:
        if outcome(event) == DENIED:
            self.denied += how_many(event.type, event.payload)
        self.asked += event.type == "approval_requested"
        self._lines.append(line_of(event))


def line_of(event: Event) -> Line:
    kind = printable(event.type[:_TYPE_CHARACTERS])  # anybody can put a log into the store
    return Line(event.seq, event.time_ns, event.pid, kind, _became(event), detail(event))


def _became(event: Event) -> str:
    if event.type == "approval_requested":
        return ASKED
    return ANSWERED if event.type in APPROVAL_ANSWERS else outcome(event)
