"""Approvals in whole sessions, under a policy that asks."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.waiting import await_that

POLICY = """
version: 1
name: asks
defaults: {command: audit, signal: allow}
command_rules:
  - {name: ask-first, commands: [uname], decision: approve, message: uname is looked at}
"""


@pytest.fixture
def policy(sigwrap: Sigwrap) -> str:
    path = sigwrap.folder / "asks.yaml"
    path.write_text(POLICY)
    return str(path)


@pytest.mark.promise("approvals on a terminal")
def test_yes_on_the_terminal_lets_the_command_run(sigwrap: Sigwrap, policy: str) -> None:
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", "/bin/uname", "-s")
    terminal.read_question()
    terminal.approve()
    terminal.output.until(rb"Linux")
    assert terminal.await_status() == 0
    [granted] = sigwrap.sealed_events("approval_granted")
    assert granted.payload["by"] == "the terminal"


def test_ctrl_c_at_the_question_ends_the_run(sigwrap: Sigwrap, policy: str) -> None:
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", "sh", "-c", "/bin/uname; :")
    terminal.output.until(rb'"n": ')
    terminal.press("c")
    assert b"comes back later" not in terminal.output.rest()
    assert terminal.await_status() == 130
    assert b"SIGINT from the terminal (Ctrl+C)" in sigwrap.native(UNDER_TEST, "why").stdout


def test_ctrl_c_at_the_question_of_a_prompts_program_is_a_no_and_no_end(
    sigwrap: Sigwrap, policy: str, programs: Path
) -> None:
    command = [*PYTHON, str(programs / "prompt.py")]
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", *command)
    terminal.output.until(rb"prompt")
    terminal.type("u")
    terminal.read_question()
    terminal.press("c")
    terminal.output.until(rb"interrupted\r\n")  # that uname was denied may be said here
    terminal.output.until(rb"prompt")
    await_that(lambda: _is_left_to_command(sigwrap))
    terminal.type("u")
    terminal.read_question()
    terminal.approve()
    terminal.output.until(rb"Linux\r\nprompt")
    terminal.type("q")
    assert terminal.await_status() == 3
    kinds = [event.type for event in sigwrap.sealed_events() if "approval_" in event.type]
    assert kinds == [
        "approval_requested",
        "approval_denied",
        "approval_requested",
        "approval_granted",
    ]


def _is_left_to_command(sigwrap: Sigwrap) -> bool:
    """At once where the terminal is looked at late."""
    received = sigwrap.events("interrupt_received")
    at_once = [event for event in received if event.payload["taken_by"] == "command"]
    return bool(at_once or sigwrap.events("interrupt_withdrawn"))


@pytest.mark.parametrize("command", ["/bin/uname -s; :", "(/bin/uname -s); :"])
def test_ctrl_z_at_the_question_stops_the_job(sigwrap: Sigwrap, policy: str, command: str) -> None:
    """Also where COMMAND can't stop before there is an answer: it waits for a vfork."""
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", "sh", "-c", command)
    terminal.read_question()
    terminal.press("z")
    terminal.output.until(rb"put aside and comes back later")
    terminal.await_stop()
    assert terminal.foreground() == terminal.pid
    terminal.continue_job()
    terminal.read_question()
    terminal.approve()
    terminal.output.until(rb"Linux")
    assert terminal.await_status() == 0


@pytest.mark.promise("approvals from elsewhere")
def test_a_connection_is_approved_from_elsewhere(sigwrap: Sigwrap) -> None:
    path = sigwrap.folder / "asks.yaml"
    path.write_text(
        "version: 1\nname: asks\ndefaults: {command: allow, signal: allow, network: approve}\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = server.getsockname()
        script = f"import socket; socket.create_connection({place}); print('connected')"
        words = ("-p", str(path), "--approvals", "control", "--")
        running = sigwrap.start(*words, *PYTHON, "-c", script)
        sigwrap.await_event("approval_requested")
        [asked] = sigwrap.events("approval_requested")
        assert (asked.payload["kind"], asked.payload["what"]) == (
            "connection",
            f"connection to 127.0.0.1:{place[1]}",
        )
        done = sigwrap.native(UNDER_TEST, "approve", asked.payload["approval_id"])
        assert done.returncode == 0, done.stderr
        assert running.wait() == 0
    assert len(sigwrap.sealed_events("connection_approved")) == 1
    sigwrap.verify_decisions()
