"""The question on a real pseudo-terminal, which COMMAND uses as well."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwrap.kernel import procfs
from sigwrap.kernel.terminals import reads_a_line, waits_for_input
from tests.support.harness import PYTHON
from tests.support.waiting import await_that

Make = Callable[..., Any]


@pytest.fixture
def go(tmp_path: Path) -> Path:
    """A named pipe; a program goes on when something is written to it."""
    os.mkfifo(tmp_path / "go")
    return tmp_path / "go"


def foreground_is_ours(subject: Any) -> bool:
    return bool(subject.terminal.foreground() == subject.terminal.pid)


@pytest.mark.parametrize(
    ("typed", "granted", "reason"),
    [
        ("ALWAYS {always}", True, "granted"),
        (" no ", False, "denied"),
    ],
)
def test_an_answer(asking: Make, typed: str, granted: bool, reason: str) -> None:
    subject = asking().start_on_terminal()
    approval_id = subject.ask()
    said = subject.terminal.read_question().decode()
    assert "bash (4312) wants to run" in said
    assert "git push --force" in said
    assert "rule ask-push, policy mine: pushes are looked at" in said
    assert approval_id in said
    codes = {"once": subject.terminal.once, "always": subject.terminal.always}
    subject.terminal.type(f"{typed.format(**codes)}\n")
    assert subject.answer() == (approval_id, granted, reason)
    [settled] = subject.events("approval_granted", "approval_denied")
    assert settled.payload["by"] == "the terminal"
    assert settled.payload["always"] is ("{always}" in typed)
    assert foreground_is_ours(subject)
    assert subject.events("approval_requested")[0].payload["asked"] == ["terminal", "control"]


def test_lines_typed_ahead_answer_nothing(asking: Make) -> None:
    """A pasted answer would answer the second unread."""
    subject = asking().start_on_terminal()
    first, second = subject.ask("first"), subject.ask("second")
    subject.terminal.read_question()
    subject.terminal.type(f"y {subject.terminal.once}\nn\n")
    assert subject.answer() == (first, True, "granted")
    subject.terminal.output.until(rb"ignored what you typed before the request")
    subject.terminal.read_question()
    subject.terminal.type("n\n")
    assert subject.answer() == (second, False, "denied")


def test_half_a_line_typed_ahead_is_not_finished_by_an_enter(asking: Make) -> None:
    """The supervisor cannot see it there before its end."""
    subject = asking().start_on_terminal()
    subject.terminal.type("n")
    subject.terminal.output.until(rb"n")
    approval_id = subject.ask_on_terminal()
    subject.terminal.type("\n")
    assert b"unknown answer" in subject.terminal.read_question()
    subject.terminal.type("n\n")
    assert subject.answer() == (approval_id, False, "denied")


@pytest.mark.parametrize(("kind", "resets"), [("xterm", True), ("dumb", False)])
def test_what_was_set_to_hide_text_hides_no_question(asking: Make, kind: str, resets: bool) -> None:
    subject = asking()
    subject.subject.env["TERM"] = kind
    subject.start_on_terminal()
    subject.ask()
    before, asked, rest = subject.terminal.read_question().rpartition(b"sigwrap: request")
    assert asked
    assert (b"\x1b[0m\x1b[?7h\x1b(B\x0f" in before) is resets
    assert b"\x1b" not in rest
    subject.terminal.type("n\n")
    assert not subject.answer()[1]


def test_a_stopped_terminal_stalls_nobody(asking: Make) -> None:
    subject = asking().start_on_terminal()
    subject.terminal.press("s")
    approval_id = subject.ask()
    assert subject.ping()
    assert subject.sigwrap("approve", approval_id).returncode == 0
    assert subject.answer() == (approval_id, True, "granted")


def test_answered_from_elsewhere_while_it_is_asked(asking: Make) -> None:
    subject = asking().start_on_terminal()
    approval_id = subject.ask_on_terminal()
    assert subject.sigwrap("approve", approval_id).returncode == 0
    assert subject.answer() == (approval_id, True, "granted")
    subject.terminal.output.until(rb"was settled elsewhere")
    await_that(lambda: foreground_is_ours(subject))


def test_the_question_has_modes_of_its_own(asking: Make) -> None:
    """A person's own key for erasing stays, and all is as before afterwards."""
    subject = asking().start_on_terminal()
    modes = termios.tcgetattr(subject.terminal.master)
    modes[0] |= termios.IXANY
    modes[3] |= termios.TOSTOP
    modes[6][termios.VERASE] = b"\x08"
    modes[6][termios.VKILL] = b"$"
    termios.tcsetattr(subject.terminal.master, termios.TCSANOW, modes)
    approval_id = subject.ask_on_terminal()
    meanwhile = termios.tcgetattr(subject.terminal.master)
    assert meanwhile[6][termios.VKILL] == b"\x15"
    subject.terminal.type(f"yx\x08 {subject.terminal.once}\n")
    assert subject.answer() == (approval_id, True, "granted")
    assert termios.tcgetattr(subject.terminal.master) == modes


