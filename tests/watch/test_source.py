"""What is seen of the logs of a store, whatever lies in it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.events import Event
from sigwrap.log.folder import database_path, journal_path
from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog
from sigwrap.watch.followed import LINES_KEPT, Followed, line_of
from sigwrap.watch.source import Source
from tests.support.harness import PYTHON, Running, Sigwrap
from tests.support.waiting import PATIENCE_S, await_that, reader

CROWDS = str(Path(__file__).parent / "programs" / "crowds.py")
RULES = """version: 1
name: mine
defaults: {command: audit}
command_rules:
  - {name: ask-uname, commands: [uname], decision: approve}
"""

STARTED = {"session_id": "s1", "command": ["npm", "start"], "name": "build", "policy": "mine"}


def log_of(store: Path, session_id: str = "s1") -> SessionLog:
    log = SessionLog.create(str(store), session_id)
    log.append("session_started", os.getpid(), {**STARTED, "session_id": session_id}, 1)
    return log


def deny(log: SessionLog, count: int, words: str = "x") -> None:
    for _ in range(count):
        log.append("exec_denied", 7, {"argv": ["rm", words], "path": "/bin/rm"}, time.time_ns())


def read_up_to(followed: Followed, seq: int) -> None:
    """It reads for so long and no longer; how many rows that are depends on the machine."""

    def has_come_to_it() -> bool:
        followed.read_on()
        return followed.last is not None and followed.last.seq >= seq

    await_that(has_come_to_it)


def agent_that_asks(sigwrap: Sigwrap, *words: str) -> Running:
    (sigwrap.folder / "mine.yaml").write_text(RULES)
    options = ("-p", str(sigwrap.folder / "mine.yaml"), "--name", "agent", "--approvals", "control")
    process = sigwrap.start(*options, "--no-report", "--", *words)
    assert b"needs approval" in reader(process.stderr).line()
    return process


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SessionLog]:
    with closing(log_of(tmp_path)) as found:
        yield found


@pytest.fixture
def followed(log: SessionLog, tmp_path: Path) -> Iterator[Followed]:
    with closing(Followed(Session("s1", database_path(str(tmp_path), "s1")))) as found:
        yield found


@pytest.fixture
def watching(held_proc: None, tmp_path: Path) -> Iterator[Callable[[], Source]]:
    started: list[Source] = []

    def start() -> Source:
        started.append(Source(str(tmp_path)))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_a_session_comes_is_followed_and_ends(
    tmp_path: Path, watching: Callable[[], Source]
) -> None:
    source = watching()
    assert source.board().sessions == ()
    log = log_of(tmp_path)
    deny(log, 3)
    await_that(lambda: [each.denied for each in source.board().sessions] == [3])
    (seen,) = source.board().sessions
    assert (seen.name, seen.command, seen.state) == ("build", ("npm", "start"), "running")
    lines, left_out = source.lines("s1", 0, 10)
    assert ([each.seq for each in lines], left_out) == ([1, 2, 3, 4], 0)
    assert source.lines("s1", 1, 2)[1] == 1
    log.append("session_ended", 1, {"head": log.head, "exit_status": 3, "reason": "it ended"}, 2)
    log.close()
    await_that(lambda: [each.state for each in source.board().sessions] == ["ended"])
    (seen,) = source.board().sessions
    assert (seen.exit_status, seen.ended) == (3, "it ended, exit 3")
    await_that(lambda: source.lines("s1", 4, 10)[0] != [])
    assert source.lines("s1", 4, 10)[0][0].type == "session_ended"


def test_of_one_that_had_ended_before_nothing_is_counted(
    tmp_path: Path, watching: Callable[[], Source]
) -> None:
    log = log_of(tmp_path)
    deny(log, 3)
    log.append("session_ended", 1, {"head": log.head, "exit_status": 0, "reason": "it ended"}, 2)
    log.close()
    source = watching()
    await_that(lambda: source.board().sessions != ())
    (seen,) = source.board().sessions
    assert (seen.denied, seen.asked, seen.processes) == (None, None, None)


@pytest.mark.tier("ci")
@pytest.mark.usefixtures("held_proc")
def test_what_waits_is_there_at_once(sigwrap: Sigwrap, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("_FIRST_ANSWERS_S", "_FIRST_SIGHT_S"):
        monkeypatch.setattr(f"sigwrap.watch.source.{bound}", PATIENCE_S)
    process = agent_that_asks(sigwrap, "uname")
    with closing(Source(str(sigwrap.store))) as source:
        source.start()
        board = source.board()
    (request,) = board.waiting
    assert (request.session_name, request.what) == ("agent", "uname")
    (seen,) = board.sessions
    assert (seen.asked, seen.processes) == (1, 1)
    process.terminate()
    process.wait(PATIENCE_S)


@pytest.mark.tier("ci")
@pytest.mark.usefixtures("held_proc")
def test_a_request_is_seen_among_any_number_of_false_logs(sigwrap: Sigwrap) -> None:
    process = agent_that_asks(sigwrap, *PYTHON, CROWDS, str(sigwrap.store))
    with closing(Source(str(sigwrap.store))) as source:
        source.start()
        await_that(lambda: len(source.board().sessions) >= 100 and source.board().waiting != ())
        (request,) = source.board().waiting
        assert (request.session_name, request.what) == ("agent", "uname")
        await_that(lambda: source.board().sessions[0].id == request.session_id)
        assert source.board().sessions[0].asked == 1
        assert all(len(each.command) <= 100 for each in source.board().sessions)
        assert source.board().more > 0
    process.terminate()
    process.wait(PATIENCE_S)


def test_a_store_that_can_t_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_bytes(b"no folder")
    source = Source(str(tmp_path))
    with pytest.raises(StoreError, match="can't read the store"):
        source.start()
    source.close()


def test_a_log_that_grows_too_fast_is_left_out_in_part(log: SessionLog, followed: Followed) -> None:
    followed.read_on()
    deny(log, 5_000, "x" * 1_500)
    last = 0
    while last < 5_001:
        assert not followed.read_on()
        assert followed.lines(0)[-1].seq > last
        last = followed.lines(0)[-1].seq
    lines = followed.lines(0)
    assert lines[-1].seq == 5_001
    assert len(lines) <= LINES_KEPT
    assert followed.denied < 5_000


def test_a_refusal_along_path_counts_once(log: SessionLog, followed: Followed) -> None:
    for path in ("/usr/bin/date", "/bin/date", "/usr/bin/date"):
        payload = {"argv": ["date"], "path": path, "retry": path == "/bin/date"}
        log.append("exec_denied", 7, payload, time.time_ns())
    read_up_to(followed, 4)
    assert (followed.denied, len(followed.lines(0))) == (2, 4)


def test_an_event_of_any_type_moves_no_cursor() -> None:
    line = line_of(Event(1, 1, "\x1b[2J\u202e" * 40, 7, {"\x1b": "\x1b]0;x\x07"}, ""))
    assert line.type.isprintable() and line.text.isprintable()
    assert "\u202e" not in line.type


def test_a_log_that_is_long_already_is_not_read_from_its_beginning(
    log: SessionLog, followed: Followed
) -> None:
    deny(log, 2_000, "x" * 1_000)
    read_up_to(followed, 2_001)
    assert followed.lines(0)[0].seq > 1_000


@pytest.mark.parametrize("what", ["fifo", "folder", "garbage", "link", "socket"])
def test_what_lies_there_instead_of_a_log_hides_no_other(
    tmp_path: Path, log: SessionLog, watching: Callable[[], Source], what: str
) -> None:
    path = Path(journal_path(database_path(str(tmp_path), "zz")))
    match what:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "garbage":
            path.write_bytes(b"\xff\x00" * 100_000 + b"\n")
        case "link":
            path.symlink_to("/dev/zero")
        case "socket":
            folder = os.open(path.parent, os.O_PATH)
            with socket.socket(socket.AF_UNIX) as end:  # its path may be too long for an address
                end.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
    source = watching()
    await_that(lambda: "s1" in [each.id for each in source.board().sessions])
    deny(log, 1)
    await_that(lambda: 1 in [each.denied for each in source.board().sessions])


def test_a_session_knows_whether_an_approver_watches(tmp_path: Path) -> None:
    from sigwrap.approve.control_socket import is_attended
    from sigwrap.watch.attendance import Attendance

    attendance = Attendance(str(tmp_path))
    attendance.attend(True)

    def is_seen() -> bool:
        fd = os.open(tmp_path / "control", os.O_RDONLY)
        try:
            return is_attended(fd)
        finally:
            os.close(fd)

    assert is_seen()
    (tmp_path / "control").rename(tmp_path / "aside")  # as a process in a session can
    attendance.look()
    assert is_seen()
    attendance.attend(False)
    assert not is_seen()
    attendance.attend(True)
    attendance.attend(False)
    assert not is_seen()
