"""The page of a lake: one HTML file of bounded size, without script and without network access.

Its numbers are the answers to the questions, of which DuckDB returns the first rows. All texts come
from processes that may be hostile, so they are cut, made printable and escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import inf
from typing import Any, NamedTuple

from sigwrap.events import counted
from sigwrap.fleet.questions import DAY_NS, QUESTIONS, Period
from sigwrap.log.schema import words_in_sql
from sigwrap.report.forms.page import escaped, page_head, part
from sigwrap.report.forms.times import iso_time
from sigwrap.text import printable, shortened

_STYLES = ("colours.css", "lake.css")
_ROWS = 15
_LONGEST = {"code": 10_000, "text": 1_000, "time": 1_000}  # characters, in a tooltip
_SHOWN = {"code": 140, "text": 60, "time": 60}
_FEWEST = 23  # buckets beside the last one
_CLOCKS_DIFFER_NS = 600 * 1_000_000_000  # among hosts, at most
# For a period of that length: the part of a time that a chart groups by, and a step to list them.
_UNITS = (
    (3 * DAY_NS, len("2026-11-30T12"), DAY_NS // 24, "hour"),
    (120 * DAY_NS, len("2026-11-30"), DAY_NS, "day"),
    (7_000 * DAY_NS, len("2026-11"), 28 * DAY_NS, "month"),
    (inf, len("2026"), 28 * DAY_NS, "year"),
)

Ask = Callable[[str], list[tuple[Any, ...]]]


class _Table(NamedTuple):
    """`sql` selects from the answer. Texts of a row with code are shown below the code."""

    title: str
    question: str
    columns: str
    order: str = ""
    sql: str = "{answer}"
    anchor: str = ""


# Their heads and kinds. Others are numbers, headed by their names.
_TEXTS = "rule repository host policy version message repo session state"
_COLUMNS = {
    **{name: (name.capitalize(), "text") for name in _TEXTS.split()},
    "time": ("Time (UTC)", "time"),
    "first_run": ("First run (UTC)", "time"),
    "last_event": ("Last event (UTC)", "time"),
    "last_seen": ("Last (UTC)", "time"),
    "what": ("Denied", "code"),
    "command": ("Command", "code"),
    "destination": ("Destination", "code"),
    "trend": ("Over time", "trend"),
}
_BY_NAME = """\
(SELECT name AS %s, sum(denials) AS denials, max(last_seen) AS last_seen,
  list((day, denials)) FILTER (day IN ({buckets})) AS trend FROM {answer} GROUP BY name)"""
_BY_VERSION = """\
(SELECT version, count(*) AS hosts, max(last_seen) AS last_seen FROM {answer} GROUP BY version)"""
_NOT_NEWEST = r"""
(SELECT * FROM {answer} WHERE version <> (SELECT version FROM {answer}
  WHERE regexp_full_match(version, '[0-9]{{1,9}}(\.[0-9]{{1,9}}){{1,3}}') ORDER BY
  list_transform(string_split(version, '.'), lambda n: CAST(n AS BIGINT)) DESC LIMIT 1))"""
_NEW_COMMANDS = "New command lines <span>first run since {fresh}</span>"
_WIDE = (
    _Table("Latest denials", "latest-denials", "time what times rule message host repo session"),
    _Table("Denied most often", "denied-most", "what denials sessions hosts rule"),
    _Table(_NEW_COMMANDS, "new-commands", "first_run command runs sessions host repo session"),
    _Table(
        "Sessions without an end",
        "without-end",
        "last_event command events state host repo session",
    ),
)
_NARROW = (
    *(
        _Table(
            f"Denials by {name}",
            f"denials-by-{name}",
            f"{name} denials trend last_seen",
            f"denials DESC, {name}",
            _BY_NAME.replace("%s", name),
        )
        for name in ("rule", "repository", "host")
    ),
    _Table("Connections", "connections", "destination connections denied hosts"),
    _Table("Policies", "policies", "policy texts sessions hosts last_seen"),
    _Table(
        "Versions of sigwrap",
        "versions",
        "version hosts last_seen",
        "hosts DESC, version",
        _BY_VERSION,
    ),
    _Table(
        "Hosts without the newest sigwrap",
        "versions",
        "host version last_seen",
        "last_seen DESC, host",
        _NOT_NEWEST,
        "old",
    ),
)


def lake_page(place: str, ask: Ask, since_ns: int, until_ns: int) -> Iterator[str]:
    """Yield the page. `ask` returns the rows of a SELECT over the views; of an empty lake, none."""
    return _Page(place, ask, since_ns, until_ns).parts()


class _Page:
    def __init__(self, place: str, ask: Ask, since_ns: int, until_ns: int) -> None:
        self._place, self._ask = place, ask
        self._groups: dict[str, int] = {}  # the rows of each table, with those not shown
        later = iso_time(until_ns + _CLOCKS_DIFFER_NS)
        self._period = Period(iso_time(since_ns), later, later)
        *self._counts, first, last = self._row("sessions", 7)
        first_ns = max(_ns(first, since_ns), since_ns)
        newest_ns = min(_ns(last, until_ns), until_ns)
        fresh_ns = newest_ns - min((newest_ns - first_ns) // 4, DAY_NS)
        length_ns = until_ns - first_ns
        _, width, step_ns, self._unit = next(each for each in _UNITS if length_ns < each[0])
        self._period = self._period._replace(fresh=iso_time(fresh_ns), width=width)
        start_ns = max(min(first_ns, until_ns - _FEWEST * step_ns), since_ns)
        # A row's time can be any text.
        moments = (*range(start_ns, until_ns, step_ns), until_ns)
        self._buckets = [*dict.fromkeys(iso_time(each)[:width] for each in moments)]
        start, end = (_shown("time", iso_time(each)) for each in (first_ns, until_ns))
        self._shown_period = f"{start} to {end} UTC"

    def _answer(self, question: str) -> str:
        return f"({QUESTIONS[question].over(self._period)})"

    def _row(self, question: str, width: int) -> tuple[Any, ...]:
        rows = self._ask(f"SELECT * FROM {self._answer(question)}")
        return rows[0] if rows else (0,) * width

    def parts(self) -> Iterator[str]:
        title = f"Sessions in {shortened(printable(self._place), _SHOWN['code'])}"
        yield page_head(title, "".join(map(part, _STYLES)))
        yield (
            f'<main><p class="mark">sigwrap</p><h1>Sessions in {_shown("code", self._place)}</h1>'
            f'<p class="soft">{self._shown_period}</p>'
        )
        if later := self._row("later-sessions", 1)[0]:
            yield (
                f'<p class="verdict bad">{counted(later, "session")} with events after this '
                "period, which the page leaves out: a host has a wrong clock, or rows were "
                "changed.</p>"
            )
        if self._counts[0]:
            yield from self._sections()
        else:
            yield '<p class="verdict">No sessions in this period.</p>'
        yield "</main>\n</body>\n</html>"

    def _sections(self) -> Iterator[str]:
        sessions, events, hosts, repos, without_end = self._counts
        denials, denied_sessions = self._row("denials", 2)
        wide, narrow = ("".join(map(self._table, each)) for each in (_WIDE, _NARROW))
        tone, denied, among = "good", "Nothing was denied", ""
        if denials:
            tone, among = "bad", f"{denied_sessions:,} of "
            denied = f"{counted(denials, 'action')} denied"
        yield f'<p class="verdict {tone}"><strong>{denied}</strong> in {among}'
        yield f'{counted(sessions, "session")}.</p><dl class="totals">'
        for name, value, anchor in (
            ("Denials", denials, "latest-denials"),
            ("New commands", self._groups["new-commands"], "new-commands"),
            ("Without an end", without_end, "without-end"),
            ("Old sigwrap", self._groups["old"], "old"),
            ("Sessions", sessions, ""),
            ("Events", events, ""),
            ("Repositories", repos, ""),
            ("Hosts", hosts, ""),
        ):
            shown = f'<a href="#{anchor}">{value:,}</a>' if anchor else f"{value:,}"
            yield f"<div><dt>{name}</dt><dd>{shown}</dd></div>"
        yield '</dl><div class="charts">'
        yield self._chart("Sessions", "sessions", "sessions-by-day", "started")
        yield self._chart("Denials", "denials", "denials-by-rule", "denied")
        yield f'</div><div class="columns"><div>{wide}</div><div>{narrow}</div></div>'

    def _chart(self, title: str, column: str, question: str, tone: str) -> str:
        counts = self._ask(
            f"SELECT day, sum({column}) FROM {self._answer(question)} "
            f"WHERE day IN ({words_in_sql(self._buckets)}) GROUP BY day"
        )
        peak = max((count for _, count in counts), default=0)
        ends = _shown("time", self._buckets[0]), f"peak {peak:,}", _shown("time", self._buckets[-1])
        return (
            f"<section><h2>{title} <span>each {self._unit}</span></h2>"
            f"{self._bars(counts, tone, has_titles=True)}"
            f'<p class="scale">{"".join(f"<span>{each}</span>" for each in ends)}</p></section>'
        )

    def _bars(self, counts: Any, tone: str = "denied", *, has_titles: bool = False) -> str:
        """Draw a bar for each bucket, which can be seen if it counts anything."""
        values: dict[str, int] = dict(counts or ())
        most, bars = max(values.values(), default=1), []
        for n, bucket in enumerate(self._buckets):
            value = values.get(bucket, 0)
            bar = ""
            if value > 0:
                bar = f'<path d="M{n * 10} 100v-{max(value / most * 100, 5):.1f}h8V100z"/>'
            if has_titles:
                title = f"<title>{bucket.replace('T', ' ')}: {value:,}</title>"
                bar = f'<g>{title}<path class="room" d="M{n * 10} 0h8v100h-8z"/>{bar}</g>'
            bars.append(bar)
        return (
            f'<svg class="{tone}" viewBox="0 0 {len(bars) * 10} 100" preserveAspectRatio="none" '
            f'aria-hidden="true">{"".join(bars)}</svg>'
        )

    def _table(self, table: _Table) -> str:
        names = table.columns.split()
        columns = [(name, *_COLUMNS.get(name, (name.capitalize(), "number"))) for name in names]
        selected = ", ".join(
            f"substr({name}, 1, {_LONGEST[kind]})" if kind in _LONGEST else name
            for name, _, kind in columns
        )
        buckets = words_in_sql(self._buckets)
        source = table.sql.format(answer=self._answer(table.question), buckets=buckets)
        rows = self._ask(
            f"SELECT count(*) OVER (), {selected} FROM {source} AS answer "
            f"ORDER BY {table.order or QUESTIONS[table.question].order} LIMIT {_ROWS}"
        )
        anchor = table.anchor or table.question
        groups = self._groups[anchor] = rows[0][0] if rows else 0
        has_code = any(kind == "code" for _, _, kind in columns)
        below = [name for name, _, kind in columns if has_code and kind == "text"]
        shown = '<p class="soft">None.</p>'
        if rows:
            heads = (
                f'<th class="{kind}">{head}' for name, head, kind in columns if name not in below
            )
            shown = f"<table><thead><tr>{''.join(heads)}</thead><tbody>"
            for _, *row in rows:
                shown += self._line(columns, dict(zip(names, row, strict=True)), below)
            shown += "</tbody></table>"
        if groups > len(rows):
            shown += f'<p class="soft">and {groups - len(rows):,} more</p>'
        title = table.title.format(fresh=_shown("time", self._period.fresh))
        return f'<section id="{anchor}"><h2>{title}</h2>{shown}</section>\n'

    def _line(
        self, columns: list[tuple[str, str, str]], row: dict[str, Any], below: list[str]
    ) -> str:
        texts = ((name, _shown("text", row[name])) for name in below if row[name])
        more = "".join(f'<span class="{name}">{shown}</span>' for name, shown in texts)
        line = "<tr>"
        for name, head, kind in columns:
            if name not in below:
                shown = self._bars(row[name]) if kind == "trend" else _shown(kind, row[name])
                if kind == "code" and more:
                    shown += f'<div class="below">{more}</div>'
                line += f'<td class="{kind}" data-head="{head}">{shown}'
        return line


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
    try:
        moment = datetime.fromisoformat(str(iso)[:19]).replace(tzinfo=UTC)
    except ValueError:
        return otherwise_ns
    return int(moment.timestamp()) * 1_000_000_000