def test_modes_that_are_set_meanwhile_stay(asking: Make) -> None:
    """A process that sets them wants the terminal."""
    subject = asking().start_on_terminal()
    subject.ask_on_terminal()
    modes = termios.tcgetattr(subject.terminal.master)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(subject.terminal.master, termios.TCSANOW, modes)
    subject.terminal.output.until(rb"the request is put aside and comes back later")
    await_that(lambda: foreground_is_ours(subject))
    assert termios.tcgetattr(subject.terminal.master) == modes


def test_modes_that_were_other_ones_for_a_moment_make_no_yes(asking: Make) -> None:
    """The line discipline edits what arrives by the modes of that moment. What is left here is a y,
    which no look at the modes can tell from one that was typed."""
    subject = asking().start_on_terminal()
    subject.ask_on_terminal()
    terminal = subject.terminal
    modes = termios.tcgetattr(terminal.master)
    before = modes[6][termios.VKILL]
    modes[6][termios.VKILL] = b"$"
    termios.tcsetattr(terminal.master, termios.TCSANOW, modes)
    terminal.type("\x1b[?1;2$y")
    terminal.output.until(rb"2[^y]*\x08 \x08y")  # its echo
    modes[6][termios.VKILL] = before
    termios.tcsetattr(terminal.master, termios.TCSANOW, modes)
    terminal.type("\n")
    if b"put aside and comes back later" not in terminal.output.seen:  # a look came in between
        terminal.output.until(rb"Type y and the four letters shown|put aside and comes back later")
    assert not subject.events("approval_granted")


def test_the_control_mode_leaves_the_terminal_alone(asking: Make) -> None:
    subject = asking("control").start_on_terminal()
    subject.ask()
    assert subject.ping()["holds"] is False
    assert foreground_is_ours(subject)
    assert subject.events("approval_requested")[0].payload["asked"] == ["control"]


# COMMAND and the terminal


def test_a_command_that_waits_for_a_line_gets_it(asking: Make) -> None:
    """It reads already, so the question would lose its answer: only the command is named."""
    subject = asking().start_on_terminal("head", "-n2")
    await_that(lambda: any(reads_a_line(pid) for pid in group(subject)))
    approval_id = subject.ask()
    subject.terminal.output.until(f"from another terminal: sigwrap approve {approval_id}".encode())
    assert subject.ping()["holds"] is False
    subject.terminal.type("y\n")
    subject.terminal.output.until(rb"y\r\ny\r\n")  # its echo, and what head made of it
    assert subject.sigwrap("deny", approval_id).returncode == 0
    assert subject.answer() == (approval_id, False, "denied")
    subject.terminal.type("second\n")
    subject.terminal.output.until(rb"second\r\nsecond\r\n")


@pytest.mark.parametrize("how", ["select", "epoll"])
def test_a_command_that_polls_its_input_keeps_it(asking: Make, how: str, programs: Path) -> None:
    """Polled for nothing, it would read for nothing, and wait there for what is not for it."""
    subject = asking().start_on_terminal(*PYTHON, str(programs / "polls_its_input.py"), how)
    subject.terminal.output.until(rb"polls")
    await_that(lambda: any(waits_for_input(pid) for pid in group(subject)))
    approval_id = subject.ask()
    subject.terminal.output.until(rb"from another terminal: ")
    assert subject.ping()["holds"] is False
    subject.terminal.type("y\n")
    subject.terminal.output.until(rb"GOT b'y\\n'")
    assert subject.sigwrap("approve", approval_id).returncode == 0


def test_a_command_that_polls_something_else_is_not_in_the_way(
    asking: Make, programs: Path
) -> None:
    subject = asking().start_on_terminal(*PYTHON, str(programs / "polls_something_else.py"))
    subject.terminal.output.until(rb"polls")
    approval_id = subject.ask_on_terminal()
    subject.terminal.approve()
    assert subject.answer() == (approval_id, True, "granted")


def test_a_command_that_starts_to_read_makes_the_question_give_way(
    asking: Make, go: Path, programs: Path
) -> None:
    subject = asking().start_on_terminal(*PYTHON, str(programs / "reads_later.py"), str(go))
    approval_id = subject.ask_on_terminal()
    go.write_bytes(b"x")
    subject.terminal.output.until(rb"the request is put aside and comes back later")
    await_that(lambda: foreground_is_ours(subject))
    subject.terminal.type("mine\n")
    subject.terminal.output.until(rb"GOT b'mine\\n'")
    subject.terminal.read_question()
    subject.terminal.approve()
    assert subject.answer() == (approval_id, True, "granted")


