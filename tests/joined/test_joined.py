"""Commands that join a session by name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sigwrap.kernel import procfs
from sigwrap.session.settings import RunSettings, as_json
from tests.joined.addresses import JOIN, at, is_listened_at, sessions
from tests.support.harness import IS_BINARY, REFUSED, Sigwrap
from tests.support.programs import script
from tests.support.waiting import Watch, await_that, reader


def _run(subject: Sigwrap, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subject.run(*JOIN, "--", *words, **options)


def _await_exec(subject: Sigwrap, program: str) -> None:
    """Before it, a signal may still be its parent's."""
    await_that(lambda: any(e.payload["argv"][0] == program for e in subject.events("exec_audited")))


@pytest.mark.promise("joined sessions")
def test_one_session_has_what_all_of_them_do_and_a_server_outlives_the_call(
    subject: Sigwrap, tmp_path: Path
) -> None:
    other = subject.folder / "other"
    other.mkdir()
    first = _run(subject, "sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!; exit 7")
    server = int(first.stdout)
    assert first.returncode == 7
    script = f"umask; pwd; echo $WORD; kill -0 {server} && kill {server}; cat"
    second = _run(
        subject, "sh", "-c", f"umask 027; {script}", input=b"in", cwd=other, env={"WORD": "x y"}
    )
    assert second.stdout.decode().split("\n") == ["0027", str(other), "x y", "in"]
    assert (second.returncode, second.stderr) == (0, b"")
    joined = subject.events("command_joined", "command_left")
    assert [event.type for event in joined] == ["command_joined", "command_left"] * 2
    assert [event.payload["call"] for event in joined] == [1, 1, 2, 2]
    assert joined[1].payload["exit_status"] == 7
    execs = [event.payload["argv"][0] for event in subject.events("exec_audited")]
    assert execs[0] == "sh" and "sleep" in execs
    with Watch(subject.alive()) as watch:
        subject.run("signal", "agent", "SIGTERM")
        watch.await_ends()
    subject.verify(ended=True)
    with Watch([server]) as watch:
        watch.await_ends()


def test_a_command_has_its_callers_descriptors_limits_and_signals(subject: Sigwrap) -> None:
    readable, writable = os.pipe()
    script = (
        "import os, resource, signal, sys;"
        f"os.write({writable}, b'by a descriptor of its own');"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0],"
        " signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN,"
        " sorted(map(int, os.listdir('/proc/self/fd')))[:3], os.getsid(0) == os.getpid(),"
        " os.nice(0))"
    )
    line = ["nice", "-n", "3", "sh", "-c", 'trap "" USR1; ulimit -n 200; exec "$@"', "sh"]
    words = [*subject.as_user(), *line, *map(str, subject.line(*JOIN, "--", "python3", "-c"))]
    run = subject.start_line([*words, script], pass_fds=[writable])
    os.close(writable)
    out, err = run.communicate(timeout=30)
    assert (run.returncode, err) == (0, b"")
    assert out.decode() == f"200 True [0, 1, 2] True {min(os.nice(0) + 3, 19)}\n"
    assert os.read(readable, 100) == b"by a descriptor of its own"
    os.close(readable)


def test_closed_streams_stay_closed(subject: Sigwrap) -> None:
    line = ["sh", "-c", 'exec "$@" <&- 2>&-', "sh", *map(str, subject.line(*JOIN, "--"))]
    found = subject.start_line([*subject.as_user(), *line, "ls", "/proc/self/fd"])
    out, _ = found.communicate(timeout=30)
    assert out.split() == [b"0", b"1"]  # ls has opened the folder


def test_signals_reach_the_command_and_what_it_started(subject: Sigwrap) -> None:
    program = "trap 'echo got; exit 5' TERM; echo ready; sleep 300 & wait"
    process = subject.start(*JOIN, "--", "sh", "-c", program)
    said = reader(process.stdout)
    said.until(rb"ready")
    _await_exec(subject, "sleep")
    process.send_signal(signal.SIGTERM)
    said.until(rb"got")
    assert process.wait(30) == 5
    forwarded = subject.events("interrupt_forwarded")
    assert forwarded[0].payload["signal_name"] == "SIGTERM"
    if not IS_BINARY:  # whose outer process passes on what it gets
        assert forwarded[0].payload["sender_pid"] == os.getpid()


def test_who_is_killed_leaves_no_command(subject: Sigwrap) -> None:
    process = subject.start(*JOIN, "--", "sh", "-c", "sleep 300 & echo $$ $!; wait")
    pids = [int(word) for word in process.stdout.readline().split()]
    _await_exec(subject, "sleep")
    with Watch(pids) as watch:
        process.kill()
        watch.await_ends()
    assert _run(subject, "echo", "goes on").stdout == b"goes on\n"
    await_that(lambda: {*pids} <= {each.pid for each in subject.events("process_exited")})
    for pid in pids:
        why = subject.run("why", str(pid))
        said = b"SIGKILL from sigwrap, which received SIGKILL when its caller ended, "
        assert said in why.stdout, why
    assert len(subject.events("command_joined")) == 2


