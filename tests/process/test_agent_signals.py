"""`sigwrap signal` stops, continues and ends a whole session; the log names the sender."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from sigwrap.approve.control_client import ask_one
from sigwrap.kernel import procfs
from tests.support.harness import EXECS, INTERRUPTED, PYTHON, REFUSED, UNDER_TEST, Running, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles, tree
from tests.support.waiting import await_state, await_that, reader

OBSERVE = ("-p", "agent-observe", "--no-report")


def tell(subject: Sigwrap, *words: str) -> tuple[int, str]:
    """Return the exit status of `sigwrap signal`, and its output."""
    done = subject.run("signal", *words)
    return done.returncode, (done.stdout + done.stderr).decode()


def sent(subject: Sigwrap, *words: str) -> str:
    status, said = tell(subject, *words)
    assert status == 0, said
    return said


def started(subject: Sigwrap, *words: str) -> Running:
    """Start a command, and wait until it prints that it is ready."""
    process = subject.start(*OBSERVE, *words)
    reader(process.stdout).until(rb"ready")
    return process


def ended(subject: Sigwrap, process: Running) -> int:
    process.communicate()
    assert subject.alive() == []
    return process.returncode


def execs(subject: Sigwrap) -> int:
    return len(subject.events(*EXECS))


MANY = """
import os, signal, subprocess, sys, threading, time
def begin(*words):
    return subprocess.Popen(words, close_fds=False)  # by vfork
signal.signal(signal.SIGTERM, signal.SIG_IGN)
begin("sleep", "1000")
begin("sh", "-c", "trap '' TERM INT; while :; do sleep 0.01; done")
begin("setsid", "sh", "-c", "while :; do :; done")
stopped = begin("sleep", "2000")
os.kill(stopped.pid, signal.SIGSTOP)
os.waitpid(stopped.pid, os.WUNTRACED)
def count(thread):
    for number in range(1 << 30):
        subprocess.run(["/bin/true", str(thread), str(number)], close_fds=False)
for thread in range(3):
    threading.Thread(target=count, args=[thread], daemon=True).start()
print("ready", stopped.pid, flush=True)
time.sleep(1000)
"""


def test_a_tree_of_any_processes_stops_and_continues_in_order(
    as_user: Sigwrap,
) -> None:
    run = as_user.start(*OBSERVE, "--grace", "1", "--", *PYTHON, "-c", MANY)
    stopped = int(reader(run.stdout).until(rb"ready \d+").split()[1])
    command = as_user.command_pid()
    assert ": paused, " in sent(as_user, "SIGSTOP", "--reason", "a look")
    everybody = tree(command)
    await_that(lambda: all(_stands(each) for each in everybody))
    times = [_processor_time(each) for each in everybody]
    count = execs(as_user)
    time.sleep(0.7)
    assert [_processor_time(each) for each in everybody] == times
    assert (execs(as_user), tree(command)) == (count, everybody)
    assert ": already paused" in sent(as_user, "stop")
    assert ": resumed, " in sent(as_user, "SIGCONT")
    assert ": not paused" in sent(as_user, "SIGCONT")
    await_that(lambda: execs(as_user) > count + 3)
    assert procfs.is_stopped(stopped), "another process had stopped it"
    assert not procfs.is_stopped(command)
    assert "killed the whole process tree" in sent(as_user, "SIGKILL", "--reason", "enough")
    assert ended(as_user, run) == 128 + signal.SIGKILL
    assert "agent signal SIGKILL from uid" in as_user.run("why").stdout.decode()
    told = as_user.events("agent_signal")[0].payload
    assert (told["signal"], told["reason"]) == ("SIGSTOP", "a look")
    assert told["source"].startswith(f"uid {as_user.user or os.getuid()}, pid ")
    words = [event.payload["argv"] for event in as_user.sealed_events(*EXECS)]
    of_threads = [each[1:] for each in words if each[0] == "/bin/true"]
    assert len(of_threads) > 3
    for thread in "012":
        numbers = [int(number) for own, number in of_threads if own == thread]
        assert numbers == list(range(len(numbers)))


def test_pause_resume_and_stop_are_commands(sigwrap: Sigwrap) -> None:
    run = started(
        sigwrap, "--name", "it", "--", "sh", "-c", "echo ready; while :; do sleep 1; done"
    )
    for words, effect in (
        (("pause", "it", "--reason", "a look"), r"paused, \d+ process(es)? frozen"),
        (("resume",), r"resumed, \d+ process(es)?"),
        (("stop", "it"), r"SIGINT sent to its command; force kill after at most [0-9.]+ s"),
    ):
        said = sigwrap.run(*words).stdout.decode()
        assert re.fullmatch(rf"session \w{{6}}: {effect}\n", said)
    assert ended(sigwrap, run) == INTERRUPTED
    assert sigwrap.events("agent_signal")[0].payload["reason"] == "a look"
    assert b"no session is running" in sigwrap.run("pause").stderr
    assert b"the session can't be empty" in sigwrap.run("stop", "").stderr


COUNTS = """
import os, signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda given, _frame: got.append(signal.Signals(given).name))
if sys.argv[2:] == ["apart"]:
    os.setpgid(0, 0)
