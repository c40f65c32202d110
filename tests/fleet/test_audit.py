"""Every change of a lake's rows is found from the lake alone."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwrap.fleet import rows
from sigwrap.fleet.audit import Audit, audited
from sigwrap.fleet.duck import Lake
from sigwrap.log.codec import canonical_row, chain_key, genesis, hasher, next_hash
from tests.report.conftest import Scenario, Scenarios
from tests.support.harness import Sigwrap
from tests.support.lakes import Fields, change_rows, land, landed, record_everything, rows_in

pytestmark = pytest.mark.fleet


@pytest.fixture
def lake(scenario: Scenarios, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two sessions, each in four segments."""
    monkeypatch.setattr(rows, "MOST_ROWS", 4)
    for session_id in ("s1", "s2"):
        made = scenario(session_id=session_id)
        record_everything(made)
        land(made.session, tmp_path / "lake")
    return tmp_path / "lake"


def check(
    lake: Path, *, key: bytes | None = None, heads: tuple[str, ...] = (), strict: bool = True
) -> Audit:
    reader = Lake(f"file://{lake}", {})
    reader.make_views(raw=True)
    return audited(reader, key, list(heads), lambda events: None, strict=strict)


def event(number: int, **fields: Any) -> Callable[[list[Fields]], list[Fields]]:
    """Return a change of the event of s1 with that number."""

    def change(found: list[Fields]) -> list[Fields]:
        for each in found:
            if each["session"] == "s1" and each.get("seq") == number:
                each.update(fields)
        return found

    return change


def without(number: int) -> Callable[[list[Fields]], list[Fields]]:
    return lambda found: [e for e in found if (e["session"], e.get("seq")) != ("s1", number)]


def of_record(record: str, **fields: Any) -> Callable[[list[Fields]], list[Fields]]:
    return lambda found: [
        e | fields if (e["session"], e["record"]) == ("s1", record) else e for e in found
    ]


def not_of(record: str) -> Callable[[list[Fields]], list[Fields]]:
    return lambda found: [e for e in found if (e["session"], e["record"]) != ("s1", record)]


def twice_with(number: int, **fields: Any) -> Callable[[list[Fields]], list[Fields]]:
    def change(found: list[Fields]) -> list[Fields]:
        copies = [e | fields for e in found if (e["session"], e.get("seq")) == ("s1", number)]
        return found + copies

    return change


HASH = "0" * 64
TAMPERED = {
    "an edited payload": (event(3, payload='{"v":1,"path":"/bin/true"}'), 3, "hash"),
    "an edited time": (event(3, time_ns=1), 3, "hash"),
    "an edited type": (event(3, type="exec_allowed"), 3, "hash"),
    "an edited pid": (event(3, pid=1), 3, "hash"),
    "an edited hash": (event(3, hash=HASH), 3, "hash"),
    "an edited first event": (event(1, payload='{"v":2}'), 1, "hash"),
    "no JSON": (event(3, payload="{"), 3, "read"),
    "a missing event": (without(5), 6, "missing"),
    "a missing first event": (without(1), 2, "missing"),
    "a missing last event": (without(16), 0, "its log had 16 events"),
    "two hashes": (twice_with(5, hash=HASH), 5, "two histories"),
    "a copy with another payload": (twice_with(5, payload="{}"), 5, "different content"),
    "another head": (of_record("session", head=HASH), 0, "its log had 16 events"),
    "another length": (of_record("session", events=17), 0, "its log had 17 events"),
    "no row of the session": (not_of("session"), 0, "no segment"),
    "no events": (not_of("event"), 0, "no events"),
}
IN_COLUMNS = {
    "another command line": (event(3, command="ls"), 3, "command"),
    "another rule": (event(3, rule="nicer"), 3, "rule"),
    "no rule": (event(3, rule=None), 3, "rule"),
    "a rule more": (event(2, message="fine"), 2, "message"),
    "another outcome": (event(3, outcome="allowed"), 3, "outcome"),
    "another count": (event(7, count=0), 7, "count"),
    "not counted": (event(7, counted=0), 7, "counted"),
    "another time": (event(3, time="2025-01-01T00:00:00.000000000Z"), 3, "time"),
    "another host of an event": (event(3, host="x"), 0, "host"),
    "another host": (of_record("session", host="x"), 0, "host"),
    "another state": (of_record("session", state="running"), 0, "state"),
    "another exit status": (of_record("session", exit_status=0), 0, "exit_status"),
    "another process": (of_record("process", exit_code=0), 0, "processes"),
    "no processes": (not_of("process"), 0, "processes"),
}


