"""The questions that the page of a lake answers, as plain SQL over the views of `sigwrap query`.

Every engine understands them, so dashboards can ask the same. Times are ISO 8601 in 30 characters,
of which the first 10 are the day.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sigwrap.report.forms.times import iso_time

DAY_NS = 86_400_000_000_000
_DENIED = """\
from denials d left join sessions s on s.session = d.session
where d.time >= '{since}' and d.time < '{until}'"""
_SEEN = "last_event >= '{since}' and started < '{until}'"
_BY = """\
select coalesce(%s, '') as name, substr(d.time, 1, {width}) as day,
  coalesce(sum(d.count), 0) as denials, max(d.time) as last_seen
{denied}
group by coalesce(%s, ''), substr(d.time, 1, {width})"""


class Period(NamedTuple):
    """`fresh` begins its last part; `width` is the length of what its charts group times by."""

    since: str
    until: str
    fresh: str
    width: int = len("2026-11-30")


class Question(NamedTuple):
    says: str
    sql: str
    order: str = ""

    def over(self, period: Period) -> str:
        fields = period._asdict()
        parts = {"denied": _DENIED.format(**fields), "seen": _SEEN.format(**fields)}
        return self.sql.format(**fields, **parts)


QUESTIONS = {
    "sessions": Question(
        "How many sessions there were, with how many events, where and when, and without an end",
        """\
select count(*) as sessions, coalesce(sum(events), 0) as all_events,
  count(distinct host) as hosts, count(distinct repo) as repos,
  coalesce(sum(case when state <> 'ended' then 1 else 0 end), 0) as without_end,
  min(started) as first_started, max(last_event) as newest_event
from sessions where {seen}""",
    ),
    "later-sessions": Question(
        "How many sessions have events after the period: of a wrong clock, or of changed rows",
        "select count(*) as sessions from sessions where last_event >= '{until}'",
    ),
    "sessions-by-day": Question(
        "How many sessions started on each day",
        """\
select substr(started, 1, {width}) as day, count(*) as sessions
from sessions where started >= '{since}' and started < '{until}'
group by substr(started, 1, {width})""",
        "day",
    ),
    "denials": Question(
        "How many actions were denied, and in how many sessions",
        """\
select coalesce(sum(d.count), 0) as denials, count(distinct d.session) as sessions
{denied}""",
    ),
    **{
        f"denials-by-{name}": Question(
            f"How many actions were denied on each day, by {name}",
            _BY.replace("%s", column),
            "day, name",
        )
        for name, column in (("rule", "d.rule"), ("repository", "s.repo"), ("host", "s.host"))
    },
    "denied-most": Question(
        "What was denied most often",
        """\
select coalesce(d.what, '') as what, coalesce(d.rule, '') as rule,
  coalesce(sum(d.count), 0) as denials, count(distinct d.session) as sessions,
  count(distinct s.host) as hosts, max(d.time) as last_seen
{denied}
group by coalesce(d.what, ''), coalesce(d.rule, '')""",
        "denials desc, what, rule",
    ),
    "latest-denials": Question(
        "Which actions were denied last",
        """\
select d.time as time, coalesce(d.what, '') as what, coalesce(d.rule, '') as rule,
  coalesce(d.message, '') as message, coalesce(s.host, '') as host,
  coalesce(s.repo, '') as repo, d.session as session, d.seq as seq, d.count as times
{denied}""",
        "time desc, session, seq desc",
    ),
    "new-commands": Question(
        "Which command lines ran for the first time in the last part of the period, and where",
        """\
select n.command as command, n.first_run as first_run, n.runs as runs, n.sessions as sessions,
  coalesce(s.host, '') as host, coalesce(s.repo, '') as repo, n.first_session as session
from (
  select command, min(time) as first_run, count(*) as runs, count(distinct session) as sessions,
    substr(min(time || session), 31) as first_session
  from execs where outcome <> 'denied' and time >= '{since}' and time < '{until}'
  group by command having min(time) >= '{fresh}'
) n left join sessions s on s.session = n.first_session""",
        "first_run desc, command",
    ),
    "connections": Question(
        "Where processes connected to",
        """\
select coalesce(c.destination, '') as destination, sum(c.count) as connections,
  sum(case when c.outcome = 'denied' then c.count else 0 end) as denied,
  count(distinct c.session) as sessions, count(distinct s.host) as hosts
from connections c left join sessions s on s.session = c.session
where c.direction = 'connect' and c.time >= '{since}' and c.time < '{until}'
group by coalesce(c.destination, '')""",
        "connections desc, destination",
    ),
    "without-end": Question(
        "Which sessions have no end: they run, were killed, or their end was not shipped",
        """\
select session, coalesce(command, '') as command, state, last_event, events,
  coalesce(host, '') as host, coalesce(repo, '') as repo
from sessions where state <> 'ended' and {seen}""",
        "last_event desc, session",
    ),
    "policies": Question(
        "Which policies were in use; one policy has several texts if its variables differ",
        """\
select coalesce(s.policy, '') as policy, count(distinct policy_digest) as texts,
  count(*) as sessions, count(distinct host) as hosts, max(started) as last_seen
from sessions s where {seen} group by coalesce(s.policy, '')""",
        "sessions desc, policy",
    ),
    "versions": Question(
        "Which version of sigwrap the last session of each host had",
        """\
select coalesce(s.host, '') as host, max(started) as last_seen, count(*) as sessions,
  substr(max(started || coalesce(sigwrap, '')), 31) as version
from sessions s where {seen} group by coalesce(s.host, '')""",
        "version, host",
    ),
}


def script(now_ns: int) -> Iterator[str]:
    """Yield the questions over the last 30 days."""
    since, fresh, until = (iso_time(now_ns - days * DAY_NS) for days in (30, 1, 0))
    yield "-- Over the tables and views that sigwrap lake sql makes for each engine."
    yield "-- In a dashboard, replace the times by its own: '${__from:date:iso}' in Grafana."
    for name, question in QUESTIONS.items():
        order = f"\norder by {question.order}" if question.order else ""
        yield f"\n-- {name}: {question.says}."
        yield f"{question.over(Period(since, until, fresh))}{order};"
