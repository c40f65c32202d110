"""`sigwrap why` after real runs: each way in which a process can end, and who it says ended it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, REFUSED, Running, Sigwrap
from tests.support.killswitch import started, switch
from tests.support.policies import policy
from tests.support.processes import Roles, await_key_taken
from tests.support.waiting import PATIENCE_S, await_end

READS = "echo ready; read line"
PYTHON_DOES = f"exec {' '.join(PYTHON)} -c"
BY_DEFAULT = "allowed by rule builtin:default"
CHILD = r"it ended by itself, as its child \d+ \"[^|]*\" had: "


def why(subject: Sigwrap, *words: object) -> str:
    done = subject.run("why", *map(str, words))
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().rstrip("\n")


def of_child(subject: Sigwrap) -> str:
    """Of the first process that ended and isn't COMMAND."""
    command = subject.command_pid()
    pids = [event.pid for event in subject.events("process_exited") if event.pid != command]
    return why(subject, pids[0])


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


OVER = "exit 124: {}; COMMAND died of SIGTERM from sigwrap"
FULL = "log_size: the event log has the 65536 bytes that it may have"
NO_FORK = "exit 2: it ended by itself, after a fork of it was refused by limit max_processes"
NO_LOG = "exit 9: it ended by itself, after every exec and signal was denied: log_.*"


@pytest.mark.parametrize(
    ("limits", "text", "expected"),
    [
        ("wall_time: 1s", "sleep 99", OVER.format("wall_time: 1 s are over")),
        ("log_size: 64K", "while :; do /bin/true; done", OVER.format(FULL)),
        ("max_processes: 2, at_fork: true", "sleep 9 & sleep 9 & sleep 9 & wait", NO_FORK),
        ("log_size: 32K, at_log_size: deny", "while /bin/true; do :; done 2>&-; exit 9", NO_LOG),
    ],
    ids=["wall_time", "log_size", "fork", "log"],
)
def test_a_limit(sigwrap: Sigwrap, limits: str, text: str, expected: str) -> None:
    said = shell(sigwrap, text, f"limits: {{{limits}}}")
    assert_why(said, expected)
    assert why(sigwrap, sigwrap.command_pid()) == said


def test_a_log_that_was_full_at_once(sigwrap: Sigwrap) -> None:
    """The end of the run comes before the denial of COMMAND's exec, or after it."""
    sigwrap.run("--log-size", "1K", "--", "sh", "-c", "exit 3")
    limit = "exit 124: log_size: the event log has the 1024 bytes that it may have"
    assert_why(why(sigwrap), f"{limit}; COMMAND (was not executed|died of SIGTERM from sigwrap)")


# Denied


def test_a_denied_command(sigwrap: Sigwrap) -> None:
    said = shell(sigwrap, "true", rules="\n  - {name: no-sh, commands: [sh], decision: deny}\n")
    assert said == "exit 126: COMMAND could not be executed: denied by rule no-sh of test"
    document = json.loads(why(sigwrap, "--json"))
    assert (document["cause"], document["status"]) == ("denied", 126)


@pytest.mark.promise("why")
def test_a_command_that_was_denied_to_the_shell(sigwrap: Sigwrap) -> None:
    rule = "\n  - {name: no-ls, commands: [ls], decision: deny}\n"
    said = shell(sigwrap, "/bin/ls -l; exit $?", rules=rule)
    denied = "it ended by itself, after its exec of /bin/ls -l was denied by rule no-ls"
    assert_why(said, f"exit 126: {CHILD}{denied}")
    assert of_child(sigwrap) == f"exit 126: {denied}"


def test_what_can_not_be_run_has_no_session(sigwrap: Sigwrap) -> None:
    for command in ("no-such-command", "/etc/passwd"):
        sigwrap.run("--", command)
    done = sigwrap.run("why")
    assert done.returncode == REFUSED
    assert b"there are no sessions" in done.stderr


# Signals inside the session


