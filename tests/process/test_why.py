"""`sigwrap why` after real runs: each way in which a process can end, and who it says ended it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, REFUSED, UNDER_TEST, Running, Sigwrap
from tests.support.killswitch import started, switch
from tests.support.policies import policy
from tests.support.processes import Roles, await_key_taken
from tests.support.programs import needs, script
from tests.support.waiting import PATIENCE_S, await_end, reader

READS = "echo ready; read line"
PYTHON_DOES = f"exec {' '.join(PYTHON)} -c"
BY_DEFAULT = "allowed by rule builtin:default"
CHILD = r"it ended by itself, as its child \d+ \"[^|]*\" had: "


def why(subject: Sigwrap, *words: object) -> str:
    done = subject.native(UNDER_TEST, "why", *map(str, words))
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().rstrip("\n")


def of_child(subject: Sigwrap, *words: object) -> str:
    """Of the first process that ended and isn't COMMAND."""
    command = subject.command_pid()
    pids = [event.pid for event in subject.events("process_exited") if event.pid != command]
    return why(subject, *words, pids[0])


def shell(
    subject: Sigwrap, text: str, *sections: str, rules: str = " []\n", grace: float = PATIENCE_S
) -> str:
    """A run of it under such a policy, and why that ended. It has long enough to end of SIGTERM,
    however much memory it leaves and whatever runs beside it."""
    subject.policy = policy(subject.folder, rules, *sections)
    subject.run("--grace", str(grace), "--", "sh", "-c", text)
    return why(subject)


def assert_why(said: str, expected: str) -> None:
    assert re.fullmatch(expected, said), said


# Limits


@pytest.mark.parametrize(
    ("limits", "text", "reason"),
    [
        ("wall_time: 1s", "sleep 99", "wall_time: 1 s are over"),
        ("cpu_time: 1s", "while :; do :; done", "cpu_time: .* s of processor time are over 1 s"),
        (
            "max_execs: 2",
            "/bin/true; /bin/true; sleep 99",
            "max_execs: 2 programs have been started",
        ),
        (
            "log_size: 64K",
            "while :; do /bin/true; done",
            "log_size: the event log has the 65536 bytes that it may have",
        ),
    ],
    ids=["wall_time", "cpu_time", "max_execs", "log_size"],
)
def test_a_limit(sigwrap: Sigwrap, limits: str, text: str, reason: str) -> None:
    said = shell(sigwrap, text, f"limits: {{{limits}}}")
    assert_why(said, f"exit 124: {reason}; COMMAND died of SIGTERM from sigwrap")
    assert why(sigwrap, sigwrap.command_pid()) == said


def test_a_limit_and_a_command_that_stays(sigwrap: Sigwrap) -> None:
    said = shell(sigwrap, "trap '' TERM; sleep 99", "limits: {wall_time: 5s}", grace=0.3)
    assert said == (
        "exit 124: wall_time: 5 s are over; COMMAND died of SIGKILL from sigwrap, after the grace"
    )
    assert of_child(sigwrap) == "exit 137: SIGKILL from sigwrap: wall_time: 5 s are over"


def test_the_limit_of_memory(sigwrap: Sigwrap) -> None:
    """Whether a look came first or, in a control group, the kernel."""
    takes = f"{PYTHON_DOES} 'x = bytearray(b\"x\") * (300 << 20); import time; time.sleep(99)'"
    assert_why(
        shell(sigwrap, takes, "limits: {memory: 100M}"),
        r"exit 124: memory: .* in use are over 100M; COMMAND died of SIGTERM from sigwrap"
        r"|exit 124: SIGKILL from the kernel's OOM killer: memory: .*100M were not enough",
    )


def test_a_fork_that_a_limit_refused(sigwrap: Sigwrap) -> None:
    said = shell(
        sigwrap, "sleep 9 & sleep 9 & sleep 9 & wait", "limits: {max_processes: 2, at_fork: true}"
    )
    assert said == (
        "exit 2: it ended by itself, after a fork of it was refused by limit max_processes"
    )


