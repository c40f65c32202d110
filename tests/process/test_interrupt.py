"""Ctrl+C, and every other way in which somebody asks a run to end, on a real pseudo-terminal."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from sigwrap.errors import SigwrapError
from sigwrap.linux import procfs
from tests.support.harness import EXECS, IS_BINARY, PYTHON, Running, Sigwrap
from tests.support.processes import Roles, await_key_taken, children, tree
from tests.support.programs import needs
from tests.support.terminal import Terminal
from tests.support.waiting import (
    PATIENCE_S,
    Pipe,
    Reader,
    Watch,
    await_end,
    await_state,
    await_that,
    reader,
)

INTERRUPTED = 130
DEFAULT_GRACE_S = 10.0

TRAPPING = 'trap "echo cleaned; exit 3" INT TERM; echo ready; while :; do read x; done'


def _kinds(sigwrap: Sigwrap) -> list[str]:
    return [
        event.type.removeprefix("interrupt_")
        for event in sigwrap.sealed_events()
        if event.type.startswith("interrupt_")
    ]


# One Ctrl+C


def test_one_key_lets_a_trapping_shell_clean_up(as_user: Sigwrap) -> None:
    terminal = _terminal(as_user, "--", "bash", "-c", TRAPPING)
    terminal.press("C")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == INTERRUPTED
    assert terminal.output.rest().count(b"cleaned") == 0
    (received,) = as_user.sealed_events("interrupt_received")
    assert received.payload["signal_name"] == "SIGINT"
    assert received.payload["origin"] == "terminal"
    assert as_user.events("interrupt_escalated") == []


def test_one_key_does_not_cut_a_pythons_cleanup_short(as_user: Sigwrap, programs: Path) -> None:
    """A SIGTERM on top of the terminal's SIGINT would."""
    terminal = _terminal(as_user, "--", *PYTHON, str(programs / "cleaning.py"))
    terminal.press("C")
    terminal.output.until(rb"interrupted")
    await_key_taken(terminal.pid)  # a Python that ends has no handler any more
    terminal.type("\n")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == INTERRUPTED
    assert _kinds(as_user) == ["received"]


def test_one_key_ends_what_has_no_handler(sigwrap: Sigwrap) -> None:
    terminal = _terminal(sigwrap, "--", "sh", "-c", "echo ready; exec cat")
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED


def test_quit_key(sigwrap: Sigwrap) -> None:
    terminal = _terminal(sigwrap, "--", "sh", "-c", "ulimit -c 0; echo ready; exec cat")
    terminal.press("\\")
    assert terminal.await_status() == INTERRUPTED
    (received,) = sigwrap.sealed_events("interrupt_received")
    assert (received.payload["signal_name"], received.payload["origin"]) == ("SIGQUIT", "terminal")


def test_one_who_traps_only_term_gets_it_at_once(sigwrap: Sigwrap) -> None:
    text = 'trap "" INT; trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    terminal = _terminal(sigwrap, "--grace", "1000", "--", "bash", "-c", text)
    terminal.press("C")
    terminal.output.until(rb"asked")
    assert terminal.await_status() == INTERRUPTED
    assert _kinds(sigwrap) == ["received", "forwarded"]


