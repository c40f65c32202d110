"""The rows of views, from the events of one session."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sigwrap.events import DECISION_TYPES, Event
from sigwrap.outcomes import APPROVAL_ANSWERS, how_many
from sigwrap.report.query.columns import Told
from sigwrap.report.query.processes import ProcessesFold
from sigwrap.report.query.values import Value
from sigwrap.report.query.views import PROCESSES, SESSIONS, Run, View

_COUNTED = DECISION_TYPES.union(APPROVAL_ANSWERS)
_TYPES_KEPT = 1_000  # a log from elsewhere may hold any number of them


class Rows:
    """Of some views, from the events of one session, in memory that doesn't grow with them."""

    def __init__(self, session: str, views: list[View[Any]]) -> None:
        self._session = session
        self._views = [view for view in views if view not in (SESSIONS, PROCESSES)]
        self._processes = ProcessesFold(session) if PROCESSES in views else None
        self._of_type: dict[str, list[View[Any]]] = {}

    def takes(self, type_name: object) -> bool:
        if not isinstance(type_name, str):
            return True  # reading it says what is wrong
        return bool(self._taking(type_name)) or (
            self._processes is not None and PROCESSES.takes(type_name)
        )

    def add(self, event: Event) -> Iterator[tuple[View[Any], tuple[Value, ...]]]:
        told = Told(session=self._session, event=event)
        is_counted = event.type not in _COUNTED or how_many(event.type, event.payload) > 0
        for view in self._taking(event.type):
            if not is_counted and view.types:  # only the view of all events has it
                continue
            yield view, view.row(told)
        if self._processes is not None and PROCESSES.takes(event.type):
            yield from ((PROCESSES, PROCESSES.row(each)) for each in self._processes.add(event))

    def rest(self) -> Iterator[tuple[View[Any], tuple[Value, ...]]]:
        if self._processes is not None:
            yield from ((PROCESSES, PROCESSES.row(each)) for each in self._processes.rest())

    def _taking(self, type_name: str) -> list[View[Any]]:
        found = self._of_type.get(type_name)
        if found is None:
            found = [view for view in self._views if view.takes(type_name)]
            if len(self._of_type) < _TYPES_KEPT:
                self._of_type[type_name] = found
        return found

    @property
    def are_of_events(self) -> bool:
        return bool(self._views) or self._processes is not None


def session_row(run: Run) -> tuple[View[Any], tuple[Value, ...]]:
    return SESSIONS, SESSIONS.row(run)