BY_A_SIBLING = 'sleep 99 & target=$!; sh -c "kill -SEGV $target; :"; wait $target'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BY_A_SIBLING, rf'{CHILD}SIGSEGV from \d+ "sh -c .*", started by \d+ "sh .*", .*'),
        ("sleep 99 & kill $!; wait $!", rf'{CHILD}SIGTERM from \d+ "sh -c \'sleep.*, {BY_DEFAULT}'),
        ("sh -c '(kill -TERM '$$'; :); :'", rf'SIGTERM from \d+ "sh", {BY_DEFAULT}'),
        (f"{PYTHON_DOES} 'import os; os.abort()'", r'SIGABRT from \d+ ".*" itself, .*'),
    ],
    ids=["SEGV", "parent", "grandchild", "abort"],
)
def test_a_signal_of_the_session(sigwrap: Sigwrap, text: str, expected: str) -> None:
    assert_why(shell(sigwrap, text), rf"exit \d+: ({expected})")


def test_a_signal_that_did_not_arrive_ended_nobody(sigwrap: Sigwrap) -> None:
    os.mkfifo(sigwrap.folder / "fifo")
    rule = "{name: never, signals: [TERM], target: children, decision: deny}"
    text = "exec 3<>fifo; head -1 <&3 & kill $! 2>&-; echo >fifo; wait $!; exit 7"
    assert shell(sigwrap, text, f"signal_rules: [{rule}]") == "exit 7: it ended by itself"
    assert of_child(sigwrap) == "exit 0: it ended by itself"


# The kernel


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            f"{PYTHON_DOES} 'import ctypes; ctypes.string_at(0)'",
            "exit 139: SIGSEGV from the kernel: it touched memory that isn't its own",
        ),
        (
            "ulimit -S -t 1; while :; do :; done",
            "exit 152: SIGXCPU from the kernel: its limit of processor time",
        ),
        (
            "ulimit -t 1; while :; do :; done",
            r"exit 137: SIGKILL from the kernel: its hard limit of processor time, 1 s .*"
            r"|exit 137: SIGKILL from .*the kernel \(a hard ulimit -t\) or a sender outside: .*",
        ),
        (
            f"{PYTHON_DOES} 'import signal; signal.setitimer(0, 0.01); signal.pause()'",
            "exit 142: SIGALRM from the kernel: an alarm that it had set itself",
        ),
    ],
    ids=["SIGSEGV", "SIGXCPU", "hard RLIMIT_CPU", "SIGALRM"],
)
def test_a_signal_of_the_kernel(sigwrap: Sigwrap, text: str, expected: str) -> None:
    assert_why(shell(sigwrap, text), expected)


def test_a_pipe_that_nobody_reads_and_what_command_leaves_behind(sigwrap: Sigwrap) -> None:
    os.mkfifo(sigwrap.folder / "fifo")
    behind = "sh -c 'echo up >fifo; exec sleep 99' & read -r up <fifo"
    assert shell(sigwrap, f"yes | head -1; {behind}; exit 4") == "exit 4: it ended by itself"
    signals = {signal.SIGPIPE: 0, signal.SIGTERM: 0}
    for event in sigwrap.events("process_exited"):
        if event.payload["signal"]:
            signals[event.payload["signal"]] = event.pid
    said = "exit 141: SIGPIPE from the kernel: it wrote to a pipe that nobody reads"
    assert why(sigwrap, signals[signal.SIGPIPE]) == said
    said = "exit 143: SIGTERM from sigwrap, which clears what COMMAND left behind"
    assert why(sigwrap, signals[signal.SIGTERM]) == said


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
        r"exit 130: interrupted; SIGTERM from sigwrap, which got SIGHUP "
        rf'(from {os.getpid()} ".*", outside the session|by way of sigwrap\'s outer process.*)',
    )


