"""An error of SQLite as one line that says what would be right."""

from __future__ import annotations

import re
import sqlite3

from sigwrap.errors import UsageError
from sigwrap.policy.problems import did_you_mean
from sigwrap.store.views import VIEWS

_MISSING = re.compile(r"no such (table|column): (?:main\.)?(.*)", re.DOTALL)
_NOT_READING = re.compile(r"not authorized|authorization denied|cannot modify \w+ because")
_NO_ROOM_HINT = "set TMPDIR to a directory with more room, or name fewer sessions"
_TOO_MANY = "only execute one statement at a time"
_VIEWS = f"the views are {', '.join(VIEWS)}; sigwrap query without SQL lists their columns"


def sql_problem(error: Exception, sql: str) -> UsageError:
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


def write_problem(error: sqlite3.Error, *, is_temporary: bool) -> UsageError:
    if is_temporary:
        return UsageError(f"the log doesn't fit into a temporary database: {error}", _NO_ROOM_HINT)
    return UsageError(f"the database can't be written: {error}")
