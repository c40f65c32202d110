"""`via: stub` with `record: true`: the caller becomes a stub, the command its child, and what
passes between them is in the log."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sigwrap.events import Event, recorded_bytes
from sigwrap.protocols.stub import Kind, exit_frame, frame
from tests.support.harness import PYTHON, UNDER_TEST, Running, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles, children, tree
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, Reader, Watch, await_state, await_that, reader

RECORDED = """
  - {name: recorder, commands: [tool], decision: redirect,
     redirect_to: {command: %(folder)s/real-tool, append_args: true, via: stub, record: true,
                   env: {TOKEN: "${SIGWRAP_HOST:THE_TOKEN}"}}}
"""
TOKEN = "the-brokered-t0ken-value"
GIB = 1 << 30


def prepared(subject: Sigwrap, text: str, *more: str) -> tuple[str, ...]:
    """sigwrap's options, for a `tool` that is replaced by the program `text`."""
    subject.env["THE_TOKEN"] = TOKEN
    script(subject.folder, "tool", "#!/bin/sh\necho original; : > original-ran\n")
    script(subject.folder, "real-tool", text)
    return ("-p", policy(subject.folder, RECORDED % {"folder": subject.folder}, *more), "--")


def ready(subject: Sigwrap, process: Running) -> tuple[Reader, int]:
    """What the command says from now on, and its stub."""
    said = reader(process.stdout)
    assert said.line() == b"ready"
    (redirected,) = subject.events("exec_redirected")
    return said, redirected.pid


def stored(events: list[Event], stream: str) -> bytes:
    payloads = [each.payload for each in events]
    return b"".join(recorded_bytes(each) for each in payloads if each["stream"] == stream)


def test_it_ends_as_its_command_did(as_user: Sigwrap, programs: Path) -> None:
    line = prepared(as_user, '#!/bin/bash\neval "$1"\n', "limits: {}")
    done = as_user.run(*line, *PYTHON, str(programs / "ends.py"))
    ends = ["0", "1", "42", "127", "-15", "-11", "-9", "-34"]
    assert (done.stdout.decode().split(), done.stderr) == (ends, b"")
    assert not list(as_user.folder.glob("core*"))
    assert not (as_user.folder / "original-ran").exists()
    reasons = [each.payload["reason"] for each in as_user.sealed_events("recording_ended")]
    assert reasons == ["the command ended"] * len(ends)


def test_what_it_reads_and_writes_is_in_the_log(as_user: Sigwrap) -> None:
    text = "#!/bin/sh\necho out; echo err >&2; cat; printf '\\377\\0'\n"
    done = as_user.run(*prepared(as_user, text), "./tool", input=b"in\xc3\xa9\n")
    assert (done.returncode, done.stdout) == (0, b"out\nin\xc3\xa9\n\xff\x00")
    assert done.stderr == b"err\n"
    recorded = as_user.sealed_events("io_recorded")
    assert stored(recorded, "stdin") == b"in\xc3\xa9\n"
    assert stored(recorded, "stdout") == done.stdout
    assert stored(recorded, "stderr") == done.stderr
    (redirected,) = as_user.events("exec_redirected")
    assert (redirected.payload["via"], redirected.payload["record"]) == ("stub", True)
    assert redirected.payload["replacement"] == str(as_user.folder / "real-tool")
    (ended,) = as_user.events("recording_ended")
    counts = {name: ended.payload[name] for name in ("stdin", "stdout", "stderr")}
    assert counts == {"stdin": 5, "stdout": 11, "stderr": 4}
    (allowed,) = [each for each in as_user.events("exec_allowed") if each.pid == ended.pid][:1]
    assert allowed.payload["rule_name"] == "recorder"
    assert ended.payload["stub_pid"] == redirected.pid


