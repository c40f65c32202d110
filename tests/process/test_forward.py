"""sigwrap-forward alone: an init for one command, with no interception."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap import __version__
from sigwrap.mediate.run_end import LEFTOVERS_GRACE_S
from tests.support.harness import EXECS, PYTHON, REFUSED, Running, Sigwrap
from tests.support.processes import await_key_taken, children, tree
from tests.support.waiting import PATIENCE_S, Reader, Watch, await_state, reader

Start = Callable[..., tuple[Running, Reader]]


@pytest.fixture
def start(as_user: Sigwrap, forward: str) -> Start:
    """The process, and a reader of what it says."""

    def start(*words: str) -> tuple[Running, Reader]:
        process = as_user.start_line([*as_user.as_user(), forward, *words])
        return process, reader(process.stdout)

    return start


@pytest.mark.promise("forwarder")
def test_streams_environment_and_statuses_are_commands(as_user: Sigwrap, forward: str) -> None:
    text = "cat; env -0; exit 42"
    native = as_user.native("sh", "-c", text, input=b"\xff\0", env={"LC_ALL": "C"})
    done = as_user.native(forward, "sh", "-c", text, input=b"\xff\0", env={"LC_ALL": "C"})
    assert (done.returncode, done.stdout, done.stderr) == (42, native.stdout, b"")
    killed = as_user.native(forward, "--", "sh", "-c", "ulimit -c 0; kill -SEGV $$")
    assert killed.returncode == 128 + signal.SIGSEGV


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--", "no-such-program-at-all"], 127),
        (["--", "/tmp"], 126),
        ([], REFUSED),
        (["--no-such-option", "--", "true"], REFUSED),
        (["--grace", "x", "--", "true"], REFUSED),
    ],
)
def test_what_can_not_run(as_user: Sigwrap, forward: str, words: list[str], status: int) -> None:
    done = as_user.native(forward, *words)
    assert (done.returncode, done.stdout) == (status, b"")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("sigwrap-forward: ")


def test_it_says_which_one_it_is(as_user: Sigwrap, forward: str) -> None:
    done = as_user.native(forward, "--version")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"sigwrap-forward {__version__}\n"


@pytest.mark.parametrize("name", ["TERM", "WINCH", "TTIN"])
def test_signals_are_passed_on(start: Start, name: str, programs: Path) -> None:
    process, said = start("--", *PYTHON, str(programs / "counts_signals.py"), f"SIG{name}")
    said.until(rb"ready")
    for _ in range(3):
        process.send_signal(signal.Signals[f"SIG{name}"])
        said.until(rb"got")
    process.communicate(b"x", PATIENCE_S)
    assert process.returncode == 4


def test_orphans_are_reaped_and_do_not_end_the_run(start: Start) -> None:
    text = "for i in 1 2 3 4 5; do (sh -c 'exit 1' &); done; echo ready; read x; exit 3"
    process, said = start("--", "sh", "-c", text)
    said.until(rb"ready")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 3


def test_nobody_is_left(as_user: Sigwrap, start: Start) -> None:
    text = (
        "setsid sh -c 'trap : TERM HUP; echo here; while :; do read x; done' <&0 & read x; exit 3"
    )
    process, said = start("--", "bash", "-c", text)
    said.until(rb"here")
    with Watch(tree(process.pid)) as watch:
        process.communicate(b"\n", PATIENCE_S)
        assert process.returncode == 3
        assert watch.unharmed == []
        watch.await_ends()
    assert as_user.alive() == []


@pytest.mark.parametrize("is_in_a_hurry", [False, True])
def test_what_command_left_may_end_by_itself_unless_an_end_is_asked_for_at_once(
    start: Start, programs: Path, is_in_a_hurry: bool
) -> None:
    text = f"{' '.join(PYTHON)} {programs}/leftover.py & read x; exit 3"
    process, said = start("--", "bash", "-c", text)
    said.until(rb"here")
    with Watch(tree(process.pid)) as watch:
        process.say(b"\n")
        said.until(rb"asked")
        asked_at_s = time.monotonic()
        if is_in_a_hurry:
            process.terminate()
        assert process.wait(PATIENCE_S) == 3
        if is_in_a_hurry:
            assert time.monotonic() - asked_at_s < LEFTOVERS_GRACE_S
        watch.await_ends()


def test_what_the_caller_ignores_starts_no_grace(
    as_user: Sigwrap, forward: str, programs: Path
) -> None:
    """Unless COMMAND handles it."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    text = "echo ready; read x; exit 3"
    line = [*as_user.as_user(), forward, "--grace", "0", "--", "sh", "-c", text]
    process = as_user.start_line(line, preexec_fn=ignore)
    said = reader(process.stdout)
    said.until(rb"ready")
    process.send_signal(signal.SIGINT)
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 3
    handling = [*PYTHON, str(programs / "says_interrupts.py")]
    process = as_user.start_line([*as_user.as_user(), forward, "--", *handling], preexec_fn=ignore)
    said = reader(process.stdout)
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


