"""The questions that the page of a lake answers, as plain SQL over the views of `sigwrap query`.

Every engine understands them, so dashboards can ask the same. Times are ISO 8601 in 30 characters,
of which the first 10 are the day.
"""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.report.forms.times import iso_time

DAY_NS = 86_400_000_000_000
_DENIED = """\
from denials d left join sessions s on s.session = d.session
where d.time >= '{since}' and d.time < '{until}'"""
_SEEN = "last_event >= '{since}' and started < '{until}'"

# {fresh} begins the last part of the period; {width} is the length of what charts group times by.
QUESTIONS = {
    "sessions": f"""\
select count(*) as sessions, coalesce(sum(events), 0) as all_events,
  count(distinct host) as hosts, count(distinct repo) as repos,
  coalesce(sum(case when state <> 'ended' then 1 else 0 end), 0) as without_end,
  min(started) as first_started, max(last_event) as newest_event,
  (select count(*) from sessions where last_event >= '{{until}}') as later_sessions
from sessions where {_SEEN}""",
    "sessions-by-day": """\
select substr(started, 1, {width}) as day, count(*) as sessions
from sessions where started >= '{since}' and started < '{until}'
group by 1
order by day""",
    "denials": f"""\
select coalesce(sum(d.count), 0) as denials, count(distinct d.session) as sessions
{_DENIED}""",
    **{
        f"denials-by-{name}": f"""\
select coalesce({column}, '') as {name}, substr(d.time, 1, {{width}}) as day,
  coalesce(sum(d.count), 0) as denials, max(d.time) as last_seen
{_DENIED}
group by 1, 2
order by day, {name}"""
        for name, column in (("rule", "d.rule"), ("repository", "s.repo"), ("host", "s.host"))
    },
    "denied-most-often": f"""\
select coalesce(d.what, '') as what, coalesce(d.rule, '') as rule,
  coalesce(sum(d.count), 0) as denials, count(distinct d.session) as sessions,
  count(distinct s.host) as hosts, max(d.time) as last_seen
{_DENIED}
group by 1, 2
order by denials desc, what, rule""",
    "latest-denials": f"""\
select d.time as time, d.what as what, d.rule as rule, d.message as message, s.host as host,
  s.repo as repo, d.session as session, d.seq as seq, d.count as times
{_DENIED}
order by time desc, session, seq desc""",
    "new-commands": """\
select n.command as command, n.first_run as first_run, n.runs as runs, n.sessions as sessions,
  s.host as host, s.repo as repo, n.first_session as session
from (
  select command, min(time) as first_run, count(*) as runs, count(distinct session) as sessions,
    substr(min(time || session), 31) as first_session
  from execs where outcome <> 'denied' and time >= '{since}' and time < '{until}'
  group by command having min(time) >= '{fresh}'
) n left join sessions s on s.session = n.first_session
order by first_run desc, command""",
    "connections": """\
select coalesce(c.destination, '') as destination, sum(c.count) as connections,
  sum(case when c.outcome = 'denied' then c.count else 0 end) as denied,
  count(distinct c.session) as sessions, count(distinct s.host) as hosts
from connections c left join sessions s on s.session = c.session
where c.direction = 'connect' and c.time >= '{since}' and c.time < '{until}'
group by 1
order by connections desc, destination""",
    "sessions-without-an-end": f"""\
select session, command, state, last_event, events, host, repo
from sessions where state <> 'ended' and {_SEEN}
order by last_event desc, session""",
    "policies": f"""\
select coalesce(policy, '') as policy, count(distinct policy_digest) as texts,
  count(*) as sessions, count(distinct host) as hosts, max(started) as last_seen
from sessions where {_SEEN}
group by 1
order by sessions desc, policy""",
    "versions": f"""\
select coalesce(host, '') as host, max(started) as last_seen, count(*) as sessions,
  substr(max(started || coalesce(sigwrap, '')), 31) as version
from sessions where {_SEEN}
group by 1
order by version, host""",
}


def script(now_ns: int) -> Iterator[str]:
    """Yield the questions over the last 30 days."""
    since, fresh, until = (iso_time(now_ns - days * DAY_NS) for days in (30, 1, 0))
    yield "-- Over the tables and views that sigwrap lake sql makes for each engine."
    yield "-- In a dashboard, replace the times by its own: '${__from:date:iso}' in Grafana."
    for name, sql in QUESTIONS.items():
        yield f"\n-- {name}\n{sql.format(since=since, until=until, fresh=fresh, width=10)};"
