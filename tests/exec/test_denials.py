"""What a denied caller reads: one line with the command, the rule, the policy and the next step."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, reader

DENY = """
  - {name: no-ok, commands: [ok], decision: deny}
  - {name: ask, commands: [asked], decision: approve, message: looked at first}
"""
TELLS = b". Do not work around this; tell the user.\n"


def under(subject: Sigwrap, *words: str) -> tuple[str, ...]:
    for name in ("ok", "asked"):
        script(subject.folder, name, "#!/bin/sh\necho ran\n")
    return ("--policy", policy(subject.folder, DENY), "--no-report", *words)


def run(subject: Sigwrap, *words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subject.run(*under(subject, "--", *words), **options)


def lines_of_ours(err: bytes) -> list[bytes]:
    return [line for line in err.splitlines(keepends=True) if line.startswith(b"sigwrap: ")]


@pytest.mark.promise("message to the caller")
def test_a_denial_without_a_message(sigwrap: Sigwrap) -> None:
    done = run(sigwrap, "sh", "-c", "./ok --force --token=abcdefgh 'a b'; echo $?")
    assert done.stdout == b"126\n"
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: denied: ./ok --force '--token=***' 'a b' (rule no-ok, policy test)" + TELLS
    ]


def test_where_nothing_can_be_written_it_is_a_denial_all_the_same(sigwrap: Sigwrap) -> None:
    lines = ("2>&-", "2</dev/null", "2>/dev/full", "2>/dev/null")
    text = "".join(f"./ok a {where}; echo $?; ./ok b\n" for where in lines)
    done = run(sigwrap, "sh", "-c", text)
    assert done.stdout == b"126\n" * len(lines)
    assert lines_of_ours(done.stderr) == [
        b"sigwrap: denied: ./ok b (rule no-ok, policy test)" + TELLS
    ] * len(lines)


# Where nobody is there


def test_without_a_terminal_it_is_no_at_once(sigwrap: Sigwrap) -> None:
    done = run(sigwrap, "./asked", "x", stdin=subprocess.DEVNULL)
    assert done.returncode == 126
    assert done.stderr == (
        b"sigwrap: denied: ./asked x: looked at first; no approver can be reached: "
        b"there is no terminal (see sigwrap help approvals) (rule ask, policy test)" + TELLS
    )
    (denied,) = sigwrap.sealed_events("approval_denied")
    assert denied.payload["reason"] == "nobody"
    (ended,) = sigwrap.events("session_ended")
    why = "the command could not be run: denied (rule ask, policy test)"
    assert ended.payload["reason"] == why  # the line above has said the rest


@pytest.mark.parametrize(("ci", "asks"), [("true", False), ("false", True)])
def test_on_a_terminal_where_ci_is_set_it_is_no_too(sigwrap: Sigwrap, ci: str, asks: bool) -> None:
    terminal = sigwrap.on_terminal(*under(sigwrap, "--", "./asked"), env={"CI": ci})
    if asks:
        terminal.read_question()
        terminal.type("n\n")
        terminal.output.until(rb"looked at first; request denied \(rule ask")
    else:
        terminal.output.until(rb"no approver can be reached: \$CI is set \(see")
    assert terminal.await_status() == 126


@pytest.mark.promise("approvals on a terminal")
def test_a_terminal_is_one_to_ask_on_whatever_stdin_is(sigwrap: Sigwrap) -> None:
    line = under(sigwrap, "--", "sh", "-c", "./asked x </dev/null")
    terminal = sigwrap.on_terminal(*line)
    said = terminal.read_question()
    assert b"rule ask, policy test: looked at first" in said
    terminal.approve()
    assert terminal.await_status() == 0


def test_the_line_of_who_waits_says_until_when_and_how_to_answer(sigwrap: Sigwrap) -> None:
    line = under(sigwrap, "--approvals", "control", "--", "./asked", "--token=abcdefgh")
    process = sigwrap.start(*line)
    said = reader(process.stderr).line()
    found = re.fullmatch(
        rb"sigwrap: request \w{6}: \./asked '--token=\*\*\*' needs approval "
        rb"\(rule ask, policy test\); until \d\d:\d\d:\d\d: "
        rb"sigwrap (approve \w{6} --store (\S+)), or sigwrap watch --store \S+",
        said,
    )
    assert found is not None, said
    assert found[2] == str(sigwrap.store).encode()
    answer = sigwrap.native(UNDER_TEST, *found[1].decode().split(), env={"SIGWRAP_STORE": "/no"})
    assert answer.returncode == 0
    assert process.wait(PATIENCE_S) == 0
    assert process.stdout.read() == b"ran\n"