def test_replay_shows_what_was_recorded(as_user: Sigwrap) -> None:
    program = "import subprocess; [subprocess.run(['./tool', word]) for word in 'ab']"
    text = '#!/bin/sh\nprintf "$1\\\\377\\\\n"; echo e >&2\n'
    done = as_user.run(*prepared(as_user, text), *PYTHON, "-c", program)
    assert (done.stdout, done.stderr) == (b"a\xff\nb\xff\n", b"e\ne\n")
    _, second = [each.pid for each in as_user.sealed_events("recording_ended")]
    replay = (UNDER_TEST, "replay", "--instant")
    assert as_user.native(*replay, "--recorded", "stdout").stdout == done.stdout
    only = as_user.native(*replay, "--recorded", "stdout", "--pid", str(second))
    assert only.stdout == b"b\xff\n"
    assert b"stderr  2 B  e\\n" in as_user.native(*replay).stdout
    report = as_user.native(UNDER_TEST, "report").stdout.decode()
    assert f"pid {second}  stdin 0 B, stdout 3 B, stderr 2 B  the command ended" in report
    for words in (["--pid", "1"], ["--recorded", "stdout", "--json"]):
        refused = as_user.native(*replay, *words)
        assert refused.returncode == 125
        assert refused.stderr.count(b"\n") == 1


def test_the_order_within_each_stream(as_user: Sigwrap) -> None:
    text = "#!/bin/sh\ni=0; while [ $i -lt 300 ]; do i=$((i+1)); echo o$i; echo e$i >&2; done\n"
    done = as_user.run(*prepared(as_user, text), "./tool")
    assert done.stdout.split() == [b"o%d" % i for i in range(1, 301)]
    assert done.stderr.split() == [b"e%d" % i for i in range(1, 301)]


def _size() -> int:
    return GIB if os.environ.get("SIGWRAP_TEST_GIB") else 1 << 20


def test_much_of_it_through_both_ways(as_user: Sigwrap, programs: Path) -> None:
    size = _size()
    line = prepared(as_user, "#!/bin/sh\nexec cat\n")
    process = as_user.start(*line, *PYTHON, str(programs / "copy_both_ways.py"), str(size))
    out, err = process.communicate(b"", PATIENCE_S * max(1, size >> 24))
    assert (out.decode().split(), err) == ([str(size), "True", "0"], b"")
    (ended,) = as_user.sealed_events("recording_ended")
    assert (ended.payload["stdin"], ended.payload["stdout"]) == (size, size)


def test_the_end_of_input_is_passed_on_while_output_goes_on(as_user: Sigwrap) -> None:
    text = "#!/bin/sh\necho ready; cat >/dev/null; echo after the end\n"
    process = as_user.start(*prepared(as_user, text), "./tool")
    said = reader(process.stdout)
    assert said.line() == b"ready"
    process.stdin.close()
    assert said.line() == b"after the end"
    assert process.wait(PATIENCE_S) == 0


def test_a_slow_reader_holds_the_command_up_and_nobody_else(
    as_user: Sigwrap, programs: Path
) -> None:
    """The command writes more than all buffers hold; the rest of the session goes on."""
    text = "#!/bin/sh\nhead -c 3000000 /dev/zero; echo end >&2\n"
    done = as_user.run(*prepared(as_user, text), *PYTHON, str(programs / "reads_slowly.py"))
    assert done.stdout.decode().splitlines() == ["True None", "2999999 b'end\\n' 0"]


def test_one_stream_that_nobody_reads_does_not_hold_up_the_other(
    as_user: Sigwrap, programs: Path
) -> None:
    """As natively, for a command that writes both from threads of its own."""
    text = (
        f"#!{PYTHON[0]} -IS\nimport os, threading\n"
        "threading.Thread(target=lambda: os.write(1, bytes(2000000))).start()\n"
        "os.write(2, b'free\\n')\nos.write(2, os.read(0, 100))\n"
    )
    done = as_user.run(*prepared(as_user, text), *PYTHON, str(programs / "reads_one_stream.py"))
    assert done.stdout == b"b'free\\n'\nb'also free\\n' 2000000\n"


@pytest.mark.parametrize("given", ["< /dev/null", "< <(yes)"])
def test_a_reader_that_leaves_ends_the_command(as_user: Sigwrap, given: str) -> None:
    """Of SIGPIPE, as without us; input that it never reads doesn't stand in the way."""
    line = prepared(as_user, "#!/bin/sh\nexec yes\n")
    text = f"./tool {given} | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = as_user.run(*line, "bash", "-c", text)
    assert (done.stdout, done.stderr) == (b"y\n141\n", b"")


