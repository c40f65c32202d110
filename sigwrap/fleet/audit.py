"""Checks of a lake from its rows alone: what `sigwrap verify` checks of a log, and what shows only
beside other rows.

A chain that was made anew and shipped again gives an event two hashes. The rows of a session name
the last event that its log had, so events cut from the end are missed. No hash covers the columns
beside the payload: a strict check makes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import groupby
from typing import NamedTuple

from sigwrap.errors import StoreError
from sigwrap.events import HOOK_KIND, Event, counted, number, text
from sigwrap.fleet.duck import Lake
from sigwrap.fleet.lake import DUCKDB
from sigwrap.fleet.rows import CONTEXT, MOST_ROWS, TABLES, Fields, Maker
from sigwrap.log.codec import KEY_VARIABLE, Row, decode_row
from sigwrap.report.check.verify import LogCheck, Outcome
from sigwrap.report.folds.ending import Ending
from sigwrap.report.query import QueryDatabase
from sigwrap.text import printable

_LOGGED = ("seq", "time_ns", "type", "pid", "payload", "hash")
_TWO = "it has two hashes: the log has two histories"
_OTHERWISE = "it is there twice, with different content"


class Problem(NamedTuple):
    """`row` is 0 if the problem has no row."""

    session: str
    row: int
    problem: str


class Audit(NamedTuple):
    sessions: int
    events: int
    problems: list[Problem]
    without_end: list[str]  # sessions
    unchecked: list[str]  # sessions whose logs have a key that was not given
    missing_heads: list[str]

    def lines(self) -> Iterator[str]:
        yield f"{counted(self.sessions, 'session')}, {counted(self.events, 'event')}"
        for session, row, problem in self.problems:
            where = f"row {row}: " if row else ""
            yield f"{printable(session)}: NOT INTACT: {where}{printable(problem)}"
        for head in self.missing_heads:
            yield f"no event has the head {head}: rows were cut off or replaced"
        for session in self.without_end:
            yield f"{printable(session)}: no end: it is running, was killed, or its end was cut off"
        for session in self.unchecked:
            yield f"{printable(session)}: NOT CHECKED: its log is keyed: set ${KEY_VARIABLE}"
        if self.sessions and not (self.problems or self.missing_heads or self.unchecked):
            yield "all hash chains are intact"


def audited(
    lake: Lake,
    key: bytes | None,
    heads: list[str],
    meanwhile: Callable[[int], None],
    *,
    strict: bool,
) -> Audit:
    """Check all sessions of the lake. `heads` must be hashes of events."""
    problems: list[Problem] = []
    without_end, unchecked, missing, sessions, events = [], [], set(heads), 0, 0
    rows_of_sessions = _Beside(lake, "sessions", problems)
    rows_of_processes = _Beside(lake, "processes", problems) if strict else None
    names = [each.name for each in TABLES["events"]] if strict else ["session", *_LOGGED]
    for session, rows in groupby(_rows(lake, "events", names, "seq, hash"), _session_of):
        check = _SessionCheck(session, key, rows_of_sessions.of(session))
        columns = None if rows_of_processes is None else _Columns(session)
        heads_here, seq = set[str](), None
        for fields in rows:
            events += fields["seq"] != seq  # a row may be there twice
            seq = fields["seq"]
            if events % MOST_ROWS == 0:
                meanwhile(events)
            if None in (logged := [fields[name] for name in _LOGGED]):
                check.incomplete = True
                continue
            row = Row(*logged)  # type: ignore[arg-type]
            if row.hash in missing:
                heads_here.add(row.hash)
            if check.add(row, fields) and columns is not None:
                columns.add(row, fields)
        if columns is not None and rows_of_processes is not None:
            with closing(columns):
                processes = rows_of_processes.of(session)
                problem = columns.problem(check, processes)
        else:
            problem = None
        sessions += 1
        found = check.problem() or problem
        if found is not None:
            problems.append(found)
        if not check.has_end:
            without_end.append(session)
        if check.is_unchecked:
            unchecked.append(session)
        elif found is None:
            missing -= heads_here
    rows_of_sessions.of(None)
    if rows_of_processes is not None:
        rows_of_processes.of(None)
    return Audit(sessions, events, problems, without_end, unchecked, sorted(missing))


def _session_of(fields: Fields) -> str:
    return str(fields["session"])


def _rows(lake: Lake, table: str, names: list[str], order: str) -> Iterator[Fields]:
    selected = DUCKDB.named(*names)
    for row in lake.rows(f"SELECT {selected} FROM rows_{table} ORDER BY session, {order}"):
        yield dict(zip(names, row, strict=True))


class _Beside:
    """The rows of another table, read beside the events in the order of sessions."""

    def __init__(self, lake: Lake, table: str, problems: list[Problem]) -> None:
        names = [each.name for each in TABLES[table]]
        self._table = table
        self._problems = problems
        self._groups = groupby(_rows(lake, table, names, "2"), _session_of)
        self._waiting: tuple[str, list[Fields]] | None = None
        self._advance()

    def _advance(self) -> None:
        group = next(self._groups, None)
        self._waiting = None if group is None else (group[0], list(group[1]))

    def of(self, session: str | None) -> list[Fields]:
        """Return the rows of the session; None: there are no more sessions.

        Rows of sessions before it have no events.
        """
        while self._waiting is not None and (session is None or self._waiting[0] < session):
            self._problems.append(Problem(self._waiting[0], 0, f"{self._table}, but no events"))
            self._advance()
        if self._waiting is None or self._waiting[0] != session:
            return []
        found = self._waiting[1]
        self._advance()
        return found


class _SessionCheck:
    def __init__(self, session: str, key: bytes | None, named: list[Fields]) -> None:
        self.session = session
        self.named = named
        self.first: Event | None = None
        self.last: Event | None = None
        self._log = LogCheck(session, key, "")
        self.incomplete = False
        self._heads = {(each["events"], each["head"]) for each in named}
        self._before: tuple[Row, tuple[object, ...]] | None = None
        self._twice: Problem | None = None

    def add(self, row: Row, fields: Fields) -> bool:
        """Return False for a row that is there before; it must be the same in all columns."""
        before, now = self._before, (row, tuple(fields.values()))
        self._before = now
        self._heads.discard((row.seq, row.hash))
        if before is not None and before[0].seq == row.seq:
            if before != now and self._twice is None:
                what = _OTHERWISE if before[0].hash == row.hash else _TWO
                self._twice = Problem(self.session, row.seq, what)
            return False
        try:
            self.last = decode_row(row)
        except StoreError as error:
            self._log.skip(row, error.message)
            return False
        self.first = self.first or self.last
        self._log.add(row, self.last)
        return True

    @property
    def has_end(self) -> bool:
        """Return whether the log has its end, or never has one."""
        if self.first is not None and self.first.payload.get("kind") == HOOK_KIND:
            return True
        return self.last is not None and self.last.type == "session_ended"

    @property
    def is_unchecked(self) -> bool:
        return self._log.result(running=True).outcome is Outcome.UNCHECKED

    def problem(self) -> Problem | None:
        result = self._log.result(running=True)
        twice = self._twice
        if result.outcome is Outcome.BROKEN and (twice is None or result.row < twice.row):
            return Problem(self.session, result.row, result.problem)
        if twice is not None:
            return twice
        if self.incomplete:
            return Problem(self.session, 0, "a row lacks its number, payload or hash")
        if not self.named:
            return Problem(self.session, 0, "no segment has the row of the session")
        for events, head in self._heads:
            what = f"its log had {events!s} events and head {head!s}: rows were cut off or replaced"
            return Problem(self.session, 0, what)
        return None


class _Columns:
    """Compares the columns of a session's rows with new ones, made from its payloads."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._database = QueryDatabase()
        self._maker = Maker(self._database, session)
        self._batch: dict[int, tuple[Row, Fields]] = {}
        self._contexts = set[tuple[object, ...]]()
        self._problem: Problem | None = None

    def close(self) -> None:
        self._database.close()

    def add(self, row: Row, fields: Fields) -> None:
        self._contexts.add(tuple(fields.pop(each.name) for each in CONTEXT))
        self._batch[row.seq] = row, fields
        if len(self._batch) == MOST_ROWS:
            self._compare()

    def _compare(self) -> None:
        for made in self._maker.events([row for row, _ in self._batch.values()]):
            seq = made["seq"]
            stored = self._batch[int(seq)][1] if isinstance(seq, int) else {}
            if differing := _differing("events", made, stored):
                self._note(int(seq or 0), differing)
        self._batch.clear()

    def _note(self, row: int, differing: str) -> None:
        if self._problem is None or 0 < row < self._problem.row:
            what = f"its payload gives another {differing}"
            self._problem = Problem(self._session, row, what)

    def problem(self, check: _SessionCheck, processes: list[Fields]) -> Problem | None:
        self._compare()
        if self._problem is not None or check.first is None or check.last is None:
            return self._problem
        most = max((number(each["events"]) for each in check.named), default=0)
        newest = [each for each in check.named if each["events"] == most]
        # A session that was running has a row of its end as well.
        over = [each for each in newest if each["state"] != Ending.RUNNING.value] or newest
        state = text(over[0]["state"]) if over else ""
        ending = Ending.NOT_CLEAN.value if state == Ending.ENDED.value else state
        self._database.add_ends(self._session, check.first, check.last, ending)
        made = self._maker.session
        for each in over:
            if differing := _differing("sessions", made, each):
                self._note(0, f"{differing} of its session")
        if self._contexts != {tuple(made.get(each.name) for each in CONTEXT)}:
            self._note(0, "host, repo or date of its events")
        is_over = state != Ending.RUNNING.value
        if is_over and _as_set(self._maker.processes()) != _as_set(iter(processes)):
            self._note(0, "set of processes")
        return self._problem


def _differing(table: str, made: Fields, stored: Fields) -> str:
    """Return the first column whose values differ, or an empty text."""
    for column in TABLES[table]:
        if column.name in stored and stored[column.name] != made.get(column.name):
            return column.name
    return ""


def _as_set(rows: Iterator[Fields]) -> set[frozenset[tuple[str, object]]]:
    return {
        frozenset((k, v) for k, v in each.items() if v is not None and k != "record")
        for each in rows
    }
