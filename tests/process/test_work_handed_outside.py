"""A connection to a server of the same user that is not of the session is told of: what that one
does is neither judged nor recorded."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import NOBODY, PYTHON, Running, Sigwrap
from tests.support.waiting import reader


@pytest.fixture
def agents_folder(as_user: Sigwrap) -> Iterator[str]:
    """Where ssh-agent has its socket."""
    folder = tempfile.mkdtemp(prefix="ssh-", dir="/tmp")
    if as_user.user is not None:
        os.chown(folder, as_user.user, as_user.user)
    yield folder
    shutil.rmtree(folder)


def served(subject: Sigwrap, line: list[str], programs: Path, *names: str) -> Running:
    server = subject.start_line([*line, *PYTHON, str(programs / "serves_outside.py"), *names])
    assert reader(server.stdout).line() == b"ready"
    return server


@pytest.mark.promise("work handed outside")
def test_it_is_told_of_who_is_handed_work_outside(
    as_user: Sigwrap, programs: Path, agents_folder: str
) -> None:
    folder, mark = as_user.folder, as_user.mark
    os.chmod(folder, 0o777)
    told = [f"{folder}/file", f"@{mark}", f"{folder}/x.packets"]
    marked, others = f"{agents_folder}/agent.1", f"{folder}/others"
    server = served(as_user, as_user.as_user(), programs, *told, marked)
    another = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "--"] if not as_user.user else []
    if os.getuid() == 0:
        served(as_user, another, programs, others)
    line = [*PYTHON, str(programs / "hands_work_over.py"), str(folder), *told, marked]
    line += [others] if os.getuid() == 0 else []
    done = as_user.run("--", *line)
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr

    events = as_user.sealed_events("connection_allowed", "work_handed_outside")
    first = {}
    for each in reversed(events):
        if each.type == "work_handed_outside":
            first[each.payload["socket"]] = each
            assert (each.payload["peer_pid"], each.payload["syscall"]) == (server.pid, "connect")
            assert each.payload["peer_argv"][-1] == marked
    assert list(reversed(first)) == [f"unix:{each}" for each in told]
    for socket, each in first.items():
        before = events[events.index(each) - 1]
        assert (before.type, before.payload["destination"]) == ("connection_allowed", socket)
    handed = [each for each in events if each.type == "work_handed_outside"]
    assert sum(each.payload.get("count", 1) for each in handed) == 9

    said = f"handed work outside the session, to PID {server.pid} "
    line_of_text = as_user.run("report").stdout.decode().splitlines()[1]
    assert line_of_text.startswith(said) and f" (unix:{told[0]}, by " in line_of_text
    markdown = as_user.run("report", "--format", "md").stdout.decode().splitlines()
    assert markdown[4].startswith(f"**{said}")
    found = json.loads(as_user.run("report", "--format", "json").stdout)["handed_outside"]["found"]
    assert [(each["pid"], each["count"]) for each in found] == [(server.pid, 3)] * 3
    page = as_user.run("report", "--format", "html").stdout.decode()
    assert said in page
    rows = as_user.run(
        "query", "--json", "select peer_pid, sum(count) as n from outside group by peer_pid"
    )
    assert json.loads(rows.stdout) == [{"peer_pid": server.pid, "n": 9}]


def test_a_server_of_the_session_that_closes_its_socket_at_once_is_not_outside(
    as_user: Sigwrap,
) -> None:
    """The connection is made then, but the listening socket is gone."""
    script = (
        "import os, socket\n"
        "for number in range(200):\n"
        "    server = socket.socket(socket.AF_UNIX)\n"
        "    server.bind(f'own.{number}'); server.listen()\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        server.close()\n"
        "        socket.socket(socket.AF_UNIX).connect(f'own.{number}')\n"
        "        os._exit(0)\n"
        "    server.accept(); server.close()\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
    )
    assert as_user.run("--", *PYTHON, "-c", script).returncode == 0
    events = as_user.sealed_events("connection_allowed", "work_handed_outside")
    assert {each.type for each in events} == {"connection_allowed"}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_pid_of_the_session_hides_no_listener_that_had_it(
    sigwrap: Sigwrap, programs: Path
) -> None:
    ended, takes = (
        str(programs / f"{name}.py")
        for name in ("listener_has_ended", "takes_the_listeners_number")
    )
    server = sigwrap.start_line([*PYTHON, ended, sigwrap.mark])
    pid = reader(server.stdout).line().decode()
    done = sigwrap.run("-p", "agent-observe", "--", *PYTHON, takes, sigwrap.mark, pid)
    if done.stdout == b"False\n":
        pytest.skip("other processes took the number")
    assert (done.returncode, done.stdout) == (0, b"True\n"), done.stderr
    found = [event.payload for event in sigwrap.sealed_events("work_handed_outside")]
    assert {each["peer_pid"] for each in found} == {int(pid)}
    assert sum(each.get("count", 1) for each in found) == 7
