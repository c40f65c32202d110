from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.events import Event
from sigwrap.log.reader import Session
from sigwrap.report.check import in_child
from sigwrap.report.check.in_child import verify_long_session
from sigwrap.report.check.verify import Verification, verify_session
from tests.report.conftest import Scenarios, tamper
from tests.support.waiting import Watch, await_that

_PROCESSES = 300  # their events take several batches


@pytest.fixture(autouse=True)
def _every_log_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_child, "LONG_BYTES", -1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})


@pytest.fixture
def session(scenario: Scenarios) -> Session:
    made = scenario()
    for pid in range(10, 10 + _PROCESSES):
        made.execute(pid, 1, "make", "x" * 100, "\udcff")
        made.exit(pid)
    made.end()
    session: Session = made.session
    return session


_earlier: set[int] = set()  # children that other tests have left


@pytest.fixture(autouse=True)
def _note_earlier_children() -> None:
    _earlier.clear()
    _earlier.update(children())


def children() -> list[int]:
    """Return those of this test."""
    return [pid for pid in children_of(os.getpid()) if pid not in _earlier]


def children_of(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def read(
    session: Session, key: bytes | None = None, head: str = "", *, exact_json: bool = False
) -> tuple[Verification, list[Event], list[int]]:
    """Return the verification, the events and the number of events at each `meanwhile`."""
    events: list[Event] = []
    read_so_far: list[int] = []
    found = verify_long_session(
        session, key, head, events.append, meanwhile=read_so_far.append, exact_json=exact_json
    )
    assert children() == []
    return found, events, read_so_far


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "UPDATE events SET pid = 99 WHERE seq = 400",
        "UPDATE events SET payload = 'unreadable' WHERE seq = 400",
        "UPDATE events SET payload = CAST(x'7B22FF' AS TEXT) WHERE seq = 400",
        'UPDATE events SET payload = \'{"v":1,"a":[1e999,-0.0,0,123456789012345678901]}\''
        " WHERE seq = 400",
        "UPDATE events SET payload = '{\"v\":99}' WHERE seq = 400",
        "DELETE FROM events WHERE seq = 400",
        "DELETE FROM events WHERE seq > 400",
        "DELETE FROM events",
        "DROP TABLE events",
    ],
)
@pytest.mark.parametrize("exact_json", [False, True])
def test_a_child_finds_what_one_process_finds(
    session: Session, statement: str, exact_json: bool
) -> None:
    tamper(session.path, statement)
    events: list[Event] = []
    read_so_far: list[int] = []
    found = verify_session(
        session, None, "", events.append, meanwhile=read_so_far.append, exact_json=exact_json
    )
    assert repr(read(session, exact_json=exact_json)) == repr((found, events, read_so_far))


def test_the_head_and_the_key_count_in_a_child_too(session: Session) -> None:
    for key, head in ((None, "0" * 64), (b"key", "")):
        assert read(session, key, head)[0] == verify_session(session, key, head)


def test_a_log_that_cant_be_opened_is_the_same_error(session: Session) -> None:
    Path(session.path + "-wal").write_bytes(b"rows")
    found = read(session)[0]
    assert found == verify_session(session, None)
    assert "another program wrote rows" in found.problem


def test_a_child_that_is_killed_is_an_error(session: Session) -> None:
    def kill(events: int) -> None:
        (child,) = children()
        os.kill(child, signal.SIGKILL)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)

    seen: list[Event] = []
    with pytest.raises(StoreError, match="ended too early"):
        verify_long_session(session, None, "", seen.append, meanwhile=kill, exact_json=False)
    assert children() == []
    assert [each.seq for each in seen] == list(range(1, len(seen) + 1))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_child_ends_if_its_events_are_not_wanted(
    session: Session, error: type[BaseException]
) -> None:
    def refuse(event: Event) -> None:
        raise error

    with pytest.raises(error):
        verify_long_session(session, None, "", refuse, meanwhile=lambda _: None, exact_json=False)
    assert children() == []


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (StoreError("a problem", "a hint"), "a problem (a hint)"),
        (ValueError("a bug"), "internal error: ValueError: a bug"),
        (MemoryError(), "ended too early"),
        (OSError(5, "Input/output error"), "a system call failed: [Errno 5] Input/output error"),
    ],
)
def test_what_a_child_cant_do_is_an_error(
    session: Session, monkeypatch: pytest.MonkeyPatch, raised: Exception, said: str
) -> None:
    def fail(*_: object, **__: object) -> Verification:
        raise raised

    monkeypatch.setattr(in_child, "verify_session", fail)
    with pytest.raises(StoreError) as found:
        read(session)
    assert said in str(found.value)


def test_where_children_are_reaped_at_once_this_process_checks(session: Session) -> None:
    """The pid of a child could belong to another process by the time that it is killed."""
    expected = read(session)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert read(session) == expected
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_child_ends_with_its_parent(session: Session) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            verify_long_session(
                session, None, "", lambda _: time.sleep(99), meanwhile=print, exact_json=False
            )
        finally:
            os._exit(1)
    await_that(lambda: bool(children_of(pid)))
    (child,) = children_of(pid)
    with Watch([child]) as watch:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        watch.await_ends()


def test_without_another_process_this_one_checks(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> int:
        raise BlockingIOError

    expected = read(session)
    monkeypatch.setattr(os, "fork", refuse)
    before = os.listdir("/proc/self/fd")
    assert read(session) == expected
    assert os.listdir("/proc/self/fd") == before
