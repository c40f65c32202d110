"""The page of a lake: one HTML file of bounded size, without script and without network access.

Its numbers are the answers to the questions, of which DuckDB returns the first rows. All texts come
from processes that may be hostile, so they are cut, made printable and escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sigwrap.fleet.questions import QUESTIONS, Period
from sigwrap.log.schema import words_in_sql
from sigwrap.report.forms.page import escaped, page_head, part
from sigwrap.text import printable, shortened

_STYLES = ("colours.css", "lake.css")
_ROWS = 15
_LONGEST, _LONGEST_COMMAND = 1_000, 10_000  # characters of a text, in its tooltip
_SHOWN = 140
_WORD_SHOWN = 60
_FEWEST = 23  # buckets beside the last one
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_CLOCKS_DIFFER = timedelta(minutes=10)  # among hosts, at most
# For a period of that length: the part of a time that a chart groups by, and a step to list them.
_UNITS = (
    (3 * _DAY, len("2026-11-30T12"), _HOUR, "hour"),
    (120 * _DAY, len("2026-11-30"), _DAY, "day"),
    (7_000 * _DAY, len("2026-11"), 28 * _DAY, "month"),
    (timedelta.max, len("2026"), 28 * _DAY, "year"),
)
_VERSION = r"[0-9]{1,9}(\.[0-9]{1,9}){1,3}"
_NEWEST_FIRST = "list_transform(string_split(version, '.'), lambda n: CAST(n AS BIGINT)) DESC"

Ask = Callable[[str], list[tuple[Any, ...]]]


class _Table(NamedTuple):
    """`below`: columns whose texts are below the first text. `sql` selects from the answer."""

    title: str
    question: str
    columns: str
    below: str = ""
    sql: str = "{}"
    order: str = ""


# Their heads and kinds. Others are numbers, headed by their names.
_COLUMNS = {
    "time": ("Time (UTC)", "time"),
    "first_run": ("First run (UTC)", "time"),
    "last_event": ("Last event (UTC)", "time"),
    "last_seen": ("Last (UTC)", "time"),
    "what": ("Denied", "code"),
    "command": ("Command", "code"),
    "destination": ("Destination", "code"),
    "policy": ("Policy", "text"),
    "version": ("Version", "text"),
    "host": ("Host", "text"),
}
_WIDE = (
    _Table("Latest denials", "latest-denials", "time what times", "rule message host repo session"),
    _Table("Denied most often", "denied-most", "what denials sessions hosts", "rule"),
    _Table(
        "New command lines", "new-commands", "first_run command runs sessions", "host repo session"
    ),
    _Table(
        "Sessions without an end",
        "without-end",
        "last_event command events",
        "state host repo session",
    ),
)
_OVER_TIME = ("rule", "repository", "host")
_NARROW = (
    _Table("Connections", "connections", "destination connections denied hosts"),
    _Table("Policies", "policies", "policy texts sessions hosts last_seen"),
    _Table(
        "Versions of sigwrap",
        "versions",
        "version hosts last_seen",
        sql="(SELECT version, count(*) AS hosts, max(last_seen) AS last_seen FROM {} "
        "GROUP BY version)",
        order="hosts DESC, version",
    ),
)


def lake_page(place: str, ask: Ask, since: datetime, until: datetime) -> Iterator[str]:
    """Yield the page. `ask` returns the rows of a SELECT over the views; of an empty lake, none."""
    return _Page(place, ask, since, until).parts()


class _Page:
    def __init__(self, place: str, ask: Ask, since: datetime, until: datetime) -> None:
        self._place, self._ask, self._until = place, ask, until
        self._groups: dict[str, int] = {}  # the rows of each table, with those not shown
        later = _iso(until + _CLOCKS_DIFFER)
        self._period = Period(_iso(since), later, later)
        *counts, first, last = self._row("sessions", 7)
        self._sessions, self._events, self._hosts, self._repos, self._without_end = counts
        self._first = max(_moment(first, since), since)
        newest = min(_moment(last, until), until)
        self._fresh = newest - min((newest - self._first) / 4, _DAY)
        length = until - self._first
        _, width, step, self._unit = next(each for each in _UNITS if length < each[0])
        self._period = self._period._replace(fresh=_iso(self._fresh), width=width)
        start = max(min(self._first, until - _FEWEST * step), since)
        moments = (start + n * step for n in range((until - start) // step + 1))
        # A row's time can be any text.
        self._buckets = [*dict.fromkeys(_iso(each)[:width] for each in (*moments, until))]
        self._in_buckets = f"day IN ({words_in_sql(self._buckets)})"

    def _answer(self, name: str) -> str:
        return f"({QUESTIONS[name].over(self._period)})"

    def _row(self, name: str, width: int) -> tuple[Any, ...]:
        rows = self._ask(f"SELECT * FROM {self._answer(name)}")
        return rows[0] if rows else (0,) * width

    def parts(self) -> Iterator[str]:
        title = f"Sessions in {shortened(printable(self._place), _SHOWN)}"
        yield page_head(title, "".join(map(part, _STYLES)))
        yield (
            f'<main><p class="mark">sigwrap</p><h1>Sessions in {_code(self._place)}</h1>'
            f'<p class="soft">{_time(_iso(self._first))} to {_time(_iso(self._until))} UTC</p>'
        )
        if later := self._row("later-sessions", 1)[0]:
            yield (
                f'<p class="verdict bad">{_counted(later, "session")} with events after this '
                "period, which the page leaves out: a host has a wrong clock, or rows were "
                "changed.</p>"
            )
        if self._sessions:
            yield from self._sections()
        else:
            yield '<p class="verdict">No sessions in this period.</p>'
        yield "</main>\n</body>\n</html>"

    def _sections(self) -> Iterator[str]:
        denials, denied_sessions = self._row("denials", 2)
        wide = [*map(self._table, _WIDE)]
        narrow = [*map(self._over_time, _OVER_TIME), *map(self._table, _NARROW)]
        narrow += self._old_versions()
        tone, verdict = "good", "<strong>Nothing was denied</strong> in "
        if denials:
            tone, verdict = "bad", f"<strong>{_counted(denials, 'action')} denied</strong> in "
            verdict += f"{denied_sessions:,} of "
        yield f'<p class="verdict {tone}">{verdict}{_counted(self._sessions, "session")}.</p>'
        yield '<dl class="totals">'
        for name, value, anchor in (
            ("Denials", denials, "latest-denials"),
            ("New commands", self._groups["new-commands"], "new-commands"),
            ("Without an end", self._without_end, "without-end"),
            ("Old sigwrap", self._groups.get("old", 0), "old"),
            ("Sessions", self._sessions, ""),
            ("Events", self._events, ""),
            ("Repositories", self._repos, ""),
            ("Hosts", self._hosts, ""),
        ):
            shown = f'<a href="#{anchor}">{value:,}</a>' if anchor else f"{value:,}"
            yield f"<div><dt>{name}</dt><dd>{shown}</dd></div>"
        yield '</dl><div class="charts">'
        yield self._chart("Sessions", "sessions", "sessions-by-day", "started")
        yield self._chart("Denials", "denials", "denials-by-rule", "denied")
        yield f'</div><div class="columns"><div>{"".join(wide)}</div>'
        yield f"<div>{''.join(narrow)}</div></div>"

    def _chart(self, title: str, column: str, question: str, tone: str) -> str:
        counts: dict[str, int] = dict(
            self._ask(
                f"SELECT day, sum({column}) FROM {self._answer(question)} "
                f"WHERE {self._in_buckets} GROUP BY day"
            )
        )
        values = [counts.get(each, 0) for each in self._buckets]
        width, bars = 1000 / len(values), []
        for n, (bucket, value) in enumerate(zip(self._buckets, values, strict=True)):
            high = _height(value, max(values), 100)
            place = f'x="{n * width:.2f}" width="{width * 0.86:.2f}"'
            bars.append(
                f"<g><title>{bucket.replace('T', ' ')}: {value:,}</title>"
                f'<rect class="room" {place} height="100"/>'
                f'<rect {place} y="{100 - high:.1f}" height="{high:.1f}"/></g>'
            )
        ends = _time(self._buckets[0]), f"peak {max(values):,}", _time(self._buckets[-1])
        return (
            f"<section><h2>{title} <span>each {self._unit}</span></h2>"
            f'<svg class="{tone}" viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" '
            f'aria-label="{title} each {self._unit}">{"".join(bars)}</svg>'
            f'<p class="scale">{"".join(f"<span>{each}</span>" for each in ends)}</p></section>'
        )

    def _over_time(self, column: str) -> str:
        question = f"denials-by-{column}"
        rows = self._ask(
            f"SELECT count(*) OVER (), substr(name, 1, {_LONGEST}), sum(denials), max(last_seen), "
            f"list((day, denials)) FILTER ({self._in_buckets}) "
            f"FROM {self._answer(question)} GROUP BY name "
            f"ORDER BY sum(denials) DESC, name LIMIT {_ROWS}"
        )
        heads = (
            f'<th>{column.capitalize()}<th class="number">Denials<th>Each {self._unit}'
            "<th>Last (UTC)"
        )
        body = [
            f'<tr><td class="word">{_text(name)}<td class="number" data-head="Denials">{denials:,}'
            f'<td class="trend">{self._trend(dict(counts or ()))}'
            f'<td class="time">{_time(last)}'
            for _, name, denials, last, counts in rows
        ]
        return self._section(question, f"Denials by {column}", heads, body, rows)

    def _trend(self, counts: dict[str, int]) -> str:
        """Return bars as one path, 20 high."""
        values = [counts.get(each, 0) for each in self._buckets]
        drawn = "".join(
            f"M{n * 10} 20v-{_height(value, max(values), 20):.1f}h8V20z"
            for n, value in enumerate(values)
            if value > 0
        )
        return (
            f'<svg class="denied" viewBox="0 0 {len(values) * 10} 20" preserveAspectRatio="none" '
            f'aria-hidden="true"><path d="{drawn}"/></svg>'
        )

    def _table(self, table: _Table, anchor: str = "") -> str:
        columns, below = table.columns.split(), table.below.split()
        shown = [(*_COLUMNS.get(each, (each.capitalize(), "number")), each) for each in columns]
        selected = ", ".join(
            name if kind == "number" else f"substr({name}, 1, {_longest(kind)})"
            for _, kind, name in (*shown, *(("", "text", each) for each in below))
        )
        rows = self._ask(
            f"SELECT count(*) OVER (), {selected} "
            f"FROM {table.sql.format(self._answer(table.question))} AS answer "
            f"ORDER BY {table.order or QUESTIONS[table.question].order} LIMIT {_ROWS}"
        )
        body = []
        for _, *row in rows:
            texts = zip(below, row[len(columns) :], strict=True)
            more = [f'<span class="{name}">{_text(each)}</span>' for name, each in texts if each]
            cells = []
            for (head, kind, _), value in zip(shown, row, strict=False):
                cell = _SHOWN_AS[kind](value)
                if kind == "code" and more:
                    cell += f'<div class="below">{" ".join(more)}</div>'
                cells.append(f'<td class="{kind}" data-head="{head}">{cell}')
            body.append(f"<tr>{''.join(cells)}")
        heads = "".join(f'<th class="{kind}">{head}' for head, kind, _ in shown)
        title = table.title
        if table.question == "new-commands":
            title += f" <span>first run since {_time(_iso(self._fresh))}</span>"
        return self._section(anchor or table.question, title, heads, body, rows)

    def _section(
        self, anchor: str, title: str, heads: str, body: list[str], rows: list[tuple[Any, ...]]
    ) -> str:
        groups = self._groups[anchor] = rows[0][0] if rows else 0
        shown = f"<table><thead><tr>{heads}</thead><tbody>{''.join(body)}</tbody></table>"
        if groups > len(body):
            shown += f'<p class="soft">and {groups - len(body):,} more</p>'
        if not body:
            shown = '<p class="soft">None.</p>'
        return f'<section id="{anchor}"><h2>{title}</h2>{shown}</section>\n'

    def _old_versions(self) -> Iterator[str]:
        """Yield a table of the hosts that don't have the newest version."""
        for (newest,) in self._ask(
            f"SELECT version FROM {self._answer('versions')} WHERE "
            f"regexp_full_match(version, '{_VERSION}') ORDER BY {_NEWEST_FIRST} LIMIT 1"
        ):
            title = f"Hosts without the newest sigwrap, {newest}"
            others = f"(SELECT * FROM {{}} WHERE version <> '{newest}')"
            columns, order = "host version last_seen", "last_seen DESC, host"
            yield self._table(_Table(title, "versions", columns, "", others, order), "old")


