"""A session's log as flat rows: what `sigwrap query` shows in its views, one JSON object a row.

A row's `record` says which of three it is: an event, a process or the session. An event has the
columns of all views that show it, and its payload and hash as written, so that its hash chain can
be checked from the rows alone. SQLite makes the rows, by the very views of `sigwrap query`.

Where a segment ends depends on the log alone, so a second reading makes the same segments. Each
segment has the session's row: `events` and `head` name the last event that it must have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from functools import cached_property
from itertools import compress, islice
from typing import NamedTuple

from sigwrap.bare import json
from sigwrap.errors import StoreError
from sigwrap.events import EVENT_TYPES
from sigwrap.log.chain import ChainWalk
from sigwrap.log.codec import Row
from sigwrap.log.reader import Session
from sigwrap.log.schema import INTEGER, REAL, TEXT, VIEWS, Column, View, words_in_sql
from sigwrap.report.query import QueryDatabase, Value

_NO_DATE = "1970-01-01"  # of a time that SQLite has no date for
_MOST_SHAPES = 1_000
MOST_ROWS = 10_000  # of a segment
_MOST_CHARACTERS = 8 << 20  # of its payloads

_OF_SESSIONS, _OF_PROCESSES, _OF_EVENTS = (
    VIEWS[name] for name in ("sessions", "processes", "events")
)
EVENT_VIEWS = tuple(v for v in VIEWS.values() if v not in (_OF_SESSIONS, _OF_PROCESSES, _OF_EVENTS))
CONTEXT = tuple(Column(name, TEXT, "") for name in ("host", "repo", "date"))
_COUNTED = Column("counted", INTEGER, "counted")
_FITS: dict[str, type | tuple[type, ...]] = {TEXT: str, INTEGER: int, REAL: (int, float)}


Fields = dict[str, Value]  # without those that are NULL


class Segment(NamedTuple):
    """`first` is greater than `last` where only processes are left; then `part` counts from 1."""

    session: str
    date: str  # on which the session started, in UTC
    first: int
    last: int
    head: str  # the hash of the event `last`
    lines: list[str]
    part: int = 0
    is_live: bool = False  # it has no processes, even if no event follows

    @property
    def name(self) -> str:
        part = f"-{self.part}" if self.part else "-live" * self.is_live
        return f"{self.first:012d}-{self.last:012d}-{self.head[:16]}{part}"


def _wide() -> tuple[Column, ...]:
    columns = {
        each.name: each for each in _OF_EVENTS.columns if each.name not in ("payload", "hash")
    }
    columns["counted"] = _COUNTED
    for view in EVENT_VIEWS:
        columns |= {each.name: each for each in view.columns if each.name not in columns}
    columns |= {each.name: each for each in _OF_EVENTS.columns[-2:]}
    return tuple(columns.values())


TABLES: dict[str, tuple[Column, ...]] = {
    "events": (*_wide(), *CONTEXT),
    "processes": (*_OF_PROCESSES.columns, *CONTEXT),
    "sessions": tuple({each.name: each for each in (*_OF_SESSIONS.columns, *CONTEXT)}.values()),
}
RECORDS = {"events": "event", "processes": "process", "sessions": "session"}


def _selects() -> Iterator[str]:
    """Yield a SELECT for the types of events that the same views show."""
    groups: dict[tuple[View, ...], list[str]] = {}
    for type_name in EVENT_TYPES:
        views = tuple(view for view in EVENT_VIEWS if type_name in view.types)
        groups.setdefault(views, []).append(type_name)
    groups.pop((), None)
    shown = words_in_sql(name for names in groups.values() for name in names)
    for views, names in [*groups.items(), ((), [])]:
        columns = {each.name: each for view in (_OF_EVENTS, *views) for each in view.columns}
        columns["counted"] = _COUNTED
        condition = f"IN ({words_in_sql(names)})" if views else f"NOT IN ({shown})"
        selected = ", ".join(f'{each.sql} AS "{each.name}"' for each in columns.values())
        yield f"SELECT {selected} FROM log WHERE type {condition}"


_SELECTS = tuple(_selects())


def segments(
    session: Session,
    meanwhile: Callable[[int], None] = lambda events: None,
    *,
    ends: Collection[int] = (),
    after: int = 0,
    apart: bool = False,
    walk: ChainWalk | None = None,
) -> Iterator[Segment]:
    """Yield the rows of a session. If its log is damaged, yield its start, and raise StoreError.

    `meanwhile` gets the number of events read. `ends`: events that end a segment, as when the log
    was shorter. Segments up to the event `after` have no lines. `apart`: the events up to it are
    there, but not the processes. `walk` checks the hash chain.
    """
    with closing(QueryDatabase()) as database:
        maker = Maker(database, session.id)
        database.fill(session, [_OF_SESSIONS], lambda seen: None)
        damage = None
        waiting: Segment | None = None
        try:
            rows = session.readable_rows(lambda type_name: True)
            for batch in batches(rows if walk is None else walk.followed(rows), ends):
                if waiting is not None:
                    yield waiting
                waiting = maker.segment(batch, is_needed=batch[-1].seq > after)
                meanwhile(waiting.last)
        except StoreError as error:
            damage = error
        if waiting is not None:
            yield from maker.with_processes(waiting, apart=apart and waiting.last == after)
        if damage is not None:
            raise damage


def batches(rows: Iterator[Row], ends: Collection[int] = ()) -> Iterator[list[Row]]:
    """Yield the rows in batches, also those before damage, and raise its StoreError."""
    batch: list[Row] = []
    characters = 0
    try:
        for row in rows:
            batch.append(row)
            characters += len(row.payload)
            is_full = len(batch) == MOST_ROWS or characters > _MOST_CHARACTERS
            if is_full or row.seq in ends:
                yield batch
                batch, characters = [], 0
    except StoreError:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


class Maker:
    """Makes the rows of one session, in a database of its own that has the session's ends."""

    def __init__(self, database: QueryDatabase, session_id: str) -> None:
        self._database = database
        self._session_id = session_id
        self._context: Fields = {}

    @cached_property
    def session(self) -> Fields:
        fields = next(self._made("sessions", "SELECT * FROM sessions"))
        date = str(fields.get("started", _NO_DATE))[: len(_NO_DATE)]
        context = {"host": fields.get("host"), "repo": fields.get("repo"), "date": date}
        self._context = {name: value for name, value in context.items() if value is not None}
        return {**fields, **self._context}

    def events(self, batch: list[Row]) -> Iterator[Fields]:
        """Yield the rows of these events, not in their order."""
        self._keep(batch)
        for select in _SELECTS:
            yield from self._made("events", select)

    def _keep(self, batch: list[Row]) -> None:
        """Let the views show these rows alone, and keep what tells of processes."""
        self._database.replace_rows(self._session_id, batch, kept=_OF_PROCESSES.types)

    def processes(self) -> Iterator[Fields]:
        """Yield the processes of all events so far; to be called last."""
        self._database.replace_by_kept()
        return self._made("processes", "SELECT * FROM processes")

    def segment(self, batch: list[Row], *, is_needed: bool = True) -> Segment:
        first, last, lines = batch[0], batch[-1], list[str]()
        if is_needed:
            lines = [_dumps(self.session), *map(_dumps, self.events(batch))]
        else:
            self._keep([row for row in batch if row.type in _OF_PROCESSES.types])
        date = str(self.session["date"])
        return Segment(self._session_id, date, first.seq, last.seq, last.hash, lines)

    def with_processes(self, last: Segment, *, apart: bool) -> Iterator[Segment]:
        """Yield the segment with the session's processes, and more if they are too many, or if they
        come apart."""
        lines = map(_dumps, self.processes())
        if not apart:
            last.lines.extend(islice(lines, MOST_ROWS))
        yield last
        part = 0
        while (more := [*islice(lines, MOST_ROWS)]) or part < apart:
            part += 1
            more = [_dumps(self.session), *more]
            yield last._replace(first=last.last + 1, lines=more, part=part)

    def _made(self, table: str, select: str) -> Iterator[Fields]:
        types = {each.name: each.type for each in TABLES[table]}
        record = {"record": RECORDS[table]}
        # A log has few shapes of rows, and taking whole rows apart by these is faster.
        shapes: dict[tuple[type, ...], tuple[list[str], list[bool]]] = {}
        with self._database.made(select) as (names, rows):
            for row in rows:
                shape = tuple(map(type, row))
                if (known := shapes.get(shape)) is None:
                    fits = [
                        issubclass(k, _FITS[types[n]]) for n, k in zip(names, shape, strict=True)
                    ]
                    known = [*compress(names, fits)], fits
                    if len(shapes) < _MOST_SHAPES:
                        shapes[shape] = known
                kept, fits = known
                yield record | dict(zip(kept, compress(row, fits), strict=True)) | self._context


_dumps = json.encoder(separators=(",", ":"))
