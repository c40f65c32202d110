"""The page of a lake: one HTML file of bounded size, without script and without network access.

Its numbers are the answers to the questions, of which DuckDB returns the first rows. All texts come
from processes that may be hostile, so they are cut, made printable and escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from math import inf
from typing import Any

from sigwrap.events import counted
from sigwrap.fleet.questions import DAY_NS, QUESTIONS
from sigwrap.log.schema import words_in_sql
from sigwrap.report.forms.page import escaped, page_head, part
from sigwrap.report.forms.times import iso_time
from sigwrap.text import printable, shortened

_ROWS = 15
_SHOWN = {"code": 140, "text": 60, "time": 60}  # characters
_LONGEST = 4_000  # of a tooltip
_FEWEST = 23  # buckets beside the last one
_CLOCKS_DIFFER_NS = 600 * 1_000_000_000  # among hosts, at most
# For a period of that length: the part of a time that a chart groups by, and a step to list them.
_UNITS = (
    (3 * DAY_NS, len("2026-11-30T12"), DAY_NS // 24, "hour"),
    (120 * DAY_NS, len("2026-11-30"), DAY_NS, "day"),
    (7_000 * DAY_NS, len("2026-11"), 28 * DAY_NS, "month"),
    (inf, len("2026"), 28 * DAY_NS, "year"),
)

_OLD = "hosts-without-the-newest-sigwrap"
# Tables and their columns; those after | are shown below the code.
_TABLES = {
    "denials-by-rule": "rule denials over_time last_seen",
    "denials-by-repository": "repository denials over_time last_seen",
    "denials-by-host": "host denials over_time last_seen",
    "latest-denials": "time what times | rule message host repo session",
    "new-commands": "first_run command runs sessions | host repo session",
    "denied-most-often": "what denials sessions hosts | rule",
    "sessions-without-an-end": "last_event command events | state host repo session",
    "connections": "destination connections denied hosts",
    "policies": "policy texts sessions hosts last_seen",
    _OLD: "host version last_seen",
}
_KINDS = {
    **dict.fromkeys("what command destination".split(), "code"),
    **dict.fromkeys("time first_run last_event last_seen".split(), "time"),
    **dict.fromkeys("times denials sessions hosts runs events".split(), "number"),
    **dict.fromkeys("connections denied texts".split(), "number"),
    **dict.fromkeys("rule repository host repo message session".split(), "text"),
    **dict.fromkeys("state policy version".split(), "text"),
    "over_time": "trend",
}
_NOT_NEWEST = f"""
with hosts as ({QUESTIONS["versions"]})
select * from hosts where version <> (
  select version from hosts where regexp_full_match(version, '[0-9.]+')
  and length(version) < 40 order by
  list_transform(string_split(version, '.'), lambda n: try_cast(n as bigint)) desc limit 1)
