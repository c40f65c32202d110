"""The report as one HTML file: without network access, and without any script but its own.

Style and script are the files in page_parts. The page gets the log's content only as JSON that is
escaped here, and its script shows it as text.
"""

from __future__ import annotations

import json
import math
import os
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from sigwrap.events import (
    ALLOWED,
    DECISION_TYPES,
    Event,
    Payload,
    number,
    outcome,
    text,
    texts,
    times,
)
from sigwrap.report.folds.attention import what
from sigwrap.report.folds.incidents import INCIDENT_TYPES
from sigwrap.report.folds.selection import AskedAbout
from sigwrap.report.forms.detail import detail, is_death
from sigwrap.report.forms.verdict import News, Verdict
from sigwrap.text import printable, shell_words, shortened

_STYLES = ("colours.css", "page.css")
# In the order in which they use each other, since they become one script.
_SCRIPTS = (
    "elements.js",
    "base.js",
    "filter.js",
    "events.js",
    "timeline.js",
    "tree.js",
    "sections.js",
    "page.js",
)

Row = tuple[int, int, str, int, str, str, str, str, int]
"""seq, offset_ns, type, pid, outcome, text, rule, command, flags"""

ASKED_ABOUT, ANOTHER_TRY = 1, 2

IMPORTANT_KEPT = 10_000
SAMPLE_KEPT = 10_000

_MARKS = (
    "session_",
    "approval_",
    "interrupt_",
    "tree_",
    "killswitch_",
    "recording_",
    "checkpoint",
    "work_",
)

_LARGEST = (1 << 53) - 1  # a script counts exactly up to it
_DEEPEST = 6
_ITEMS_KEPT = 1_000
_EVENTS_KEPT = IMPORTANT_KEPT + SAMPLE_KEPT
_CHARACTERS_KEPT = 1_000
_MEANS_SOMETHING = {ord(each): f"&#{ord(each)};" for each in "&<>\"'"}
_TITLE_CHARACTERS = 120
_HEADLINE_CHARACTERS = 400
_EVENT_CHARACTERS = 300
_WORD_CHARACTERS = 80
# These bounds keep the page small enough to open at once. What doesn't fit is counted, and texts
# of many events are cut to an equal share.
_EVENTS_BYTES = 3_000_000
_GROUPS_BYTES = 700_000
_TREE_BYTES = 700_000
_ROW_BYTES = 60  # of an event, without its texts
_FEWEST_BYTES = 16


def html_page(document: dict[str, Any], verdict: Verdict, events: Iterable[Row]) -> Iterator[str]:
    """Yield the page of a report_document, with all events or a sample of them."""
    style = "".join(map(part, _STYLES))
    script = "\n".join(("(() => {", '"use strict";', *map(part, _SCRIPTS), "})();"))
    headline, more, tone = _headline(document, verdict)
    command = shell_words(texts((document.get("session") or {}).get("command")) or ["?"])
    yield page_head(shortened(command, _TITLE_CHARACTERS), style, script)
    yield part("page.html").format(
        command=escaped(shortened(command, _HEADLINE_CHARACTERS)),
        verdict=escaped(headline),
        more=escaped(more),
        tone=tone,
    )
    yield f'<script type="application/json" id="report">{_json(_shown(document))}</script>\n'
    yield '<script type="application/json" id="events">'
    yield from _events(events, number(document.get("events")))
    yield f"</script>\n<script>{script}</script>\n</body>\n</html>\n"


def page_head(title: str, style: str, script: str = "") -> str:
    """Return the start of a page that may use no other style and script, and no network."""
    may_run = f"script-src {_hash(script)}; " if script else ""
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; {may_run}"
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)} · sigwrap</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n"
    )


def part(name: str) -> str:
    """Read a file of page_parts through this module's loader, which works in a zipapp too."""
    loader: Any = __spec__.loader
    data: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), "page_parts", name))
    return data.decode()


def _hash(source: str) -> str:
    digest = sha256(source.encode()).digest()
    return f"'sha256-{b2a_base64(digest, newline=False).decode()}'"


def escaped(words: str) -> str:
    """Escape as html.escape does; the html module imports a table of all character names."""
    return words.translate(_MEANS_SOMETHING)


def _headline(document: dict[str, Any], verdict: Verdict) -> tuple[str, str, str]:
    """Return the first sentence of the verdict, the rest, and the tone."""
    first, _, more = verdict.sentence.partition(". ")
    checked = document.get("verification")
    if not checked or checked["outcome"] == "intact":
        return f"{first.rstrip('.')}.", more, verdict.news.value
    row = f"row {checked['row']}: " if checked["row"] else ""
    state = "NOT INTACT" if checked["outcome"] == "broken" else "not checked"
    log = f"Log {state}: {row}{printable(str(checked['problem']))}."
    return f"{log} {first.rstrip('.')}.", more, News.BAD.value