def test_a_log_that_is_full_and_denies(sigwrap: Sigwrap) -> None:
    said = shell(
        sigwrap,
        "while /bin/true; do :; done 2>&-; exit 9",
        "limits: {log_size: 32K, at_log_size: deny}",
    )
    assert_why(said, "exit 9: it ended by itself, after every exec and signal was denied: log_.*")


def test_a_log_that_was_full_at_once(sigwrap: Sigwrap) -> None:
    """The end of the run comes before the denial of COMMAND's exec, or after it."""
    sigwrap.run("--log-size", "1K", "--", "sh", "-c", "exit 3")
    limit = "exit 124: log_size: the event log has the 1024 bytes that it may have"
    assert_why(why(sigwrap), f"{limit}; COMMAND (was not executed|died of SIGTERM from sigwrap)")


# What the command line was


def test_a_denied_command(sigwrap: Sigwrap) -> None:
    said = shell(sigwrap, "true", rules="\n  - {name: no-sh, commands: [sh], decision: deny}\n")
    assert said == "exit 126: COMMAND could not be executed: denied by rule no-sh of test"
    document = json.loads(why(sigwrap, "--json"))
    assert (document["cause"], document["status"]) == ("denied", 126)


def test_a_command_that_was_denied_to_the_shell(sigwrap: Sigwrap) -> None:
    rule = "\n  - {name: no-ls, commands: [ls], decision: deny}\n"
    said = shell(sigwrap, "/bin/ls -l; exit $?", rules=rule)
    denied = "it ended by itself, after its exec of /bin/ls -l was denied by rule no-ls"
    assert_why(said, f"exit 126: {CHILD}{denied}")
    assert of_child(sigwrap) == f"exit 126: {denied}"


@pytest.mark.parametrize("command", ["no-such-command", "/etc/passwd"])
def test_what_can_not_be_run_has_no_session(sigwrap: Sigwrap, command: str) -> None:
    sigwrap.run("--", command)
    done = sigwrap.native(UNDER_TEST, "why")
    assert done.returncode == REFUSED
    assert b"there are no sessions" in done.stderr


def test_a_file_that_the_kernel_does_not_execute(sigwrap: Sigwrap) -> None:
    file = script(sigwrap.folder, "odd", "#!/no/such/interpreter\n")
    done = sigwrap.run("--", file)
    assert done.returncode in (126, 127)
    if sigwrap.has_sessions():
        assert_why(why(sigwrap), "exit 12[67]: COMMAND could not be executed: .*")


# Signals inside the session


KILLS = 'sleep 99 & target=$!; sh -c "kill -%s $target; :"; wait $target'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (KILLS % "TERM", rf'{CHILD}SIGTERM from \d+ "sh -c .*", started by \d+ "sh .*", .*'),
        (KILLS % "SEGV", rf'{CHILD}SIGSEGV from \d+ "sh -c .*", started by \d+ "sh .*", .*'),
        (KILLS % "KILL", rf'{CHILD}SIGKILL from \d+ "sh -c .*", started by \d+ "sh .*", .*'),
        ("sleep 99 & kill $!; wait $!", rf'{CHILD}SIGTERM from \d+ "sh -c \'sleep.*, {BY_DEFAULT}'),
        ("sh -c 'kill -KILL $PPID; :'", r'SIGKILL from \d+ "sh -c \'kill .*", started by .*'),
        ("sh -c '(kill -TERM '$$'; :); :'", rf'SIGTERM from \d+ "sh", {BY_DEFAULT}'),
        ("kill -TERM $$", rf'SIGTERM from \d+ "sh -c .*" itself, {BY_DEFAULT}'),
        (f"{PYTHON_DOES} 'import os; os.abort()'", r'SIGABRT from \d+ ".*" itself, .*'),
    ],
    ids=["sibling", "SEGV", "KILL", "parent", "child", "grandchild", "self", "abort"],
)
def test_a_signal_of_the_session(sigwrap: Sigwrap, text: str, expected: str) -> None:
    assert_why(shell(sigwrap, text), rf"exit \d+: ({expected})")


