"""Deliver what a session records while it runs; `ship` delivers the rest once it has ended.

A process of the session may change its journal. So only rows that continue the hash chain are
delivered. If the log has other rows at the end, `ship` delivers all of it, and `sigwrap verify
--lake` finds two histories.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from sigwrap.errors import InternalError, ObjectsError, StoreError
from sigwrap.events import Event
from sigwrap.fleet.objects import Objects
from sigwrap.fleet.rows import Maker, Segment, batches
from sigwrap.fleet.shipping import Cursor, put
from sigwrap.log.chain import ChainWalk
from sigwrap.log.codec import Row, decode_row
from sigwrap.log.folder import journal_path
from sigwrap.log.journal import JournalFile
from sigwrap.log.reader import Session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.query import QueryDatabase


class Live:
    def __init__(self, session: Session, objects: Objects, key: bytes | None) -> None:
        self.cursor = Cursor()  # what was delivered
        self._session = session
        self._objects = objects
        self._key = key
        self._journal: JournalFile | None = None
        self._first: Event | None = None
        self._waiting: Segment | None = None  # the store may have it, or not

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def deliver(self) -> str:
        """Deliver what is new. Return why that failed; the next call goes on there."""
        try:
            if self._waiting is not None:
                self._put(self._waiting)
            for batch in batches(self._new_rows()):
                self._put(self._segment(batch))
        except ObjectsError as error:
            return error.message
        except Exception as error:
            self.close()  # what was read and not delivered is read again
            if not isinstance(error, StoreError):
                return str(InternalError.of(error))
        return ""

    def _put(self, segment: Segment) -> None:
        self._waiting = segment
        put(segment, self._objects)
        self._waiting = None
        self.cursor = Cursor(segment.last, segment.last, segment.head)

    def _segment(self, batch: list[Row]) -> Segment:
        first = self._first = self._first or decode_row(batch[0])
        with closing(QueryDatabase()) as database:
            last = decode_row(batch[-1])
            database.add_ends(self._session.id, first, last, Ending.RUNNING.value)
            segment = Maker(database, self._session.id).segment(batch)
        return segment._replace(is_live=True)

    def _new_rows(self) -> Iterator[Row]:
        """Yield the rows that follow what was delivered."""
        if self._journal is None or not self._journal.is_in_place:  # sigwrap may write it again
            self.close()
            self._journal = JournalFile.open(journal_path(self._session.path))
        seq, head = self.cursor.seq, self.cursor.head
        rows = () if self._journal is None else self._journal.new_rows()
        walk = ChainWalk(self._session.id, self._key, seq, head)
        for row in walk.followed(row for row in rows if row.seq > seq):
            decode_row(row)  # as ship does: another program wrote a row that can't be read
            yield row