def _shown(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with command lines instead of words, and with what fits."""
    failures = document.get("failures") or {}
    top = [_with_line(each, "argv") for each in failures.get("top") or []]
    return {
        **document,
        "attention": _fitted(document.get("attention"), "groups", "more", _GROUPS_BYTES),
        "session": _with_line(document.get("session") or {}, "command"),
        "failures": {**failures, "top": top},
        "processes": _fitted(document.get("processes"), "tree", "lines_not_shown", _TREE_BYTES),
    }


def _with_line(found: dict[str, Any], name: str) -> dict[str, Any]:
    return {**found, name: shell_words(texts(found.get(name)) or ["?"])}


def _fitted(part: dict[str, Any] | None, items: str, more: str, room: int) -> dict[str, Any]:
    """Return the part with the first items that fit, and the number of the others."""
    part = part or {}
    kept, left_out = [], number(part.get(more))
    for each in part.get(items) or []:
        item = _with_line(each, "argv") if "argv" in each else each
        # The examples are among the command lines.
        item = {name: item[name] for name in item if name != "examples"}
        room -= len(_json(item).encode())
        if room >= 0:
            kept.append(item)
        else:
            left_out += number(item.get("count"))
    return {**part, items: kept, more: left_out}


def _events(events: Iterable[Row], expected: int) -> Iterator[str]:
    """Yield the events; a word that many of them share is an index into a list."""
    names = ("types", "outcomes", "rules", "commands")
    places: dict[str, dict[str, int]] = {name: {} for name in names}
    left, room = min(expected, _EVENTS_KEPT), _EVENTS_BYTES
    yield '{"rows":['
    comma = ""
    for seq, offset_ns, type_name, pid, became, said, rule, command, flags in events:
        share = max(room // max(left, 1) - _ROW_BYTES, _FEWEST_BYTES)
        found = []
        for name, word in zip(names, (type_name, became, rule, command), strict=True):
            known = places[name]
            shown = _fitting(word, _WORD_CHARACTERS, share)
            if shown not in known:
                known[shown] = len(known)
                room -= len(shown.encode())
            found.append(known[shown])
        shown = _fitting(said, _EVENT_CHARACTERS, share)
        row = [seq, offset_ns // 1_000, found[0], pid, found[1], shown, *found[2:]]
        if flags:
            row.append(flags)
        written = _json(row)
        left, room = left - 1, room - len(written.encode())
        yield comma + written
        comma = ","
    yield f"],{_json({name: list(places[name]) for name in names}, items=_EVENTS_KEPT)[1:]}"


def _fitting(words: object, characters: int, share: int) -> str:
    shown = shortened(printable(text(words)[:characters]), characters)
    if len(shown.encode()) <= share:
        return shown
    return shortened(shown, share if shown.isascii() else share // 4)


def _json(value: object, items: int = _ITEMS_KEPT) -> str:
    """Return JSON in which an HTML parser finds no end tag and no comment."""
    shown = json.dumps(
        _plain(value, items), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    return shown.replace("<", "\\u003c")


def _plain(value: object, items: int, depth: int = 0) -> object:
    """Escape a value for a screen and a script, and cut it to a readable size."""
    match value:
        case None | bool():
            return value
        case int():
            return max(-_LARGEST, min(value, _LARGEST))
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return shortened(printable(value[:_CHARACTERS_KEPT]), _CHARACTERS_KEPT)
        case dict() | list() | tuple() if depth >= _DEEPEST:
            return "…"
        case dict():
            kept = list(value.items())[:items]
            return {shortened(printable(str(k)), 80): _plain(v, items, depth + 1) for k, v in kept}
        case list() | tuple():
            return [_plain(each, items, depth + 1) for each in value[:items]]
        case _:
            return printable(str(value)[:_CHARACTERS_KEPT])


class EventRows:
    """Some thousand events: the first that need attention, and of the rest every second, fourth,
    eighth …, however many there are."""

    def __init__(self, started_ns: int) -> None:
        """Show times since `started_ns`, the start of the session."""
        self._started_ns = started_ns
        self._important: list[tuple[Event, int]] = []  # with their flags
        self._sample: list[tuple[Event, int]] = []
        self._asked_about = AskedAbout()
        self._step = 1
        self._plain = 0

    def add(self, event: Event) -> None:
        became = outcome(event)
        flags = ANOTHER_TRY if event.payload.get("retry") is True else 0
        if self._asked_about.is_it(event, became):
            flags |= ASKED_ABOUT
        if len(self._important) < IMPORTANT_KEPT and _is_important(event, became):
            self._important.append((event, flags))
            return
        if self._plain % self._step == 0:
            self._sample.append((event, flags))
            if len(self._sample) > SAMPLE_KEPT:
                self._sample = self._sample[::2]
                self._step *= 2
        self._plain += 1

    def rows(self) -> list[Row]:
        found = sorted([*self._important, *self._sample], key=lambda each: each[0].seq)
        return [_row(event, self._started_ns, flags) for event, flags in found]


def _is_important(event: Event, became: str) -> bool:
    name = event.type
    if became:
        return became != ALLOWED
    return is_death(event) or name in INCIDENT_TYPES or name.startswith(_MARKS)


def _row(event: Event, started_ns: int, flags: int) -> Row:
    payload = event.payload
    is_request = event.type in DECISION_TYPES
    often = f"{times(payload)} times  " if is_request and times(payload) > 1 else ""
    return (
        event.seq,
        event.time_ns - started_ns,
        event.type,
        event.pid,
        outcome(event),
        often + what(event) if is_request else detail(event),
        text(payload.get("rule_name")),
        _command(payload),
        flags,
    )


def _command(payload: Payload) -> str:
    argv = texts(payload.get("argv"))
    name = argv[0] if argv else text(payload.get("source_cmd")) or text(payload.get("comm"))
    return name.rpartition("/")[2]
