"""Session files that somebody made to hurt whoever reads them: each reading command ends at once,
with a line that names the file, and the other sessions stay readable."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sigwrap.cli.app import run_app
from sigwrap.log import reader
from sigwrap.log.database import open_new_database
from sigwrap.log.schema import APPLICATION_ID, EVENTS_TABLE
from sigwrap.log.writer import SessionLog

FOR_EVER = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n"
COMMANDS = (
    ("report",),
    ("replay", "--instant"),
    ("replay", "--until", "5"),
    ("verify",),
    ("why",),
    ("export", "--format", "jsonl"),
    ("export", "--format", "prom"),
    ("query", "select e.session, count(*), max(x.command) from events e, execs x, processes p"),
)


def schema(sql: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as made:
            made.executescript(
                f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; {sql}"
            )

    return make


def rows(path: Path, *statements: str) -> None:
    """In a table as it should be."""
    with path.open("w+b") as file, closing(open_new_database(str(path), file.fileno())) as made:
        made.execute(
            "INSERT INTO events VALUES (1, 1, 'session_started', 1, '{\"v\":2}', 'x')",
        )
        for statement in statements:
            made.execute(statement)


def insert(payload: str, type_name: str = "'process_exited'", pid: str = "1") -> str:
    return f"INSERT INTO events VALUES (2, 1, {type_name}, {pid}, {payload}, 'x')"


def damaged(path: Path) -> None:
    rows(path, *(f"INSERT INTO events VALUES ({n}, 1, 'x', 1, '{{}}', 'x')" for n in range(2, 900)))
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\x05" * 20_000)


def journal(text: bytes, size: int = 0) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        rows(path)
        path.with_suffix(".journal").write_bytes(text)
        os.truncate(path.with_suffix(".journal"), max(size, len(text)))

    return make


def instead_of_journal(make_it: Callable[[Path], object]) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        rows(path)
        make_it(path.with_suffix(".journal"))

    return make


def table(*statements: str) -> Callable[[Path], None]:
    return lambda path: rows(path, *statements)


NAMES = ("seq", "time_ns", "type", "pid", "payload")
COLUMNS = ", ".join(f"n AS {name}" for name in NAMES)
SLOW = "hash TEXT AS (hex(zeroblob(100000000)))"
FIRST = b'1\t1\tsession_started\t1\t{"v":2}\tx\n'
HOSTILE: dict[str, Callable[[Path], object]] = {
    "endless view": schema(f"CREATE VIEW events AS {FOR_EVER} AS seq, n AS hash, {COLUMNS} FROM t"),
    "another table": schema(
        f"CREATE VIEW v AS {FOR_EVER} FROM t; {EVENTS_TABLE.replace('events', 'EVENTS')}"
    ),
    "slow column": schema(EVENTS_TABLE.replace("hash TEXT NOT NULL", SLOW)),
    "virtual table": schema(f"CREATE VIRTUAL TABLE events USING fts5({', '.join(NAMES)}, hash)"),
    "damaged": damaged,
    "large blob": table(insert("zeroblob(40000000)")),
    "large text": table(insert('\'{"v":1,"a":"\' || hex(zeroblob(3000000)) || \'"}\'')),
    "many members": table(insert("'[' || replace(hex(zeroblob(1900000)), '0', '1,') || '1]'")),
    "deep": table(insert(f"'{'[' * 200_000}'")),
    "deep, closed": table(insert("'" + '{"v":1,"a":' + "[" * 900 + "]" * 900 + "}'")),
    "no text": table(insert("17")),
    "types": table(insert("'{\"v\":1}'", type_name="x'00ff'", pid="'pid'")),
    "NaN": table(insert('\'{"v":1,"a":NaN}\'')),
    "no JSON": table(insert("'{'")),
    "FIFO": os.mkfifo,
    "folder": os.mkdir,
    "device": lambda path: os.symlink("/dev/zero", path),
    "link to itself": lambda path: os.symlink(path, path),
    "empty": lambda path: path.touch(),
    "text": lambda path: path.write_text("x" * 10_000),
    "journal: FIFO": instead_of_journal(os.mkfifo),
    "journal: folder": instead_of_journal(os.mkdir),
    "journal: device": instead_of_journal(lambda path: os.symlink("/dev/zero", path)),
    "journal: garbage": journal(FIRST + b"garbage\n"),
    "journal: endless line": journal(FIRST, 1 << 40),
    "journal: number": journal(FIRST + b"9" * 1000 + b"\t1\tx\t1\t{}\tx\n"),
}
# Nothing of these is read but that they are none: by all commands in the same way.
NO_DATABASE = {"FIFO", "folder", "device", "link to itself", "empty", "text"}
OF_NO_DATABASE = (("report",), ("verify",), ("export", "--format", "jsonl"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = SessionLog.create(str(tmp_path), "good")
    log.append("session_started", 1, {"session_id": "good", "command": ["make"]}, 10**18)
    log.append("process_exited", 1, {"exit_code": 0}, 10**18)
    log.close()
    return tmp_path


@pytest.mark.parametrize("name", HOSTILE)
def test_every_command_ends_and_names_the_file(
    store: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(reader, "PATIENCE_S", 2.0)
    path = store / "sessions" / "bad.db"
    HOSTILE[name](path)
    for command in OF_NO_DATABASE if name in NO_DATABASE else COMMANDS:
        status = run_app([*command, "--store", str(store), "bad"])
        out, err = capfd.readouterr()
        assert len(err.splitlines()) <= 1 and len(out) < 100_000
        assert status == 125 or command[0] in ("report", "verify", "replay", "why"), command
        assert "bad" in out + err, command
    assert run_app(["sessions", "--store", str(store)]) == 0
    out, err = capfd.readouterr()
    header, *rows = out.splitlines()
    assert header.split()[0] == "SESSION"
    assert sorted(row.split()[0] for row in rows) == ["bad", "good"]
    assert (out.count("\n"), err) == (3, "")
    monkeypatch.undo()
    assert run_app(["report", "--store", str(store), "good"]) == 0


def test_a_file_with_a_hole_of_a_terabyte_is_read_at_once(store: Path) -> None:
    path = store / "sessions" / "bad.db"
    rows(path)
    os.truncate(path, 1 << 40)
    for command in COMMANDS:
        run_app([*command, "--store", str(store), "bad"])


def test_a_name_that_would_clear_the_screen_is_shown_harmlessly(
    store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (store / "sessions" / "\x1b[2J\nx.db").write_text("x")
    (store / "sessions" / "\udcff.db").write_text("x")
    for command in (
        ("sessions",),
        ("report", "\x1b[2J\nx"),
        ("why", "\x1b[2J\nx"),
        ("report", "?"),
    ):
        run_app([*command, "--store", str(store)])
        out, err = capfd.readouterr()
        assert all(line.isprintable() for line in (out + err).splitlines())
        assert out + err


def test_types_and_names_from_a_log_are_shown_harmlessly(
    store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    clear = "\x1b[2J\u202e"
    evil = f"'{clear}'"
    rows(
        store / "sessions" / "bad.db",
        f"INSERT INTO events VALUES (2, 1, {evil}, 1, '{{\"v\":1}}', {evil})",
        "INSERT INTO events VALUES (3, 1, 'exec_allowed', 1, json_object('v', 1, 'rule_name', "
        f"{evil}, 'decision', {evil}, 'platform', {evil}, 'evaluation_us', 1, {evil}, 2), 'x')",
    )
    for command in COMMANDS:
        run_app([*command, "--store", str(store), "bad"])
        out, err = capfd.readouterr()
        assert all(line.isprintable() for line in (out + err).splitlines()), command