def test_a_lake_that_was_not_changed_is_intact(lake: Path) -> None:
    assert check(lake) == check(lake, strict=False) == Audit(2, 32, [], [], [], [])


@pytest.mark.parametrize("what", TAMPERED)
def test_a_change_of_the_rows_is_found(lake: Path, what: str) -> None:
    change, row, said = TAMPERED[what]
    change_rows(lake, change)
    for strict in (False, True):
        found = check(lake, strict=strict).problems
        assert [(each.session, each.row) for each in found][:1] == [("s1", row)], found
        assert said in found[0].problem
        assert {each.session for each in found} == {"s1"}


@pytest.mark.parametrize("what", IN_COLUMNS)
def test_a_change_of_the_columns_is_found_by_a_strict_check(lake: Path, what: str) -> None:
    change, row, said = IN_COLUMNS[what]
    change_rows(lake, change)
    assert check(lake, strict=False).problems == []
    (found,) = check(lake).problems
    assert (found.session, found.row) == ("s1", row) and said in found.problem


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_segments_removed_from_the_end_are_missed(lake: Path, kept: int) -> None:
    files = [path for path in landed(lake) if path.parent.name == "s1"]
    for path in files[kept:]:
        path.unlink()
    found = check(lake, strict=False)
    assert [each.session for each in found.problems] == ["s1"]
    assert "its log had 16 events" in found.problems[0].problem
    assert found.without_end == ["s1"]


def test_a_segment_removed_from_the_middle_is_missed(lake: Path) -> None:
    [path for path in landed(lake) if path.parent.name == "s1"][1].unlink()
    (found,) = check(lake, strict=False).problems
    assert (found.row, "missing" in found.problem) == (9, True)


def test_a_chain_that_was_made_anew_and_shipped_again_has_two_histories(
    lake: Path,
) -> None:
    """As by a process that has the credential and the log."""
    path = next(landed(lake))
    found, first, head = rows_in(path), rows_in(path)[0], genesis("s1", b"")
    events = sorted((e for e in found if e["record"] == "event"), key=lambda e: int(e["seq"]))
    for each in events:
        if each["seq"] == 3:
            each["payload"] = each["payload"].replace("git", "ls")
        line = (each["seq"], each["time_ns"], each["type"], each["pid"], each["payload"])
        head = next_hash(head, canonical_row(*line), hasher(b""))
        each["hash"] = head.hex()
    other = path.with_name(f"{path.name[:25]}-{head.hex()[:16]}.ndjson.gz")
    original = path.read_bytes()
    change_rows(lake, lambda rows: events if rows[0] == first else rows)
    path.rename(other)
    path.write_bytes(original)
    problems = check(lake, strict=False).problems
    assert [(e.session, e.row) for e in problems] == [("s1", 3)] and "two" in problems[0].problem


def test_rows_that_were_sent_twice_are_no_problem(lake: Path) -> None:
    path = next(landed(lake))
    path.with_name("again.ndjson.gz").write_bytes(path.read_bytes())
    assert check(lake).problems == []


def put(lake: Path, found: list[Fields], name: str = "zz/1") -> None:
    """Put an object with these rows, as a write-only credential can."""
    folder = next(landed(lake)).parent.parent
    path = folder / f"{name}.ndjson.gz"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress("".join(json.dumps(e) + "\n" for e in found).encode()))


def rows_of(lake: Path, record: str) -> list[Fields]:
    every = (row for path in landed(lake) for row in rows_in(path))
    return [row for row in every if (row["session"], row["record"]) == ("s1", record)]