order by last_seen desc, host"""

Ask = Callable[[str], list[tuple[Any, ...]]]


def lake_page(place: str, ask: Ask, since_ns: int, until_ns: int) -> Iterator[str]:
    """Yield the page. `ask` returns the rows of a SELECT over the views."""
    page = _Page(ask, since_ns, until_ns)
    title = f"Sessions in {shortened(printable(place), _SHOWN['code'])}"
    yield page_head(title, part("colours.css") + part("lake.css"))
    yield f'<main><p class="mark">sigwrap</p><h1>Sessions in {_shown("code", place)}</h1>'
    yield f'<p class="soft">{page.period}; all times are UTC</p>'
    if page.later:
        yield (
            f'<p class="verdict bad">{counted(page.later, "session")} with events after this '
            "period, which the page leaves out: a host has a wrong clock, or rows were changed.</p>"
        )
    if page.sessions:
        yield from page.sections()
    else:
        yield '<p class="verdict">No sessions in this period.</p>'
    yield "</main>\n</body>\n</html>"


class _Page:
    def __init__(self, ask: Ask, since_ns: int, until_ns: int) -> None:
        self._ask = ask
        self._groups: dict[str, int] = {}  # the rows of each table, with those not shown
        later = iso_time(until_ns + _CLOCKS_DIFFER_NS)
        self._given: dict[str, Any] = {"since": iso_time(since_ns), "until": later}
        (row,) = self._rows(QUESTIONS["sessions"])
        self.sessions, *self._totals, first, last, self.later = row
        first_ns = max(_ns(first, since_ns), since_ns)
        newest_ns = min(_ns(last, until_ns), until_ns)
        fresh_ns = newest_ns - min((newest_ns - first_ns) // 4, DAY_NS)
        length_ns = until_ns - first_ns
        _, width, step_ns, self._unit = next(each for each in _UNITS if length_ns < each[0])
        start_ns = max(min(first_ns, until_ns - _FEWEST * step_ns), since_ns)
        # A row's time can be any text.
        moments = (*range(start_ns, until_ns, step_ns), until_ns)
        self._buckets = [*dict.fromkeys(iso_time(each)[:width] for each in moments)]
        words = words_in_sql(self._buckets)
        self._given |= {"fresh": iso_time(fresh_ns), "width": width, "buckets": words}
        self.period = " to ".join(_shown("time", iso_time(each)) for each in (first_ns, until_ns))

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return self._ask(sql.format(**self._given))

    def sections(self) -> Iterator[str]:
        ((denials, denied_sessions),) = self._rows(QUESTIONS["denials"])
        events, hosts, repos, without_end = self._totals
        tables = "".join(self._table(*each) for each in _TABLES.items())
        sessions = counted(self.sessions, "session")
        verdict = f'good"><strong>Nothing was denied</strong> in {sessions}'
        if denials:
            denied = f"{counted(denials, 'action')} denied"
            verdict = f'bad"><strong>{denied}</strong> in {denied_sessions:,} of {sessions}'
        yield f'<p class="verdict {verdict}.</p><dl class="totals">'
        for name, value, table in (
            ("Denials", denials, "latest-denials"),
            ("New commands", self._groups["new-commands"], "new-commands"),
            ("Without an end", without_end, "sessions-without-an-end"),
            ("Old sigwrap", self._groups[_OLD], _OLD),
            ("Sessions", self.sessions, ""),
            ("Events", events, ""),
            ("Repositories", repos, ""),
            ("Hosts", hosts, ""),
        ):
            shown = f'<a href="#{table}">{value:,}</a>' if table else f"{value:,}"
            yield f"<div><dt>{name}</dt><dd>{shown}</dd></div>"
        yield '</dl><div class="charts">'
        yield self._chart("sessions", "sessions-by-day", "started")
        yield self._chart("denials", "denials-by-rule", "denied")
        yield f'</div><div class="columns">{tables}</div>'

    def _chart(self, column: str, question: str, tone: str) -> str:
        counts = self._rows(
            f"SELECT day, sum({column}) FROM ({QUESTIONS[question]}) "
            "WHERE day IN ({buckets}) GROUP BY day"
        )
        peak = max((count for _, count in counts), default=0)
        first, last = (_shown("time", self._buckets[n]) for n in (0, -1))
        return (
            f"<section><h2>{_words(column)} <span>each {self._unit}</span></h2>"
            f'{self._bars(counts, tone, has_titles=True)}<p class="scale"><span>{first}</span>'
            f"<span>peak {peak:,}</span><span>{last}</span></p></section>"
        )

    def _bars(self, counts: Any, tone: str = "denied", *, has_titles: bool = False) -> str:
        """Draw a bar for each bucket, which can be seen if it counts anything."""
        values: dict[str, int] = dict(counts or ())
        most, bars = max(values.values(), default=1), ""
        for n, bucket in enumerate(self._buckets):
            value, x, bar = values.get(bucket, 0), n * 10, ""
            if value > 0:
                bar = f'<path d="M{x} 100v-{max(value / most * 100, 5):.1f}h8V100z"/>'
            if has_titles:
                title = f"<title>{bucket.replace('T', ' ')}: {value:,}</title>"
                bar = f'<g>{title}<path class="room" d="M{x} 0h8v100h-8z"/>{bar}</g>'
            bars += bar
        return (
            f'<svg class="{tone}" viewBox="0 0 {len(self._buckets) * 10} 100" '
            f'preserveAspectRatio="none" aria-hidden="true">{bars}</svg>'
        )

    def _table(self, question: str, columns: str) -> str:
        names, _, below = (each.split() for each in columns.partition("|"))
        every = [*names, *below]
        answer, _, order = QUESTIONS.get(question, _NOT_NEWEST).rpartition("\norder by ")
        if "over_time" in names:
            order = f"denials DESC, {names[0]}"
            answer = (
                f"SELECT {names[0]}, sum(denials) AS denials, max(last_seen) AS last_seen, "
                f"list((day, denials)) FILTER (day IN ({{buckets}})) AS over_time "
                f"FROM ({answer}) GROUP BY 1"
            )
        selected = (
            f"substr({name}, 1, {_LONGEST})" if _KINDS[name] in _SHOWN else name for name in every
        )
        rows = self._rows(
            f"SELECT count(*) OVER (), {', '.join(selected)} FROM ({answer}) "
            f"ORDER BY {order} LIMIT {_ROWS}"
        )
        self._groups[question] = groups = rows[0][0] if rows else 0
        shown = '<p class="soft">None.</p>'
        if rows:
            heads = "".join(f'<th class="{_KINDS[name]}">{_words(name)}' for name in names)
            found = (dict(zip(every, row, strict=True)) for _, *row in rows)
            lines = "".join(self._line(names, below, row) for row in found)
            shown = f"<table><thead><tr>{heads}</thead><tbody>{lines}</tbody></table>"
        if groups > len(rows):
            shown += f'<p class="soft">and {groups - len(rows):,} more</p>'
        title = _words(question)
        if question == "new-commands":
            title += f" <span>first run since {_shown('time', self._given['fresh'])}</span>"
        return f'<section id="{question}"><h2>{title}</h2>{shown}</section>\n'

    def _line(self, names: list[str], below: list[str], row: dict[str, Any]) -> str:
        texts = ((name, _shown("text", row[name])) for name in below if row[name])
        more = "".join(f'<span class="{name}">{shown}</span>' for name, shown in texts)
        line = "<tr>"
        for name in names:
            kind, value = _KINDS[name], row[name]
            shown = self._bars(value) if kind == "trend" else _shown(kind, value)
            if kind == "code" and more:
                shown += f'<div class="below">{more}</div>'
            line += f'<td class="{kind}" data-head="{_words(name)}">{shown}'
        return line


def _words(name: str) -> str:
    return name.replace("_", " ").replace("-", " ").capitalize()


def _shown(kind: str, value: Any) -> str:
    """Return a cell: of a text its start, and a tooltip with all of it."""
    if kind == "number":
        return f"{value or 0:,}"
    words = str(value or "")
    if kind == "time":  # or the part of one that a chart groups by
        words = words[:19].replace("T", " ")
        words += ":00" if len(words) == len("2026-11-30 12") else ""
    whole, longest = printable(words), _SHOWN[kind]
    tag = "code" if kind == "code" else "bdi"
    tooltip = f' title="{escaped(whole)}"' if len(whole) > longest else ""
    return f"<{tag}{tooltip}>{escaped(shortened(whole, longest)) or '&#8211;'}</{tag}>"


def _ns(iso: Any, otherwise_ns: int) -> int:
    """Return the time in a row, which can be any text."""
    with suppress(ValueError):
        return int(datetime.fromisoformat(f"{iso}"[:19] + "+00:00").timestamp()) * 1_000_000_000
    return otherwise_ns
