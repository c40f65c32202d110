"""sigwrap-forward alone: an init for one command, with no interception."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sigwrap.session.run_end import LEFTOVERS_GRACE_S
from tests.support.harness import PYTHON, REFUSED, Running, Sigwrap
from tests.support.processes import await_key_taken, children, tree
from tests.support.waiting import PATIENCE_S, Reader, Watch, await_state, await_that, reader

Start = Callable[..., tuple[Running, Reader]]


@pytest.fixture
def start(as_user: Sigwrap, forward: str) -> Start:
    """The process, and a reader of what it says."""

    def start(*words: str, **options: Any) -> tuple[Running, Reader]:
        process = as_user.start_line([*as_user.as_user(), forward, *words], **options)
        return process, reader(process.stdout)

    return start


@pytest.mark.promise("forwarder")
def test_streams_environment_and_statuses_are_commands(as_user: Sigwrap, forward: str) -> None:
    text = "cat; env -0; exit 42"
    native = as_user.native("sh", "-c", text, input=b"\xff\0", env={"LC_ALL": "C"})
    done = as_user.native(forward, "sh", "-c", text, input=b"\xff\0", env={"LC_ALL": "C"})
    assert (done.returncode, done.stdout, done.stderr) == (42, native.stdout, b"")
    assert as_user.native(forward, "--version").stdout.startswith(b"sigwrap-forward ")
    killed = as_user.native(forward, "--", "sh", "-c", "ulimit -c 0; kill -SEGV $$")
    assert killed.returncode == 128 + signal.SIGSEGV


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--", "no-such-program-at-all"], 127),
        ([], REFUSED),
        (["--no-such-option", "--", "true"], REFUSED),
    ],
)
def test_what_can_not_run(as_user: Sigwrap, forward: str, words: list[str], status: int) -> None:
    done = as_user.native(forward, *words)
    assert (done.returncode, done.stdout) == (status, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("sigwrap-forward: ")


@pytest.mark.parametrize("name", ["WINCH", "TTIN"])
def test_signals_are_passed_on(start: Start, name: str, programs: Path) -> None:
    process, said = start("--", *PYTHON, str(programs / "counts_signals.py"), f"SIG{name}")
    said.until(rb"ready")
    for _ in range(3):
        process.send_signal(signal.Signals[f"SIG{name}"])
        said.until(rb"got")
    process.communicate(b"x", PATIENCE_S)
    assert process.returncode == 4


@pytest.mark.parametrize("is_in_a_hurry", [False, True])
def test_what_command_left_may_end_by_itself_unless_an_end_is_asked_for_at_once(
    as_user: Sigwrap, start: Start, programs: Path, is_in_a_hurry: bool
) -> None:
    """Also in a session of its own; and an orphan that ends before ends nothing else."""
    stays = f"setsid {' '.join(PYTHON)} {programs}/leftover.py &"
    process, said = start("--", "bash", "-c", f"(sh -c 'exit 1' &); {stays} read x; exit 3")
    said.until(rb"here")
    await_that(lambda: len(children(process.pid)) == 1)  # no zombie stays
    with Watch(tree(process.pid)) as watch:
        process.say(b"\n")
        said.until(rb"asked")
        asked_at_s = time.monotonic()
        if is_in_a_hurry:
            process.terminate()
        assert process.wait(PATIENCE_S) == 3
        if is_in_a_hurry:
            assert time.monotonic() - asked_at_s < LEFTOVERS_GRACE_S
        assert watch.unharmed == []
        watch.await_ends()
    assert as_user.alive() == []


def test_what_the_caller_ignores_starts_no_grace(start: Start, programs: Path) -> None:
    """Unless COMMAND handles it."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    text = "echo ready; read x; exit 3"
    process, said = start("--grace", "0", "--", "sh", "-c", text, preexec_fn=ignore)
    said.until(rb"ready")
    process.send_signal(signal.SIGINT)
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 3
    handling = [*PYTHON, str(programs / "says_interrupts.py")]
    process, said = start("--", *handling, preexec_fn=ignore)
    said.until(rb"ready")
    process.send_signal(signal.SIGINT)
    said.until(rb"got")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0


def test_killed_itself_it_takes_command_along(start: Start) -> None:
    text = "echo ready; exec cat"
    process, said = start("--", "sh", "-c", text)
    said.until(rb"ready")
    with Watch(tree(process.pid)) as watch:
        process.kill()
        process.wait(PATIENCE_S)
        watch.await_ends()


def test_the_grace(start: Start, programs: Path) -> None:
    process, said = start("--grace", "0.2", "--", *PYTHON, str(programs / "stubborn.py"))
    said.until(rb"ready")
    process.terminate()
    assert process.wait(PATIENCE_S) == 128 + signal.SIGKILL


def test_one_key_is_one_signal(as_user: Sigwrap, forward: str, programs: Path) -> None:
    terminal = as_user.terminal_for(
        [*as_user.as_user(), forward, "--", *PYTHON, str(programs / "says_interrupts.py")]
    )
    terminal.output.until(rb"ready")
    for _ in range(3):
        await_state(tree(terminal.pid)[-1], "S")  # it reads, and is interrupted in that
        terminal.press("C")
        terminal.output.until(rb"got")
        await_key_taken(terminal.pid)
    terminal.type("\n")
    assert terminal.await_status() == 0
    assert terminal.output.seen.count(b"got") == 3


def test_suspend_and_resume(as_user: Sigwrap, forward: str) -> None:
    terminal = as_user.terminal_for([*as_user.as_user(), forward, "--", "cat"])
    terminal.type("one\n")
    terminal.output.until(rb"one\r\none\r\n")
    for _ in range(2):
        terminal.press("Z")
        terminal.await_stop()
        terminal.continue_job()
        terminal.type("two\n")
        terminal.output.until(rb"two\r\ntwo\r\n")
    terminal.press("D")
    assert terminal.await_status() == 0


@pytest.mark.parametrize(("number", "whom"), [("STOP", "$$"), ("STOP", "0"), ("TTIN", "0")])
def test_a_command_that_stops_itself_is_a_stopped_job(
    as_user: Sigwrap, forward: str, number: str, whom: str
) -> None:
    text = f"kill -{number} {whom}; echo back; read x"
    terminal = as_user.terminal_for([*as_user.as_user(), forward, "--", "sh", "-c", text])
    terminal.await_stop()
    await_state(tree(terminal.pid)[-1], "T")
    terminal.continue_job()
    terminal.output.until(rb"back")
    terminal.press("D")
    assert terminal.await_status() == 1
