"""Approvals in whole sessions, under a policy that asks."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.waiting import PATIENCE_S, await_that, reader

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


def outside(subject: Sigwrap, *words: str) -> subprocess.CompletedProcess[str]:
    line = [UNDER_TEST, *words, "--store", str(subject.store)]
    return subprocess.run(
        line, env=subject.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_yes_on_the_terminal_lets_the_command_run(sigwrap: Sigwrap, policy: str) -> None:
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", "/bin/uname", "-s")
    terminal.output.until(rb"n no: ")
    time.sleep(0.35)  # an answer must not come faster than one can read
    terminal.type("y\n")
    terminal.output.until(rb"Linux")
    assert terminal.await_status() == 0
    [granted] = sigwrap.sealed_events("approval_granted")
    assert granted.payload["by"] == "the terminal"


def test_no_on_the_terminal_denies(sigwrap: Sigwrap, policy: str) -> None:
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", "/bin/uname", "-s")
    terminal.output.until(rb"n no: ")
    time.sleep(0.35)
    terminal.type("n\n")
    assert terminal.await_status() == 126
    assert b"Linux" not in terminal.output.seen
    assert terminal.foreground() == terminal.pid


def test_ctrl_c_at_the_question_ends_the_run(sigwrap: Sigwrap, policy: str) -> None:
    terminal = sigwrap.on_terminal("-p", policy, "--no-report", "--", "sh", "-c", "/bin/uname; :")
    terminal.output.until(rb"n no: ")
    terminal.press("c")
    assert terminal.await_status() == 130


@pytest.mark.parametrize("how", ["child", "detached"])
def test_a_supervised_process_can_not_approve_for_itself(
    sigwrap: Sigwrap, policy: str, how: str, programs: Path
) -> None:
    line = (*PYTHON, str(programs / "approves_itself.py"), how, UNDER_TEST)
    done = sigwrap.run("-p", policy, "--approval-timeout", "3", "--", *line)
    assert b"refused: it is inside a supervised session" in done.stderr, done.stderr
    assert b"uname said \n" in done.stdout
    assert sigwrap.sealed_events("control_refused")
    assert not sigwrap.events("approval_granted")
    assert sigwrap.events("approval_expired")


def test_the_tree_goes_on_while_one_waits(sigwrap: Sigwrap, policy: str) -> None:
    command = "/bin/uname & for i in 1 2 3 4 5; do /bin/echo $i; done; wait"
    run = sigwrap.start("-p", policy, "--", "sh", "-c", command)
    assert reader(run.stdout).until(rb"5\n")
    words = outside(sigwrap, "approvals").stdout.split()
    assert outside(sigwrap, "approve", words[0]).returncode == 0
    assert reader(run.stdout).until(rb"Linux")
    assert run.wait(PATIENCE_S) == 0


def test_the_asker_is_killed_while_it_waits(sigwrap: Sigwrap, policy: str) -> None:
    command = "/bin/uname & sleep 0.2; kill -9 $!; wait; read line"
    run = sigwrap.start("-p", policy, "--", "sh", "-c", command)
    reader(run.stderr).until(rb"sigwrap approve")
    await_that(lambda: withdrawn(sigwrap))
    assert "nothing waits" in outside(sigwrap, "approvals").stdout
    run.stdin.close()
    assert run.wait(PATIENCE_S) != 125


def withdrawn(subject: Sigwrap) -> bool:
    return any(
        event.payload["reason"] == "withdrawn" for event in subject.events("approval_denied")
    )