def test_what_can_not_be_run_is_told(subject: Sigwrap) -> None:
    missing = _run(subject, "no-such-command")
    said = b"sigwrap: no-such-command: command not found on PATH\n"
    assert (missing.returncode, missing.stderr) == (127, said)
    name = script(subject.folder, "script", "#!/no/such/interpreter\n")
    broken = _run(subject, name)
    assert broken.returncode == 127
    assert broken.stderr == f"sigwrap: {name}: No such file or directory\n".encode()


def test_another_policy_is_refused_and_the_session_goes_on(subject: Sigwrap) -> None:
    _run(subject, "true")
    refused = subject.run("--join-name", "agent", "--policy", "agent-strict", "--", "true")
    assert refused.returncode == REFUSED
    assert b"session agent runs with --policy agent-observe" in refused.stderr
    assert b"sigwrap stop agent" in refused.stderr
    for options, said in (
        (("--durable",), b"session agent runs without --durable"),
        (("--grace", "3"), b"session agent runs with --grace 10 "),
        (("--name", "other"), b"--name other and --join-name agent: a session has one name"),
    ):
        assert said in subject.run(*JOIN, *options, "--", "true").stderr
    assert b"no session to join" in subject.run("--join-idle", "5", "--", "true").stderr
    assert b"is shared and has no command" in subject.run("why").stderr
    assert _run(subject, "true").returncode == 0


def test_a_policy_that_has_changed_since_is_another(subject: Sigwrap) -> None:
    policy = subject.folder / "policy.yaml"
    policy.write_text("version: 1\nname: own\nextends: agent-observe\n")
    words = ("--join-name", "agent", "--policy", str(policy), "--", "true")
    assert subject.run(*words).returncode == 0
    policy.write_text(policy.read_text() + "env_policy: {deny: [HOME]}\n")
    refused = subject.run(*words)
    assert refused.returncode == REFUSED
    assert b"as it was when the session began" in refused.stderr
    policy.unlink()
    assert subject.run(*words).returncode == REFUSED


@pytest.mark.parametrize("name", ["a/b", "x" * 65])
def test_a_name_that_is_none(sigwrap: Sigwrap, name: str) -> None:
    found = sigwrap.run("--join-name", name, "--", "true")
    assert found.returncode == REFUSED
    assert found.stderr.startswith(b"sigwrap: --join-name") or b"join-name" in found.stderr


def test_many_at_once_start_one_session(subject: Sigwrap) -> None:
    running = [subject.start(*JOIN, "--", "sh", "-c", f"echo {n}") for n in range(8)]
    said = {process.communicate(timeout=30) for process in running}
    assert said == {(f"{n}\n".encode(), b"") for n in range(8)}
    assert [process.returncode for process in running] == [0] * 8
    assert sessions(subject) == 1
    assert len(subject.events("command_left")) == 8


def test_it_ends_when_nothing_has_run_for_a_while(subject: Sigwrap) -> None:
    idle = ("--join-idle", "0.2")
    first = subject.run(*JOIN, *idle, "--", "sh", "-c", "sleep 1 >/dev/null 2>&1 &")
    assert first.returncode == 0
    subject.await_event("session_ended")
    events = subject.sealed_events()
    ends = [event.payload.get("comm") for event in events if event.type == "process_exited"]
    assert "sleep" in ends  # the session had waited for it
    assert _run(subject, "echo", "anew").stdout == b"anew\n"
    assert sessions(subject) == 2


def test_a_command_whose_supervisor_dies_is_not_run_once_more(subject: Sigwrap) -> None:
    count = subject.folder / "count"
    process = subject.start(*JOIN, "--", "sh", "-c", f"echo $PPID >>{count}; echo ready; sleep 300")
    reader(process.stdout).until(rb"ready")
    found = procfs.stat(int(count.read_text()))
    assert found is not None
    os.kill(found.ppid, signal.SIGKILL)
    _, err = process.communicate(timeout=30)
    assert process.returncode == REFUSED
    assert b"the session ended before" in err
    assert len(count.read_text().splitlines()) == 1


def test_what_is_no_request_and_no_signal_ends_no_session(subject: Sigwrap) -> None:
    _run(subject, "true")
    odd: tuple[dict[str, Any], ...] = (
        *({"settings": None}, {"settings": []}),
        *({"words": float("inf")}, {"umask": 10**40}),
    )
    for call in odd:
        said = _said_to(subject, call)
        assert b"bad request" in said and b"memory file" not in said
    numbers: tuple[Any, ...] = ([], 1.0, "TERM")
    for number in numbers:
        said = _said_to(subject, {}, {"v": 1, "signal": number, "sender": {}})
        assert b'"ended": 0' in said
    assert _run(subject, "echo", "goes on").stdout == b"goes on\n"
    assert len(subject.events("command_left")) == 5