@needs("pkill")
def test_a_kill_by_name(sigwrap: Sigwrap) -> None:
    said = shell(sigwrap, "sleep 99 & target=$!; until pkill -P $$ sleep; do :; done; wait $target")
    assert_why(said, rf'exit 143: {CHILD}SIGTERM from \d+ "pkill -P \d+ sleep", started by .*')


def test_a_redirected_signal(sigwrap: Sigwrap) -> None:
    rule = "{name: softly, signals: [KILL], decision: redirect, redirect_to: SIGTERM}"
    said = shell(sigwrap, "sleep 99 & kill -KILL $!; wait $!", f"signal_rules: [{rule}]")
    assert_why(
        said, f"exit 143: {CHILD}SIGTERM in place of SIGKILL from .*, redirected by rule softly"
    )


@pytest.mark.parametrize("decision", ["absorb", "deny"])
def test_a_signal_that_did_not_arrive_ended_nobody(sigwrap: Sigwrap, decision: str) -> None:
    os.mkfifo(sigwrap.folder / "fifo")
    rule = f"{{name: never, signals: [TERM], target: children, decision: {decision}}}"
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
            "ulimit -f 1; exec dd if=/dev/zero of=file bs=4096 count=9",
            "exit 153: SIGXFSZ from the kernel: its limit of file size",
        ),
        (
            f"{PYTHON_DOES} 'import signal; signal.setitimer(0, 0.01); signal.pause()'",
            "exit 142: SIGALRM from the kernel: an alarm that it had set itself",
        ),
    ],
    ids=["SIGSEGV", "SIGXCPU", "hard RLIMIT_CPU", "SIGXFSZ", "SIGALRM"],
)
def test_a_signal_of_the_kernel(sigwrap: Sigwrap, text: str, expected: str) -> None:
    assert_why(shell(sigwrap, text), expected)


def test_a_pipe_that_nobody_reads(sigwrap: Sigwrap) -> None:
    assert shell(sigwrap, "yes | head -1; exit 0") == "exit 0: it ended by itself"
    yes = next(e.pid for e in sigwrap.events("process_exited") if e.payload["signal"])
    said = "exit 141: SIGPIPE from the kernel: it wrote to a pipe that nobody reads"
    assert why(sigwrap, yes) == said


# From outside


def ended(subject: Sigwrap, act: Callable[[Running], None], *words: str) -> str:
    """A command that reads, after that was done to it."""
    process, _ = subject.start_ready(*(words or ("--", "sh", "-c", READS)))
    act(process)
    process.wait(PATIENCE_S)
    return why(subject)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_to_sigwrap_from_outside(sigwrap: Sigwrap, number: signal.Signals) -> None:
    said = ended(sigwrap, lambda process: process.send_signal(number))
    assert_why(
        said,
        rf"exit 130: interrupted; SIGTERM from sigwrap, which got {number.name} "
        rf'(from {os.getpid()} ".*", outside the session|by way of sigwrap\'s outer process.*)',
    )


def test_a_caller_whose_time_is_over(sigwrap: Sigwrap) -> None:
    line = ["timeout", "1000", *map(str, sigwrap.line("--", "sh", "-c", READS))]
    process = sigwrap.start_line(line)
    reader(process.stdout).until(rb"ready")
    process.send_signal(signal.SIGALRM)  # what its own timer sends to it
    assert process.wait(PATIENCE_S) == 124
    sender = r'(from \d+ "timeout .*|by way of .*)'
    assert_why(why(sigwrap), f"exit 130: interrupted.* SIGTERM {sender}")


AGAIN = (
    "process.on('SIGTERM', () => { process.removeAllListeners('SIGTERM');"
    " process.kill(process.pid, 'SIGTERM') }); process.stdin.on('data', () => {});"
    " console.log('ready')"
)


IN_A_SHELL = ["sh", "-c", 'node -e "$0"; exit $?', AGAIN]


