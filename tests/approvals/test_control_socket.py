"""Peers that misbehave: nothing they do holds the loop up, or gets them an answer they may not
give."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import NOBODY, PYTHON, UNDER_TEST, Sigwrap
from tests.support.waiting import PATIENCE_S, reader

Make = Callable[..., Any]


def socket_path(subject: Any) -> str:
    return str(subject.store / "control" / f"{subject.session_id}.sock")


@contextmanager
def connected(subject: Any) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(PATIENCE_S)
        end.connect(socket_path(subject))
        yield end


def replies(end: socket.socket) -> list[dict[str, Any]]:
    """Until it hangs up."""
    received = b""
    while data := end.recv(1 << 16):
        received += data
    return [json.loads(line) for line in received.splitlines()]


def send(end: socket.socket, data: bytes) -> list[dict[str, Any]]:
    end.sendall(data)
    end.shutdown(socket.SHUT_WR)
    return replies(end)


# Peers that are refused


def refused_inside(subject: Any) -> list[dict[str, Any]]:
    events = subject.events("control_refused")
    assert all(event.payload["inside_session"] for event in events)
    return [event.payload for event in events]


def test_a_process_with_one_filter_more_is_refused_whoever_its_parents_are(
    asking: Make, programs: Path
) -> None:
    subject, approval_id = asking().start_and_ask()
    line = [*PYTHON, str(programs / "filtered.py"), socket_path(subject), approval_id]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    reply = json.loads(done.stdout)
    assert (reply["ok"], reply["error"]) == (False, "inside")
    [event] = refused_inside(subject)
    assert event["peer_uid"] == os.getuid()
    assert socket_path(subject) in event["peer_cmd"]
    assert subject.ping()
    assert not subject.events("approval_granted")


def test_a_refusal_that_every_session_would_give_is_said_once(
    asking: Make, sigwrap: Sigwrap
) -> None:
    subjects = [asking().start(), asking().start()]
    assert subjects[0].store == subjects[1].store
    words = (("approve", subjects[0].ask()), ("approvals",))
    for line in words:
        inside = (UNDER_TEST, *line, "--store", str(subjects[0].store))
        done = sigwrap.run("--store", str(sigwrap.folder / "other"), "--", *inside)
        assert done.returncode == 125
        assert done.stderr.decode().count("processes in a session can't answer") == 1
        assert done.stdout == b""
    assert all(map(refused_inside, subjects))


def test_a_refusal_by_one_session_keeps_nobody_from_another(asking: Make, programs: Path) -> None:
    """A process with one filter more than one session may have none more than the next."""
    filtered = [*PYTHON, str(programs / "filtered.py"), "exec"]
    plain, other = asking().start(), asking().start(by=filtered)
    approval_id = other.ask()
    for words in (("approvals",), ("approve", approval_id)):
        said = plain.sigwrap(*words, by=filtered)
        assert said.returncode == 0
        assert approval_id in said.stdout
        assert said.stderr.count("it is in a supervised session") == 1
        assert said.stderr.count("skipped: ") == 1
    unknown = plain.sigwrap("approve", "never", by=filtered)
    assert "there is no request 'never' in the sessions that answered" in unknown.stderr
    assert refused_inside(plain)
    assert not other.events("control_refused")


def test_sessions_of_which_none_answers_are_no_empty_list(asking: Make) -> None:
    subjects = [asking().start(), asking().start()]
    for subject in subjects:
        os.kill(subject.pid, signal.SIGSTOP)
    said = subjects[0].sigwrap("approvals")
    for subject in subjects:
        os.kill(subject.pid, signal.SIGCONT)
    assert (said.returncode, said.stdout) == (125, "")
    assert said.stderr.count("does not answer") == 2
    assert said.stderr.count("skipped: ") == 1


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_another_user_is_refused(asking: Make, programs: Path) -> None:
    subject, approval_id = asking().start_and_ask()
    folder = subject.store / "control"
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777)
    for path in (subject.store, *subject.store.parents):
        if path.stat().st_uid == os.getuid() and path.stat().st_mode & 0o777 == 0o700:
            path.chmod(0o711)
    line = [*PYTHON, str(programs / "as_another_user.py"), socket_path(subject), str(NOBODY)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert json.loads(done.stdout)["message"] == "refused: it belongs to another user"
    [event] = subject.events("control_refused")
    assert event.payload["peer_uid"] == NOBODY
    assert subject.sigwrap("deny", approval_id).returncode == 0


def test_a_peer_that_is_gone_is_refused(asking: Make) -> None:
    subject = asking().start()
    program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    os.kill(subject.pid, 19)
    subprocess.run([*PYTHON, "-c", program, socket_path(subject)], timeout=PATIENCE_S, check=True)
    os.kill(subject.pid, 18)
    with connected(subject) as end:
        assert send(end, b'{"v": 1, "do": "list"}\n')[0]["ok"]
    [event] = subject.events("control_refused")
    assert event.payload["reason"].startswith("it ")


def test_a_socket_that_a_supervised_process_put_there_is_not_believed(
    asking: Make, programs: Path
) -> None:
    subject, other = asking().start(), asking().start()
    approval_id, other_id = subject.ask(), other.ask()
    line = [*PYTHON, str(programs / "filtered.py"), socket_path(subject), approval_id, "serve"]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as fake:
        reader(fake.stdout).until(rb"ready\n")
        said = subject.sigwrap("approvals")
        as_json = subject.sigwrap("approvals", "--json")
        fake.kill()
    assert said.returncode == 0
    assert other_id in said.stdout and approval_id not in said.stdout
    assert "may be a supervised process itself" in said.stderr
    assert "skipped: " in said.stderr
    document = json.loads(as_json.stdout)
    assert document["schema"] == "sigwrap.approvals/1"
    assert [each["id"] for each in document["requests"]] == [other_id]
    (unreachable,) = document["unreachable"]
    assert unreachable["session_id"] == subject.session_id
    assert "may be a supervised process itself" in unreachable["why"]
    shown = json.loads(subject.sigwrap("approvals", "--full", other_id, "--json").stdout)
    assert shown["unreachable"] == []


# Peers that send nonsense


GARBAGE = (
    (b"\x00\xff\xfe", "bad-request"),
    (b'{"v": 1}', "bad-request"),
    (b'{"v": 1, "do": "approve"}', "bad-request"),
    (b'{"v": 1, "do": "approve", "id": ["x"]}', "bad-request"),
    (b'{"v": 1, "do": "rm"}', "bad-request"),
    (b'{"v": 2, "do": "list"}', "version"),
    (b'{"v": 1, "do": "approve", "id": "\\ud800"}', "unknown-id"),
)


def test_garbage_is_answered_and_harmless(asking: Make) -> None:
    subject, approval_id = asking().start_and_ask()
    for line, error in GARBAGE:
        with connected(subject) as end:
            [reply] = send(end, line + b"\n")
        assert (reply["ok"], reply["error"], reply["v"]) == (False, error, 1), line
    assert subject.sigwrap("approve", approval_id).returncode == 0


def test_a_line_without_end_is_cut_off(asking: Make) -> None:
    subject = asking().start()
    with connected(subject) as end:
        said = b""
        try:
            while True:
                end.sendall(b"x" * 65536)
        except OSError:
            pass
        try:
            said = end.recv(65536)
        except ConnectionResetError:
            pass
    assert not said or json.loads(said)["error"] == "bad-request"
    assert subject.ping()


def test_a_connection_has_one_request(asking: Make) -> None:
    subject, approval_id = asking().start_and_ask()
    lines = [{"v": 1, "do": "deny", "id": each, "message": 5} for each in ("never", approval_id)]
    with connected(subject) as end:
        end.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        assert json.loads(end.recv(1 << 16))["error"] == "unknown-id"
    with connected(subject) as end:
        [reply] = send(end, json.dumps(lines[1]).encode() + b"\n")
    assert reply["ok"]
    assert subject.answer() == (approval_id, False, "denied")


def test_answers_are_not_taken_where_only_the_terminal_may_give_them(asking: Make) -> None:
    subject = asking("tty").start()
    said = subject.sigwrap("approve", "abcdef")
    assert said.returncode == 125
    assert "--approvals tty" in said.stderr


# Peers that keep their connections


def test_silent_peers_keep_nobody_else_out(asking: Make) -> None:
    """As many as there are places; each loses its place in the end."""
    subject, approval_id = asking().start_and_ask()
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(subject)) for _ in range(32)]
        subject.ping()
        done = subject.sigwrap("approve", approval_id)
        assert done.returncode == 0, done.stderr
        assert subject.answer() == (approval_id, True, "granted")
        for end in silent:
            assert replies(end) == []


def test_however_many_peers_say_nothing_an_answer_gets_through_at_once(asking: Make) -> None:
    """The one that has been silent for longest makes room, long before its time is over."""
    subject = asking(more=("--patience=3600",)).start()
    approval_id = subject.ask()
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(subject)) for _ in range(65)]
        done = subject.sigwrap("approve", approval_id)
        assert done.returncode == 0, done.stderr
        assert subject.answer() == (approval_id, True, "granted")
        assert replies(silent[0]) == []
        silent[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            silent[-1].recv(1)


def test_a_flood_from_inside_a_session_keeps_no_answer_out(
    asking: Make, sigwrap: Sigwrap, programs: Path
) -> None:
    subject, approval_id = asking().start_and_ask()
    other = sigwrap.folder / "other"
    line = [*PYTHON, str(programs / "floods.py"), socket_path(subject)]
    flood = sigwrap.start("--store", str(other), "--", *line)
    reader(flood.stdout).until(rb"floods")
    for _ in range(20):
        assert subject.ping()
    done = subject.sigwrap("approve", approval_id)
    flood.terminate()
    assert done.returncode == 0, done.stderr
    assert len(subject.events("control_refused")) < 1_000


def test_a_peer_that_takes_no_reply_is_dropped(asking: Make) -> None:
    subject = asking().start()
    for number in range(50):
        subject.ask("x" * 4000, key=[str(number)])
    with connected(subject) as end:
        end.sendall(b'{"v": 1, "do": "list"}\n')
        assert subject.ping()
        poll = select.poll()
        poll.register(end, select.POLLHUP)
        assert poll.poll(PATIENCE_S * 1000)
