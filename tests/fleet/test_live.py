"""A session that is shipped while it runs arrives whole, whatever is killed or refused."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest

from sigwrap.fleet.live import Live
from sigwrap.fleet.objects import objects_at
from sigwrap.fleet.rows import Maker
from sigwrap.fleet.shipping import ship
from sigwrap.kernel import procfs
from sigwrap.kernel.process import children
from sigwrap.log.catalog import held, session_ids
from sigwrap.log.codec import Row, canonical_row, hasher, journal_line, next_hash
from sigwrap.log.folder import SESSIONS_FOLDER, journal_path
from sigwrap.log.reader import Session
from tests.fleet.conftest import OWNER, WRITER, Store
from tests.fleet.test_store import proxy_to
from tests.support.fleet import Identity, all_sessions, arrived, make_sessions, recorded
from tests.support.harness import PYTHON, REFUSED, Running, Sigwrap
from tests.support.waiting import await_that, reader

WAITS = ("--", "sh", "-c", "/bin/true; echo ready; read line; /bin/echo done; exit 3")
CREDENTIAL = {"AccessKeyId": WRITER["AWS_ACCESS_KEY_ID"]} | {
    "SecretAccessKey": WRITER["AWS_SECRET_ACCESS_KEY"]
}
EVENTS = "select session, seq, hash, payload from events order by session, seq"
PROCESSES = "select session, pid, command, exit_code from processes order by session, pid"


def _end(process: Running) -> tuple[int, list[bytes]]:
    _, said = process.communicate(b"\n", timeout=60)
    return process.returncode, said.splitlines()


def _shipper(process: Running) -> int:
    """Return the child of the front process that leads a session of its own."""
    (found,) = (each for each in children(_front(process.pid)) if os.getsid(each) == each)
    return found


def _front(pid: int) -> int:
    """Return the front process; `pid` may be a program that started it, or its outer process."""
    below = children(pid)
    return pid if len(below) > 1 else _front(below[0])


class Place:
    """A folder or a bucket, and runs that ship to it."""

    def __init__(self, subject: Sigwrap, store: Store | None) -> None:
        self.subject, self.store = subject, store
        self.prefix = f"live/{subject.mark}"
        self.url = f"s3://fleet/{self.prefix}" if store else f"file://{subject.folder}/lake"

    def start(self, *words: str, port: int = 0, command: tuple[str, ...] = WAITS) -> Running:
        options: dict[str, Any] = {}
        line = ["--ship", self.url, *words]
        if self.store is not None:
            reading, writing = os.pipe()
            os.write(writing, json.dumps(CREDENTIAL).encode())
            os.close(writing)
            env = {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port or self.store.port}"}
            options = {"env": env, "pass_fds": [reading]}
            line += ["--ship-credential-fd", str(reading)]
        process, _ = self.subject.start_ready(*line, *command, **options)
        if self.store is not None:
            os.close(reading)
        return process

    def arrived(self) -> list[Identity]:
        if self.store is not None:
            return arrived(self.store.objects(self.prefix))
        return arrived(self.subject.folder / "lake")

    @property
    def env(self) -> dict[str, str]:
        return self.store.env(OWNER) if self.store else {}

    def await_some(self) -> None:
        await_that(lambda: bool(self.arrived()))

    def ship(self) -> None:
        """Ship later, which may send events again."""
        done = self.subject.run("ship", "--all", "--to", self.url, env=self.env)
        assert done.returncode == 0, done.stderr
        assert sorted(set(self.arrived())) == recorded(self.subject.store)
        self.is_intact()
        for sql in (EVENTS, PROCESSES):
            assert self.asks("--lake", self.url, sql) == self.asks("--all", sql) != []

    def asks(self, *words: str) -> Any:
        line = ("query", "--format", "json", *words)
        done = self.subject.run(*line, env=self.env, forks=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def is_intact(self) -> None:
        """Its chains and columns hold, and an event that is there twice counts once."""
        line = ("verify", "--lake", self.url)
        done = self.subject.run(*line, "--strict", env=self.env, forks=False)
        assert b"intact" in done.stdout, done.stdout
        assert b" %d events\n" % len(set(self.arrived())) in done.stdout


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.fleet)])
def place(as_user: Sigwrap, request: pytest.FixtureRequest) -> Place:
    is_bucket = request.param == "bucket"
    return Place(as_user, request.getfixturevalue("seaweed") if is_bucket else None)


@pytest.mark.fleet
def test_events_arrive_while_the_session_runs(place: Place) -> None:
    process = place.start()
    place.await_some()
    states = "select state from sessions"
    assert place.asks("--lake", place.url, states) == [{"state": "running"}]
    place.is_intact()
    shipper = _shipper(process)
    assert _end(process) == (3, [])
    assert place.asks("--lake", place.url, states) == [{"state": "ended"}]
    once = place.arrived()
    assert once == recorded(place.subject.store)
    place.ship()
    assert place.arrived() == once
    await_that(lambda: procfs.has_ended(shipper))


@pytest.mark.fleet
@pytest.mark.parametrize("victims", ["front", "supervisor", "front and supervisor", "all"])
def test_a_kill_of_sigwrap_loses_nothing(sigwrap: Sigwrap, victims: str) -> None:
    place = Place(sigwrap, None)
    process = place.start()
    place.await_some()
    front, shipper = _front(process.pid), _shipper(process)
    (supervisor,) = (each for each in children(front) if each != shipper)
    pids = {"front": front, "supervisor": supervisor}
    for name, pid in {**pids, "all": shipper}.items():
        if name in victims or victims == "all":
            os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    await_that(lambda: procfs.has_ended(shipper) and not place.subject.alive())
    if victims != "all":
        assert place.arrived() == recorded(place.subject.store)
    place.ship()


@pytest.mark.fleet
@pytest.mark.tier("ci")
def test_a_kill_of_the_shipper_at_any_piece_loses_nothing(sigwrap: Sigwrap, seaweed: Store) -> None:
    victim = 0

    class Victim:
        def kill(self) -> None:
            if victim:
                os.kill(victim, signal.SIGKILL)

        def wait(self) -> None:
            await_that(lambda: not victim or procfs.has_ended(victim))

    place, kills = Place(sigwrap, seaweed), 0
    with proxy_to(seaweed) as proxy:
        proxy.victim = Victim()  # type: ignore[assignment]
        for which, number in (("to", 1), ("from", 1), ("to", 2), ("from", 2)):
            for is_passed in (False, True):
                victim, proxy.pieces = 0, {"to": 0, "from": 0}
                proxy.kill_at = (which, number, is_passed)
                process = place.start(port=proxy.port)
                victim = _shipper(process)
                await_that(lambda: proxy.pieces[which] > 0)  # noqa: B023
                status, said = _end(process)
                assert status == 3
                kills += any(b"process that ships was killed" in each for each in said)
    place.ship()
    assert kills >= 6


@pytest.mark.parametrize(("words", "status"), [((), 3), (("--ship-required",), REFUSED)])
def test_the_run_goes_on_without_its_shipper(
    sigwrap: Sigwrap, words: tuple[str, ...], status: int
) -> None:
    place = Place(sigwrap, None)
    process = place.start(*words)
    os.kill(_shipper(process), signal.SIGKILL)
    code, (line,) = _end(process)
    assert code == status
    assert line == b"sigwrap: the process that ships was killed; sigwrap ship sends the rest"


@pytest.mark.fleet
@pytest.mark.parametrize(("words", "status"), [((), 3), (("--ship-required",), REFUSED)])
def test_a_frozen_store_holds_no_run_up(
    sigwrap: Sigwrap, seaweed: Store, words: tuple[str, ...], status: int
) -> None:
    place = Place(sigwrap, seaweed)
    seaweed.process.send_signal(signal.SIGSTOP)
    try:
        code, said = _end(place.start("--ship-timeout", "1", *words))
    finally:
        seaweed.process.send_signal(signal.SIGCONT)
    assert code == status and said[-1].endswith(b"; sigwrap ship sends the rest")
    assert len(said) == 1 or said[0].endswith(b"; sigwrap keeps trying")
    place.ship()


@pytest.mark.fleet
def test_a_refused_credential_is_told_at_once(sigwrap: Sigwrap, seaweed: Store) -> None:
    place = Place(sigwrap, seaweed)
    place.url = "s3://forbidden/x"
    process = place.start()
    assert b"403" in reader(process.stderr).line()
    code, (line,) = _end(process)
    assert code == 3 and b"403" in line and line.endswith(b"; sigwrap ship sends the rest")


@pytest.mark.fleet
def test_a_signal_ends_the_wait(sigwrap: Sigwrap, seaweed: Store) -> None:
    place = Place(sigwrap, seaweed)
    process = place.start("--ship-timeout", "1h")
    front, shipper = _front(process.pid), _shipper(process)
    seaweed.process.send_signal(signal.SIGSTOP)
    try:
        process.say(b"\n")
        await_that(lambda: children(front) == [shipper])

        def has_ended() -> bool:
            process.send_signal(signal.SIGINT)
            return process.poll() is not None

        await_that(has_ended)
    finally:
        seaweed.process.send_signal(signal.SIGCONT)
    code, (line,) = _end(process)
    assert code == 3 and b"not all events were shipped" in line
    await_that(lambda: procfs.has_ended(shipper))
    place.ship()


ATTACK = """
import os, signal
shipper = int(input())
for name in ("environ", "mem", "maps", "fd/0", "root/etc/passwd", "cwd/."):
    try:
        with open(f"/proc/{shipper}/{name}", "rb") as file:
            # Root may read these two, which have nothing of the credential.
            if os.getuid() or name not in ("environ", "maps") or b"=" in file.read():
                print("opened", name)
    except OSError:
        pass
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
    try:
        os.kill(shipper, number)
        print("sent", number)
    except OSError:
        pass
