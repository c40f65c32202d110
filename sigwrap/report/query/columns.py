"""Columns of the views: how an event becomes a value, and the columns that views share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sigwrap.escape import shell_words
from sigwrap.events import Event, Payload, texts, times
from sigwrap.outcomes import outcome
from sigwrap.report.forms.times import iso_time
from sigwrap.report.query.values import Value, as_json, integer, optional_json, words

TEXT, INTEGER, REAL = "TEXT", "INTEGER", "REAL"

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event with its session."""

    session: str
    event: Event


@dataclass(frozen=True, slots=True)
class Column(Generic[Thing]):
    name: str
    type: str
    meaning: str
    of: Callable[[Thing], Value]


def text_field(name: str, meaning: str, key: str = "") -> Column[Told]:
    key = key or name
    return Column(name, TEXT, meaning, lambda told: words(told.event.payload.get(key)))


def integer_field(name: str, meaning: str, key: str = "") -> Column[Told]:
    key = key or name
    return Column(name, INTEGER, meaning, lambda told: integer(told.event.payload.get(key)))


def json_field(name: str, meaning: str) -> Column[Told]:
    return Column(name, TEXT, meaning, lambda told: optional_json(told.event.payload.get(name)))


def command_line(payload: Payload, key: str = "argv") -> str | None:
    argv = payload.get(key)
    return words(shell_words(texts(argv))) if isinstance(argv, list) else None


SESSION: Column[Any] = Column("session", TEXT, "session id", lambda of: words(of.session))
WHERE: tuple[Column[Told], ...] = (
    SESSION,
    Column("seq", INTEGER, "number of the event", lambda told: told.event.seq),
    Column("time", TEXT, "when it happened", lambda told: iso_time(told.event.time_ns)),
    Column("time_ns", INTEGER, "the same, ns since 1970", lambda told: told.event.time_ns),
)
TYPE: Column[Told] = Column(
    "type", TEXT, "see [events](events.md)", lambda told: words(told.event.type)
)
PID: Column[Told] = Column("pid", INTEGER, "pid of the process", lambda told: told.event.pid)
OUTCOME: Column[Told] = Column(
    "outcome",
    TEXT,
    "denied, redirected, absorbed, approved, audited or allowed",
    lambda told: outcome(told.event) or None,
)
DECISION = text_field("decision", "the decision in the rule")
RULE = text_field("rule", "name of the rule that decided", "rule_name")
REASON = text_field("reason", "why, such as the rule's file and line")
MESSAGE = text_field("message", "the rule's message")
COUNT: Column[Told] = Column(
    "count",
    INTEGER,
    "repetitions within a second are one event",
    lambda told: times(told.event.payload),
)
COMMAND: Column[Told] = Column(
    "command",
    TEXT,
    "command line, quoted for a shell",
    lambda told: command_line(told.event.payload),
)
PAYLOAD: Column[Told] = Column(
    "payload",
    TEXT,
    "all other fields as JSON, for `json_extract(payload, '$.reason')`",
    lambda told: as_json(told.event.payload),
)