@needs("node")
@pytest.mark.parametrize("command", [["node", "-e", AGAIN], IN_A_SHELL], ids=["node", "in sh"])
def test_who_raises_a_signal_again_had_it_from_somebody(
    sigwrap: Sigwrap, command: list[str]
) -> None:
    said = ended(sigwrap, lambda process: process.send_signal(signal.SIGTERM), "--", *command)
    outside = r'SIGTERM (from \d+ ".*", outside the session|by way of sigwrap\'s outer process.*)'
    assert_why(said, f"exit 130: interrupted.* {outside}.*")
    exits = sigwrap.events("process_exited")
    (node,) = [event.pid for event in exits if event.payload["comm"] == "node"]
    itself = f'SIGTERM from {node} "node .*" itself, allowed by rule own-process'
    assert_why(why(sigwrap, node), rf"exit \d+: interrupted by {outside}; {itself}")


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


def test_a_signal_to_command_from_outside(sigwrap: Sigwrap) -> None:
    said = ended(sigwrap, lambda _: os.kill(sigwrap.command_pid(), signal.SIGTERM))
    assert_why(said, "exit 143: SIGTERM, by whom is unknown: no process of the session sent it")


def test_a_kill_of_command_from_outside(sigwrap: Sigwrap) -> None:
    said = ended(sigwrap, lambda _: os.kill(sigwrap.command_pid(), signal.SIGKILL))
    assert_why(said, "exit 137: SIGKILL from .*a sender outside: no process of the session .*")


def test_the_key(sigwrap: Sigwrap) -> None:
    terminal = sigwrap.ready_on_terminal("--", "sh", "-c", READS)
    terminal.press("c")
    assert terminal.await_status() == INTERRUPTED
    assert_why(why(sigwrap), r"exit 130: interrupted by SIGINT from the terminal \(Ctrl\+C\).*")


def test_the_second_key(sigwrap: Sigwrap) -> None:
    stays = "trap '' INT TERM; echo ready; while :; do read line; done"
    terminal = sigwrap.ready_on_terminal("--", "sh", "-c", stays)
    terminal.press("c")
    sigwrap.await_event("interrupt_received")
    await_key_taken(terminal.pid)
    terminal.press("c")
    assert terminal.await_status() == INTERRUPTED
    key = r"SIGINT from the terminal \(Ctrl\+C\)"
    assert_why(why(sigwrap), f"exit 130: interrupted by {key}; killed: second interrupt")


# sigwrap itself


def send(subject: Sigwrap, *words: str) -> None:
    session = subject.events("session_started")[0].payload["session_id"]
    subject.native(UNDER_TEST, "signal", session, *words)


@pytest.mark.parametrize(
    ("name", "status", "expected"),
    [
        ("SIGTERM", 130, "ended by {}; COMMAND died of SIGTERM from sigwrap"),
        ("SIGBUDGET", 124, "ended by {}; COMMAND died of SIGTERM from sigwrap"),
        ("SIGINT", 130, "interrupted by {}; .*"),
        ("SIGKILL", 137, "SIGKILL from sigwrap: {}"),
    ],
)
def test_an_agent_signal(sigwrap: Sigwrap, name: str, status: int, expected: str) -> None:
    said = ended(sigwrap, lambda _: send(sigwrap, name, "--reason", "enough"))
    sender = rf"agent signal {name} from uid \d+, pid \d+: enough"
    assert_why(said, rf"exit {status}: {expected.format(sender)}")


def test_a_rule_that_escalates(sigwrap: Sigwrap) -> None:
    rule = "\n  - {name: no-ls, commands: [ls], decision: deny, escalate: SIGPOLICY}\n"
    assert shell(sigwrap, "/bin/ls; sleep 99", rules=rule) == (
        "exit 137: SIGKILL from sigwrap: agent signal SIGPOLICY from rule no-ls of test: /bin/ls"
    )