@pytest.mark.parametrize(
    ("record", "forged"),
    [
        ("event", {"command": "FORGED", "outcome": "allowed"}),
        ("session", {"name": "zzz", "exit_status": 0}),
        ("process", {"command": "FORGED"}),
    ],
)
def test_forged_copies_of_rows_are_found_and_true_ones_count_once(
    lake: Path, record: str, forged: Fields
) -> None:
    counts = [f"select count(*) from {name}" for name in ("events", "execs", "processes")]
    reader = Lake(f"file://{lake}", {})
    reader.make_views()
    before = [list(reader.select(sql)[1]) for sql in counts]
    put(lake, rows_of(lake, record)[:1] if record == "session" else rows_of(lake, record))
    assert check(lake).problems == []
    put(lake, [each | forged for each in rows_of(lake, record)][:20], "zz/2")
    assert [each.session for each in check(lake).problems] == ["s1"]
    reader = Lake(f"file://{lake}", {})
    reader.make_views()
    assert [list(reader.select(sql)[1]) for sql in counts] == before


def test_a_planted_parquet_file_hides_no_row_from_the_check(lake: Path) -> None:
    whole = check(lake)
    Lake(f"file://{lake}", {}).compact([])
    for path in (lake / "lake" / "v1").rglob("rows.parquet"):
        duckdb = Lake(f"file://{lake}", {})
        empty = f"SELECT * FROM read_parquet('{path}') WHERE false"
        if "/files/" not in str(path):
            duckdb.execute(f"COPY ({empty}) TO '{path}' (FORMAT parquet)")
    assert check(lake) == whole


def test_a_session_that_came_after_the_compaction_is_checked(
    lake: Path, scenario: Scenarios
) -> None:
    Lake(f"file://{lake}", {}).compact([])
    late = scenario(session_id="late")
    record_everything(late)
    land(late.session, lake)
    assert check(lake).sessions == 3


@pytest.mark.parametrize("column", ["seq", "payload", "hash", "session"])
def test_a_row_without_what_it_needs_is_a_problem(lake: Path, column: str) -> None:
    put(lake, [{**rows_of(lake, "event")[0], column: None}])
    for strict in (False, True):
        assert check(lake, strict=strict).problems


def test_an_edited_log_that_claims_a_key_fails(lake: Path, as_user: Sigwrap) -> None:
    (first,) = (each["payload"] for each in rows_of(lake, "event") if each["seq"] == 1)
    change_rows(lake, event(1, payload=first.replace('"keyed":false', '"keyed":true')))
    head = str(rows_of(lake, "event")[-1]["hash"])
    found = check(lake, heads=(head,), strict=False)
    assert found.unchecked == ["s1"] and found.missing_heads == [head]
    done = as_user.run("verify", "--lake", f"file://{lake}", forks=False)
    assert done.returncode != 0


def test_a_head_from_elsewhere_must_be_there(lake: Path) -> None:
    known = str(rows_in(next(landed(lake)))[0]["head"])
    found = check(lake, heads=(known, HASH))
    assert found.missing_heads == [HASH] and found.problems == []


def test_a_keyed_log_is_checked_with_its_key(scenario: Scenarios, tmp_path: Path) -> None:
    made = scenario(session_id="keyed", key=b"secret")
    record_everything(made)
    land(made.session, tmp_path / "lake")
    assert check(tmp_path / "lake").unchecked == ["keyed"]
    assert check(tmp_path / "lake", key=b"secret") == Audit(1, 16, [], [], [], [])
    (found,) = check(tmp_path / "lake", key=b"other").problems
    assert found.row == 1 and chain_key(b"other")


def test_a_killed_session_is_listed_without_an_end(scenario: Scenarios, tmp_path: Path) -> None:
    made: Scenario = scenario(session_id="killed")
    made.execute(10, 1, "sleep")
    made.is_killed()
    land(made.session, tmp_path / "lake")
    assert check(tmp_path / "lake") == Audit(1, 2, [], ["killed"], [], [])


def test_the_compacted_lake_is_checked_in_the_same_way(lake: Path) -> None:
    change_rows(lake, event(3, command="ls"))
    assert Lake(f"file://{lake}", {}).compact([])
    (found,) = check(lake).problems
    assert found.row == 3 and json.dumps(found)