print("open", sorted(os.listdir("/proc/self/fd")))
"""


@pytest.mark.fleet
def test_the_session_can_not_reach_the_shipper(as_user: Sigwrap, seaweed: Store) -> None:
    place = Place(as_user, seaweed)
    attack = ("sh", "-c", 'echo ready; "$@"', "sh", *PYTHON, "-c", ATTACK)
    process = place.start(command=("--", *attack))
    out, said = process.communicate(b"%d\n" % _shipper(process), timeout=60)
    assert out.rstrip() == b"open ['0', '1', '2', '3']", (out, said)
    assert process.returncode == 0 and place.arrived() == recorded(as_user.store)


FORGE = """
import sys
with open(sys.argv[1], "r+") as journal:
    seq, *rest = journal.readlines()[-1].split("\\t")
    journal.write("\\t".join([str(int(seq) + 1), *rest]))
"""


@pytest.mark.fleet
@pytest.mark.parametrize(
    "attack",
    [
        'rm "$1"',
        'cp "$1" x; mv x "$1"',
        'echo garbage >>"$1"',
        'head -n 2 "$1" >>"$1"',
        'rm -rf "$PWD"',
        f"""{PYTHON[0]} -ISc '{FORGE}' "$1" """,
        'tail -n 1 "$1" | sed "s/[0-9][0-9]*/999999/" >>"$1"',
        'for each in *.shipped; do echo "{}" >"$each"; done',
    ],
)
def test_a_session_that_damages_its_log_is_shipped_whole(sigwrap: Sigwrap, attack: str) -> None:
    place = Place(sigwrap, None)
    line = f'cd "$0/sessions"; set *.journal; echo ready; read x; {attack}; exit 3'
    process = place.start(command=("--", "sh", "-c", line, str(sigwrap.store)))
    place.await_some()
    process.say(b"\n")
    code, said = _end(process)
    assert code == 3 and not [each for each in said if b"ships" in each], said
    assert set(place.arrived()) == set(recorded(sigwrap.store))
    place.is_intact()


# Until the file `over` is there, put an unlocked copy in place of the journal, or nothing.
REPLACE = """
import os, sys
journal = sys.argv[1]
rows = open(journal, "rb").read()
while not os.path.exists("over"):
    if sys.argv[2] == "copied":
        with open("copy", "wb") as copy:
            copy.write(rows)
        os.rename("copy", journal)
    for name in (journal, journal[:-8] + ".db") * (sys.argv[2] == "gone"):
        if os.path.exists(name):
            os.unlink(name)