def _longest(kind: str) -> int:
    return _LONGEST_COMMAND if kind == "code" else _LONGEST


def _code(words: Any) -> str:
    return _shortened("code", words, _SHOWN)


def _text(words: Any) -> str:
    return _shortened("bdi", words, _WORD_SHOWN)


def _shortened(tag: str, words: Any, longest: int) -> str:
    """Return the start of a text, and a tooltip with all of it."""
    whole = printable(str(words or ""))
    tooltip = f' title="{escaped(whole)}"' if len(whole) > longest else ""
    return f"<{tag}{tooltip}>{escaped(shortened(whole, longest)) or '&#8211;'}</{tag}>"


def _time(iso: Any) -> str:
    """Return the time, or the part of it that a chart groups by."""
    shown = str(iso or "")[:19].replace("T", " ")
    return _text(f"{shown}:00" if len(shown) == len("2026-11-30 12") else shown)


def _number(value: Any) -> str:
    return f"{value or 0:,}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _height(value: int, most: int, room: int) -> float:
    """Return a bar's height: one that is not empty can be seen."""
    return max(value / most * room, room / 20) if value > 0 else 0


def _iso(moment: datetime) -> str:
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}000Z"


def _moment(iso: Any, otherwise: datetime) -> datetime:
    """Return the time in a row, which can be any text."""
    try:
        return datetime.fromisoformat(str(iso)[:19]).replace(tzinfo=UTC)
    except ValueError:
        return otherwise


_SHOWN_AS = {"code": _code, "text": _text, "time": _time, "number": _number}
