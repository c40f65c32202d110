"""A folder has exactly the events of the logs, whatever is killed, forged or damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from sigwrap.fleet import rows
from sigwrap.fleet.objects import Folder
from sigwrap.fleet.shipping import is_shipped, ship
from sigwrap.log.catalog import held, list_sessions, session_ids
from sigwrap.log.folder import database_path
from sigwrap.log.journal import append_in_turn
from sigwrap.log.reader import Session
from tests.support.fleet import arrived, killed_at, make_sessions, recorded
from tests.support.harness import REFUSED, Sigwrap
from tests.support.waiting import Watch

ENDS_BADLY = {"seq": 1, "next": 1, "head": "0" * 64, "complete": True}


@pytest.fixture
def lake(as_user: Sigwrap) -> Path:
    return as_user.folder / "lake with % and é"


def _ship(
    subject: Sigwrap, lake: Path, *words: str, status: int = 0
) -> subprocess.CompletedProcess[bytes]:
    url = "file://" + str(lake).replace("%", "%25")
    done = subject.run("ship", "--to", url, *words)
    assert done.returncode == status, done.stderr
    return done


def _cursor(subject: Sigwrap) -> Path:
    (session_id,) = session_ids(str(subject.store))
    return subject.store / "sessions" / f"{session_id}.shipped"


def test_a_folder_has_exactly_the_rows_of_the_logs(as_user: Sigwrap, lake: Path) -> None:
    make_sessions(as_user, 2)
    assert _ship(as_user, lake).stdout.startswith(b"shipped 1 session, ")
    events = len(recorded(as_user.store))
    assert b"shipped 2 sessions, " in _ship(as_user, lake, "--all").stdout
    assert arrived(lake) == recorded(as_user.store) and events
    before = {each: each.read_bytes() for each in lake.rglob("*.ndjson.gz")}
    assert not any(each.stat().st_mode & 0o077 for each in (lake, *lake.rglob("*")))
    assert b"shipped 2 sessions, 0 events, " in _ship(as_user, lake, "--all").stdout
    for each in (cursors := sorted(as_user.store.glob("sessions/2*.shipped"))):
        known = each.read_text()
        each.write_text(known.replace("true", "false"))
        assert b"shipped 2 sessions, 0 events, " in _ship(as_user, lake, "--all").stdout
        assert each.read_text() == known
    for each in cursors:
        each.unlink()
    other = as_user.folder / "other"
    other.mkdir(0o755)
    os.chown(other, as_user.user or os.getuid(), -1)
    _ship(as_user, other, "--all")
    assert {each.relative_to(lake): data for each, data in before.items()} == {
        each.relative_to(other): each.read_bytes() for each in other.rglob("*.ndjson.gz")
    }
    assert {each.stat().st_mode & 0o777 for each in other.rglob("*")} == {0o755, 0o644}


@pytest.mark.tier("ci")
def test_a_kill_at_any_step_loses_and_doubles_nothing(sigwrap: Sigwrap, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_sessions(sigwrap, 2)
    kills = 0
    for call in ("fsync", "linkat", "renameat", "mkdirat", "write"):
        for number in range(1, 30):
            was_killed = killed_at(sigwrap, call, number, "ship", "--all", "--to", f"file://{lake}")
            kills += was_killed
            _ship(sigwrap, lake, "--all")
            assert arrived(lake) == recorded(sigwrap.store), (call, number)
            assert [each for each in lake.rglob("*") if each.name.startswith(".")] == []
            shutil.rmtree(lake)
            for each in sigwrap.store.glob("sessions/*.shipped*"):
                each.unlink()
            if not was_killed:
                break
    assert kills >= 24


class _Ended(Exception):
    pass


class _EndsAt(Folder):
    """A folder whose user ends before or after its nth delivery."""

    def __init__(self, path: Path, number: int, *, is_delivered: bool) -> None:
        super().__init__(str(path))
        self._left, self._is_delivered = number, is_delivered

    def put_new(self, key: str, body: bytes) -> bool:
        self._left -= 1
        if self._left or self._is_delivered:
            super().put_new(key, body)
        if not self._left:
            raise _Ended
        return True


@pytest.mark.parametrize("is_delivered", [False, True])
def test_a_log_of_many_segments_is_resumed_at_each_of_them(
    sigwrap: Sigwrap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_delivered: bool
) -> None:
    monkeypatch.setattr(rows, "MOST_ROWS", 2)
    make_sessions(sigwrap)
    (session_id,) = session_ids(str(sigwrap.store))
    session = Session(session_id, database_path(str(sigwrap.store), session_id))
    lake = tmp_path / "lake"
    with held(str(sigwrap.store), "sessions") as files:
        for number in range(1, 100):
            with suppress(_Ended):
                ship(session, files, _EndsAt(lake, number, is_delivered=is_delivered))
                break
            assert not is_shipped(session, files)
            assert ship(session, files, Folder(str(lake))).is_whole
            assert is_shipped(session, files) and arrived(lake) == recorded(sigwrap.store)
            shutil.rmtree(lake)
            _cursor(sigwrap).unlink()
    assert number > 3 and arrived(lake) == recorded(sigwrap.store)


# The cursor


def _link(cursor: Path) -> None:
    cursor.symlink_to("/etc/passwd")


FORGED: dict[str, Callable[[Path], object]] = {
    "a link": _link,
    "a FIFO": lambda cursor: os.mkfifo(cursor),
    "a folder": lambda cursor: cursor.mkdir(),
    "huge": lambda cursor: cursor.write_bytes(b'{"x":' + b" " * (1 << 20)),
    "deep": lambda cursor: cursor.write_bytes(b"[" * 50_000),
    "no JSON": lambda cursor: cursor.write_bytes(b"\xff\0"),
    "a list": lambda cursor: cursor.write_text("[1]"),
    "other members": lambda cursor: cursor.write_text('{"file:///x": {"seq": "1"}}'),
    "no numbers": lambda cursor: cursor.write_text('{"x": {"seq": 1.5, "next": true}}'),
    "another hash": lambda cursor: cursor.write_text(json.dumps({"x": ENDS_BADLY})),
    "beyond the end": lambda cursor: cursor.write_text(
        json.dumps({"x": {**ENDS_BADLY, "seq": 1 << 40, "next": 1 << 40}})
    ),
    "negative": lambda cursor: cursor.write_text('{"x": {"seq": -5, "next": -1}}'),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_damaged_or_forged_cursor_loses_nothing(as_user: Sigwrap, lake: Path, how: str) -> None:
    make_sessions(as_user)
    _ship(as_user, lake)
    cursor = _cursor(as_user)
    known = cursor.read_text()
    cursor.unlink()
    FORGED[how](cursor)
    if cursor.is_file() and not cursor.is_symlink():
        (url,) = json.loads(known)
        cursor.write_bytes(cursor.read_bytes().replace(b'"x"', json.dumps(url).encode()))
        os.chown(cursor, as_user.user or os.getuid(), -1)
    shutil.rmtree(lake)
    done = _ship(as_user, lake)
    (line,) = done.stderr.splitlines()
    assert b"the log is shipped again from its start" in line
    assert arrived(lake) == recorded(as_user.store)
    assert cursor.read_text() == known and not cursor.is_symlink()
    assert Path("/etc/passwd").read_text().startswith("root:")


def test_a_session_cannot_say_that_its_events_were_delivered(as_user: Sigwrap, lake: Path) -> None:
    """It knows the hash of its first event, and can write the cursor."""
    forge = (
        'cd "$1/sessions" && for log in *.journal; do '
        'head=$(head -n 1 "$log" | tail -c 65 | head -c 64); '
        'printf \'{"file://%s": {"seq": 1, "next": 1, "head": "%s", "complete": true}}\' '
        '"$2" "$head" >"${log%.journal}.shipped"; done'
    )
    done = as_user.run("--", "sh", "-c", forge, "sh", str(as_user.store), str(lake))
    assert done.returncode == 0 and _cursor(as_user).exists(), done.stderr
    assert (
        json.loads(_cursor(as_user).read_text())[f"file://{lake}"]["head"]
        == (recorded(as_user.store)[0][2])
    )
    assert b"changed while a session ran" in _ship(as_user, lake).stderr
    assert arrived(lake) == recorded(as_user.store)


def test_a_session_cannot_say_that_another_one_was_delivered(as_user: Sigwrap, lake: Path) -> None:
    make_sessions(as_user)
    first, (*_, (_, seq, head)) = _cursor(as_user), recorded(as_user.store)
    said = {"seq": seq, "next": seq, "head": head, "complete": True}
    cursor = json.dumps({f"file://{lake}": said})
    forge = ("sh", "-c", 'printf %s "$1" >"$2"', "sh", cursor, str(first))
    assert as_user.run("--", *forge).returncode == 0
    assert first.read_text() == cursor
    assert b"changed while a session ran" in _ship(as_user, lake, "--all").stderr
    assert arrived(lake) == recorded(as_user.store)
    done = _ship(as_user, lake, "--all")
    assert b"0 events" in done.stdout and done.stderr == b""


def test_a_session_that_is_killed_cannot_say_so_either(as_user: Sigwrap, lake: Path) -> None:
    make_sessions(as_user)
    first, (*_, (_, seq, head)) = _cursor(as_user), recorded(as_user.store)
    said = {"seq": seq, "next": seq, "head": head, "complete": True}
    cursor = json.dumps({f"file://{lake}": said})
    forge = 'printf %s "$1" >"$2"; /bin/true; echo ready; read line'
    as_user.start_ready("--", "sh", "-c", forge, "sh", cursor, str(first))
    with Watch(as_user.alive()) as watch:
        for pid in as_user.alive():
            os.kill(pid, signal.SIGSTOP)
        for pid in as_user.alive():
            os.kill(pid, signal.SIGKILL)
        watch.await_ends()
    assert b"changed while a session ran" in _ship(as_user, lake, "--all").stderr
    assert arrived(lake) == recorded(as_user.store)


def test_another_destination_has_a_cursor_of_its_own(as_user: Sigwrap, lake: Path) -> None:
    make_sessions(as_user)
    for number in range(25):
        other = as_user.folder / f"lake {number}"
        _ship(as_user, other)
        assert arrived(other) == recorded(as_user.store)
    assert len(json.loads(_cursor(as_user).read_text())) == 20


# Logs


def test_a_running_session_is_skipped(as_user: Sigwrap, lake: Path) -> None:
    process, _ = as_user.start_ready("--", "sh", "-c", "echo ready; read line")
    done = _ship(as_user, lake, status=1)
    assert b"it is running" in done.stderr and b"1 session not shipped" in done.stdout
    process.communicate(b"\n")
    _ship(as_user, lake)
    assert arrived(lake) == recorded(as_user.store)


def test_a_log_that_grows_is_shipped_as_far_as_it_goes(sigwrap: Sigwrap, tmp_path: Path) -> None:
    for _ in range(3):
        for _ in range(2):
            append_in_turn(
                str(sigwrap.store), "hook-1", None, {"kind": "hooks"}, ("tool_call_judged", {})
            )
        _ship(sigwrap, tmp_path / "lake")
        assert arrived(tmp_path / "lake") == recorded(sigwrap.store)
    assert len(recorded(sigwrap.store)) == 7


def test_of_a_damaged_log_the_readable_start_is_shipped(as_user: Sigwrap, lake: Path) -> None:
    make_sessions(as_user, 2)
    first = session_ids(str(as_user.store))[0]
    every = recorded(as_user.store)
    with closing(sqlite3.connect(as_user.store / "sessions" / f"{first}.db")) as database:
        database.execute("DROP TRIGGER IF EXISTS events_unchanged")
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type='trigger'"):
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE events SET payload = x'ff' WHERE seq = 3")
        database.commit()
    done = _ship(as_user, lake, "--all", status=1)
    assert f"{first}: shipped only its start".encode() in done.stderr
    assert arrived(lake) == [each for each in every if each[0] != first or each[1] < 3]


@pytest.mark.parametrize("name", ["..%2f..", "a b\n'\"<&>", "x" * 150, "-rf", "é", "a=b"])
def test_no_file_name_leads_out_of_the_folder(sigwrap: Sigwrap, tmp_path: Path, name: str) -> None:
    make_sessions(sigwrap)
    lake = tmp_path / "one" / "lake"
    (log,) = sigwrap.store.glob("sessions/*.db")
    os.rename(log, os.fsencode(f"{log.parent}/{name}.db"))
    _ship(sigwrap, lake, "--all")
    (found,) = [each for each in tmp_path.rglob("*.gz") if not each.is_relative_to(sigwrap.store)]
    part = found.relative_to(lake).parts
    assert part[:2] == ("rows", "v1") and part[2].startswith("date=2") and len(part) == 5
    assert part[3].isascii() and part[3].removeprefix("id-").isalnum()


# The folder


def _date_is_a_link(lake: Path, elsewhere: Path) -> None:
    (lake / "rows" / "v1").rename(elsewhere)
    (lake / "rows" / "v1").symlink_to(elsewhere)


def _object_is_a_link(lake: Path, elsewhere: Path) -> None:
    (found,) = lake.rglob("*.gz")
    found.rename(elsewhere)
    found.symlink_to(elsewhere)


def _folder_is_a_file(lake: Path, elsewhere: Path) -> None:
    lake.rename(elsewhere)
    lake.write_text("")


@pytest.mark.parametrize("change", [_date_is_a_link, _object_is_a_link, _folder_is_a_file])
def test_a_link_or_a_file_in_the_way_is_one_line(
    sigwrap: Sigwrap, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    make_sessions(sigwrap)
    _ship(sigwrap, tmp_path / "lake")
    _cursor(sigwrap).unlink()
    change(tmp_path / "lake", tmp_path / "elsewhere")
    done = _ship(sigwrap, tmp_path / "lake", status=1)
    (line,) = done.stderr.splitlines()
    assert line.startswith(b"sigwrap: can't use ") and b"1 session not shipped" in done.stdout


# The command


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--to", "nowhere"], "not the URL of a folder or a bucket"),
        (["--to", "https://user:secret@host/x"], "not the URL of a folder or a bucket"),
        (["--to", "s3://secret:secret@bucket/x"], "not the URL of a folder or a bucket"),
        (["--to", "file://host/x"], "absolute path"),
        (["--to", "file:///x%00y"], "absolute path"),
        (["--to", "s3:///x"], "no name of a bucket"),
        (["--to", "s3://bucket/a/../b"], "neither . nor .."),
        (["--to", "s3://bucket/x"], "set AWS_ACCESS_KEY_ID"),
        (["--to", "s3://bucket", "--credential-fd", "99"], "can't be read"),
        (["--to", "file:///x", "--timeout", "soon"], "not a duration"),
        (["--to", "file:///x", "--timeout", "0"], "no time"),
        (["--to", "file:///x", "--all", "s0"], "can't be combined"),
        (["--to", "file:///x", "./s.db"], "is a file"),
        (["--to", "file:///x", "none"], "no session is called"),
        ([], "--to"),
    ],
)
def test_a_wrong_line_is_refused(sigwrap: Sigwrap, words: list[str], says: str) -> None:
    make_sessions(sigwrap)
    done = sigwrap.run("ship", *words)
    said = done.stderr.decode()
    assert done.returncode == REFUSED and says in said and "secret" not in said
    assert not list(sigwrap.store.glob("sessions/*.shipped"))


def test_a_process_in_a_session_cannot_ship(as_user: Sigwrap, lake: Path) -> None:
    make_sessions(as_user)
    done = as_user.run("--", *map(str, as_user.line("ship", "--all", "--to", f"file://{lake}")))
    assert done.returncode == REFUSED and b"processes in a session can't ship" in done.stderr
    assert not lake.exists()


def test_rm_removes_the_cursor_and_prune_keeps_what_was_not_shipped(
    as_user: Sigwrap, lake: Path
) -> None:
    make_sessions(as_user, 3)
    for each in list_sessions(str(as_user.store))[:2]:
        _ship(as_user, lake, each.id)
        cursor = as_user.store / "sessions" / f"{each.id}.shipped"
        left_over = cursor.with_name(f"{cursor.name}.new-{'0' * 12}")
        left_over.write_text("left by a killed sigwrap")
        os.chown(left_over, as_user.user or os.getuid(), -1)
    assert b"left a log in several files" not in as_user.run("sessions").stderr
    first, _, third = (each.id for each in list_sessions(str(as_user.store)))
    assert as_user.run("sessions", "rm", first).returncode == 0
    done = as_user.run("sessions", "prune", "--keep", "0")
    assert b"kept 1 session that sigwrap ship has not shipped completely" in done.stderr
    assert b"sigwrap sessions rm" in done.stderr
    left = sorted(each.name for each in (as_user.store / "sessions").iterdir())
    assert left == [".shipped", f"{third}.db"]
    assert as_user.run("sessions", "prune", "--keep", "0").stderr == done.stderr
    _ship(as_user, lake)
    assert as_user.run("sessions", "prune", "--keep", "0").stderr == b""
    assert session_ids(str(as_user.store)) == []
