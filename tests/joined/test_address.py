"""The address that commands join by, in the hands of those inside, and of others of this machine.
It has no file: what they do to the store has no part in who is joined."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from sigwrap.approve.control_socket import SOCKET_SUFFIX
from tests.joined.addresses import JOIN, at, is_listened_at, sessions
from tests.support.harness import PYTHON, REFUSED, Sigwrap
from tests.support.waiting import PATIENCE_S, Watch, await_that, reader

OTHER = ("--join-name", "other", "--policy", "agent-observe")


def _takes(programs: Path, address: str) -> tuple[str, ...]:
    return (*PYTHON, str(programs / "takes_an_address.py"), address)


def _has_its_socket_again(subject: Sigwrap) -> bool:
    paths = [event.payload["path"] for event in subject.events("store_tampered")]
    return any(path.endswith(SOCKET_SUFFIX) for path in paths)


@pytest.mark.parametrize("deed", ["mv S gone; ln -s gone S", "rm -rf S; mkdir -p S"])
def test_whatever_becomes_of_the_store_it_is_the_same_session(subject: Sigwrap, deed: str) -> None:
    first = subject.run(*JOIN, "--", "sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!")
    script = deed.replace("S", str(subject.store))
    assert subject.run(*JOIN, "--", "sh", "-c", script).returncode == 0
    again = subject.run(*JOIN, "--", "sh", "-c", f"kill -0 {int(first.stdout)} && echo there")
    assert again.stdout == b"there\n", again.stderr
    subject.await_event("store_tampered")
    await_that(lambda: _has_its_socket_again(subject))  # the session then ends when it is told to
    assert sessions(subject) == 1


def test_nobody_inside_takes_it_before_the_session_has_ended(
    subject: Sigwrap, programs: Path
) -> None:
    """A command that joins while it ends waits for the next one."""
    words = (*JOIN, "--grace", "2", "--")
    takes = subject.start(*words, *_takes(programs, at(subject)))
    reader(takes.stdout).until(rb"ready")
    with Watch(subject.alive()) as watch:
        subject.run("signal", "agent", "SIGTERM")
        found = subject.run(*words, "echo", "in the next one")
        assert (found.stdout, found.stderr) == (b"in the next one\n", b"")
        watch.await_ends()
    assert takes.wait(PATIENCE_S) != 0
    assert b"taken" not in takes.stdout.read()
    assert sessions(subject) == 2


def test_a_stand_in_for_another_session_is_not_believed(subject: Sigwrap, programs: Path) -> None:
    takes = subject.start(*JOIN, "--", *_takes(programs, at(subject, "other")))
    pid = int(reader(takes.stdout).until(rb"taken by (\d+)").split()[-1])
    refused = subject.run(*OTHER, "--", "echo", "never")
    assert (refused.returncode, refused.stdout) == (REFUSED, b"")
    assert b"can't trust the process that answers for session other: " in refused.stderr
    with Watch([pid]) as watch:
        os.kill(pid, signal.SIGKILL)
        watch.await_ends()
    assert subject.run(*OTHER, "--", "echo", "its own").stdout == b"its own\n"
    subject.run("signal", "other", "SIGKILL")


def test_who_listens_again_and_again_is_not_believed(subject: Sigwrap, programs: Path) -> None:
    """A child of that session's supervisor calls listen(2) in its place, and is there then."""
    line = (*PYTHON, str(programs / "listens_again.py"), at(subject, "other"))
    takes = subject.start(*JOIN, "--", *line)
    said = reader(takes.stdout)
    said.until(rb"taken")
    refused = subject.run(*OTHER, "--", "echo", "never")
    assert (refused.returncode, refused.stdout) == (REFUSED, b"")
    assert b"can't trust the process" in refused.stderr
    takes.kill()
    takes.wait()
    assert b"believed" not in said.rest()


def test_a_crowd_from_inside_keeps_nobody_out(subject: Sigwrap, programs: Path) -> None:
    began_s = time.monotonic()
    crowds = subject.start(
        *JOIN, "--", *PYTHON, str(programs / "crowds_an_address.py"), at(subject)
    )
    reader(crowds.stdout).until(rb"ready")
    for number in range(3):
        found = subject.run(*JOIN, "--", "echo", str(number))
        assert found.stdout == b"%d\n" % number, found.stderr
    crowds.send_signal(signal.SIGTERM)
    crowds.wait(PATIENCE_S)
    took_s = time.monotonic() - began_s
    assert 0 < len(subject.events("control_refused")) <= 10 + took_s * 50
    assert sessions(subject) == 1


def test_another_users_is_not_believed(as_user: Sigwrap, programs: Path) -> None:
    """Any user of the machine can take a free address."""
    line = ("setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--")
    takes = as_user.start_line([*line, *_takes(programs, at(as_user, "other"))], cwd="/")
    reader(takes.stdout).until(rb"taken")
    refused = as_user.run(*OTHER, "--", "true")
    assert refused.returncode == REFUSED
    assert b": it belongs to another user" in refused.stderr
    takes.kill()
    takes.wait()
    await_that(lambda: not is_listened_at(at(as_user, "other")))