"""


@pytest.mark.fleet
@pytest.mark.parametrize("kind", ["copied", "gone"])
def test_a_session_can_not_end_its_shipping(as_user: Sigwrap, kind: str) -> None:
    place = Place(as_user, None)
    attack = f"{PYTHON[0]} -ISc '{REPLACE}' \"$1\" {kind}; /bin/echo evil; exit 3"
    line = f'cd "$0/sessions"; set *.journal; echo ready; read x; {attack}'
    command = ("--", "sh", "-c", line, str(as_user.store))
    process = place.start("--ship-required", command=command)
    place.await_some()
    process.say(b"\n")
    shipper = _shipper(process)
    looks = _times_waited(shipper)
    await_that(lambda: _times_waited(shipper) > looks + 1 or procfs.has_ended(shipper))
    (as_user.store / "sessions" / "over").touch()
    code, _ = _end(process)
    assert code == 3 and set(place.arrived()) == set(recorded(as_user.store))
    place.is_intact()


def _times_waited(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"^voluntary_ctxt_switches:\t(\d+)", status, re.MULTILINE)[0])


def _as_journal(rows: list[Row]) -> bytes:
    return b"".join(journal_line(canonical_row(*each[:-1]), each.hash) for each in rows)


def _after(row: Row, kind: str, payload: str) -> Row:
    """Return a row that continues the chain."""
    later = row._replace(seq=row.seq + 1, type=kind, payload=payload)
    head = next_hash(bytes.fromhex(row.hash), canonical_row(*later[:-1]), hasher(b""))
    return later._replace(hash=head.hex())


def _forge_journal(session: Session) -> list[IO[bytes]]:
    """Put a shorter log in place of the database, as if its writer were running."""
    rows = [*session.rows()][:3]
    journal = Path(journal_path(session.path))
    journal.write_bytes(_as_journal([*rows, _after(rows[-1], "session_ended", '{"v":1}')]))
    locked = journal.open("rb")
    fcntl.flock(locked, fcntl.LOCK_EX)
    return [locked]


def _patch_database(session: Session) -> list[IO[bytes]]:
    database = Path(session.path)
    content = database.read_bytes()
    assert b"/bin/true" in content
    database.write_bytes(content.replace(b"/bin/true", b"/bin/evil"))
    return []


@pytest.mark.parametrize("forge", [_forge_journal, _patch_database])
def test_a_log_that_is_changed_after_the_end_is_told_of(
    sigwrap: Sigwrap, forge: Callable[[Session], list[IO[bytes]]]
) -> None:
    place = Place(sigwrap, None)
    process = place.start("--ship-required")
    front, shipper = _front(process.pid), _shipper(process)
    os.kill(shipper, signal.SIGSTOP)
    process.say(b"\n")
    await_that(lambda: children(front) == [shipper])
    (session,) = all_sessions(sigwrap.store)
    real = [row.hash for row in session.rows()]
    held_open = forge(session)
    os.kill(shipper, signal.SIGCONT)
    code, (line,) = _end(process)
    for each in held_open:
        each.close()
    assert code == REFUSED and b"another program changed the log" in line
    assert {head for *_, head in place.arrived()} < set(real)


def test_a_killed_front_process_need_not_hear_the_shipper(sigwrap: Sigwrap) -> None:
    place = Place(sigwrap, None)
    lake = sigwrap.folder / "lake"
    lake.write_bytes(b"")
    process = place.start()
    front, shipper = _front(process.pid), _shipper(process)
    os.kill(front, signal.SIGSTOP)
    looks = _times_waited(shipper)
    await_that(lambda: _times_waited(shipper) > looks + 1)
    lake.unlink()
    os.kill(front, signal.SIGKILL)
    process.communicate(timeout=60)
    await_that(lambda: procfs.has_ended(shipper) and not sigwrap.alive())
    assert place.arrived() == recorded(sigwrap.store)


@pytest.mark.fleet
@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("new", '{"v":1}'),
        ("exec_allowed", '{"v":1,"path":"\\ud800","argv":["\\ud800"]}'),
        ("exec_allowed", "not JSON"),
        ("exec_allowed", "[]"),
        ("exec_allowed", '{"v":1,"argv":' + "[" * 5_000 + "]" * 5_000 + "}"),
    ],
)
def test_if_a_forged_event_was_shipped_all_is_shipped_and_shows_it(
    sigwrap: Sigwrap, kind: str, payload: str
) -> None:
    make_sessions(sigwrap)
    (session,) = all_sessions(sigwrap.store)
    rows = [*session.rows()]
    forged = _after(rows[1], kind, payload)
    journal = Path(journal_path(session.path))
    journal.write_bytes(_as_journal([*rows[:2], forged]))
    place = Place(sigwrap, None)
    with closing(Live(session, objects_at(place.url, {}), None)) as live:
        assert not live.deliver()
        there = [each for *_, each in place.arrived()]
        assert there[:2] == [each.hash for each in rows[:2]] and there[2:] in ([], [forged.hash])
        journal.write_bytes(_as_journal(rows))
        assert not live.deliver()
        journal.unlink()
        with held(str(sigwrap.store), SESSIONS_FOLDER) as files:
            done = ship(session, files, objects_at(place.url, {}), live.cursor)
    assert done.is_whole and done.head == rows[-1].hash
    assert set(place.arrived()) >= set(recorded(sigwrap.store))
    verified = sigwrap.run("verify", "--lake", place.url, forks=False)
    assert (b"row 3: it has two hashes" in verified.stdout) == bool(there[2:])


def test_a_store_gets_what_it_could_not_take_before(
    sigwrap: Sigwrap, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sessions(sigwrap)
    (session,) = all_sessions(sigwrap.store)
    rows = [*session.rows()]
    Path(journal_path(session.path)).write_bytes(_as_journal(rows[:3]))
    place = Place(sigwrap, None)
    folder = Path(place.url.removeprefix("file://"))
    with closing(Live(session, objects_at(place.url, {}), None)) as live:
        for failure in (MemoryError, sqlite3.OperationalError, KeyError):
            with monkeypatch.context() as patch:
                patch.setattr(Maker, "segment", _raises(failure))
                assert failure.__name__ in live.deliver()
        folder.write_bytes(b"")
        assert "can't use" in live.deliver()
        folder.unlink()
        assert not live.deliver()
    assert [each for *_, each in place.arrived()] == [each.hash for each in rows[:3]]


def _raises(failure: type[Exception]) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise failure

    return fail


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--ship", "nowhere"], "not the URL of a folder or a bucket"),
        (["--ship", "https://secret:secret@host/x"], "not the URL"),
        (["--ship", "s3://bucket/x"], "needs --ship-credential-fd N"),
        (["--ship", "s3://bucket/x", "--ship-credential-fd", "99"], "99: not open"),
        (["--ship", "s3://bucket/x", "--ship-credential-fd", "1"], "not the number"),
        (["--ship", "s3://bucket/x", "--ship-credential-fd", "x" * 99], "not the number"),
        (["--ship", "file:///x", "--join-name", "x"], "can't be combined with --join-name"),
        (["--ship-required"], "--ship-required, but nothing is shipped"),
        (["--ship-timeout", "5s"], "--ship-timeout, but nothing is shipped"),
        (["--ship-credential-fd", "3"], "--ship-credential-fd, but nothing is shipped"),
    ],
)
def test_a_wrong_line_is_refused_before_the_command(
    sigwrap: Sigwrap, words: list[str], says: str
) -> None:
    done = sigwrap.run(*words, "--", "echo", "ran")
    (line,) = done.stderr.decode().splitlines()
    assert (done.returncode, done.stdout) == (REFUSED, b"") and says in line
    assert "secret" not in line and not session_ids(str(sigwrap.store))


def test_a_credential_that_can_not_be_read_is_refused(sigwrap: Sigwrap) -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"AccessKeyId": "hidden"}')
    os.close(writing)
    line = ("--ship", "s3://bucket/x", "--ship-credential-fd", str(reading), "--", "echo", "ran")
    done = sigwrap.run(*line, pass_fds=[reading])
    os.close(reading)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (REFUSED, b"") and "has no credential" in said
    assert "hidden" not in said


def test_a_run_inside_a_session_can_not_ship(as_user: Sigwrap) -> None:
    line = as_user.line("--ship", f"file://{as_user.folder}/lake", "--", "true")
    done = as_user.run("--", *line)
    assert done.returncode == REFUSED and b"in a session can't ship" in done.stderr