print("ready", flush=True)
while not got:
    time.sleep(0.01)
time.sleep(0.3)
print(sys.argv[1], *got, flush=True)
"""


def test_stop_reaches_the_programs_that_the_command_waits_for(as_user: Sigwrap) -> None:
    """As Ctrl+C does; a process in another group only gets the SIGTERM of the end."""
    program = as_user.folder / "counts.py"
    program.write_text(COUNTS)
    counts = f"{PYTHON[0]} {program}"
    text = f"trap : INT; {counts} apart apart & {counts} waited-for; wait; echo command went on"
    run = as_user.start(*OBSERVE, "--", "bash", "-c", text)
    said = reader(run.stdout)
    said.until(rb"ready\n.*ready\n")
    assert as_user.run("stop").returncode == 0
    printed = said.rest().decode()
    assert run.wait() == INTERRUPTED
    assert "waited-for SIGINT\n" in printed
    assert "apart SIGTERM\n" in printed
    assert as_user.alive() == []


def test_stop_reaches_the_foreground_job_of_a_shell(as_user: Sigwrap) -> None:
    program = as_user.folder / "counts.py"
    program.write_text(COUNTS)
    line = (*OBSERVE, "--grace", "4", "--", "bash", "--norc", "-i")
    terminal = as_user.on_terminal(*line, env={"PS1": "PROMPT> "})
    terminal.output.until(rb"PROMPT> ")
    terminal.type(f"{PYTHON[0]} {program} job\n")
    terminal.output.until(rb"ready\r\n")
    assert as_user.run("stop").returncode == 0
    terminal.output.until(rb"job SIGINT\r\n")
    assert terminal.await_status() == INTERRUPTED


SYSTEM = """
import signal, subprocess, sys
child = subprocess.Popen(sys.argv[1:])
signal.signal(signal.SIGINT, signal.SIG_IGN)
print("status", child.wait(), flush=True)
"""


def test_a_command_that_ignores_stop_for_its_child_goes_on_after_it(as_user: Sigwrap) -> None:
    """As system(3) does it."""
    program = as_user.folder / "counts.py"
    program.write_text(COUNTS)
    child = (*PYTHON, str(program), "child")
    run = as_user.start(*OBSERVE, "--", *PYTHON, "-c", SYSTEM, *child)
    said = reader(run.stdout)
    said.until(rb"ready\n")
    assert as_user.run("stop").returncode == 0
    assert said.rest() == b"child SIGINT\nstatus 0\n"
    assert run.wait() == INTERRUPTED


def test_stop_ends_a_command_that_its_caller_made_ignore_sigint(as_user: Sigwrap) -> None:
    line = " ".join(map(str, as_user.line(*OBSERVE, "--grace", "30", "--", "sleep", "1000")))
    shell = as_user.start_line([*as_user.as_user(), "sh", "-c", f"trap '' INT; exec {line}"])
    as_user.await_event(*EXECS)
    started_s = time.monotonic()
    assert as_user.run("stop").returncode == 0
    assert shell.wait() == INTERRUPTED
    assert time.monotonic() - started_s < 15.0


def _stands(pid: int) -> bool:
    """Look at the threads: a process may also wait for an answer of sigwrap."""
    try:
        states = [procfs.thread_state(pid, tid) for tid in procfs.threads(pid)]
    except OSError:
        return True
    return all(each in "TtDZX" for each in states)


def _processor_time(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return []


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "TERM to sigwrap"])
def test_a_frozen_tree_ends_gracefully(as_user: Sigwrap, by: str) -> None:
    """SIGINT ends it whatever --interrupt says."""
    text = "trap 'echo cleaned; exit 3' INT TERM; echo ready; while :; do sleep 0.05; done"
    run = as_user.start(*OBSERVE, "--interrupt", "command", "--", "sh", "-c", text)
    said = reader(run.stdout)
    said.until(rb"ready")
    sent(as_user, "SIGSTOP")
    as_user.await_event("tree_frozen")
    if by == "TERM to sigwrap":
        os.kill(Roles.of(run.pid).front, signal.SIGTERM)
    else:
        sent(as_user, by, "--reason", "over")
    said.until(rb"cleaned")
    assert ended(as_user, run) == INTERRUPTED
    events = as_user.sealed_events("tree_thawed", "session_ended")
    assert [each.type for each in events] == ["tree_thawed", "session_ended"]
    if by == "SIGINT":
        (event,) = as_user.events("interrupt_received")
        assert event.payload["sender_place"] == "agent-signal"
        assert event.payload["sender_cmd"].endswith(": over")


@pytest.mark.promise("limits")
def test_a_limit_is_a_sigbudget_and_sigterm_follows(as_user: Sigwrap) -> None:
    limited = policy(as_user.folder, " []\n", "limits: {wall_time: 1s}")
    text = "trap 'exit 0' TERM; while :; do sleep 0.05; done"
    done = as_user.run("-p", limited, "--report", "--", "sh", "-c", text)
    assert (done.returncode, done.stderr.count(b"the limit of 1 s was reached")) == (124, 1)
    events = as_user.sealed_events("limit_exceeded", "agent_signal", "session_ended")
    exceeded, budget, term, end = (each.payload for each in events)
    assert exceeded["maximum"] == 1
    assert (budget["signal"], budget["source"]) == ("SIGBUDGET", "limit wall_time")
    assert (term["signal"], term["cause"]) == ("SIGTERM", budget["sequence"])
    assert exceeded["reason"] == budget["reason"] == end["reason"]


@pytest.mark.parametrize("number", ["SIGBUDGET", "SIGTERM", "SIGPOLICY"])
def test_the_reason_of_an_end_is_printed_once(as_user: Sigwrap, number: str) -> None:
    line = ("--report", "--", "sh", "-c", "echo ready; exec sleep 1000")
    run = as_user.start(*OBSERVE, *line)
    reader(run.stdout).until(rb"ready")
    sent(as_user, number, "--reason", "over")
    said = reader(run.stderr).rest()
    assert said.count(f"agent signal {number}".encode()) == 1


HEADLESS = """
import ctypes, os, sys, threading, time
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
print("ready", flush=True)
if sys.argv[1] == "ended":
    ctypes.CDLL(None).pthread_exit(None)