def test_who_raises_a_signal_again_had_it_from_a_process_of_the_session(
    sigwrap: Sigwrap, programs: Path
) -> None:
    os.mkfifo(sigwrap.folder / "fifo")
    said = shell(
        sigwrap,
        f"exec 3<>fifo; sh {programs}/raises_again.sh >up & target=$!; "
        'until [ -s up ]; do :; done; sh -c "kill -TERM $target; :"; wait $target',
    )
    first, itself = rf'SIGTERM from \d+ "sh -c \'kill .*", {BY_DEFAULT}', 'SIGTERM from .*" itself'
    assert_why(said, f"exit 143: {CHILD}{first}; {itself}, .*")


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (signal.SIGTERM, "exit 143: SIGTERM, by whom is unknown: no process of the session .*"),
        (signal.SIGKILL, "exit 137: SIGKILL from .*a sender outside: no process of the session .*"),
    ],
)
def test_a_signal_to_command_from_outside(
    sigwrap: Sigwrap, number: signal.Signals, expected: str
) -> None:
    assert_why(ended(sigwrap, lambda _: os.kill(sigwrap.command_pid(), number)), expected)


def test_the_key_and_the_second_key(sigwrap: Sigwrap) -> None:
    stays = "trap '' INT TERM; echo ready; while :; do read line; done"
    key = r"SIGINT from the terminal \(Ctrl\+C\)"
    for text, more in ((READS, ".*"), (stays, "; killed: second interrupt")):
        terminal = sigwrap.ready_on_terminal("--", "sh", "-c", text)
        terminal.press("c")
        if text == stays:
            sigwrap.await_event("interrupt_received")
            await_key_taken(terminal.pid)
            terminal.press("c")
        assert terminal.await_status() == INTERRUPTED
        assert_why(why(sigwrap), f"exit 130: interrupted by {key}{more}")


# sigwrap itself


def send(subject: Sigwrap, *words: str) -> None:
    session = subject.events("session_started")[0].payload["session_id"]
    subject.run("signal", session, *words)


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("SIGTERM", 130, "ended by {}; COMMAND died of SIGTERM from sigwrap"),
        ("SIGBUDGET", 124, "ended by {}; COMMAND died of SIGTERM from sigwrap"),
        ("SIGKILL", 137, "SIGKILL from sigwrap: {}"),
    ],
)
def test_an_agent_signal(sigwrap: Sigwrap, name: str, status: int, expected: str) -> None:
    said = ended(sigwrap, lambda _: send(sigwrap, name, "--reason", "enough"))
    sender = rf"agent signal {name} from uid \d+, pid \d+: enough"
    assert_why(said, rf"exit {status}: {expected.format(sender)}")


def test_the_kill_switch(alone: Sigwrap) -> None:
    process = started(alone, "--", "sh", "-c", READS)
    assert switch(alone, "on", "--reason", "a drill", patiently=True)[0] == 0
    assert process.wait(PATIENCE_S) == REFUSED
    said = why(alone)
    assert_why(said, "exit 125: killed: the kill switch: a drill.*")
    assert said.count("a drill") == 1


DIED = "sigwrap was killed, or could not write any more, before an end was recorded"


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


def test_a_front_process_that_died(sigwrap: Sigwrap) -> None:
    def kill_front(process: Running) -> None:
        roles = Roles.of(process.pid)
        os.kill(roles.front, signal.SIGKILL)
        await_end(roles.supervisor)

    said = ended(sigwrap, kill_front)
    assert said == "exit 137: SIGKILL from sigwrap: sigwrap's front process died"


def test_a_copy_of_the_log_is_a_moment(sigwrap: Sigwrap) -> None:
    process, _ = sigwrap.start_ready("--", "sh", "-c", READS)
    send(sigwrap, "SIGUSR2")
    sigwrap.await_event("checkpoint")
    copy = sigwrap.events("checkpoint")[0].payload["path"]
    assert why(sigwrap) == "no end of it is recorded yet"
    process.communicate(b"\n", PATIENCE_S)
    assert why(sigwrap, copy) == "it had not ended when the log was copied"
    terminal = sigwrap.on_terminal("why")  # which is told of which session
    assert terminal.await_status() == 0
    lines = terminal.output.rest().decode().splitlines()
    assert re.search(r"\d{8}-\d{6}-\w{6}, \S+.*: sh -c .*", lines[0])
    assert lines[1] == "exit 0: it ended by itself"