def test_one_who_handles_the_key_and_goes_on_gets_term_within_the_grace(sigwrap: Sigwrap) -> None:
    text = (
        'trap "echo no" INT; trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    )
    terminal = _terminal(sigwrap, "--grace", "1", "--", "bash", "-c", text)
    terminal.press("C")
    terminal.output.until(rb"no")
    terminal.output.until(rb"asked")
    assert terminal.await_status() == INTERRUPTED
    assert _kinds(sigwrap) == ["received", "forwarded"]


def test_its_status_is_130_even_where_command_ends_with_0(sigwrap: Sigwrap) -> None:
    terminal = _terminal(sigwrap, "--", "bash", "-c", TRAPPING.replace("exit 3", "exit 0"))
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED


# Those who don't want to


def test_the_graces_end_kills(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _terminal(sigwrap, "--grace", "1", "--", *PYTHON, str(programs / "stubborn.py"))
    with Watch(tree(terminal.pid)) as watch:
        pressed = time.monotonic()
        terminal.press("C")
        assert terminal.await_status() == INTERRUPTED
        assert time.monotonic() - pressed >= 1.0
        assert watch.unharmed == []
        watch.await_ends()
        assert watch.zombies == []
    assert _kinds(sigwrap) == ["received", "forwarded", "escalated"]


@pytest.mark.parametrize("grace", ["0", "0.05"])
def test_a_short_grace(sigwrap: Sigwrap, grace: str, programs: Path) -> None:
    terminal = _terminal(sigwrap, "--grace", grace, "--", *PYTHON, str(programs / "stubborn.py"))
    terminal.press("C")
    assert terminal.await_status(DEFAULT_GRACE_S / 2) == INTERRUPTED


def test_the_second_key_kills_at_once(as_user: Sigwrap, programs: Path) -> None:
    terminal = _terminal(as_user, "--grace", "1000", "--", *PYTHON, str(programs / "stubborn.py"))
    with Watch(tree(terminal.pid)) as watch:
        terminal.press("C")
        terminal.output.until(rb"\^C")
        _await_event(as_user, "interrupt_forwarded")
        terminal.press("C")
        watch.await_ends()
        assert terminal.await_status() == INTERRUPTED
    assert _kinds(as_user) == ["received", "forwarded", "escalated"]
    (escalated,) = as_user.events("interrupt_escalated")
    assert escalated.payload["reason"] == "second interrupt"


def test_the_second_key_kills_who_is_cleaning_up(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _terminal(sigwrap, "--grace", "1000", "--", *PYTHON, str(programs / "cleaning.py"))
    terminal.press("C")
    terminal.output.until(rb"interrupted")
    await_key_taken(terminal.pid)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert _kinds(sigwrap) == ["received", "escalated"]


def test_an_impatient_user(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _terminal(sigwrap, "--grace", "1000", "--", *PYTHON, str(programs / "stubborn.py"))
    os.write(terminal.master, b"\x03" * 20)
    for _ in range(3):
        terminal.press("C")
        terminal.output.until(rb"\^C")
    terminal.press("\\")
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert _kinds(sigwrap).count("received") == 1
    assert _kinds(sigwrap).count("escalated") <= 1


def test_a_stopped_tree_is_killed_all_the_same(sigwrap: Sigwrap) -> None:
    text = "(echo ready; kill -STOP $BASHPID) & trap '' TERM; wait; wait; cat"
    process, _ = _start(sigwrap, "--grace", "0.1", "--", "bash", "-c", text)
    process.terminate()
    assert process.wait(PATIENCE_S) == INTERRUPTED
    assert sigwrap.alive() == []


# Signals from processes


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
def test_a_signal_to_our_pid_alone_reaches_command_as_term(as_user: Sigwrap, name: str) -> None:
    text = 'trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    process, said = _start(as_user, "--", "bash", "-c", text)
    process.send_signal(signal.Signals[name])
    said.until(rb"asked")
    assert process.wait(PATIENCE_S) == INTERRUPTED
    received, forwarded = (event for event in as_user.sealed_events() if "interr" in event.type)
    assert received.payload["signal_name"] == name
    assert received.payload["origin"] == "process"
    if not IS_BINARY:  # else it is the bootloader that hands it on
        assert received.payload["sender_pid"] == os.getpid()
        assert received.payload["sender_cmd"] == procfs.command_line(os.getpid())
    assert (forwarded.type, forwarded.payload["signal_name"]) == ("interrupt_forwarded", "SIGTERM")


def test_the_second_signal_of_another_process_kills(sigwrap: Sigwrap, programs: Path) -> None:
    """CI runners: SIGINT, then SIGTERM, then they kill everything."""
    process, _ = _start(sigwrap, "--grace", "1000", "--", *PYTHON, str(programs / "stubborn.py"))
    with Watch(tree(process.pid)) as watch:
        process.send_signal(signal.SIGINT)
        _await_event(sigwrap, "interrupt_forwarded")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == INTERRUPTED
        assert watch.unharmed == []
        watch.await_ends()
    assert _kinds(sigwrap) == ["received", "forwarded", "escalated"]


def test_a_signal_to_the_whole_group_is_one_interrupt(sigwrap: Sigwrap) -> None:
    process, said = _start(sigwrap, "--", "bash", "-c", TRAPPING)
    os.killpg(process.pid, signal.SIGTERM)
    said.until(rb"cleaned")
    assert process.wait(PATIENCE_S) == INTERRUPTED
    assert "escalated" not in _kinds(sigwrap)


@pytest.mark.parametrize("foreground", [[], ["--foreground"]])
def test_timeout_around_us_is_one_interrupt(sigwrap: Sigwrap, foreground: list[str]) -> None:
    """timeout(1) signals its child and then its group."""
    line = sigwrap.line("--grace", "1000", "--", "bash", "-c", TRAPPING)
    process = sigwrap.start_line(["timeout", *foreground, "1000", *line])
    said = reader(process.stdout)
    said.until(rb"ready")
    _await_reading(sigwrap)
    process.terminate()  # as its own clock would, at the end of the time
    said.until(rb"cleaned")
    assert process.wait(PATIENCE_S) in (INTERRUPTED, 124)
    assert _kinds(sigwrap).count("received") == 1
    assert "escalated" not in _kinds(sigwrap)


def test_timeout_inside_is_commands_own_affair(sigwrap: Sigwrap) -> None:
    done = sigwrap.run("--", "timeout", "0.1", "tail", "-f", "/dev/null")
    assert done.returncode == 124
    assert _kinds(sigwrap) == []


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGALRM", "SIGIO", "SIGURG"])
def test_other_signals_are_passed_on(sigwrap: Sigwrap, name: str, programs: Path) -> None:
    process, said = _start(sigwrap, "--", *PYTHON, str(programs / "counts_signals.py"), name)
    for _ in range(3):
        process.send_signal(signal.Signals[name])
        said.until(rb"got %d\n" % signal.Signals[name])
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 4
    assert "received" not in _kinds(sigwrap)


def test_a_realtime_signal_is_passed_on(sigwrap: Sigwrap) -> None:
    text = "trap 'echo got it' RTMIN+3; echo ready; while :; do read x && exit 5; done"
    process, said = _start(sigwrap, "--", "bash", "-c", text)
    process.send_signal(signal.SIGRTMIN + 3)
    said.until(rb"got it")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 5


def test_hang_up_of_the_terminal_ends_the_run(sigwrap: Sigwrap) -> None:
    terminal = _terminal(sigwrap, "--", "bash", "-c", 'trap "" HUP; echo ready; cat; cat; cat')
    with Watch(tree(terminal.pid)) as watch:
        os.kill(terminal.keeper, signal.SIGKILL)  # the session's leader, like a closed window
        watch.await_ends()
    sigwrap.verify(ended=True)


# The terminal's other keys


def test_suspend_and_resume_as_a_job(sigwrap: Sigwrap) -> None:
    text = 'echo ready; while read x; do echo "got $x"; done'
    terminal = _terminal(sigwrap, "--", "bash", "-c", text)
    command = procfs_command(sigwrap)
    for number in range(3):
        terminal.press("Z")
        terminal.await_stop()
        await_state(command, "T")
        os.killpg(terminal.pid, signal.SIGCONT)
        terminal.type(f"line {number}\n")
        terminal.output.until(b"got line %d" % number)
    terminal.press("D")
    assert terminal.await_status() == 0
    assert "received" not in _kinds(sigwrap)


def test_interrupt_while_suspended(sigwrap: Sigwrap) -> None:
    terminal = _terminal(sigwrap, "--grace", "1000", "--", "bash", "-c", TRAPPING)
    terminal.press("Z")
    terminal.await_stop()
    os.kill(terminal.pid, signal.SIGTERM)
    os.kill(terminal.pid, signal.SIGCONT)  # what a shell's kill does for a stopped job
    assert terminal.await_status() == INTERRUPTED


def test_suspend_and_fg_in_an_interactive_bash(as_user: Sigwrap) -> None:
    terminal = as_user.terminal_for(
        [*as_user.as_user(), "bash", "--norc", "-i"], env={"PS1": "PROMPT> "}
    )
    terminal.output.until(rb"PROMPT> ")
    words = " ".join(map(str, as_user.line("--", "cat")))
    terminal.type(f"{words}\n")
    terminal.output.until(rb"\n")
    _await_event(as_user, *EXECS)
    terminal.type("one\n")
    terminal.output.until(rb"one\r\none\r\n")
    for word in ("two", "three"):
        terminal.press("Z")
        terminal.output.until(rb"Stopped[^\n]*cat")
        terminal.output.until(rb"PROMPT> ")
        # The binary's outer process may stop before cat, which could still read what we type.
        await_state(procfs_command(as_user), "T")
        terminal.type("jobs\n")
        terminal.output.until(rb"\[1\]\+  Stopped[^\n]*cat")
        terminal.output.until(rb"PROMPT> ")
        terminal.type("fg\n")
        terminal.output.until(rb"cat\r\n")
        terminal.type(f"{word}\n")
        terminal.output.until(b"%b\r\n%b\r\n" % (word.encode(), word.encode()))
    terminal.press("Z")
    terminal.output.until(rb"PROMPT> ")
    await_state(procfs_command(as_user), "T")
    terminal.type("bg\n")  # cat reads the terminal, so it is stopped again at once
    terminal.output.until(rb"PROMPT> ")
    seen = b""
    while b"Stopped" not in seen:  # bash continues what it knows to be stopped
        terminal.type("jobs\n")
        seen = terminal.output.until(rb"\[1\]\+  (Stopped|Running)[^\n]*cat")
        terminal.output.until(rb"PROMPT> ")
    terminal.type("fg\n")
    terminal.output.until(rb"cat\r\n")
    terminal.type("four\n")
    terminal.output.until(rb"four\r\nfour\r\n")
    terminal.press("C")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("echo status $?\n")
    terminal.output.until(rb"status 130\r\n")
    terminal.type("exit 0\n")
    assert terminal.await_status() == 0


def test_kill_of_a_stopped_job_from_bash(sigwrap: Sigwrap) -> None:
    terminal = sigwrap.terminal_for(["bash", "--norc", "-i"], env={"PS1": "PROMPT> "})
    terminal.output.until(rb"PROMPT> ")
    terminal.type(" ".join(map(str, sigwrap.line("--", "cat"))) + "\n")
    _await_event(sigwrap, *EXECS)
    terminal.press("Z")
    terminal.output.until(rb"Stopped")
    terminal.output.until(rb"PROMPT> ")
    await_state(procfs_command(sigwrap), "T")
    terminal.type("kill %1\n")
    _await_event(sigwrap, "session_ended")
    await_that(lambda: children(terminal.pid) == [])  # else bash won't exit: it has a job
    (ended,) = sigwrap.sealed_events("session_ended")
    assert ended.payload["exit_status"] == INTERRUPTED
    terminal.type("exit\n")
    terminal.await_status()


def test_a_new_size_reaches_command(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _terminal(sigwrap, "--", *PYTHON, str(programs / "says_its_size.py"))
    terminal.resize(33, 77)
    terminal.output.until(rb"size 77 33")
    terminal.resize(44, 111)
    terminal.output.until(rb"size 111 44")
    terminal.type("\n")
    assert terminal.await_status() == 0


def test_an_interactive_bash_inside(sigwrap: Sigwrap) -> None:
    """Its Ctrl+C is a new prompt and nobody's end; its jobs are its own."""
    terminal = sigwrap.on_terminal(
        "--grace", "1000", "--", "bash", "--norc", "-i", env={"PS1": "PROMPT> "}
    )
    terminal.output.until(rb"PROMPT> ")
    assert terminal.foreground() != terminal.keeper
    for _ in range(2):
        _await_reading(sigwrap)
        terminal.press("C")
        terminal.output.until(rb"PROMPT> ")
    terminal.type("echo a$((40+2))\n")
    terminal.output.until(rb"a42\r\n")
    terminal.type("cat\n")
    terminal.output.until(rb"cat\r\n")
    terminal.type("hello\n")
    terminal.output.until(rb"hello\r\nhello\r\n")
    terminal.press("Z")
    terminal.output.until(rb"Stopped")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("fg\n")
    terminal.output.until(rb"cat\r\n")
    terminal.type("again\n")
    terminal.output.until(rb"again\r\nagain\r\n")
    terminal.press("C")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("echo status $?; exit 7\n")
    terminal.output.until(rb"status 130\r\n")
    assert terminal.await_status() == 7
    assert _kinds(sigwrap) == []


def test_a_key_that_is_read_as_a_character(sigwrap: Sigwrap, programs: Path) -> None:
    """An editor in raw mode gets the byte; nobody is interrupted."""
    terminal = _terminal(sigwrap, "--no-report", "--", PYTHON[0], str(programs / "raw_key.py"))
    terminal.press("C")
    terminal.output.until(rb"got 3")
    assert terminal.await_status() == 0
    assert _kinds(sigwrap) == []


# Servers


@needs("npm")
def test_npm_start_of_a_server(sigwrap: Sigwrap, programs: Path) -> None:
    package = '{"name": "p", "version": "1.0.0", "scripts": {"start": "node server.js"}}'
    (sigwrap.folder / "package.json").write_text(package)
    shutil.copy(programs / "server.js", sigwrap.folder)
    env = {"npm_config_update_notifier": "false", "npm_config_offline": "true"}
    terminal = sigwrap.on_terminal("--", "npm", "start", env=env)
    port = int(terminal.output.until(rb"port \d+\r\n").split()[1])
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"hello" in Reader(client.fileno()).rest()
    with Watch(tree(terminal.pid)) as watch:
        terminal.press("C")
        terminal.output.until(rb"closing")
        assert terminal.await_status() == INTERRUPTED
        assert watch.unharmed == []
        watch.await_ends()
    assert "escalated" not in _kinds(sigwrap)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), PATIENCE_S)


# One key press is one interrupt


def test_a_hundred_single_keys_are_never_taken_for_two(sigwrap: Sigwrap) -> None:
    """COMMAND's cleanup would be cut short by an escalation, and the log would tell."""
    cleaning = 'trap "echo cleaned; exit 0" INT; echo ready; read x; read x; read x'
    for _ in range(100):
        terminal = _terminal(sigwrap, "--no-report", "--", "dash", "-c", cleaning)
        terminal.press("C")
        terminal.output.until(rb"cleaned")
        assert terminal.await_status() == INTERRUPTED
        terminal.close()
        assert _kinds(sigwrap) == ["received"]


# At odd moments


def test_interrupt_before_command_is_there(sigwrap: Sigwrap) -> None:
    """However early it comes, it is not lost: nothing is left, and nothing runs on."""
    for _ in range(15):
        process = sigwrap.start("--grace", "1", "--", "cat")
        with Watch([process.pid]) as watch:
            process.terminate()
            watch.await_ends()
        status = process.wait(PATIENCE_S)
        # Before our own code ran, SIGTERM has its default effect.
        assert status in (INTERRUPTED, -signal.SIGTERM)
    assert sigwrap.alive() == []


def test_interrupt_at_every_moment_of_the_start(sigwrap: Sigwrap) -> None:
    # Its outer process has forked, but passes nothing on yet, at the binary's second: if it dies
    # then, PyInstaller's inner one waits for it for ever, and has run nothing of ours.
    for process_count in (1, 3, 4) if IS_BINARY else (1, 2, 3):
        process = sigwrap.start("--grace", "1", "--", "cat")
        poll = select.poll()
        while process.poll() is None and len(tree(process.pid)) < process_count:
            poll.poll(1)
        process.terminate()
        assert process.wait(PATIENCE_S) in (INTERRUPTED, -signal.SIGTERM)
    assert sigwrap.alive() == []


def test_interrupt_while_leftovers_are_cleared(sigwrap: Sigwrap, programs: Path) -> None:
    """COMMAND has ended; a key press kills what it left, at once."""
    text = f"{' '.join(PYTHON)} {programs}/leftover.py & read line"
    process = sigwrap.start("--", "bash", "-c", text, stderr=None)
    said = reader(process.stdout)
    said.until(rb"here")
    process.say(b"\n")
    said.until(rb"asked")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    status = process.wait(PATIENCE_S)
    if status == 0:  # a machine on which all leftovers were cleared before the keys came
        assert _kinds(sigwrap) == []
    else:
        assert (status, _kinds(sigwrap)) == (INTERRUPTED, ["received", "escalated"])
    assert sigwrap.alive() == []


def test_a_stopped_supervisor_does_not_save_the_tree(sigwrap: Sigwrap) -> None:
    """SIGSTOP from outside: it is woken, and the run ends as asked."""
    process, said = _start(sigwrap, "--", "bash", "-c", TRAPPING)
    supervisor = Roles.of(process.pid).supervisor
    os.kill(supervisor, signal.SIGSTOP)
    process.terminate()
    said.until(rb"cleaned")
    assert process.wait(PATIENCE_S) == INTERRUPTED


def test_stop_and_continue_of_our_pid(sigwrap: Sigwrap) -> None:
    process, _ = _start(sigwrap, "--", "sh", "-c", "echo ready; read x; echo got $x")
    os.kill(process.pid, signal.SIGSTOP)
    await_state(process.pid, "T")
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(b"word\n", PATIENCE_S)
    assert process.returncode == 0


def test_a_signal_from_below_does_not_end_the_run(sigwrap: Sigwrap) -> None:
    """To sigwrap's own processes, under every policy; and it is in the log with its sender."""
    sigwrap.policy = "agent-observe"
    text = "kill -TERM $PPID; kill -KILL $PPID; kill -STOP $(ps -o ppid= $PPID); echo sent; read x"
    process = sigwrap.start("--", "bash", "-c", text)
    reader(process.stdout).until(rb"sent")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0
    blocked = [event.payload for event in sigwrap.sealed_events("signal_blocked")]
    assert [payload["signal_name"] for payload in blocked] == ["SIGTERM", "SIGKILL", "SIGSTOP"]
    assert {payload["target_type"] for payload in blocked} == {"parent"}
    assert all(payload["rule_name"].startswith("builtin:") for payload in blocked)


def _await_event(sigwrap: Sigwrap, *types: str) -> None:
    def is_there() -> bool:
        try:
            return bool(sigwrap.events(*types))
        except SigwrapError:  # the log is just being made
            return False

    await_that(is_there)


def _terminal(sigwrap: Sigwrap, *words: str) -> Terminal:
    """Once COMMAND is ready."""
    terminal = sigwrap.on_terminal(*words)
    terminal.output.until(rb"ready")
    _await_reading(sigwrap)
    return terminal


def _start(sigwrap: Sigwrap, *words: str, **options: Any) -> tuple[Running, Reader]:
    """Once COMMAND is ready, and what it says."""
    process = sigwrap.start(*words, **options)
    said = reader(process.stdout)
    said.until(rb"ready")
    _await_reading(sigwrap)
    return process, said


def _await_reading(sigwrap: Sigwrap) -> None:
    """A shell or Python looks for signals, and then it reads: one in between waits for a line."""
    await_state(procfs_command(sigwrap), "S")


def procfs_command(sigwrap: Sigwrap) -> int:
    pid: int = sigwrap.events("session_started")[0].payload["command_pid"]
    return pid


def test_command_that_moved_to_its_own_session_still_gets_the_interrupt(sigwrap: Sigwrap) -> None:
    """The terminal's signal doesn't reach it, ours does."""
    terminal = _terminal(sigwrap, "--grace", "1000", "--", "setsid", "-w", "bash", "-c", TRAPPING)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.alive() == []


def test_nobody_else_waits_for_the_front(sigwrap: Sigwrap) -> None:
    with Pipe() as pipe:
        process, _ = _start(sigwrap, "--", "sh", "-c", "echo ready; cat", pass_fds=(pipe.writing,))
        pipe.let_go()
        assert children(process.pid)
        process.terminate()
        await_end(process.pid)
        assert pipe.rest() == b""
        assert procfs.stat(process.pid) is not None
        assert process.wait(PATIENCE_S) == INTERRUPTED