def test_a_command_that_closes_its_streams_early(as_user: Sigwrap, programs: Path) -> None:
    """Both ends see it at once: the reader an end, the writer a closed pipe."""
    text = "#!/bin/sh\nexec <&- >&-; echo waits >&2; exec sleep 1000\n"
    done = as_user.run(*prepared(as_user, text), *PYTHON, str(programs / "sees_both_ends.py"))
    assert done.stdout == b"b'' None\n-15\n"


def test_what_the_command_did_not_read_of_a_file_is_left_to_the_next(as_user: Sigwrap) -> None:
    lines = b"".join(b"line %d\n" % i for i in range(1, 6))
    (as_user.folder / "input").write_bytes(lines)
    line = prepared(as_user, '#!/bin/sh\n[ "$1" = none ] || head -c 7\n')
    text = "while read -r l; do echo $l; ./tool none; done <input; { ./tool; cat; } <input"
    done = as_user.run(*line, "sh", "-c", text)
    assert done.stdout == lines + lines


def test_a_descendant_that_keeps_the_pipe_delays_nobody(as_user: Sigwrap) -> None:
    """All that the command itself wrote arrives; what it left behind writes to a closed pipe."""
    os.mkfifo(as_user.folder / "go")
    (as_user.folder / "go").chmod(0o666)
    left = "read x <go; trap '' PIPE; echo late || echo closed >left-behind; : >done"
    text = f'#!/bin/sh\nsh -c "{left}" 2>/dev/null &\nhead -c 100000 /dev/zero; exit 3\n'
    then = "./tool | wc -c; echo go >go; while ! [ -e done ]; do :; done; cat left-behind"
    done = as_user.run(*prepared(as_user, text), "sh", "-c", then)
    assert done.stdout.split() == [b"100000", b"closed"]


# Signals


@pytest.mark.parametrize("name", ["TERM", "USR1", "INT", "HUP", "QUIT"])
def test_a_signal_to_the_stub_is_the_commands(as_user: Sigwrap, name: str) -> None:
    """Under a policy that lets nobody signal anybody: what it passes on, it may."""
    text = f"#!/bin/bash\ntrap 'echo got {name}; exit 5' {name}\necho ready\nread -t 1000 x <go\n"
    os.mkfifo(as_user.folder / "go")
    (as_user.folder / "go").chmod(0o666)
    line = prepared(as_user, text, "signal_rules: [{name: no, signals: ['@all'], decision: deny}]")
    process = as_user.start(*line, "sh", "-c", "./tool; echo $?")
    said, stub = ready(as_user, process)
    os.kill(stub, getattr(signal, f"SIG{name}"))
    assert said.line() == f"got {name}".encode()
    assert said.line() == b"5"
    assert process.wait(PATIENCE_S) == 0
    (sent,) = as_user.sealed_events("signal_sent")
    assert (sent.pid, sent.payload["rule_name"]) == (stub, "builtin:stub")


