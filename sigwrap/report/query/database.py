"""The temporary database: made, filled, and then only read.

A database without a name is SQLite's own temporary file: it is in memory as far as the cache goes
and in $TMPDIR beyond, nobody else can open it, and it is gone with the process, however that ends.

Only the views that the SQL reads are filled. So it is first prepared against empty ones, which also
says what is wrong with it before a large log has been read. From then on SQLite asks for leave for
whatever a statement would do, and only reading gets it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sigwrap.errors import StoreError, UsageError
from sigwrap.report.folds.ending import ending_of
from sigwrap.report.query.problems import NO_ROOM_HINT, problem_of
from sigwrap.report.query.rows import Rows, session_row
from sigwrap.report.query.values import Value
from sigwrap.report.query.views import SESSIONS, VIEWS, Run, View
from sigwrap.store.reader import Session

_ROWS_AT_ONCE = 200
_CACHE_KIB = 32 << 10
_HEAP_LIMIT = 512 << 20
_LONGEST_VALUE = 64 << 20
_LONGEST_SQL = 1 << 20
_TICK = 10_000  # rows between two looks at what else there is to do

_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_RECURSIVE,
}
_PRAGMAS = {"table_info", "table_xinfo", "table_list"}
_TABLES_OF_JSON = ("json_each", "json_tree")
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer"}

Meanwhile = Callable[[int], None]


class QueryDatabase:
    """`path`: of an empty file to make it in; without one it is temporary."""

    def __init__(self, path: str = "") -> None:
        self._is_temporary = not path
        with self._room():
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._prepare()

    def _prepare(self) -> None:
        connection = self._connection
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_SQL)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
        for pragma in (
            "journal_mode = OFF",
            "synchronous = OFF",
            "temp_store = FILE",
            f"cache_size = -{_CACHE_KIB}",
            f"hard_heap_limit = {_HEAP_LIMIT}",
            "trusted_schema = OFF",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        for view in VIEWS.values():
            columns = ", ".join(f'"{column.name}" {column.type}' for column in view.columns)
            connection.execute(f"CREATE TABLE {view.name} ({columns})")
        for function in _TABLES_OF_JSON:  # the first use defines it, which a query may not
            connection.execute(f"SELECT 1 FROM {function}('[]')").fetchall()

    def close(self) -> None:
        self._connection.close()

    def views_of(self, sql: str) -> list[View[Any]]:
        """That the SQL reads. UsageError where it is wrong, or would do anything but read."""
        connection = self._connection
        connection.set_authorizer(_leave)
        connection.set_progress_handler(lambda: True, 1)  # it is prepared, and goes no further
        try:
            connection.execute(sql).close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
                raise problem_of(error, sql) from error
        finally:
            connection.set_progress_handler(None, 0)
            connection.set_authorizer(None)
        opened = self._opened_by(sql)
        roots = connection.execute("SELECT name, rootpage FROM sqlite_master").fetchall()
        return [VIEWS[name] for name, root in roots if root in opened]

    def _opened_by(self, sql: str) -> set[int]:
        """The first pages of the tables that its program opens. What SQLite asks leave for is not
        all that is read: of `a JOIN b USING (seq)` it may name only `a`."""
        try:
            program = self._connection.execute(f"EXPLAIN {sql}").fetchall()
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
                return set()  # it is an EXPLAIN by itself
            raise problem_of(error, sql) from error
        return {int(root) for _, opcode, _, root, *_ in program if opcode == "OpenRead"}

    def fill(self, session: Session, views: list[View[Any]], meanwhile: Meanwhile) -> None:
        """StoreError where the log can't be read to its end: what comes before is filled in."""
        damage: StoreError | None = None
        waiting: dict[str, list[tuple[Value, ...]]] = {view.name: [] for view in views}
        with self._room():
            self._connection.execute("BEGIN")
            try:
                for view, row in _rows_of(session, views, meanwhile):
                    rows = waiting[view.name]
                    rows.append(row)
                    if len(rows) >= _ROWS_AT_ONCE:
                        self._insert(view, rows)
                        rows.clear()
            except StoreError as error:
                damage = error
            for view in views:
                self._insert(view, waiting[view.name])
            self._connection.execute("COMMIT")
        if damage is not None:
            raise damage

    def _insert(self, view: View[Any], rows: list[tuple[Value, ...]]) -> None:
        places = ", ".join("?" * len(view.columns))
        self._connection.executemany(f"INSERT INTO {view.name} VALUES ({places})", rows)

    @contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if self._is_temporary:
                message, hint = "the log doesn't fit into a temporary database", NO_ROOM_HINT
            else:
                message, hint = "the database can't be written", ""
            raise UsageError(f"{message}: {error}", hint) from error

    def select(self, sql: str) -> tuple[tuple[str, ...], Iterator[tuple[Value, ...]]]:
        """The names of the columns, and the rows as they are found."""
        self._connection.set_authorizer(_leave)
        # Python's own handlers of signals run between these looks.
        self._connection.set_progress_handler(lambda: False, _TICK)
        try:
            cursor = self._connection.execute(sql)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise problem_of(error, sql) from error
        if cursor.description is None:
            raise UsageError(
                "the SQL is not a SELECT", 'such as: sigwrap query "select * from denials"'
            )
        return tuple(str(each[0]) for each in cursor.description), _fetched(cursor, sql)


def _fetched(cursor: sqlite3.Cursor, sql: str) -> Iterator[tuple[Value, ...]]:
    try:
        yield from iter(cursor.fetchone, None)  # not from itself, which would be closed, too late
    except sqlite3.Error as error:
        raise problem_of(error, sql) from error


def _leave(action: int, name: str | None, second: str | None, *_: object) -> int:
    allowed = (
        action in _READS
        or (action == sqlite3.SQLITE_PRAGMA and (name or "").lower() in _PRAGMAS)
        or (action == sqlite3.SQLITE_FUNCTION and (second or "") not in _FORBIDDEN_FUNCTIONS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _rows_of(
    session: Session, views: list[View[Any]], meanwhile: Meanwhile
) -> Iterator[tuple[View[Any], tuple[Value, ...]]]:
    if SESSIONS in views:
        ending = ending_of(session)  # before reading: it may end meanwhile
        first, last = session.first(), session.last()
        if first is not None and last is not None:
            yield session_row(Run(session=session.id, first=first, last=last, ending=ending))
    rows = Rows(session.id, views)
    if not rows.are_of_events:
        return
    seen = 0

    def takes(type_name: object) -> bool:
        nonlocal seen
        seen += 1
        if seen % _TICK == 0:
            meanwhile(seen)
        return rows.takes(type_name)

    problem: StoreError | None = None
    try:
        for event in session.events(of=takes):
            yield from rows.add(event)
    except StoreError as error:
        problem = error
    yield from rows.rest()
    if problem is not None:
        raise problem


def all_views() -> list[View[Any]]:
    return list(VIEWS.values())