if os.fork() == 0:
    libc = ctypes.CDLL(None)
    assert libc.ptrace(16, os.getppid(), 0, 0) == 0
    time.sleep(1000)
time.sleep(1000)
"""


@pytest.mark.parametrize("first_thread", ["ended", "traced"])
def test_a_process_whose_first_thread_does_not_run_is_stopped_again(
    as_user: Sigwrap, first_thread: str
) -> None:
    run = started(as_user, "--", *PYTHON, "-c", HEADLESS, first_thread)
    command = as_user.command_pid()
    await_state(command, "Z" if first_thread == "ended" else "t")
    (spinner,) = (tid for tid in procfs.threads(command) if tid != command)
    sent(as_user, "SIGSTOP")
    await_state(spinner, "T")
    os.kill(command, signal.SIGCONT)
    await_that(lambda: any("again" in e.payload for e in as_user.events("tree_frozen")))
    await_state(spinner, "T")
    sent(as_user, "SIGCONT")
    await_state(spinner, "R")
    sent(as_user, "SIGKILL")
    ended(as_user, run)


@pytest.mark.promise("agent signals")
def test_a_stop_without_a_terminal_is_shown_without_secrets(
    as_user: Sigwrap,
) -> None:
    run = started(as_user, "--", "sh", "-c", "echo ready; sleep 1000")
    reason = ("--reason", "TOKEN=ghp_0123456789abcdefghij0123456789abcdef")

    def shown() -> list[bool]:
        words = (("sessions",), ("report",), ("why",))
        return [b"stopped" in as_user.run(*each).stdout for each in words]

    sent(as_user, "SIGSTOP", *reason)
    as_user.await_event("tree_frozen")
    assert shown() == [True] * 3
    sent(as_user, "SIGUSR1")
    (diagnostic,) = as_user.events("diagnostic")
    assert "sleep 1000" in str(diagnostic.payload["processes"])
    assert diagnostic.payload["stopped"]["held"] == 0
    sent(as_user, "SIGCONT", *reason)
    assert shown() == [False] * 3
    sent(as_user, "SIGKILL", *reason)
    said = run.communicate()[1].decode()
    assert "sleep 1000" in said
    assert "sigwrap: stopped by agent signal SIGSTOP from uid" in said
    assert "sigwrap: goes on after agent signal SIGCONT from uid" in said
    assert "sigwrap: killed by agent signal SIGKILL from uid" in said
    assert "ghp_" not in said + str(as_user.events("agent_signal"))


def test_ctrl_z_at_a_stopped_session_gives_the_shell_back_and_ctrl_c_ends_it(
    as_user: Sigwrap,
) -> None:
    terminal = as_user.bash_on_terminal()
    line = " ".join(map(str, as_user.line(*OBSERVE, "--", "bash", "-c")))
    terminal.type(f"{line} 'echo rea''dy; while read x; do echo got $x; done'\n")
    terminal.output.until(rb"ready")
    as_user.await_reading()
    command = as_user.command_pid()
    sent(as_user, "SIGSTOP")
    await_state(command, "T")
    sent(as_user, "SIGCONT")
    terminal.type("one line\n")
    terminal.output.until(rb"got one line")
    assert b"Stopped" not in terminal.output.seen, "the shell takes it for a stopped job"
    for _ in range(2):
        sent(as_user, "SIGSTOP")
        await_state(command, "T")
        terminal.press("Z")
        terminal.output.until(rb"Stopped")
        terminal.output.until(rb"PROMPT> ")
        terminal.type("fg\n")
        await_that(lambda: procfs.is_stopped(command))
        sent(as_user, "SIGCONT")
        terminal.type("a line\n")
        terminal.output.until(rb"got a line")
    sent(as_user, "SIGSTOP")
    await_state(command, "T")
    terminal.press("C")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("echo status $?\n")
    terminal.output.until(rb"status 130\r\n")


RELAYS = """
import ctypes, mmap, os, signal, sys, time
if sys.argv[2] == "inside":
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
steps = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 8)
if os.fork() == 0:
    for number in range(1, 1 << 30):
        steps[:] = number.to_bytes(8, "little")
        if os.fork():
            os._exit(0)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("reaped", ["inside", "by sigwrap"])