def test_a_command_that_takes_the_terminal_back_gets_no_approval(
    asking: Make, go: Path, programs: Path
) -> None:
    subject = asking().start_on_terminal(*PYTHON, str(programs / "takes_foreground.py"), str(go))
    approval_id = subject.ask_on_terminal()
    go.write_bytes(b"x")
    await_that(lambda: foreground_is_ours(subject))
    subject.terminal.type("y\n")
    subject.terminal.output.until(rb"GOT b'y\\n'")
    assert not subject.events("approval_granted")
    subject.terminal.read_question()
    subject.terminal.type("n\n")
    assert subject.answer() == (approval_id, False, "denied")


def test_a_full_screen_command_keeps_its_keys(asking: Make, programs: Path) -> None:
    subject = asking().start_on_terminal(*PYTHON, str(programs / "raw_keys.py"))
    subject.terminal.output.until(rb"raw")
    approval_id = subject.ask()
    subject.terminal.type("y")
    subject.terminal.output.until(rb"KEY b'y'")
    assert subject.ping()["holds"] is False
    assert subject.sigwrap("approve", approval_id).returncode == 0
    assert b"sigwrap" not in subject.terminal.output.seen


def test_keys_reach_the_command_while_the_question_is_up(asking: Make, programs: Path) -> None:
    subject = asking().start_on_terminal(*PYTHON, str(programs / "catches.py"))
    subject.terminal.output.until(rb"ready")
    subject.terminal.press("c")  # one before the question is not repeated by it
    subject.terminal.output.until(b"CAUGHT 2;")
    subject.ask_on_terminal()
    subject.terminal.press("c")
    subject.terminal.output.until(b"CAUGHT 2;")
    assert subject.terminal.output.seen.count(b"CAUGHT") == 2
    subject.terminal.read_question()


@pytest.mark.parametrize("again", range(4))
def test_a_key_that_comes_while_it_makes_way_is_not_lost(
    asking: Make, again: int, programs: Path
) -> None:
    """Between its line and the moment in which the foreground is the command's again."""
    subject = asking().start_on_terminal(*PYTHON, str(programs / "catches.py"))
    subject.terminal.output.until(rb"ready")
    subject.ask_on_terminal()
    modes = termios.tcgetattr(subject.terminal.master)
    modes[6][termios.VKILL] = b"$"
    termios.tcsetattr(subject.terminal.master, termios.TCSANOW, modes)
    subject.terminal.output.until(rb"the request is put aside and comes back later")
    subject.terminal.press("c")
    subject.terminal.output.until(b"CAUGHT 2;")
    subject.terminal.read_question()
    assert subject.terminal.output.seen.count(b"CAUGHT") == 1


def test_a_new_size_is_not_lost(asking: Make, programs: Path) -> None:
    subject = asking().start_on_terminal(*PYTHON, str(programs / "catches.py"))
    subject.terminal.output.until(rb"ready")
    approval_id = subject.ask_on_terminal()
    subject.terminal.resize(33, 44)
    subject.terminal.approve()
    assert subject.answer() == (approval_id, True, "granted")
    subject.terminal.output.until(rb"CAUGHT 28;")


def test_a_job_in_the_background_asks_when_it_is_in_the_foreground(
    asking: Make, go: Path, programs: Path
) -> None:
    subject = asking()
    terminal = subject.subject.terminal_for(
        [*PYTHON, str(programs / "shell.py"), str(go), *subject.line("auto")]
    )
    assert subject.next()["ready"]
    approval_id = subject.ask()
    terminal.output.until(rb"from another terminal: ")
    assert subject.ping()["holds"] is False
    go.write_bytes(b"x")
    terminal.read_question()
    terminal.approve()
    assert subject.answer() == (approval_id, True, "granted")


def test_input_that_lies_there_is_not_taken_for_an_answer(asking: Make) -> None:
    subject = asking().start_on_terminal()
    subject.terminal.type("y\n")
    subject.terminal.output.until(rb"y")
    approval_id = subject.ask()
    subject.terminal.output.until(rb"from another terminal: ")
    assert subject.ping()["holds"] is False
    assert subject.sigwrap("deny", approval_id).returncode == 0


def test_the_session_ends_while_it_asks(asking: Make) -> None:
    subject = asking().start_on_terminal()
    approval_id = subject.ask_on_terminal()
    subject.quit()
    assert subject.answer() == (approval_id, False, "withdrawn")
    assert subject.terminal.await_status() == 0
    assert foreground_is_ours(subject)


def test_the_terminal_hangs_up_while_it_asks(asking: Make) -> None:
    subject = asking().start_on_terminal()
    approval_id = subject.ask_on_terminal()
    os.close(subject.terminal.master)
    assert subject.ping()
    assert subject.sigwrap("approve", approval_id).returncode == 0
    assert subject.answer() == (approval_id, True, "granted")


def group(subject: Any) -> list[int]:
    """The job's processes."""
    return [
        found.pid
        for pid in procfs.all_pids()
        if (found := procfs.stat(pid)) is not None and found.pgrp == subject.terminal.pid
    ]
