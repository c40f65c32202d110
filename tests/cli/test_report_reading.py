"""A long log is read by two processes, which come to what one comes to."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from sigwrap.cli import report_reading as module
from sigwrap.cli.beside import Beside
from sigwrap.events import Event
from sigwrap.report.folds.ending import Ending
from sigwrap.store.reader import Session
from tests.support.long_session import make_long, recorded_demo


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    return Path(make_long(folder / "store", "long", recorded_demo(folder), 3_000))


def read(log: Path, *, beside: bool, monkeypatch: pytest.MonkeyPatch) -> tuple[object, list[int]]:
    monkeypatch.setattr(module, "LONG_BYTES", 0 if beside else 1 << 40)
    monkeypatch.setattr(module, "has_room", lambda: True)
    seqs: list[int] = []

    def take(event: Event, is_told: bool) -> None:
        seqs.append(event.seq)

    return module.read(Session("long", str(log)), None, Ending.NOT_CLEAN, None, take), seqs


def test_two_come_to_what_one_comes_to(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = read(log, beside=False, monkeypatch=monkeypatch)
    assert read(log, beside=True, monkeypatch=monkeypatch) == alone
    assert alone[1] == list(range(1, 3_001))


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


def test_where_the_other_fails_its_part_is_done_here(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = read(log, beside=False, monkeypatch=monkeypatch)
    here, real = os.getpid(), module._trust_and_ends

    def fails_elsewhere(*arguments: object) -> object:
        if os.getpid() != here:
            raise MemoryError
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_trust_and_ends", fails_elsewhere)
    assert read(log, beside=True, monkeypatch=monkeypatch) == alone


def test_what_is_stopped_is_gone() -> None:
    read_fd, write_fd = os.pipe()
    beside = Beside(lambda: os.read(read_fd, 1))
    os.close(read_fd)
    beside.stop()
    with pytest.raises(BrokenPipeError):
        os.write(write_fd, b"x")
    os.close(write_fd)