def test_a_relay_of_short_lived_processes_stops(as_user: Sigwrap, reaped: str) -> None:
    """Each process has ended before it can be seen, and may be reaped inside the session."""
    steps = as_user.folder / "steps"
    steps.write_bytes(bytes(8))
    steps.chmod(0o666)
    run = started(as_user, "--", *PYTHON, "-c", RELAYS, str(steps), reaped)
    before = bytes(8)

    def goes_on() -> bool:
        return steps.read_bytes() != before

    for _ in range(3):
        await_that(goes_on)
        sent(as_user, "SIGSTOP")
        await_that(lambda: as_user.events("agent_signal", "tree_frozen")[-1].type == "tree_frozen")
        before = steps.read_bytes()
        time.sleep(0.7)
        assert steps.read_bytes() == before
        sent(as_user, "SIGCONT")
    sent(as_user, "SIGKILL")
    ended(as_user, run)


def test_a_process_that_is_always_continued_is_named(as_user: Sigwrap) -> None:
    """Its own timer continues it too, until a stop removes the signal of the timer."""
    program = "import signal; print('ready', flush=True); signal.pause()"
    run = started(as_user, "--", *PYTHON, "-c", program)
    command_pid = as_user.events("session_started")[0].payload["command_pid"]
    is_named = threading.Event()

    def go_on() -> None:
        while not is_named.wait(0.005):
            os.kill(command_pid, signal.SIGCONT)

    continuing = threading.Thread(target=go_on)
    continuing.start()
    try:
        sent(as_user, "SIGSTOP")
        reader(run.stderr).until(rb"process \d+ \(python[0-9.]*\) does not stay stopped")
    finally:
        is_named.set()
        continuing.join()
    sent(as_user, "SIGKILL")
    ended(as_user, run)


