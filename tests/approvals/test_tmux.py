"""Requests in a real tmux: asked in place where the session cannot reach the tmux's socket."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sigwrap.events import Payload
from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.terminal import ANSWERS
from tests.support.waiting import Late, await_that

POLICY = """
version: 1
name: asks
defaults: {command: allow, signal: allow}
command_rules:
  - {name: ask-first, commands: [uname], decision: approve}
"""
KEPT = "network_rules: [{name: tmux, destinations: ['unix:tmux'], decision: DECISION}]\n"
SAY_END = "; echo the-end"


class Tmux:
    """A tmux server, with one pane that runs sigwrap."""

    def __init__(self, subject: Sigwrap) -> None:
        self._subject = subject
        self._name = f"test-{subject.mark}"
        self.socket = f"/tmp/tmux-{subject.user or os.geteuid()}/{self._name}"
        self.do("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "sh")

    def do(self, *words: str) -> str:
        done = self._subject.native("tmux", "-L", self._name, *words, env={"SHELL": "/bin/sh"})
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def type(self, line: str) -> None:
        self.do("send-keys", "-l", line)
        self.do("send-keys", "Enter")

    def run(self, policy: Path, command: str) -> None:
        line = f"{UNDER_TEST} -p {policy} --no-report -- sh -c '{command}'"
        self.type(line + SAY_END)

    def shows(self, pattern: str) -> re.Match[str]:
        """The last match, once there is one: a request may come again, with another code."""
        found: list[re.Match[str]] = []
        screen = ""

        def is_shown() -> bool:
            nonlocal screen
            words = ("tmux", "-L", self._name, "capture-pane", "-p", "-J")
            screen = self._subject.native(*words).stdout.decode()
            found[:] = re.finditer(pattern, screen)
            return bool(found)

        try:
            await_that(is_shown)
        except Late:
            raise Late(f"{pattern!r} is not on the screen: {screen}") from None
        return found[-1]

    def answer_yes(self) -> None:
        question = ANSWERS.decode()
        code = self.shows(question)[1]
        time.sleep(0.35)  # an answer that comes faster is none, so there is no event to wait for
        self.type(f"y {code}")

    @contextmanager
    def connection_without_holder(self) -> Iterator[None]:
        """Connect to the server, with a socket that is only in a message which no process reads."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.socket)
            ours, theirs = socket.socketpair()
            socket.send_fds(ours, [b"."], [client.fileno()])
        with ours, theirs:
            yield

    def close(self) -> None:
        self._subject.native("tmux", "-L", self._name, "kill-server")
        Path(self.socket).unlink(missing_ok=True)  # tmux leaves it, and each run looks at all


@pytest.fixture
def tmux(as_user: Sigwrap) -> Iterator[Tmux]:
    tmux = Tmux(as_user)
    yield tmux
    tmux.close()


def policy(subject: Sigwrap, decision: str) -> Path:
    path = subject.folder / "asks.yaml"
    path.write_text(POLICY + (KEPT.replace("DECISION", decision) if decision else ""))
    path.chmod(0o644)
    return path


def request_number(number: int, subject: Sigwrap) -> Payload:
    await_that(lambda: len(subject.events("approval_requested")) > number)
    return subject.events("approval_requested")[number].payload


@pytest.mark.promise("approvals on a terminal")
@pytest.mark.parametrize("decision", ["deny", "approve"])
def test_a_request_is_answered_in_the_pane(as_user: Sigwrap, tmux: Tmux, decision: str) -> None:
    tmux.run(policy(as_user, decision), "uname -s")
    tmux.answer_yes()
    tmux.shows(r"Linux\n(.*\n)*the-end\n")
    (granted,) = as_user.sealed_events("approval_granted")
    assert granted.payload["by"] == "the terminal"


def test_without_a_rule_for_the_socket_it_names_where_to_answer(
    as_user: Sigwrap, tmux: Tmux
) -> None:
    tmux.run(policy(as_user, ""), "uname -s")
    tmux.shows("tmux lets processes in the session type on this terminal")
    (request,) = as_user.events("approval_requested")
    approval_id = request.payload["approval_id"]
    assert as_user.native(UNDER_TEST, "deny", approval_id).returncode == 0
    tmux.shows(r"request denied(.*\n)*the-end\n")