_ASKS = """
import fcntl, json, os, socket, sys
at, *messages = sys.argv[1:]
words = os.memfd_create("words", os.MFD_ALLOW_SEALING)
os.write(words, b"\\0".join((b"/bin/sleep", b"sleep", b"0.5")))
fcntl.fcntl(words, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
end.connect(at.replace("@", "\\0"))
socket.send_fds(end, [messages[0].encode()], [words, os.open("/", os.O_PATH)])
for message in messages[1:]:
    end.send(message.encode())
while said := end.recv(1 << 16):
    print(said.decode(), flush=True)
    if b'"ended"' in said:
        break
"""


def _said_to(subject: Sigwrap, call: dict[str, Any], *more: dict[str, Any]) -> bytes:
    settings = as_json(RunSettings(command=(), policy="agent-observe"))
    lists = ("descriptors", "ignored_signals", "signal_mask", "limits")
    numbers = {"v": 1, "words": 2, "terminal": -1, "umask": 0o22, "niceness": 0}
    good = {"settings": settings, **numbers, **{name: [] for name in lists}}
    messages = [json.dumps(message) for message in ({**good, **call}, *more)]
    line = [*subject.as_user(), sys.executable, "-c", _ASKS, at(subject), *messages]
    out, _ = subject.start_line(line).communicate(timeout=30)
    return out


@pytest.mark.promise("nested")
def test_who_is_inside_is_refused_or_is_there_already(subject: Sigwrap) -> None:
    words = ("--policy", "agent-observe", "--", "sh", "-c")
    line = " ".join(map(str, subject.line(*JOIN)))
    refused = subject.run(*words, f"{line} -- echo no; echo $?")
    assert refused.stdout == b"125\n"
    assert b"already in session" in refused.stderr
    joined = subject.run(*words, f"{line} --nested join -- echo yes")
    assert (joined.stdout, joined.stderr) == (b"yes\n", b"")


def test_a_process_of_the_session_can_not_join_it(subject: Sigwrap) -> None:
    connects = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET);"
        "s.connect(sys.argv[1].replace('@', chr(0))); print(s.recv(1000).decode())"
    )
    found = _run(subject, "python3", "-c", connects, at(subject))
    assert b"it is in a supervised session" in found.stdout
    assert subject.events("control_refused")[0].payload["inside_session"]


def test_who_is_in_a_sandbox_does_not_get_out_of_it(subject: Sigwrap) -> None:
    _run(subject, "true")
    line = ["setpriv", "--no-new-privs", "--", *map(str, subject.line(*JOIN, "--", "true"))]
    found = subject.start_line([*subject.as_user(), *line])
    _, err = found.communicate(timeout=30)
    assert found.returncode == REFUSED
    assert b"its no_new_privs differ from the session's" in err


def test_on_a_terminal_it_has_one_of_its_own(subject: Sigwrap) -> None:
    prompt = {"PS1": "PROMPT> "}
    terminal = subject.on_terminal(*JOIN, "--", "bash", "--norc", size=(40, 111), env=prompt)
    output = terminal.output
    output.until(rb"PROMPT> ")
    terminal.type("stty size; tty\n")
    output.until(rb"40 111")
    output.until(rb"/dev/pts/")
    output.until(rb"PROMPT> ")
    terminal.type("sh -c 'echo he''re; exec cat'\n")
    output.until(rb"here\r\n")
    terminal.press("z")
    output.until(rb"Stopped")
    output.until(rb"PROMPT> ")
    terminal.bring_to_foreground("cat'")
    terminal.type("two\n")
    output.until(rb"two\r\ntwo\r\n")
    terminal.press("c")
    output.until(rb"PROMPT> ")
    terminal.resize(33, 99)
    terminal.type("until stty size | grep -x '33 99'; do :; done; exit 9\n")
    output.until(rb"\r33 99")
    assert terminal.await_status() == 9


def test_the_fork_server_is_sigwraps_own(subject: Sigwrap) -> None:
    """Each command's parent. What is stopped would fork none that come after it."""
    _run(subject, "true")
    server = subject.command_pid()
    tries = "kill -STOP $PPID; kill -KILL $PPID; echo $PPID"
    assert _run(subject, "sh", "-c", tries).stdout == b"%d\n" % server
    assert _run(subject, "echo", "served").stdout == b"served\n"
    assert subject.command_pid() == server
    blocked = subject.events("signal_blocked")
    assert {event.payload["target_pid"] for event in blocked} >= {server}


def test_a_second_sigterm_ends_who_waits_for_a_session_that_stands_still(subject: Sigwrap) -> None:
    process = subject.start(*JOIN, "--", "sh", "-c", "trap '' TERM; echo $$ ready; sleep 300")
    command = int(reader(process.stdout).until(rb"\d+ ready").split()[0])
    with Watch([command]) as watch:
        process.send_signal(signal.SIGTERM)
        await_that(lambda: bool(subject.events("interrupt_forwarded")))
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.2)  # one that comes at once belongs to the first
        assert process.returncode == 128 + signal.SIGTERM
        watch.await_ends()


# What befalls a command that joins, or its session, when nothing expects it


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
    said = b"session agent was stopped by SIGSTOP (continue it: sigwrap resume agent)"
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
    assert sessions(subject) == 1
