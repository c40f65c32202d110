"""What befalls a command that joins, or its session, when nobody expects it."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import Any

from tests.joined.addresses import at, is_listened_at
from tests.support.harness import Sigwrap
from tests.support.waiting import await_that

JOIN = ("--join-name", "agent", "--policy", "agent-observe")


def _run(subject: Sigwrap, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subject.run(*JOIN, "--", *words, **options)


def test_a_signal_to_a_command_that_is_not_there_yet_waits_for_it(subject: Sigwrap) -> None:
    """In a session that stands still none is made."""
    _run(subject, "true")
    subject.run("signal", "agent", "SIGSTOP")
    process = subject.start(*JOIN, "--", "sleep", "300")
    await_that(lambda: len(subject.events("command_joined")) == 2)
    process.send_signal(signal.SIGTERM)
    await_that(lambda: bool(subject.events("interrupt_forwarded")))
    subject.run("signal", "agent", "SIGCONT")
    assert process.wait(30) == 128 + signal.SIGTERM
    said = b"session agent stands still since a SIGSTOP, until sigwrap signal agent SIGCONT"
    assert said in process.stderr.read()


def test_what_comes_after_it_in_a_pipeline_writes_as_ever(subject: Sigwrap) -> None:
    terminal = subject.bash_on_terminal()
    line = " ".join(map(str, subject.line(*JOIN)))
    terminal.type(f"{line} -- sh -c 'seq 7 8; sleep 0.1; seq 9 10' | sed s/$/./; echo end''ed\n")
    terminal.output.until(rb"7\.\r\n8\.\r\n9\.\r\n10\.\r\nended\r\n")
    terminal.type("exit\n")
    assert terminal.await_status() == 0


def test_who_writes_on_after_the_command_on_its_terminal_holds_nobody_up(subject: Sigwrap) -> None:
    """The command reads by another descriptor on the terminal than the streams are."""
    terminal = subject.bash_on_terminal()
    script = 'echo ready=$$; read -u 3 word; seq 20000; echo got=$word; trap "" HUP; yes & exit 9'
    line = " ".join(map(str, subject.line(*JOIN)))
    terminal.type(f"{line} -- bash -c '{script}' 3<&0; echo ended=$?\n")
    terminal.output.until(rb"ready=\d")
    terminal.type("word\n")
    terminal.output.until(rb"\n20000\r\ngot=word\r")
    terminal.output.until(rb"ended=9\r")
    terminal.type("exit\n")
    assert terminal.await_status() == 0


def test_a_session_whose_starter_is_killed_meanwhile_is_the_next_ones(subject: Sigwrap) -> None:
    starter = subject.start(*JOIN, "--", "echo", "never")
    await_that(lambda: is_listened_at(at(subject)))  # and is not ready yet
    starter.kill()
    assert _run(subject, "echo", "joined").stdout == b"joined\n"
    assert len(_sessions(subject)) == 1


def _sessions(subject: Sigwrap) -> list[object]:
    found: list[object] = json.loads(subject.run("sessions", "--json").stdout)["sessions"]
    return found