def test_a_stopped_session_stays_stopped_and_can_end_while_its_front_is_stopped(
    as_user: Sigwrap,
) -> None:
    run = started(as_user, "--", "sh", "-c", "echo ready; read line")
    sent(as_user, "SIGSTOP")
    as_user.await_event("tree_frozen")
    front = Roles.of(run.pid).front
    os.kill(front, signal.SIGCONT)
    os.kill(front, signal.SIGUSR1)  # is passed on, after the other one
    as_user.await_event("interrupt_forwarded")
    names = [each.payload["signal_name"] for each in as_user.events("interrupt_forwarded")]
    assert names == ["SIGUSR1"]
    os.kill(front, signal.SIGSTOP)
    await_state(front, "T")
    sent(as_user, "SIGINT")
    assert ended(as_user, run) == INTERRUPTED


def test_a_session_cannot_send_agent_signals(as_user: Sigwrap) -> None:
    line = f"{UNDER_TEST} signal SIGKILL; echo status $?"
    done = as_user.run(*OBSERVE, "--", "sh", "-c", line)
    assert done.returncode == 0
    assert f"status {REFUSED}" in done.stdout.decode()
    assert "processes in a session can't answer requests or signal sessions" in done.stderr.decode()
    assert as_user.sealed_events("control_refused")[0].payload["inside_session"] is True
    (signal_,) = as_user.events("agent_signal")
    assert (signal_.payload["signal"], signal_.payload["outcome"]) == ("SIGTRUST", "delivered")


def test_a_job_that_was_stopped_before_stays_stopped(as_user: Sigwrap) -> None:
    text = "echo ready; while read x; do echo got $x; done"
    terminal = as_user.on_terminal(*OBSERVE, "--", "bash", "-c", text)
    terminal.output.until(rb"ready")
    as_user.await_reading()
    terminal.press("Z")
    terminal.await_stop()
    command = as_user.command_pid()
    await_state(command, "T")
    sent(as_user, "SIGSTOP")
    sent(as_user, "SIGCONT")
    assert procfs.is_stopped(command)
    sent(as_user, "SIGSTOP")
    terminal.continue_job()
    await_that(lambda: any("again" in e.payload for e in as_user.events("tree_frozen")))
    await_state(command, "T")
    sent(as_user, "SIGCONT")
    terminal.type("a line\n")
    terminal.output.until(rb"got a line")
    terminal.press("D")
    assert terminal.await_status() == 0


