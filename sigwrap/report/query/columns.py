"""A column: how its value comes from what happened; and those that several views have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sigwrap.escape import shell_words
from sigwrap.events import Event, Payload, texts, times
from sigwrap.report.folds.decisions import outcome
from sigwrap.report.forms.times import iso_time
from sigwrap.report.query.values import Value, as_json, integer, optional_json, words

TEXT, INTEGER, REAL = "TEXT", "INTEGER", "REAL"

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event, and of which session."""

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


SESSION: Column[Any] = Column("session", TEXT, "the session's id", lambda of: words(of.session))
WHERE: tuple[Column[Told], ...] = (
    SESSION,
    Column("seq", INTEGER, "the event's number", lambda told: told.event.seq),
    Column("time", TEXT, "when, in UTC", lambda told: iso_time(told.event.time_ns)),
    Column("time_ns", INTEGER, "the same, in ns since 1970", lambda told: told.event.time_ns),
)
TYPE: Column[Told] = Column(
    "type", TEXT, "what happened: events.md", lambda told: words(told.event.type)
)
PID: Column[Told] = Column("pid", INTEGER, "the process", lambda told: told.event.pid)
OUTCOME: Column[Told] = Column(
    "outcome",
    TEXT,
    "what became of it: denied, redirected, absorbed, approved, audited or allowed",
    lambda told: outcome(told.event) or None,
)
DECISION = text_field("decision", "the policy's word for it")
RULE = text_field("rule", "the rule that decided", "rule_name")
REASON = text_field("reason", "why; of a rule, its place in the policy's file")
MESSAGE = text_field("message", "of the rule, where it has one: why, for people")
COUNT: Column[Told] = Column(
    "count",
    INTEGER,
    "how often: what a process does to itself over and over is one event a second",
    lambda told: times(told.event.payload),
)
COMMAND: Column[Told] = Column(
    "command",
    TEXT,
    "what was asked for, as a shell would quote it",
    lambda told: command_line(told.event.payload),
)
PAYLOAD: Column[Told] = Column(
    "payload",
    TEXT,
    "all the rest, as JSON: json_extract(payload, '$.reason')",
    lambda told: as_json(told.event.payload),
)