def test_a_loop_that_is_killed(sigwrap: Sigwrap) -> None:
    watch = "watch: {loop: {same_exec: 5, within: 1m, action: kill}}"
    said = shell(sigwrap, "while :; do /bin/true; done", watch)
    assert_why(said, "exit 137: SIGKILL from sigwrap: agent signal SIGLOOP from watch.loop: .*")


def test_what_command_leaves_behind(sigwrap: Sigwrap) -> None:
    os.mkfifo(sigwrap.folder / "fifo")
    behind = "sh -c 'echo up >fifo; exec sleep 99' & read -r up <fifo; exit 4"
    assert shell(sigwrap, behind) == "exit 4: it ended by itself"
    left = next(e.pid for e in sigwrap.events("process_exited") if e.payload["signal"])
    said = "exit 143: SIGTERM from sigwrap, which clears what COMMAND left behind"
    assert why(sigwrap, left) == said


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


def test_a_supervisor_that_died(sigwrap: Sigwrap) -> None:
    assert ended(sigwrap, kill_supervisor) == DIED
    assert why(sigwrap, sigwrap.command_pid()) == DIED
    assert json.loads(why(sigwrap, "--json"))["cause"] == "supervisor-died"
    report = json.loads(sigwrap.native(UNDER_TEST, "report", "--json").stdout)
    assert (report["ending"], report["why"]) == ("did not end cleanly", DIED)


def test_a_front_process_that_died(sigwrap: Sigwrap) -> None:
    def kill_front(process: Running) -> None:
        roles = Roles.of(process.pid)
        os.kill(roles.front, signal.SIGKILL)
        await_end(roles.supervisor)

    said = ended(sigwrap, kill_front)
    assert said == "exit 137: SIGKILL from sigwrap: sigwrap's front process died"


def test_a_stopped_session_and_its_supervisor_that_died(sigwrap: Sigwrap) -> None:
    def stop_and_kill(process: Running) -> None:
        send(sigwrap, "SIGSTOP", "--reason", "lunch")
        sigwrap.await_event("tree_frozen")
        assert_why(why(sigwrap), "stopped since .* by agent signal SIGSTOP from .*: lunch")
        kill_supervisor(process)

    assert ended(sigwrap, stop_and_kill) == DIED
    assert "stopped since" not in sigwrap.native(UNDER_TEST, "report").stdout.decode()


def test_a_copy_of_the_log_is_a_moment(sigwrap: Sigwrap) -> None:
    process, _ = sigwrap.start_ready("--", "sh", "-c", READS)
    send(sigwrap, "SIGUSR2")
    sigwrap.await_event("checkpoint")
    copy = sigwrap.events("checkpoint")[0].payload["path"]
    assert why(sigwrap) == "no end of it is recorded yet"
    process.communicate(b"\n", PATIENCE_S)
    assert why(sigwrap, copy) == "it had not ended when the log was copied"
    assert why(sigwrap) == "exit 0: it ended by itself"


def test_a_terminal_is_told_of_which_session(sigwrap: Sigwrap) -> None:
    sigwrap.run("--", "sh", "-c", ":")
    terminal = sigwrap.on_terminal("why")
    assert terminal.await_status() == 0
    lines = terminal.output.rest().decode().splitlines()
    assert re.search(r"\d{8}-\d{6}-\w{6}, \S+.*: sh -c :", lines[0])
    assert lines[1] == "exit 0: it ended by itself"


def test_a_question_that_waits_is_what_the_command_waits_for(sigwrap: Sigwrap) -> None:
    sigwrap.policy = policy(
        sigwrap.folder, "\n  - {name: ask, commands: [id], decision: approve}\n"
    )
    running = sigwrap.start("--approvals", "control", "--", "id", "-u")
    sigwrap.await_event("approval_requested")
    (asked,) = sigwrap.events("approval_requested")
    approval_id = asked.payload["approval_id"]
    assert why(sigwrap) == f"it waits for an answer (sigwrap approve {approval_id})"
    sigwrap.native(UNDER_TEST, "deny", approval_id)
    running.communicate(timeout=PATIENCE_S)