def test_another_pane_of_the_same_tmux_may_answer(as_user: Sigwrap, tmux: Tmux) -> None:
    tmux.run(policy(as_user, "deny"), "exec </dev/null; uname -s")
    tmux.shows(ANSWERS.decode())
    (request,) = as_user.events("approval_requested")
    approve = f"{UNDER_TEST} approve {request.payload['approval_id']}"
    tmux.do("split-window", "-d", f"{approve}; sleep 60")
    tmux.shows(r"Linux\n(.*\n)*the-end\n")
    assert not as_user.sealed_events("control_refused")


def test_it_asks_in_place_once_each_connection_has_a_known_holder(
    as_user: Sigwrap, tmux: Tmux
) -> None:
    """A client that exits also loses its descriptors before the kernel closes its sockets."""
    with tmux.connection_without_holder():
        tmux.run(policy(as_user, "deny"), "uname -s")
        tmux.shows("cannot be answered here: the session may be connected to tmux")
    tmux.answer_yes()
    tmux.shows(r"Linux\n(.*\n)*the-end\n")
    (granted,) = as_user.sealed_events("approval_granted")
    assert granted.payload["by"] == "the terminal"


@pytest.mark.parametrize("how", ["the socket", "another name of it"])
def test_the_session_cannot_type(as_user: Sigwrap, tmux: Tmux, how: str) -> None:
    """Not by a link either: the rule is about the socket, whatever it is called."""
    socket = tmux.socket
    if how == "another name of it":
        socket = str(as_user.folder / "link")
    link = f"ln {tmux.socket} {as_user.folder}/link; "
    types = f"{link} tmux -S {socket} send-keys y Enter; uname -s"
    tmux.run(policy(as_user, "deny"), types)
    tmux.shows("denied: connection to unix:")
    tmux.answer_yes()
    tmux.shows(r"Linux\n(.*\n)*the-end\n")


def test_once_a_connection_is_approved_it_asks_there_no_more(as_user: Sigwrap, tmux: Tmux) -> None:
    connects = f"tmux -S {tmux.socket} display-message -p connected; uname -s"
    tmux.run(policy(as_user, "approve"), connects)
    tmux.answer_yes()
    tmux.shows("connected")
    tmux.shows("cannot be answered here: the session has connected to tmux: server and may type")
    _, request = as_user.events("approval_requested")
    approval_id = request.payload["approval_id"]
    tmux.do("split-window", "-d", f"{UNDER_TEST} approve {approval_id}; sleep 60")
    await_that(lambda: bool(as_user.events("control_refused")))
    assert as_user.native(UNDER_TEST, "deny", approval_id).returncode == 0
    tmux.shows(r"request denied(.*\n)*the-end\n")


def test_a_socket_with_a_new_name_is_still_the_multiplexers(as_user: Sigwrap, tmux: Tmux) -> None:
    """tmux makes its socket again at SIGUSR1, and the session gives that another name at once."""
    path = policy(as_user, "deny")
    moved = as_user.folder / "moved"
    server = tmux.do("display-message", "-p", "#{pid}").strip()
    connects = f"tmux -S {moved} display-message -p conn-ected"
    again = f"kill -USR1 {server}; until mv {tmux.socket} {moved} && {connects}; do :; done"
    tmux.run(path, f"uname -s; ({again}) 2>/dev/null; mv {moved} {tmux.socket}; uname -r")
    tmux.answer_yes()
    tmux.shows("Linux\nconn-ected")
    tmux.shows("cannot be answered here: the session has connected to tmux: server and may type")
    _, request = as_user.events("approval_requested")
    assert as_user.native(UNDER_TEST, "deny", request.payload["approval_id"]).returncode == 0
    tmux.shows(r"request denied(.*\n)*the-end\n")


def test_a_connection_that_the_command_inherits_counts(as_user: Sigwrap, tmux: Tmux) -> None:
    """Also once it is closed: tmux may still do what the command told it."""
    program = (
        "import os, socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "os.dup2(s.fileno(), 9, inheritable=True); os.execv(sys.argv[2], sys.argv[2:])"
    )
    command = "uname -s; exec 9>&-; uname -r"
    line = f'{UNDER_TEST} -p {policy(as_user, "deny")} --no-report -- sh -c "{command}"'
    tmux.type(f"{PYTHON[0]} -c '{program}' {tmux.socket} {line}{SAY_END}")
    tmux.shows("cannot be answered here: the session may be connected to tmux")
    for number in range(2):
        request = request_number(number, as_user)
        assert request["asked"] == ["control"]
        assert as_user.native(UNDER_TEST, "deny", request["approval_id"]).returncode == 0
    tmux.shows(r"request denied(.*\n)*the-end\n")
