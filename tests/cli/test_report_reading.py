"""A long log is read by two processes, which come to what one comes to."""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
from pathlib import Path

import pytest

from sigwrap.cli import report_reading as module
from sigwrap.cli.beside import Beside, Tell
from sigwrap.events import Event
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.why import WhyFold
from sigwrap.report.forms.event_rows import EventRows, Row
from sigwrap.store.reader import Session
from tests.support.long_session import make_long, recorded_demo


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    return Path(make_long(folder / "store", "long", recorded_demo(folder), 3_000))


def read(
    log: Path, *, beside: bool, monkeypatch: pytest.MonkeyPatch, rows: EventRows | None = None
) -> tuple[object, list[int]]:
    monkeypatch.setattr(module, "LONG_BYTES", 0 if beside else 1 << 40)
    monkeypatch.setattr(module, "has_room", lambda: True)
    seqs: list[int] = []

    def take(event: Event, is_told: bool) -> None:
        seqs.append(event.seq)
        if rows is not None:
            rows.add(event)

    return module.read(Session("long", str(log)), None, Ending.NOT_CLEAN, None, take), seqs


def test_of_a_damaged_log_as_well(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "long.db"
    damaged.write_bytes(log.read_bytes())
    with sqlite3.connect(damaged) as database:
        database.execute("DROP TRIGGER events_are_not_changed")
        database.execute("UPDATE events SET payload = '{' WHERE seq = 700")
    database.close()
    alone = read(damaged, beside=False, monkeypatch=monkeypatch)
    assert read(damaged, beside=True, monkeypatch=monkeypatch) == alone
    assert 700 not in alone[1]


@pytest.mark.parametrize("events", [0, 1_500])
def test_what_the_other_has_not_told_before_it_failed_is_read_here(
    events: int, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = read(log, beside=False, monkeypatch=monkeypatch)
    here, real = os.getpid(), module._told

    def fails_elsewhere(event: Event) -> object:
        if os.getpid() != here and event.seq > events:
            raise MemoryError
        return real(event)

    monkeypatch.setattr(module, "_told", fails_elsewhere)
    assert read(log, beside=True, monkeypatch=monkeypatch) == alone


def test_nothing_is_left_out_that_a_report_has(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(*, beside: bool) -> tuple[object, list[Row]]:
        rows = EventRows(0)
        found, _ = read(log, beside=beside, monkeypatch=monkeypatch, rows=rows)
        return found, rows.rows()

    assert page(beside=True) == page(beside=False)


def test_what_a_report_says_of_ends_needs_no_other_ends(log: Path) -> None:
    all_ends, of_a_report = WhyFold(), WhyFold(tells_of_each=False)
    for event in Session("long", str(log)).events():
        all_ends.add(event)
        of_a_report.add(event)
    explained = of_a_report.explained(Ending.ENDED)
    assert explained.killed
    assert explained == all_ends.explained(Ending.ENDED)


def test_it_ends_early_where_the_other_is_killed() -> None:
    def work(tell: Tell) -> None:
        tell([1])
        os.kill(os.getpid(), signal.SIGKILL)

    beside = Beside(work)
    assert list(beside.told()) == []
    beside.stop()


def test_whose_parent_ignores_the_end_of_children_reads_all_the_same(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = read(log, beside=False, monkeypatch=monkeypatch)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert read(log, beside=True, monkeypatch=monkeypatch) == alone
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_who_may_have_no_other_process_reads_alone(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = read(log, beside=False, monkeypatch=monkeypatch)

    def refused() -> int:
        raise BlockingIOError(errno.EAGAIN, "no more processes")

    monkeypatch.setattr("sigwrap.cli.beside.os.fork", refused)
    before = os.listdir("/proc/self/fd")
    assert read(log, beside=True, monkeypatch=monkeypatch) == alone
    assert os.listdir("/proc/self/fd") == before


def test_what_is_stopped_is_gone() -> None:
    read_fd, write_fd = os.pipe()
    beside = Beside(lambda tell: tell(os.read(read_fd, 1)))
    os.close(read_fd)
    beside.stop()
    with pytest.raises(BrokenPipeError):
        os.write(write_fd, b"x")
    os.close(write_fd)
