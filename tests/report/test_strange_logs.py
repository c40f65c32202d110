"""A log from elsewhere may hold anything, under a chain that is in order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.cli.export import jsonl_line
from sigwrap.cli.replay import state_after, timeline_line
from sigwrap.events import EVENT_TYPES
from sigwrap.fleet.otlp import LOGS, TRACES
from sigwrap.log import codec
from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.log.schema import EXPORTED, VIEWS
from sigwrap.log.writer import SessionLog
from sigwrap.report import query
from sigwrap.report.check.verify import Outcome, verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.metrics import MetricsFold
from sigwrap.report.folds.summary import Summary
from sigwrap.report.folds.why import WhyFold
from sigwrap.report.forms.documents import event_json, report_json, sessions_json
from sigwrap.report.forms.sessions import Reader, render_sessions
from sigwrap.report.forms.text import render_text
from sigwrap.report.forms.verification import render_verification
from sigwrap.report.query import QueryDatabase
from tests.fleet.test_otlp import items
from tests.report.conftest import Scenarios

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**4_300 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", " ", "\n", "\x1b[2J", "SIGTERM"])
    | st.text(st.characters(exclude_categories=()), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=3,
)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def strange_events(draw: Callable[..., Any]) -> tuple[str, int, dict[str, Any], int]:
    kind = EVENT_TYPES[draw(st.sampled_from(sorted(EVENT_TYPES)))]
    payload = {field: draw(values) for field in kind.fields if draw(st.booleans())}
    return kind.name, draw(st.integers(0, 5)), payload, draw(int64)


@given(st.lists(strange_events(), min_size=1, max_size=6))
def test_no_payload_stops_a_reader_or_a_query_or_reaches_the_terminal(
    events: list[tuple[str, int, dict[str, Any], int]],
) -> None:
    with tempfile.TemporaryDirectory() as store:
        log = SessionLog.create(store, "s1")
        for event in events:
            log.append(*event)
        log.close()
        session = open_session(store, "")
        fold = Summary()
        verification = verify_session(session, None, and_also=fold.add)
        assert verification.events == len(events)
        summary = fold.end(Ending.NOT_CLEAN)
        assert report_json(summary, verification).isascii()
        assert all(event_json(event).isascii() for event in session.events())
        assert sessions_json(list_sessions(store)).isascii()
        assert len(items(LOGS, [*session.events()])) == len(events)
        assert items(TRACES, [*session.events()])
        shown = [
            render_text(summary, verification),
            render_text(state_after(session.events(), 3)),
            render_verification(session.id, verification, Ending.NOT_CLEAN),
            render_sessions(list_sessions(store), Reader(now_ns=0)),
            render_sessions(list_sessions(store), Reader(now_ns=0, columns=80)),
            *(timeline_line(event, 0) for event in session.events()),
        ]
        for text in shown:
            assert all(line.isprintable() for line in text.split("\n"))
        with closing(QueryDatabase()) as database:
            database.fill(session, VIEWS.values(), lambda seen: None)
            for view in (*VIEWS, EXPORTED.name):
                names, rows = database.select(f"select * from {view}")
                found = list(rows)
                assert all(line.isprintable() for line in query.table(names, found, 80))
                assert all(line.isascii() for line in query.json_lines(names, found))
                csv = query.csv(names, found, to_terminal=True)
                assert all("\x1b" not in line for line in csv)
                assert view != "events" or len(found) == len(events)


def test_a_type_that_is_no_longer_registered_is_read_by_every_report(
    scenario: Scenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sigwrap once knew signal_would_deny: its logs stay readable, and intact."""
    with monkeypatch.context() as patched:
        patched.setitem(codec._VERSION_MEMBER, "signal_would_deny", '{"v":1')
        log = scenario()
        log.add("signal_would_deny", 7, signal_name="SIGTERM", target_pid=8, decision="deny")
        log.end()
    metrics, why, summary = MetricsFold(), WhyFold(), Summary()
    verification = verify_session(log.session, None, and_also=summary.add)
    assert verification.outcome is Outcome.INTACT, verification.problem
    for event in log.session.events():
        metrics.add(event)
        why.add(event)
        assert event.type in jsonl_line(event, "s1") and event.type in timeline_line(event, 0)
    text = render_text(summary.end(Ending.NOT_CLEAN), verification)
    assert "unknown  1 signal_would_deny" in text
    assert "sigwrap_signals_total" in "\n".join(metrics.lines())