def test_a_background_job_that_reads_is_a_stopped_one(as_user: Sigwrap, forward: str) -> None:
    terminal = as_user.bash_on_terminal()
    terminal.type(f"{forward} -- cat &\n")
    terminal.output.until(rb"PROMPT> ")
    terminal.await_stopped_job("cat")
    terminal.bring_to_foreground("cat")
    terminal.type("one\n")
    terminal.output.until(rb"one\r\none\r\n")
    terminal.press("C")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("exit 0\n")
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


needs_namespace = pytest.mark.skipif(
    os.getuid() != 0
    or not shutil.which("unshare")
    or subprocess.run(["unshare", "-fp", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs root and pid namespaces",
)
IN_NAMESPACE = ("unshare", "-fp", "--mount-proc", "--kill-child")


@pytest.mark.promise("forwarder")
@needs_namespace
def test_pid_1_passes_on_a_signal_reaps_and_ends(as_user: Sigwrap, forward: str) -> None:
    """An init gets no signal that it has no handler for: ours must arrive all the same."""
    if as_user.user is not None:
        pytest.skip("unshare wants root")
    text = (
        'trap "echo asked; exit 3" TERM; (sh -c "exit 1" &); echo ready; while :; do read x; done'
    )
    process = as_user.start_line([*IN_NAMESPACE, forward, "--", "bash", "-c", text])
    said = reader(process.stdout)
    said.until(rb"ready")
    (init,) = children(process.pid)
    await_state(init, "S")
    os.kill(init, signal.SIGTERM)
    said.until(rb"asked")
    assert process.wait(PATIENCE_S) == 3


@needs_namespace
def test_pid_1_leaves_no_zombies(sigwrap: Sigwrap, forward: str) -> None:
    text = (
        'for i in $(seq 200); do (true & echo "$!"); done | sort -u | wc -l; '
        'while grep -q "^State:.Z" /proc/[0-9]*/status; do :; done 2>/dev/null; exit 3'
    )
    done = sigwrap.native(*IN_NAMESPACE, forward, "--", "sh", "-c", text)
    assert (done.returncode, done.stdout) == (3, b"200\n")


@needs_namespace
def test_sigwrap_itself_as_pid_1(sigwrap: Sigwrap) -> None:
    text = "(setsid sh -c 'exit 3' &); /bin/echo ran; exit 42"
    done = sigwrap.native(*IN_NAMESPACE, *sigwrap.line("--", "sh", "-c", text))
    assert (done.returncode, done.stdout, done.stderr) == (42, b"ran\n", b"")
    sigwrap.verify(ended=True)


@needs_namespace
def test_a_pid_namespace_inside_a_session(sigwrap: Sigwrap) -> None:
    """Pids below are other numbers; the events hold ours."""
    text = "echo $$; kill -WINCH $$; /bin/true inner"
    done = sigwrap.run("--policy", "agent-observe", "--", *IN_NAMESPACE, "sh", "-c", text)
    assert (done.returncode, done.stdout) == (0, b"1\n"), done.stderr
    (inner,) = (e for e in sigwrap.sealed_events(*EXECS) if "inner" in e.payload["argv"])
    assert inner.pid > 10
    sent = [
        e.payload for e in sigwrap.events("signal_sent") if e.payload["signal_name"] == "SIGWINCH"
    ]
    assert [p["target_type"] for p in sent] == ["self"]
    assert sent[0]["source_pid"] == sent[0]["target_pid"]
