"""`sigwrap why` after real runs: each way in which a process can end, and who it says ended it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable

import pytest

from tests.support.harness import PYTHON, Running, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles
from tests.support.waiting import PATIENCE_S

READS = "echo ready; read line"
PYTHON_DOES = f"exec {' '.join(PYTHON)} -c"
BY_DEFAULT = "allowed by rule builtin:default"
CHILD = r"it passed on the exit status of its child \d+ \"[^|]*\": "


def why(subject: Sigwrap, *words: object) -> str:
    done = subject.run("why", *map(str, words))
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().rstrip("\n")


def shell(
    subject: Sigwrap, text: str, *sections: str, rules: str = " []\n", grace: float = PATIENCE_S
) -> str:
    """A run of it under such a policy, and why that ended. It has long enough to end of SIGTERM,
    however much memory it leaves and whatever runs beside it."""
    chosen = policy(subject.folder, rules, *sections)
    subject.run("-p", chosen, "--grace", str(grace), "--", "sh", "-c", text)
    return why(subject)


def assert_why(said: str, expected: str) -> None:
    assert re.fullmatch(expected, said), said


# Limits


OVER = "exit 124: {}; the command died of SIGTERM from sigwrap"
NO_FORK = r"exit 2: it ended by itself, after sigwrap denied its fork \(limit max_processes\)"
NO_LOG = "exit 9: it ended by itself, after sigwrap denied every exec and signal: log_.*"


@pytest.mark.parametrize(
    ("limits", "text", "expected"),
    [
        ("wall_time: 1s", "sleep 99", OVER.format("wall_time: the limit of 1 s was reached")),
        ("max_processes: 2, at_fork: true", "sleep 9 & sleep 9 & sleep 9 & wait", NO_FORK),
        ("log_size: 32K, at_log_size: deny", "while /bin/true; do :; done 2>&-; exit 9", NO_LOG),
    ],
    ids=["wall_time", "fork", "log"],
)
def test_a_limit(sigwrap: Sigwrap, limits: str, text: str, expected: str) -> None:
    said = shell(sigwrap, text, f"limits: {{{limits}}}")
    assert_why(said, expected)
    assert why(sigwrap, sigwrap.command_pid()) == said


# Denied


def test_a_denied_command(sigwrap: Sigwrap) -> None:
    said = shell(sigwrap, "true", rules="\n  - {name: no-sh, commands: [sh], decision: deny}\n")
    assert said == "exit 126: the command could not be run: denied (rule no-sh, policy test)"
    document = json.loads(why(sigwrap, "--json"))
    assert (document["cause"], document["status"]) == ("denied", 126)


@pytest.mark.promise("why")
def test_a_command_that_was_denied_to_the_shell(sigwrap: Sigwrap) -> None:
    rule = "\n  - {name: no-ls, commands: [ls], decision: deny}\n"
    said = shell(sigwrap, "/bin/ls -l; exit $?", rules=rule)
    denied = "sigwrap denied its exec of /bin/ls -l (rule no-ls)"
    assert_why(said, f"exit 126: {CHILD}{re.escape(denied)}")
    child, command = (event.pid for event in sigwrap.events("process_exited"))
    assert command == sigwrap.command_pid()
    assert why(sigwrap, child) == f"exit 126: it ended by itself, after {denied}"


# Signals inside the session


BY_A_SIBLING = 'sleep 99 & target=$!; sh -c "kill -SEGV $target; :"; wait $target'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BY_A_SIBLING, rf'{CHILD}SIGSEGV from \d+ "sh -c .*", started by \d+ "sh .*", .*'),
        ("sh -c '(kill -TERM '$$'; :); :'", rf'SIGTERM from \d+ "sh", {BY_DEFAULT}'),
    ],
    ids=["SEGV", "grandchild"],
)
def test_a_signal_of_the_session(sigwrap: Sigwrap, text: str, expected: str) -> None:
    assert_why(shell(sigwrap, text), rf"exit \d+: ({expected})")


# The kernel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{PYTHON_DOES} 'import ctypes; ctypes.string_at(0)'",
            "exit 139: SIGSEGV from the kernel: an invalid memory access",
        ),
        (
            "ulimit -t 1; while :; do :; done",
            r"exit 137: SIGKILL from the kernel: its hard CPU time limit, 1 s .*"
            r"|exit 137: SIGKILL from .*the kernel \(a hard ulimit -t\) or a process outside .*",
        ),
    ],
    ids=["SIGSEGV", "hard RLIMIT_CPU"],
)
def test_a_signal_of_the_kernel(sigwrap: Sigwrap, text: str, expected: str) -> None:
    assert_why(shell(sigwrap, text), expected)


# From outside


def ended(subject: Sigwrap, act: Callable[[Running], None], *words: str) -> str:
    """A command that reads, after that was done to it."""
    process, _ = subject.start_ready(*(words or ("--", "sh", "-c", READS)))
    act(process)
    process.wait(PATIENCE_S)
    return why(subject)


@pytest.mark.promise("why")
def test_a_signal_to_sigwrap_from_outside(sigwrap: Sigwrap) -> None:
    said = ended(sigwrap, lambda process: process.send_signal(signal.SIGHUP))
    assert_why(
        said,
        r"exit 130: interrupted; SIGTERM from sigwrap, which received SIGHUP "
        rf'(from {os.getpid()} ".*", outside the session|through sigwrap\'s outer process.*)',
    )


# sigwrap itself


def send(subject: Sigwrap, *words: str) -> None:
    session = subject.events("session_started")[0].payload["session_id"]
    subject.run("signal", session, *words)


DIED = "its end was not recorded: sigwrap was killed or could not write the log"


def kill_supervisor(process: Running) -> None:
    os.kill(Roles.of(process.pid).supervisor, signal.SIGKILL)


def test_a_supervisor_that_died_also_of_a_session_that_was_stopped(sigwrap: Sigwrap) -> None:
    def stop_and_kill(process: Running) -> None:
        send(sigwrap, "SIGSTOP", "--reason", "lunch")
        sigwrap.await_event("tree_frozen")
        assert_why(why(sigwrap), "stopped since .* by agent signal SIGSTOP from .*: lunch")
        kill_supervisor(process)

    for act in (kill_supervisor, stop_and_kill):
        assert ended(sigwrap, act) == DIED
        assert why(sigwrap, sigwrap.command_pid()) == DIED
    assert json.loads(why(sigwrap, "--json"))["cause"] == "supervisor-died"
    report = json.loads(sigwrap.run("report", "--json").stdout)
    assert (report["ending"], report["why"]) == ("did not end cleanly", DIED)
    assert "stopped since" not in sigwrap.run("report").stdout.decode()


def test_a_copy_of_the_log_is_a_moment(sigwrap: Sigwrap) -> None:
    process, _ = sigwrap.start_ready("--", "sh", "-c", READS)
    send(sigwrap, "SIGUSR2")
    sigwrap.await_event("checkpoint")
    copy = sigwrap.events("checkpoint")[0].payload["path"]
    assert why(sigwrap) == "still running"
    process.communicate(b"\n", PATIENCE_S)
    assert why(sigwrap, copy) == "still running when the log was copied"
    terminal = sigwrap.on_terminal("why")  # which is told of which session
    assert terminal.await_status() == 0
    lines = terminal.output.rest().decode().splitlines()
    assert re.search(r"\d{8}-\d{6}-\w{16}, \S+.*: sh -c .*", lines[0])
    assert lines[1] == "exit 0: it ended by itself"
