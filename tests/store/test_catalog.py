from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.errors import SessionError, StoreError
from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.log.writer import SessionLog

from .conftest import Recorder


@pytest.fixture
def store(record: Recorder, tmp_path: Path) -> str:
    for session_id, name, start_ns in (
        ("2026-bb1", "build", 300),
        ("2026-bb2", "build", 200),
        ("2026-aa1", "", 100),
        ("2026-aa11", "2026", 50),
        ("2025-cc1", "", 10),
    ):
        record(session_id, name=name, start_ns=start_ns).close()
    return str(tmp_path)


@pytest.mark.parametrize(
    ("selector", "session_id"),
    [
        ("", "2026-bb1"),
        ("2026-bb2", "2026-bb2"),
        ("2026-aa1", "2026-aa1"),  # an id, though also the beginning of another
        ("2026-aa11", "2026-aa11"),
        ("2026-bb1", "2026-bb1"),
        ("build", "2026-bb1"),  # the newest of that name
        ("bb2", "2026-bb2"),  # the end of one id
        ("2025", "2025-cc1"),  # the beginning of one id
        ("2026", "2026-aa11"),  # a name, though also the beginning of several ids
    ],
)
def test_a_session_is_found_by(store: str, selector: str, session_id: str) -> None:
    session = open_session(store, selector)
    first = session.first()
    assert session.id == session_id
    assert first is not None and first.payload["session_id"] == session_id


@pytest.mark.parametrize("inside", ["outer", "made up", ""])
def test_the_latest_is_not_one_that_joined_another(
    record: Recorder, tmp_path: Path, inside: str
) -> None:
    """What happened to it is in the log of that other one, whatever that is called."""
    record("outer", name="build", start_ns=100).close()
    missing = ("interception: left to another", "limits of our own: x")
    record("joined", name="build", inside=inside, missing=missing, start_ns=200).close()
    assert open_session(str(tmp_path), "").id == "outer"
    assert open_session(str(tmp_path), "joined").id == "joined"
    assert open_session(str(tmp_path), "build").id == "outer"
    record("without", missing=("interception: not to be had",), start_ns=300).close()
    assert open_session(str(tmp_path), "").id == "without"


def test_candidates_are_named(store: str) -> None:
    with pytest.raises(SessionError, match=r"sessions: 2026-bb2 \(npm start\), 2026-bb1 \("):
        open_session(store, "2026-b")
    with pytest.raises(SessionError, match=r"sessions: 2025-cc1 \(npm start\), 2026-aa11 \("):
        open_session(store, "1")  # the end of several
    with pytest.raises(SessionError, match="sessions: build, 2026-aa1, 2026, 2025-cc1"):
        open_session(store, "other")


@pytest.mark.parametrize(("count", "rest"), [(5, ""), (7, " and 2 more")])
def test_many_candidates_are_cut_short(
    record: Recorder, tmp_path: Path, count: int, rest: str
) -> None:
    for number in range(count):
        record(f"s{number}").close()
    with pytest.raises(SessionError) as caught:
        open_session(str(tmp_path), "s")
    named = ", ".join(f"s{number} (npm start)" for number in range(5))
    assert caught.value.message == f"'s' matches several sessions: {named}{rest}"


@pytest.mark.parametrize(
    ("typed", "hint"), [("biuld", 'did you mean "build"?'), ("2026-bb3", 'did you mean "2026-bb')]
)
def test_the_nearest_by_name_or_id_is_meant(store: str, typed: str, hint: str) -> None:
    with pytest.raises(SessionError) as caught:
        open_session(store, typed)
    assert caught.value.message.startswith(f"no session is called {typed!r}")
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("selector", ["", "x"])
def test_an_empty_store_says_so(tmp_path: Path, selector: str) -> None:
    with pytest.raises(SessionError, match="there are no sessions in"):
        open_session(str(tmp_path / "nowhere"), selector)
    assert list_sessions(str(tmp_path / "nowhere")) == []


def test_a_file_is_told_by_a_slash_or_by_its_suffix_and_opened_whatever_its_name(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "sessions")
    assert open_session("nowhere", "2026-bb2.db").id == "2026-bb2"
    Path("2026-bb2.db").rename("renamed")
    session = open_session(store, "./renamed")
    assert (session.id, session.path) == ("2026-bb2", "./renamed")
    with pytest.raises(SessionError, match="there are no sessions in nowhere"):
        open_session("nowhere", "renamed")
    with pytest.raises(StoreError, match="there is no event log"):
        open_session(store, "./missing.db")
    with pytest.raises(StoreError, match=r"can't read \./.*: File name too long"):
        open_session(store, f"./{'x' * 300}.db")


def test_the_list_is_in_order_of_start_and_tells_how_each_ended(
    record: Recorder, tmp_path: Path
) -> None:
    running = record("running", start_ns=30)
    ended = record("ended", start_ns=20, name="n")
    ended.append("session_ended", 1, {"exit_status": 7, "reason": "exited"}, 25)
    ended.close()
    record("crashed", start_ns=10).close()
    (tmp_path / "sessions" / "damaged.db").write_text("no database at all")
    SessionLog.create(str(tmp_path), "empty").close()
    listed = list_sessions(str(tmp_path))
    assert [(file.id, file.running, file.exit_status, file.ended_cleanly) for file in listed] == [
        ("damaged", False, None, False),
        ("empty", False, None, False),
        ("crashed", False, None, False),
        ("ended", False, 7, True),
        ("running", True, None, False),
    ]
    assert "not a database" in listed[0].problem
    assert listed[1].problem == "nothing was recorded"
    assert (listed[3].name, listed[3].command, listed[3].events) == ("n", ("npm", "start"), 5)
    assert listed[3].reason == "exited"
    assert (listed[3].started_ns, listed[3].last_event_ns) == (20, 25)
    assert open_session(str(tmp_path), "").id == "running"
    running.close()
