"""The same SQL gives the same on a store, and on a lake by DuckDB and ClickHouse."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from sigwrap.errors import StoreError, UsageError
from sigwrap.fleet.duck import Lake
from sigwrap.fleet.lake import SCRIPTS
from sigwrap.log.schema import VIEWS
from tests.report.conftest import Scenario, Scenarios
from tests.support.harness import Sigwrap
from tests.support.lakes import (
    Select,
    asked_of_clickhouse,
    asked_of_sqlite,
    land,
    landed,
    record_everything,
)

pytestmark = pytest.mark.fleet

DATE = "2025-11-21"  # of the scenarios' sessions
QUESTIONS = {
    "denials by rule, repository and host": "select s.host, s.repo, d.rule, d.what, "
    "sum(d.count) as n from denials d join sessions s on s.session = d.session "
    "group by s.host, s.repo, d.rule, d.what order by n desc, s.host, s.repo, d.rule, d.what",
    "sessions that connected there": "select c.session, s.host, c.destination, sum(c.count) as n "
    "from connections c join sessions s on s.session = c.session where c.destination like "
    "'example.org%' group by c.session, s.host, c.destination order by n desc, c.session",
    "signals between programs": "select source, target, signal_name, outcome, sum(count) as n "
    "from signals group by source, target, signal_name, outcome order by n desc, source, target",
    "command lines that are new": "select command, min(time) as first_seen, "
    "count(distinct session) as sessions from execs group by command "
    "having min(time) >= '2025-11-21T06' order by command",
    "sessions without an end": "select session, state, events from sessions "
    "where state <> 'ended' order by session",
    "time of decisions by host": "select host, max(evaluation_us) as p95_us, count(*) as n from "
    "(select s.host, e.evaluation_us, ntile(20) over (partition by s.host order by "
    "e.evaluation_us) as part from signals e join sessions s on s.session = e.session) x "
    "where part <= 19 group by host order by host",
    "events that are missing": "select session, max(seq) as last, count(*) as n from events "
    "group by session having max(seq) <> count(*) order by session",
    **{
        f"all of {name}": f"select * from {name} order by session, "
        f"{'seq' if name not in ('sessions', 'processes') else 'started_ns'}"
        + (", pid" if name == "processes" else "")
        for name in VIEWS
    },
}


@pytest.fixture
def scenarios(scenario: Scenarios) -> list[Scenario]:
    made = [scenario(session_id=f"s{number}") for number in range(3)]
    record_everything(made[0])
    record_everything(made[1])
    made[2].execute(10, 1, "sleep", "9")
    made[2].is_killed()
    return made


@pytest.fixture
def lake(scenarios: list[Scenario], tmp_path: Path) -> Path:
    for each in scenarios:
        land(each.session, tmp_path / "lake")
    return tmp_path / "lake"


@pytest.fixture
def by_sqlite(scenarios: list[Scenario]) -> Iterator[Select]:
    with asked_of_sqlite(scenarios) as ask:
        yield ask


def opened(lake: Path) -> Lake:
    made = Lake(f"file://{quote(str(lake))}", {})
    made.make_views()
    return made


@pytest.mark.parametrize("form", ["as landed", "compacted"])
def test_duckdb_answers_as_sqlite_does(lake: Path, by_sqlite: Select, form: str) -> None:
    if form == "compacted":
        assert Lake(f"file://{lake}", {}).compact([]) == [DATE]
        for path in landed(lake):
            path.unlink()
    duckdb = opened(lake)
    for name, sql in QUESTIONS.items():
        assert list(duckdb.select(sql)[1]) == by_sqlite(sql), name
    assert by_sqlite(QUESTIONS["sessions without an end"])


def test_clickhouse_answers_as_duckdb_does_also_if_it_loads_twice(lake: Path) -> None:
    duckdb = opened(lake)
    with asked_of_clickhouse(lake, DATE, loads=2) as ask:
        for name, sql in QUESTIONS.items():
            expected = [tuple(json.loads(json.dumps(row))) for row in duckdb.select(sql)[1]]
            assert ask(sql) == expected, name


def test_a_session_that_arrives_later_makes_its_day_due_again(
    lake: Path, scenario: Scenarios
) -> None:
    reader = Lake(f"file://{lake}", {})
    assert reader.compact([]) == [DATE]
    assert reader.compact([]) == []
    late = scenario(session_id="late")
    record_everything(late)
    land(late.session, lake)
    for _ in range(2):
        found = opened(lake).select("select count(*) from sessions")[1]
        assert list(found) == [(4,)]
        reader.compact([])
    assert reader.compact([]) == []


def test_rows_that_were_sent_twice_are_compacted_once(lake: Path) -> None:
    for path in list(landed(lake)):
        path.with_name(path.name.replace(".ndjson", "-again.ndjson")).write_bytes(path.read_bytes())
    reader = Lake(f"file://{lake}", {})
    before = list(opened(lake).select("select count(*) from events")[1])
    reader.compact([])
    after = list(opened(lake).select("select count(*) from events")[1])
    assert before == after == [(34,)]


def test_a_compaction_that_was_killed_in_between_doubles_nothing(lake: Path) -> None:
    reader = Lake(f"file://{lake}", {})
    before = list(opened(lake).select("select count(*) from processes")[1])
    reader.compact([])
    (lake / "lake" / "v1" / "files" / f"date={DATE}" / "rows.parquet").unlink()  # the last one
    (lake / "lake" / "v1" / "events" / f"date={DATE}" / "1.unfinished").touch()
    assert list(opened(lake).select("select count(*) from processes")[1]) == before
    assert reader.compact([]) == [DATE]


def test_today_is_not_compacted_until_it_is_over(lake: Path) -> None:
    folder = lake / "rows" / "v1"
    (folder / f"date={DATE}").rename(folder / time.strftime("date=%Y-%m-%d", time.gmtime()))
    assert Lake(f"file://{lake}", {}).compact([]) == []


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("drop view execs", "not a SELECT"),
        ("copy execs to '/tmp/x.csv'", "not a SELECT"),
        ("select 1; select 2", "more than one statement"),
        ("select nope from execs", "nope"),
        ("selec", "syntax error"),
        ("", "more than one statement"),
        ("attach 'x.db'", "not a SELECT"),
        ("set threads = 1", "not a SELECT"),
        ("install httpfs", "not a SELECT"),
    ],
)
def test_sql_that_does_not_read_is_refused(lake: Path, sql: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        opened(lake).select(sql)


@pytest.mark.parametrize("cut", [lambda whole: b"no gzip", lambda whole: whole[: len(whole) // 2]])
def test_a_broken_object_is_named_in_one_line(lake: Path, cut: Callable[[bytes], bytes]) -> None:
    path = next(landed(lake))
    path.write_bytes(cut(path.read_bytes()))
    with pytest.raises(StoreError, match="remove that file") as raised:
        list(opened(lake).select("select count(*) from events")[1])
    assert path.name in str(raised.value) and "\n" not in str(raised.value)


def test_a_lake_without_sessions_says_how_to_ship_some(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="sigwrap ship --to"):
        opened(tmp_path)


def test_a_folder_that_can_not_be_read_is_not_left_out(lake: Path, alone: Sigwrap) -> None:
    place = shutil.copytree(lake, alone.folder / "lake")
    line = ("query", "--lake", f"file://{place}", "select count(*) from sessions")
    assert alone.run(*line, forks=False).returncode == 0
    (place / "rows" / "v1" / f"date={DATE}" / "s0").chmod(0o700)
    done = alone.run(*line, forks=False)
    assert (done.returncode, b"Permission denied" in done.stderr) == (125, True)


@pytest.mark.parametrize("name", ["a [b] ?*", "it's", "date=2020-01-01"])
def test_a_folder_of_any_name_can_be_a_lake(scenario: Scenarios, tmp_path: Path, name: str) -> None:
    made = scenario(session_id="s9")
    record_everything(made)
    land(made.session, tmp_path / name)
    for _ in range(2):
        found = opened(tmp_path / name).select("select count(*) from events")[1]
        assert list(found) == [(16,)]
        Lake(f"file://{quote(str(tmp_path / name))}", {}).compact([])


SECRET_URLS = ["https://k:PASSWORD@x/y", "s3://k:PASSWORD@b/x", "s3://b/x?s3_secret=PASSWORD"]


@pytest.mark.parametrize(
    "url", ["/srv/lake", "file://host/x", "http://x/y", "s3:///x", "", "http://[::1", *SECRET_URLS]
)
def test_a_url_that_names_no_lake_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="not a lake's URL") as raised:
        Lake(url, {})
    assert "PASSWORD" not in str(raised.value)


@pytest.mark.parametrize("endpoint", ["http://u:PASSWORD@127.0.0.1:1", "http://[::1", "ftp://x"])
def test_an_endpoint_that_is_none_is_refused_without_its_password(endpoint: str) -> None:
    key = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    with pytest.raises(UsageError, match="AWS_ENDPOINT_URL") as raised:
        Lake("s3://bucket/x", {**key, "AWS_ENDPOINT_URL_S3": endpoint})
    assert "PASSWORD" not in str(raised.value)


def test_a_secret_that_a_session_left_in_the_home_directory_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    reader = Lake(f"file://{tmp_path}", {})
    found = reader.execute("SELECT current_setting('allow_persistent_secrets')").fetchall()
    assert found == [(False,)]


def test_a_bucket_needs_a_credential() -> None:
    with pytest.raises(UsageError, match="AWS_ACCESS_KEY_ID"):
        Lake("s3://bucket/x", {})


@pytest.mark.parametrize("engine", SCRIPTS)
def test_each_engine_has_every_view(engine: str) -> None:
    script = "\n".join(SCRIPTS[engine]("/it's", DATE))
    quote = "`" if engine in ("clickhouse", "spark") else '"'
    assert all(f"VIEW {quote}{name}{quote} AS SELECT" in script for name in VIEWS)
    assert "/it''s/" in script and "/it's/" not in script


def test_the_command_reads_a_lake(lake: Path, sigwrap: Sigwrap) -> None:
    sql = "select session, state from sessions order by 1"
    done = sigwrap.run("query", "--lake", f"file://{lake}", "--format", "csv", sql)
    assert list(csv.reader(io.StringIO(done.stdout.decode())))[1:] == [
        ["s0", "ended"],
        ["s1", "ended"],
        ["s2", "did not end cleanly"],
    ]
