"""What is wrong with somebody's SQL, in a line that says what would be right."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from sigwrap.errors import UsageError
from sigwrap.policy.problems import nearest_word
from sigwrap.report.query.views import VIEWS, View

_MISSING = re.compile(r"no such (table|column): (?:main\.)?(.*)", re.DOTALL)
NO_ROOM_HINT = "set TMPDIR to a directory with more room, or name fewer sessions"
_TOO_MANY = "only execute one statement at a time"
_VIEWS = f"the views are {', '.join(VIEWS)}; sigwrap query without SQL lists their columns"


def problem_of(error: Exception, sql: str) -> UsageError:
    said = str(error)
    if _TOO_MANY in said:
        return UsageError("the SQL has more than one statement", "run them one by one")
    if isinstance(error, sqlite3.DatabaseError) and "authoriz" in said:
        return UsageError(f"the SQL is not read-only: {said}", "only SELECT is allowed")
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return UsageError(f"no space for the result: {said}", NO_ROOM_HINT)
    missing = _MISSING.fullmatch(said)
    if missing is None:
        return UsageError(f"SQL error: {said}", _VIEWS)
    kind, name = missing.groups()
    if kind == "table":
        near = nearest_word(name, VIEWS)
        return UsageError(f"there is no view {name}", f"{_meant(near)}{_VIEWS}")
    views = _named_in(sql)
    columns = [column.name for view in views or VIEWS.values() for column in view.columns]
    near = nearest_word(name.rpartition(".")[2], columns)
    if len(views) == 1:
        there_is = f"{views[0].name} has {', '.join(columns)}"
    else:
        there_is = "sigwrap query without SQL lists the columns"
    return UsageError(f"there is no column {name}", _meant(near) + there_is)


def _meant(near: str) -> str:
    return f'did you mean "{near}"? ' if near else ""


def _named_in(sql: str) -> list[View[Any]]:
    words = set(re.findall(r"\w+", sql.lower()))
    return [view for view in VIEWS.values() if view.name in words]
