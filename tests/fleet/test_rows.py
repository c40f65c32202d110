"""A session's log as rows for other engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sigwrap.errors import StoreError
from sigwrap.fleet import rows
from sigwrap.fleet.rows import EVENT_VIEWS, RECORDS, TABLES, Segment, segments
from sigwrap.log.chain import ChainWalk
from sigwrap.log.codec import Row
from sigwrap.log.schema import VIEWS
from tests.report.conftest import Scenario, Scenarios, tamper
from tests.support.lakes import record_everything


@pytest.fixture
def log(made: Scenario) -> Scenario:
    record_everything(made)
    return made


def read(made: Scenario) -> list[dict[str, Any]]:
    lines = [line for each in segments(made.session) for line in each.lines]
    return [json.loads(line) for line in lines]


def of(record: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    these = (each for each in found if each["record"] == record)
    return sorted(these, key=lambda each: each.get("seq", 0))


def test_the_rows_have_each_event_as_written_so_that_the_chain_can_be_checked(
    log: Scenario,
) -> None:
    walk = ChainWalk("s1", None)
    logged = list(log.session.rows())
    found = of("event", read(log))
    made = [Row(*(each[name] for name in Row._fields)) for each in found]
    assert made == logged
    assert [walk.follow(each) for each in made] == [""] * len(logged)


def test_every_column_of_every_view_is_in_the_table_with_its_type() -> None:
    for view in VIEWS.values():
        table = view.name if view.name in TABLES else "events"
        types = {each.name: each.type for each in TABLES[table]}
        assert {each.name: each.type for each in view.columns}.items() <= types.items()
    by_name: dict[str, set[str]] = {}
    for columns in TABLES.values():
        for each in columns:
            by_name.setdefault(each.name, set()).add(each.type)
    assert [name for name, types in by_name.items() if len(types) > 1] == []
    assert RECORDS.keys() == TABLES.keys()


def test_a_type_of_event_has_each_column_of_its_views_once() -> None:
    """Else the rows could not have both."""
    for type_name in {each for view in EVENT_VIEWS for each in view.types}:
        found: dict[str, str] = {}
        for view in EVENT_VIEWS:
            if type_name in view.types:
                for column in view.columns:
                    same = {column.sql, found.setdefault(column.name, column.sql)}
                    assert len(same) == 1 or column.name in ("who", "what"), (type_name, column)


def test_a_second_reading_makes_the_same_segments(
    log: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 4)
    first, second = list(segments(log.session)), list(segments(log.session))
    assert first == second
    seqs = [(each.first, each.last) for each in first if not each.part]
    assert seqs == [(1, 4), (5, 8), (9, 12), (13, 16)]
    assert [each.name[:25] for each in first[:1]] == ["000000000001-000000000004"]
    assert len({each.name for each in first}) == len(first)


def test_a_log_that_has_grown_has_the_segments_from_before(log: Scenario) -> None:
    found = [(each.first, each.last) for each in segments(log.session, ends=(3, 9, 99))]
    assert found == [(1, 3), (4, 9), (10, 16)]


def test_many_processes_follow_the_events_in_parts(
    made: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(10, 20):
        made.execute(pid, 1, "true")
        made.exit(pid)
    made.end()
    monkeypatch.setattr(rows, "MOST_ROWS", 4)
    found = list(segments(made.session))
    assert [each.part for each in found if each.part] == [1, 2]
    processes = of("process", read(made))
    assert sorted(each["pid"] for each in processes) == list(range(10, 20))
    assert all(of("session", [json.loads(each.lines[0])]) for each in found)


def test_the_segments_row_of_the_session_names_its_last_event(
    log: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 4)
    sessions = of("session", read(log))
    assert len(sessions) == 4
    assert {(each["events"], each["head"]) for each in sessions} == {(16, log.log.head)}


def test_a_damaged_log_gives_its_start_and_an_error(log: Scenario) -> None:
    tamper(log.session.path, "UPDATE events SET payload = '{' WHERE seq = 9")
    found: list[Segment] = []
    with pytest.raises(StoreError, match="row 9"):
        found += segments(log.session)
    assert [(each.first, each.last) for each in found] == [(1, 8)]


@pytest.mark.parametrize(
    ("field", "value", "column", "shown"),
    [
        ("evaluation_us", "x", "evaluation_us", None),
        ("evaluation_us", 1.5, "evaluation_us", None),
        ("comm", 7, "comm", None),
        ("comm", {"a": [1]}, "comm", '{"a":[1]}'),
        ("ppid", 1 << 70, "ppid", None),
    ],
)
def test_a_value_of_a_wrong_type_spoils_no_column(
    made: Scenario, field: str, value: object, column: str, shown: object
) -> None:
    asked = {"path": "/x", "argv": ["x"], "ppid": 1, field: value}
    made.add("exec_allowed", 10, **asked)
    made.end()
    assert of("event", read(made))[1].get(column) == shown


def test_a_killed_session_has_its_state(scenario: Scenarios, tmp_path: Path) -> None:
    made = scenario()
    made.execute(10, 1, "npm")
    made.is_killed()
    assert [each["state"] for each in of("session", read(made))] == ["did not end cleanly"]
