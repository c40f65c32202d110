"""SQL over logs: a temporary database with the events of some sessions, the views over them, and
results as a table, CSV or JSON.

The events are copied: a log may be in a journal, SQLite attaches ten files at most, and a file may
be damaged or hostile, so only sigwrap.store reads it. Only events that the SQL
needs are copied. sqlite-utils is not used: its import takes 115 ms, and it is too large for the
one-file binary.

A database without a name is SQLite's own temporary file: in memory up to the size of its cache,
beyond it in $TMPDIR, and gone with the process. SQLite asks an authorizer about all that a query
would do, and only reading is allowed.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice

from sigwrap.errors import StoreError, UsageError
from sigwrap.events import Event, texts
from sigwrap.log.codec import Row as LogRow
from sigwrap.log.reader import Session
from sigwrap.log.schema import EXPORTED, VIEWS, View, log_view, words_in_sql
from sigwrap.report.folds.ending import ending_of
from sigwrap.text import did_you_mean, printable, shell_words, shortened

_CACHE_KIB = 32 << 10
_HEAP_LIMIT = 512 << 20
_LONGEST_VALUE = 64 << 20
_LONGEST_SQL = 1 << 20
_TICK = 10_000  # rows between two calls of `meanwhile`, or steps between two looks at signals
_TABLES = """\
CREATE TEMP TABLE rows (session TEXT, seq, time_ns, type, pid, payload, hash);
CREATE TEMP TABLE kept (session TEXT, seq, time_ns, type, pid, payload, hash);
CREATE TEMP TABLE log_ends (session, state, payload, last, first_ns, last_ns, events, head)"""
_VIEW_OF = {"log": "events", "rows": "events", "log_ends": "sessions"}  # for SQL that reads these
SEARCHED = {
    "execs": "command, message, reason",
    "denials": "what, message, reason",
    "tool_calls": "what, reason",
}

_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_RECURSIVE,
}
_PRAGMAS = {"table_info", "table_xinfo", "table_list"}
_JSON_TABLES = ("json_each", "json_tree")
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer"}
_MISSING = re.compile(r"no such (table|column): (?:main\.)?(.*)", re.DOTALL)
_NOT_READING = re.compile(r"not authorized|authorization denied|cannot modify \w+ because")
_NO_ROOM_HINT = "set TMPDIR to a directory with more room, or name fewer sessions"
_TOO_MANY = "only execute one statement at a time"
_VIEWS = f"the views are {', '.join(VIEWS)}; sigwrap query without SQL lists their columns"

_ROWS_MEASURED = 1_000  # a later cell may be wider than its column
_CHARACTERS_MEASURED = 4 << 20
_WIDEST_PADDED = 60  # in a file or a pipe, where no cell is cut
_NARROWEST = 6
_BETWEEN = "  "
# A spreadsheet takes these for a formula, with which a process could run code there.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Meanwhile = Callable[[int], None]
Value = str | int | float | bytes | None
Row = tuple[Value, ...]


class QueryDatabase:
    """The database; `path` names an empty file if it shall keep the views as tables."""

    def __init__(self, path: str = "") -> None:
        self._is_temporary = not path
        with self._writing():
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
            f"temp.cache_size = -{_CACHE_KIB}",
            f"hard_heap_limit = {_HEAP_LIMIT}",
            "trusted_schema = OFF",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.create_function("shell_words", 1, _shell_words, deterministic=True)
        selects = {"log": log_view("rows")}
        selects |= {view.name: view.select for view in (*VIEWS.values(), EXPORTED)}
        views = [f"CREATE TEMP VIEW {name} AS {select}" for name, select in selects.items()]
        connection.executescript(";".join((_TABLES, *views)))
        for function in _JSON_TABLES:  # the first use defines it, which a query may not
            connection.execute(f"SELECT 1 FROM {function}('[]')").fetchall()

    def close(self) -> None:
        self._connection.close()

    def views_in(self, sql: str) -> list[View]:
        """Return the views that the SQL reads; UsageError if it is wrong or not read-only."""
        read: set[str] = set()

        def note(
            action: int, name: str | None, second: str | None, _: str | None, view: str | None
        ) -> int:
            if view is None and action == sqlite3.SQLITE_READ:
                read.add(_VIEW_OF.get(name or "", ""))
            read.add((view or "").lower())  # spelled as in the SQL
            return _authorize(action, name, second)

        connection = self._connection
        connection.set_authorizer(note)
        connection.set_progress_handler(lambda: True, 1)  # prepare the statement, and go no further
        try:
            connection.execute(sql).close()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_INTERRUPT:
                raise _sql_problem(error, sql) from error
        finally:
            connection.set_progress_handler(None, 0)
            connection.set_authorizer(None)
        return [view for view in VIEWS.values() if view.name in read]

    def fill(self, session: Session, views: Collection[View], meanwhile: Meanwhile) -> None:
        """Copy what the views need. If the log is damaged, copy its start and raise StoreError."""
        damage: StoreError | None = None
        with self._writing():
            self._connection.execute("BEGIN")
            try:
                self._copy(session, views, meanwhile)
            except StoreError as error:
                damage = error
            self._connection.execute("COMMIT")
        if damage is not None:
            raise damage

    def _copy(self, session: Session, views: Collection[View], meanwhile: Meanwhile) -> None:
        of_events = [view for view in views if view is not VIEWS["sessions"]]
        if len(of_events) < len(views):
            self._copy_ends(session)
        if not of_events:
            return
        is_all = not all(view.types for view in of_events)
        types = frozenset[str]().union(*(view.types for view in of_events))
        seen = 0

        def is_needed(type_name: object) -> bool:
            nonlocal seen
            seen += 1
            if seen % _TICK == 0:
                meanwhile(seen)
            return is_all or type_name in types

        self._insert(session.id, session.readable_rows(is_needed))

    def _insert(self, session_id: str, rows: Iterable[LogRow]) -> None:
        named = ((session_id, *row) for row in rows)
        self._connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?)", named)

    @contextmanager
    def made(self, select: str) -> Iterator[tuple[tuple[str, ...], Iterator[Row]]]:
        """Yield what `select` returns, for SQL of sigwrap's own. StoreError if SQLite can't read a
        row: another program wrote it."""
        try:
            cursor = self._connection.execute(select)
            yield tuple(str(each[0]) for each in cursor.description), cursor
        except sqlite3.Error as error:
            raise StoreError(f"SQLite can't read a row: {error}") from error

    def replace_rows(self, session_id: str, rows: Iterable[LogRow], kept: Iterable[str]) -> None:
        """Let the views show these rows alone, and keep those of some types for later."""
        with self._writing():
            self._connection.execute("BEGIN")
            self._connection.execute("DELETE FROM rows")
            self._insert(session_id, rows)
            self._connection.execute(
                f"INSERT INTO kept SELECT * FROM rows WHERE type IN ({words_in_sql(kept)})"
            )
            self._connection.execute("COMMIT")

    def replace_by_kept(self) -> None:
        with self._writing():
            self._connection.executescript("DELETE FROM rows; INSERT INTO rows SELECT * FROM kept")

    def _copy_ends(self, session: Session) -> None:
        ending = ending_of(session)  # before reading, because the session may end meanwhile
        first, last = session.ends()
        if first is not None and last is not None:
            self.add_ends(session.id, first, last, ending.value)

    def add_ends(self, session_id: str, first: Event, last: Event, ending: str) -> None:
        state = "ended" if last.type == "session_ended" else ending
        payloads = json.dumps(first.payload), json.dumps(last.payload)
        times = first.time_ns, last.time_ns
        self._connection.execute(
            "INSERT INTO log_ends VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (session_id, state, *payloads, *times, last.seq, last.hash),
        )

    def write_tables(self) -> None:
        """Write the views into the file as tables, with full-text search as Datasette finds it."""
        with self._writing():
            for view in VIEWS.values():
                columns = ", ".join(f'"{each.name}" {each.type}' for each in view.columns)
                self._connection.executescript(
                    f"CREATE TABLE main.{view.name} ({columns});"
                    f"INSERT INTO main.{view.name} SELECT * FROM temp.{view.name}"
                )
            for name, columns in SEARCHED.items():
                self._connection.executescript(
                    f'CREATE VIRTUAL TABLE main.{name}_fts USING fts5({columns}, content="{name}");'
                    f"INSERT INTO main.{name}_fts({name}_fts) VALUES ('rebuild')"
                )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _write_problem(error, is_temporary=self._is_temporary) from error

    def select(self, sql: str) -> tuple[tuple[str, ...], Iterator[Row]]:
        """Return the names of the columns, and the rows as SQLite finds them."""
        self._connection.set_authorizer(_authorize)
        # Python's own handlers of signals run between these looks.
        self._connection.set_progress_handler(lambda: False, _TICK)
        try:
            cursor = self._connection.execute(sql)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            raise _sql_problem(error, sql) from error
        if cursor.description is None:
            raise UsageError(
                "the SQL is not a SELECT", 'such as: sigwrap query "select * from denials"'
            )
        return tuple(str(each[0]) for each in cursor.description), _fetched(cursor, sql)


def _fetched(cursor: sqlite3.Cursor, sql: str) -> Iterator[Row]:
    try:
        yield from iter(cursor.fetchone, None)  # `yield from cursor` would close it too late
    except sqlite3.Error as error:
        raise _sql_problem(error, sql) from error


def _authorize(action: int, name: str | None, second: str | None, *_: str | None) -> int:
    allowed = (
        action in _READS
        or (action == sqlite3.SQLITE_PRAGMA and (name or "").lower() in _PRAGMAS)
        or (action == sqlite3.SQLITE_FUNCTION and (second or "") not in _FORBIDDEN_FUNCTIONS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _shell_words(array: str | None) -> str | None:
    argv = json.loads(array) if isinstance(array, str) and array.startswith("[") else None
    if argv is None:
        return None
    return shell_words(texts(argv)).encode("utf-8", "backslashreplace").decode()


def _sql_problem(error: Exception, sql: str) -> UsageError:
    said = str(error)
    if _TOO_MANY in said:
        return UsageError("the SQL has more than one statement", "run them one by one")
    if _NOT_READING.search(said):
        return UsageError(f"the SQL is not read-only: {said}", "only SELECT is allowed")
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return UsageError(f"no space for the result: {said}", _NO_ROOM_HINT)
    missing = _MISSING.fullmatch(said)
    if missing is None:
        return UsageError(f"SQL error: {said}", _VIEWS)
    kind, name = missing.groups()
    if kind == "table":
        return UsageError(f"there is no view {name}", did_you_mean(name, VIEWS) + _VIEWS)
    words = set(re.findall(r"\w+", sql.lower()))
    views = [view for view in VIEWS.values() if view.name in words]
    columns = [column.name for view in views or VIEWS.values() for column in view.columns]
    columns_of_it = "sigwrap query without SQL lists the columns"
    if len(views) == 1:
        columns_of_it = f"{views[0].name} has {', '.join(columns)}"
    near = did_you_mean(name.rpartition(".")[2], columns)
    return UsageError(f"there is no column {name}", near + columns_of_it)


def _write_problem(error: sqlite3.Error, *, is_temporary: bool) -> UsageError:
    if is_temporary:
        return UsageError(f"the log doesn't fit into a temporary database: {error}", _NO_ROOM_HINT)
    return UsageError(f"the database can't be written: {error}")


def table(names: tuple[str, ...], rows: Iterable[Row], columns: int = 0) -> Iterator[str]:
    """Cut cells to `columns`, the width of the terminal; 0 cuts nothing."""
    rows = iter(rows)
    measured = _measured(rows)
    heads = [printable(name) for name in names]
    found = list(zip(*measured, strict=True)) or [()] * len(heads)
    widths = [max(map(len, (head, *cells))) for head, cells in zip(heads, found, strict=True)]
    widths = _fitted(widths, columns) if columns else [min(w, _WIDEST_PADDED) for w in widths]
    numeric = [any(cells) and all(map(_is_number, filter(None, cells))) for cells in found]

    def line(cells: list[str]) -> str:
        padded = []
        for cell, width, is_right in zip(cells, widths, numeric, strict=True):
            cut = shortened(cell, width) if columns else cell
            padded.append(cut.rjust(width) if is_right else cut.ljust(width))
        return _BETWEEN.join(padded).rstrip()

    yield line(heads)
    yield _BETWEEN.join("─" * width for width in widths)
    yield from map(line, chain(measured, map(_cells, rows)))


def _measured(rows: Iterator[Row]) -> list[list[str]]:
    """Return the first rows, as far as they fit into memory."""
    measured, characters = [], 0
    for row in islice(rows, _ROWS_MEASURED):
        measured.append(_cells(row))
        characters += sum(map(len, measured[-1]))
        if characters > _CHARACTERS_MEASURED:
            break
    return measured


def _fitted(widths: list[int], columns: int) -> list[int]:
    """Narrow the widest columns, but none below _NARROWEST."""
    room = columns - len(_BETWEEN) * (len(widths) - 1)
    fitted = list(widths)
    by_width = sorted(range(len(widths)), key=lambda at: widths[at])
    for position, at in enumerate(by_width):
        share = max(room // (len(by_width) - position), _NARROWEST)
        fitted[at] = min(widths[at], share)
        room -= fitted[at]
    return fitted


def _cells(row: Row) -> list[str]:
    return [printable(_text(value)) for value in row]


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdecimal()


def csv(names: tuple[str, ...], rows: Iterable[Row], *, to_terminal: bool = False) -> Iterator[str]:
    for row in chain((names,), rows):
        cells = map(_csv_cell, row)
        yield ",".join(map(printable, cells) if to_terminal else cells)


def _csv_cell(value: Value) -> str:
    text = _text(value)
    if isinstance(value, str) and text.startswith(_FORMULA):
        text = "'" + text
    if any(mark in text for mark in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def json_array(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[str]:
    line = "["
    for each in json_lines(names, rows):
        yield line if line == "[" else f"{line},"
        line = each
    yield from ("[]",) if line == "[" else (line, "]")


def json_lines(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[str]:
    keys = _distinct(names)
    for row in rows:
        values = dict(zip(keys, map(_json_value, row), strict=True))
        yield json.dumps(values, separators=(",", ":"), allow_nan=False)


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Number the columns of one name, because an object has each key once."""
    keys: list[str] = []
    for name in names:
        key, number = name, 2
        while key in keys:
            key, number = f"{name}_{number}", number + 1
        keys.append(key)
    return keys


def _text(value: Value) -> str:
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes) else str(value)


def _json_value(value: Value) -> str | int | float | None:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None  # JSON has no such number
    return value
