"""`sigwrap lake report` and the questions that its page and dashboards ask."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from sigwrap.cli.main import main
from sigwrap.fleet.duck import Lake
from sigwrap.fleet.page import lake_page
from sigwrap.fleet.questions import DAY_NS, QUESTIONS
from tests.report.conftest import STARTED_NS, Scenario
from tests.support.browser import CHROMIUM, Browser
from tests.support.lakes import Select, asked_of_clickhouse, asked_of_sqlite, land

pytestmark = pytest.mark.fleet

DATE = "2025-11-21"
PERIOD = {"since": "2025-11-20", "until": "2025-11-22", "fresh": f"{DATE}T06:03:22", "width": 13}
EVIL = "<script>alert(1)</script>'\"&\u202e\u05d2\u05d9\x1b[31m\n" + "x" * 10_000


def connect(log: Scenario, outcome: str, destination: str) -> None:
    about = {"comm": "curl", "direction": "connect", "protocol": "tcp", "rule_name": "hosts"}
    log.add(f"connection_{outcome}", 12, **about, destination=destination, count=2)


@pytest.fixture
def logs(tmp_path: Path) -> list[Scenario]:
    """Two sessions of two hosts, one without an end, and a hostile one."""
    store = tmp_path / "store"
    first = Scenario(store, "a", host="one", sigwrap="0.9.0", labels={"repo": "acme/shop"})
    first.execute(10, 1, "npm", "start")
    first.deny(11, 10, "no-push", "git", "push", comm="sh", message="not here")
    first.signal("SIGTERM", "npm", "node", "session")
    connect(first, "denied", "example.org:443")
    connect(first, "allowed", "example.org:443")
    first.end()
    second = Scenario(store, "b", host="two", sigwrap="0.10.0")
    second.execute(10, 1, "npm", "start")
    second.execute(11, 1, "npm", "publish")
    second.add("signal_blocked", 11, signal_name="SIGTERM", target_pid=9, count=3)
    second.is_killed()
    evil: dict[str, Any] = {
        "labels": {"repo": "<b>shop"},
        "policy": "<i>",
        "sigwrap": "9.x<",
        "host": "<img>",
    }
    third = Scenario(store, "c", **evil)
    third.deny(11, 10, "<u>rule", "sh", "-c", EVIL, message="</td><script>")
    third.execute(11, 10, "sh", "-c", EVIL)
    connect(third, "allowed", '"><style>')
    third.end()
    return [first, second, third]


@pytest.fixture
def lake(logs: list[Scenario], tmp_path: Path) -> Path:
    for each in logs:
        land(each.session, tmp_path / "lake")
    return tmp_path / "lake"


def opened(lake: Path) -> Lake:
    found = Lake(f"file://{lake}", {})
    found.make_views(read_once=True)
    return found


def page_of(lake: Lake, days: int = 1) -> str:
    until_ns = STARTED_NS + days * DAY_NS
    return "".join(lake_page("file:///x", lake.asked, STARTED_NS - DAY_NS, until_ns))


class _Content(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = set[str]()
        self.titles: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.titles += [value or "" for name, value in attrs if name == "title"]
        assert {name for name, _ in attrs}.isdisjoint({"style", "src", "onclick", "onload"})

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def by_clickhouse(lake: Path) -> Iterator[Select]:
    with asked_of_clickhouse(lake, DATE) as ask:
        yield ask


@pytest.fixture
def by_sqlite(logs: list[Scenario]) -> Iterator[Select]:
    with asked_of_sqlite(logs) as ask:
        yield ask


def asked_of_each(answer: Any) -> dict[str, list[tuple[Any, ...]]]:
    return {name: answer(each.format(**PERIOD)) for name, each in QUESTIONS.items()}


def test_duckdb_answers_each_question_as_sqlite_does(lake: Path, by_sqlite: Any) -> None:
    expected = asked_of_each(by_sqlite)
    assert asked_of_each(opened(lake).asked) == expected
    assert {name for name, rows in expected.items() if not rows} == set()
    assert expected["denials"] == [(7, 3)]
    assert [row[0][:11] for row in expected["new-commands"]] == ["npm publish", "sh -c $'<sc"]


def test_clickhouse_answers_each_question_as_sqlite_does(
    by_clickhouse: Any, by_sqlite: Any
) -> None:
    assert asked_of_each(by_clickhouse) == asked_of_each(by_sqlite)


def test_the_printed_questions_run_as_they_are(
    lake: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["lake", "sql", "--questions"]) == 0
    printed = capfd.readouterr().out
    assert re.findall(r"^-- ([a-z-]+)$", printed, re.MULTILINE) == list(QUESTIONS)
    statements = [each for each in printed.split(";\n") if each.strip()]
    assert len(statements) == len(QUESTIONS)
    for each in statements:
        opened(lake).asked(each)


def test_the_page_shows_what_an_attacker_wrote_as_text_only(lake: Path) -> None:
    page = page_of(opened(lake))
    shown = _Content(page)
    assert shown.tags.isdisjoint({"script", "b", "i", "u", "img", "iframe", "form", "link"})
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in page
    assert "script-src" not in page and "\x1b" not in page and "\u202e" not in page
    said = "\n".join(shown.words)
    for each in ("<b>shop", "<img>", "<u>rule", "</td><script>", '"><style>', "<i>", "9.x<"):
        assert each in said
    assert any(
        "x" * 3_000 in each and "\\u202e\u05d2\u05d9\\e[31m\\n" in each for each in shown.titles
    )
    rules = page.partition("Denials by rule")[2].partition("</table>")[0]
    assert re.findall(r"<bdi>([^<]*)</bdi><td class=.number. data-head=.Denials.>(\d)", rules) == [
        *(("&#8211;", "3"), ("hosts", "2"), ("&#60;u&#62;rule", "1"), ("no-push", "1"))
    ]
    assert len(page) < 200_000
    old = page.partition("Hosts without the newest sigwrap")[2].partition("</table>")[0]
    assert "0.9.0" in old and "0.10.0" not in old


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.tier("ci")
def test_a_browser_opens_it_without_a_complaint_or_a_request(lake: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of(opened(lake)))
    with Browser(tmp_path / "chromium") as browser:
        tab = browser.tab(width=420, dark=True)
        tab.open(file.as_uri())
        assert tab.value("document.querySelector('.denied').getBoundingClientRect().height") > 0
        assert tab.value("document.documentElement.scrollWidth <= innerWidth")
        assert (tab.complaints, tab.requests) == ([], [file.as_uri()])


def test_a_page_without_denials_and_one_without_sessions_say_so(
    lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Scenario(tmp_path / "quiet", "q")
    log.execute(10, 1, "npm", "start")
    log.end()
    land(log.session, tmp_path / "calm")
    assert "Nothing was denied</strong> in 1 session." in page_of(opened(tmp_path / "calm"))
    assert main(["lake", "report", "--at", f"file://{lake}", "--since", "1h"]) == 0
    assert "No sessions in this period." in capfd.readouterr().out
    assert main(["lake", "report", "--at", f"file://{tmp_path}/empty"]) == 125
    assert "there are no sessions in" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("days", "unit", "bars"),
    [(1, "hour", 25), (50, "day", 51), (900, "month", 31), (9_000, "year", 26)],
)
def test_a_chart_has_hours_days_months_or_years(
    lake: Path, days: int, unit: str, bars: int
) -> None:
    page = page_of(opened(lake), days)
    assert f"<h2>Sessions <span>each {unit}</span></h2>" in page
    assert page.count('class="room"') == 2 * bars
    assert ": 3</title>" in page and ": 7</title>" in page


def test_sessions_with_times_after_the_period_are_named(lake: Path) -> None:
    until_ns = STARTED_NS - DAY_NS // 24
    page = "".join(lake_page("x", opened(lake).asked, STARTED_NS - 9 * DAY_NS, until_ns))
    assert "3 sessions with events after this period" in page


@pytest.mark.parametrize(
    "odd",
    [
        {"count": None, "host": None, "message": None, "sigwrap": None, "state": None},
        {"count": -(1 << 63), "events": (1 << 63) - 1, "time": f"{DATE}T06\u2028<x>"},
        {"started": f"{DATE} 99", "last_event": f"{DATE}T<", "sigwrap": "9.999999999.1"},
        {"outcome": None, "session": "'; drop", "rule": "x" * 100_000, "host": "{since}%s"},
        {"sigwrap": "1." * 50_000, "policy": "{0}", "message": "'", "repo": "{until}"},
    ],
)
def test_a_page_is_made_of_rows_with_any_content(lake: Path, odd: dict[str, Any]) -> None:
    for path in lake.rglob("*.gz"):
        rows = [json.loads(each) | odd for each in gzip.decompress(path.read_bytes()).splitlines()]
        path.write_bytes(gzip.compress("".join(f"{json.dumps(each)}\n" for each in rows).encode()))
    page = page_of(opened(lake))
    assert page.endswith("</html>") and len(page) < 500_000


def test_ten_thousand_hosts_give_a_page_of_bounded_size(lake: Path) -> None:
    found = opened(lake)
    found.execute("CREATE TEMP TABLE few AS SELECT * FROM rows_events WHERE type LIKE '%_denied'")
    for table, source in (("landed_events", "few"), ("sessions", "sessions")):
        found.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT * REPLACE (session || n AS session, "
            f"host || n AS host {', what || n AS what' if source == 'few' else ''}) "
            f"FROM {source}, generate_series(1, 5000) t(n)"
        )
    page = page_of(found)
    assert '<p class="soft">and 9,985 more</p>' in page
    assert len(page) < 400_000


def test_the_file_is_written_whole_or_not_at_all(
    lake: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    line = ["lake", "report", "--at", f"file://{lake}", "--since", "2025-11-01", "-o"]
    target = tmp_path / "report.html"
    assert main([*line, str(target)]) == 0
    written = target.read_text()
    assert written.endswith("</html>\n")
    (next(lake.rglob("*.gz"))).write_bytes(b"no gzip")
    assert main([*line, str(target)]) == 125
    assert capfd.readouterr().err.startswith(f"sigwrap: can't read {lake}: ")
    assert target.read_text() == written and [*tmp_path.glob(".*")] == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("report --at file:///x --since soon", "--since soon: not a time (such as 7d"),
        ("report --at file:///x --since 2025-13-01", "--since 2025-13-01: not a time"),
        ("report --at file:///x --since 2999-01-01", "--since 2999-01-01: not in the past"),
        ("report --at http://x", "that is not a lake's URL"),
        ("sql --questions --at file:///x", "--questions has no other options"),
        ("sql --at file:///x", "--engine is missing"),
        ("sql --engine trino", "--at is missing"),
    ],
)
def test_a_mistake_is_one_line(line: str, problem: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lake", *line.split()]) == 125
    assert f"sigwrap: {problem}" in capfd.readouterr().err