def test_the_session_argument(as_user: Sigwrap) -> None:
    assert "no session is running in" in tell(as_user, "SIGSTOP")[1]
    started(as_user, "--name", "other", "--", "sh", "-c", "echo ready; sleep 1000")
    first = as_user.events()[0].payload["session_id"]
    started(as_user, "--name", "mine", "--", "sh", "-c", "echo ready; sleep 1000")
    assert f"session {first[-6:]}: " in sent(as_user, "other", "SIGSTOP")
    assert f"session {first[-6:]}: " not in sent(as_user, "SIGSTOP")
    document = json.loads(sent(as_user, first, "SIGKILL", "--json"))
    assert (document["session_id"], document["outcome"]) == (first, "delivered")
    await_that(lambda: "has ended" in tell(as_user, first, "SIGKILL")[1])
    for words, says in {
        ("", "SIGKILL"): "the session can't be empty",
        ("9",): "agent signals have other numbers than kill(1)",
        ("mine", "a", "SIGSTOP"): "unexpected argument: SIGSTOP (sigwrap signal",
    }.items():
        status, said = tell(as_user, *words)
        assert (status, says in said, said.count("\n")) == (REFUSED, True, 1), said
    sent(as_user, "mine", "SIGKILL")


def test_an_exec_that_never_ends_does_not_delay_a_stop(as_user: Sigwrap) -> None:
    """An exec that waits for approval is not in flight, and an approval waits for SIGCONT."""
    asks = policy(as_user.folder, ' [{name: ask, commands: ["true"], decision: approve}]')
    words = ("-p", asks, "--no-report", "--approvals", "control")
    run = as_user.start(*words, "--", "sh", "-c", "echo ready; /bin/true && echo went on; read x")
    said = reader(run.stdout)
    said.until(rb"ready")
    as_user.await_event("approval_requested")
    sent(as_user, "SIGSTOP")
    approval = as_user.events("approval_requested")[0].payload["approval_id"]
    done = as_user.run("approve", approval)
    assert done.returncode == 0, done.stderr
    as_user.await_event("approval_granted")
    time.sleep(0.3)
    assert as_user.events("exec_approved") == []
    sent(as_user, "SIGCONT")
    said.until(rb"went on")
    run.stdin.close()
    run.wait()


def test_a_copy_of_the_log_is_saved_and_can_be_read(as_user: Sigwrap) -> None:
    process = started(as_user, "--", "sh", "-c", "echo ready; read line; exit 3")
    said = sent(as_user, "SIGUSR2")
    document = json.loads(sent(as_user, "SIGUSR2", "--json"))
    paths = [Path(each.payload["path"]) for each in as_user.events("checkpoint")]
    assert f": the log is copied to {paths[0]}\n" in said
    assert document["checkpoint"] == str(paths[1])
    assert len(set(paths)) == 2
    for path in paths:
        assert path.parent == as_user.store / "checkpoints"
        assert path.stat().st_mode & 0o777 == 0o600
        assert as_user.run("verify", str(path)).returncode in (0, 1)
        report = as_user.run("report", str(path))
        assert report.returncode == 0
        assert b"1 audited" in report.stdout
    # `sigwrap signal` would not send this one. The supervisor imports nothing any more.
    session_id = as_user.events()[0].payload["session_id"]
    no = ask_one(str(as_user.store), session_id, {"do": "signal", "signal": "SIGSTOPP"})
    assert no["error"] == "unknown-signal"
    process.say(b"\n")
    assert process.wait() == 3
    assert as_user.events()[-1].type == "session_ended"
    assert os.listdir(as_user.store / "checkpoints") != []