def test_a_signal_that_kills_the_command_kills_the_stub_so(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    process = as_user.start(*line, *PYTHON, "-c", "import subprocess as s; print(s.call('./tool'))")
    said, stub = ready(as_user, process)
    os.kill(stub, signal.SIGTERM)
    assert said.line() == b"-15"


def test_a_stub_that_is_killed_takes_its_command_along(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    process = as_user.start(*line, "sh", "-c", "./tool; echo $?; read x; true")
    said, stub = ready(as_user, process)
    with Watch(children(stub)) as command:
        assert command.processes
        os.kill(stub, signal.SIGKILL)
        assert said.line() == b"137"
        command.await_ends()
    process.communicate(b"\n", PATIENCE_S)
    (ended,) = as_user.sealed_events("recording_ended")
    assert ended.payload["reason"] in ("its stub has ended", "its stub hung up")


def test_the_interrupt_key_reaches_the_command_once_and_the_stub_outlives_it(
    as_user: Sigwrap,
) -> None:
    text = "#!/bin/bash\ntrap 'echo caught; echo cleaned; exit 7' INT\necho ready\nread x\n"
    as_user.policy = prepared(as_user, text)[1]
    terminal = as_user.on_terminal("--", "./tool")
    terminal.output.until(rb"ready")
    await_state(tree(terminal.pid)[-1], "S")  # the shell is in its read
    terminal.press("C")
    terminal.output.until(rb"caught")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == 130
    assert terminal.output.rest().count(b"caught") == 0


def test_suspend_and_resume_as_a_job(as_user: Sigwrap) -> None:
    text = '#!/bin/sh\necho ready; while read -r line; do echo "got $line"; done\n'
    as_user.policy = prepared(as_user, text)[1]
    terminal = as_user.on_terminal("--", "./tool")
    terminal.output.until(rb"ready")
    (stub,) = [each.pid for each in as_user.events("exec_redirected")]
    for number in range(3):
        terminal.press("Z")
        terminal.await_stop()
        for pid in tree(stub):
            await_state(pid, "T")
        os.killpg(terminal.pid, signal.SIGCONT)
        terminal.type(f"line {number}\n")
        terminal.output.until(b"got line %d" % number)
    terminal.press("D")
    assert terminal.await_status() == 0


# Callers


@pytest.mark.parametrize(
    "way", ["execve", "thread", "vfork", "spawn", "readonly", "execveat", "i386"]
)
def test_whoever_calls(as_user: Sigwrap, compiled: Path, way: str) -> None:
    line = prepared(as_user, '#!/bin/sh\necho "replaced $1"; exit 9\n')
    tool = str(as_user.folder / "tool")
    done = as_user.run(*line, str(compiled / "call"), way, tool, "word")
    assert (done.returncode, done.stderr) == (9, b"")
    assert b"replaced word\n" in done.stdout and b"changed" not in done.stdout


def test_what_the_caller_set_up_is_the_commands(as_user: Sigwrap) -> None:
    text = (
        "#!/bin/bash\npwd; umask; ulimit -n; ps -o ni= -p $$ | tr -d ' '; cat <&3\n"
        "trap; kill -PIPE $$; echo ignored\n"
        "ls -l /proc/$$/fd | grep -c socket:\n"
    )
    (as_user.folder / "sub").mkdir(mode=0o777)
    setup = (
        "cd sub; umask 027; ulimit -n 99; echo three >../3; trap '' PIPE; nice -n 5 ../tool 3<../3"
    )
    line = prepared(as_user, text)
    done = as_user.run(*line, "bash", "-c", setup)
    assert done.stderr == b""
    said = done.stdout.decode().splitlines()
    assert said[:5] == [str(as_user.folder / "sub"), "0027", "99", "5", "three"]
    natively = as_user.native("bash", "-c", setup.replace("../tool", "../real-tool"))
    assert done.stdout == natively.stdout


@pytest.mark.parametrize("limit", [4, 12, 30])
def test_few_descriptors(as_user: Sigwrap, limit: int) -> None:
    """It runs, or it is refused in our words; nothing else runs, and no interpreter complains."""
    line = prepared(as_user, "#!/bin/sh\necho replaced\n")
    done = as_user.run(*line, "sh", "-c", f"ulimit -n {limit}; ./tool; echo $?")
    if limit == 30:
        assert (done.stdout, done.stderr) == (b"replaced\n0\n", b"")
    else:
        assert done.stdout == b"126\n"
        assert b"too few descriptors" in done.stderr
        (denied,) = as_user.sealed_events("exec_denied")
        assert "too few descriptors" in denied.payload["reason"]


def test_a_full_descriptor_table(as_user: Sigwrap, compiled: Path) -> None:
    """Refused in our words, where what is open would stay open in the stub."""
    line = prepared(as_user, "#!/bin/sh\necho replaced\n")
    done = as_user.run(*line, str(compiled / "call"), "fulltable", str(as_user.folder / "tool"))
    ran = b"replaced\n" in done.stdout
    assert ran or b"too few descriptors" in done.stderr
    assert len(as_user.sealed_events("exec_redirected" if ran else "exec_denied")) == 1
    assert not (as_user.folder / "original-ran").exists()


def test_closed_streams_stay_ours(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho out; echo err >&2; cat\necho $? >status\n")
    done = as_user.run(*line, "sh", "-c", "./tool <&- >&- 2>&-; echo $?")
    assert done.stdout == b"0\n"
    assert stored(as_user.sealed_events("io_recorded"), "stdout") == b"out\n"


def test_a_command_that_the_kernel_refuses(as_user: Sigwrap) -> None:
    line = prepared(as_user, "neither a script nor a program")
    done = as_user.run(*line, "sh", "-c", "./tool; echo $?")
    assert done.stdout == b"126\n"
    assert done.stderr == b"sigwrap-stub: real-tool: Exec format error\n"


def test_twenty_at_once_leave_no_descriptor_behind(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho $1\n")
    all_of_them = "for n in $(seq 20); do ./tool $n & done | sort -n | tr '\\n' ' '; echo; read x"
    process = as_user.start(*line, "sh", "-c", f"./tool 0; read x; {all_of_them}")
    said = reader(process.stdout)
    assert said.line() == b"0"
    supervisor = Roles.of(process.pid).supervisor
    await_that(lambda: len(as_user.events("recording_ended")) == 1)
    before = len(os.listdir(f"/proc/{supervisor}/fd"))
    process.say(b"go\n")
    assert said.line().split() == [b"%d" % n for n in range(1, 21)]
    await_that(lambda: len(os.listdir(f"/proc/{supervisor}/fd")) <= before)
    process.communicate(b"\n", PATIENCE_S)
    assert len(as_user.sealed_events("recording_ended")) == 21


# What must not be had


def test_the_token_is_with_the_command_and_nowhere_else(as_user: Sigwrap, programs: Path) -> None:
    """Not in the caller, not in the stub that it has become, not in the log."""
    text = '#!/bin/sh\necho "length ${#TOKEN} evil $EVIL.$LD_BIND_NOW"; read x\nexit 4\n'
    line = prepared(as_user, text)
    clean = ("env", "-u", "THE_TOKEN", "EVIL=1", "LD_BIND_NOW=1")
    looks = (*PYTHON, str(programs / "looks_for_a_token.py"), TOKEN[::-1], "stub")
    done = as_user.run(*line, *clean, *looks, "./tool")
    assert done.stderr == b""
    said = [f"length {len(TOKEN)} evil .", "in memory 0 exit 4"]
    assert done.stdout.decode().splitlines() == said
    for file in as_user.store.rglob("*"):
        if file.is_file():
            assert TOKEN.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    ("garbage", "why"),
    [
        ("ff00000000", "type 255"),
        ("0400100000", "too long"),
        ("0100000000", "READY is not for the supervisor"),
        ("0200000008ffffffffffffffff", "can't be"),
        ("020000000100", "8 bytes"),
    ],
)
def test_a_stub_that_speaks_garbage_loses_its_command(
    as_user: Sigwrap, garbage: str, why: str, programs: Path
) -> None:
    """Whoever may look into the stub can speak in its place; the others don't notice."""
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    done = as_user.run(*line, *PYTHON, str(programs / "thief.py"), garbage)
    assert done.stdout == b"126 0\n"
    assert why in done.stderr.decode()
    (ended,) = as_user.sealed_events("recording_ended")
    assert why in ended.payload["reason"]


def test_input_without_end_that_nobody_asked_for_is_not_kept(
    as_user: Sigwrap, programs: Path
) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    some = frame(Kind.STDIN, bytes(60000)).hex()
    done = as_user.run(*line, *PYTHON, str(programs / "thief.py"), some, "on and on")
    assert done.stdout == b"126 0\n"
    (ended,) = as_user.sealed_events("recording_ended")
    assert "more input than was asked for" in ended.payload["reason"]


def test_the_pass_is_the_stubs_childs_alone(as_user: Sigwrap, programs: Path) -> None:
    line = prepared(as_user, '#!/bin/sh\necho "token ${TOKEN:-none}"\n')
    clean = ("env", "-u", "THE_TOKEN")
    done = as_user.run(*line, *clean, *PYTHON, str(programs / "forger.py"))
    assert done.stdout == b"b'token none\\n'\n"


# The store and the supervisor


def test_a_full_store_stops_it_and_says_so(sigwrap: Sigwrap, small_disk: Path) -> None:
    """Nothing passes that isn't in the log."""
    sigwrap.store = small_disk / "store"
    sigwrap.env["SIGWRAP_STORE"] = str(sigwrap.store)
    text = "#!/bin/sh\nexec head -c 50000000 /dev/urandom\n"
    done = sigwrap.run(*prepared(sigwrap, text), "sh", "-c", "./tool | wc -c; exit 0")
    assert int(done.stdout) < 1 << 19
    assert b"the event log can't be written" in done.stderr
    assert b"can't write the event log" in done.stderr
    assert len(stored(sigwrap.events("io_recorded"), "stdout")) >= int(done.stdout)


def test_a_killed_supervisor_leaves_neither_stub_nor_command(as_user: Sigwrap) -> None:
    line = prepared(as_user, "#!/bin/sh\necho ready\nexec sleep 1000\n")
    process = as_user.start(*line, "./tool")
    assert reader(process.stdout).line() == b"ready"
    roles = Roles.of(process.pid)
    with Watch(tree(roles.supervisor)) as watch:
        assert len(watch.processes) >= 3
        os.kill(roles.supervisor, signal.SIGKILL)
        watch.await_ends()
    assert process.wait(PATIENCE_S) == 125


# The stub alone, against somebody who plays the supervisor


@contextmanager
def stub_alone(programs: Path) -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    words = [sys.executable, "-I", str(programs / "stub_alone.py"), str(fd)]
    pipe = subprocess.PIPE
    with ours, subprocess.Popen(words, pass_fds=[fd], stdin=pipe, stdout=pipe, stderr=pipe) as stub:
        theirs.close()
        yield ours, stub


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"", b"the supervisor is gone"),
        (b"\xff\0\0\0\0", b"the supervisor can't be understood: there is no frame of type 255"),
        (b"\x02\0\x10\0\0", b"the supervisor can't be understood: a frame of 1048576 bytes"),
        (frame(Kind.EXIT, b"\0"), b"a status takes 4 bytes"),
        (frame(Kind.STDIN, bytes(7)), b"a count takes 8 bytes"),
        (frame(Kind.ERROR, b"the event log can't be written"), b"the event log can't be written"),
        (frame(Kind.READY)[:3], b"the supervisor is gone"),
        (frame(Kind.STDOUT) + frame(Kind.STDOUT, b"x"), b"more than there is room for"),
    ],
)
def test_whatever_it_hears_it_ends_with_a_line(said: bytes, line: bytes, programs: Path) -> None:
    with stub_alone(programs) as (ours, stub):
        command = int(reader(stub.stdout).line())
        with Watch([command]) as watch:
            ours.sendall(said)
            ours.shutdown(socket.SHUT_WR)
            _, err = stub.communicate(timeout=PATIENCE_S)
            watch.await_ends()
    assert stub.returncode == 126
    assert line in err
    assert err.startswith(b"sigwrap-stub: tool: ")
    assert err.count(b"\n") == 1


def test_what_was_said_before_the_end_is_written_before_it_ends(programs: Path) -> None:
    with stub_alone(programs) as (ours, stub):
        said = reader(stub.stdout)
        os.kill(int(said.line()), signal.SIGKILL)
        ours.sendall(frame(Kind.STDOUT, b"all of it\n") + exit_frame(-9))
        assert said.line() == b"all of it"
        assert stub.wait(PATIENCE_S) == -9


def test_it_is_not_for_people(sigwrap: Sigwrap) -> None:
    program = Path(sigwrap.line()[0].__str__())
    stub = sigwrap.folder / "sigwrap-stub"
    stub.symlink_to(program)
    done = sigwrap.native(str(stub), "/bin/echo", "echo", "ran")
    assert (done.returncode, done.stdout) == (126, b"")
    assert done.stderr.count(b"\n") == 1
