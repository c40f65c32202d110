"""`via: stub` with `record: true`: the caller becomes a stub, the command its child, and what
passes between them is in the log. The command ends, and is signalled and stopped, as natively."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sigwrap.kernel import procfs
from tests.support.harness import INTERRUPTED, PYTHON, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.processes import Roles, children, tree
from tests.support.programs import needs, script
from tests.support.recording import prepared, ready, stored
from tests.support.waiting import PATIENCE_S, Watch, await_state, await_that, reader

GIB = 1 << 30
ENDS = ["0", "1", "42", "126", "127", "255", "-15", "-2", "-10", "-11", "-9", "-34"]
"""What programs/ends.py says."""


def test_it_ends_as_its_command_did(as_user: Sigwrap, programs: Path) -> None:
    line = prepared(as_user, '#!/bin/bash\neval "$1"\n', "limits: {}")
    done = as_user.run(*line, *PYTHON, str(programs / "ends.py"))
    assert (done.stdout.decode().split(), done.stderr) == (ENDS, b"")
    assert not list(as_user.folder.glob("core*"))
    assert not (as_user.folder / "original-ran").exists()
    reasons = [each.payload["reason"] for each in as_user.sealed_events("recording_ended")]
    assert reasons == ["the command ended"] * len(ENDS)


@pytest.mark.promise("recorded commands")
def test_what_it_reads_and_writes_is_in_the_log(as_user: Sigwrap) -> None:
    text = "#!/bin/sh\necho out; echo err >&2; cat; printf '\\377\\0'\n"
    done = as_user.run(*prepared(as_user, text), "./tool", input=b"in\xc3\xa9\n")
    assert (done.returncode, done.stdout) == (0, b"out\nin\xc3\xa9\n\xff\x00")
    assert done.stderr == b"err\n"
    assert stored(as_user.sealed_events("io_recorded"), "stdin") == b"in\xc3\xa9\n"
    assert stored(as_user.sealed_events("io_recorded"), "stdout") == done.stdout
    assert stored(as_user.sealed_events("io_recorded"), "stderr") == done.stderr
    (redirected,) = as_user.events("exec_redirected")
    assert (redirected.payload["via"], redirected.payload["record"]) == ("stub", True)
    assert redirected.payload["replacement"] == str(as_user.folder / "real-tool")
    (ended,) = as_user.events("recording_ended")
    counts = {name: ended.payload[name] for name in ("stdin", "stdout", "stderr")}
    assert counts == {"stdin": 5, "stdout": 11, "stderr": 4}
    (allowed,) = [each for each in as_user.events("exec_allowed") if each.pid == ended.pid][:1]
    assert allowed.payload["rule_name"] == "recorder"
    assert ended.payload["stub_pid"] == redirected.pid


def test_a_command_that_the_kernel_refuses_says_why(as_user: Sigwrap) -> None:
    done = as_user.run(*prepared(as_user, "no first line\n"), "./tool", input=b"unread")
    assert done.returncode == 126
    assert done.stderr == b"sigwrap-stub: real-tool: Exec format error\n"
    assert stored(as_user.sealed_events("io_recorded"), "stderr") == done.stderr


@pytest.mark.promise("replay")
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


def test_a_reader_that_leaves_ends_the_command(as_user: Sigwrap) -> None:
    """Of SIGPIPE, as without us; input that it never reads doesn't stand in the way."""
    line = prepared(as_user, "#!/bin/sh\nexec yes\n")
    given = ("< /dev/null", "< <(yes)")
    text = "\n".join(f"./tool {each} | head -n 1; echo ${{PIPESTATUS[0]}}" for each in given)
    done = as_user.run(*line, "bash", "-c", text)
    assert (done.stdout, done.stderr) == (b"y\n141\n" * 2, b"")


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


# Callers of recorded commands, and what they have set up or lack.


def test_what_the_caller_set_up_is_the_commands(as_user: Sigwrap) -> None:
    text = (
        "#!/bin/bash\npwd; umask; ulimit -n; ps -o ni= -p $$ | tr -d ' '; cat <&3\n"
        "trap; kill -PIPE $$; echo ignored\n"
        "ls -l /proc/$$/fd | grep -c socket:; grep SigBlk /proc/$$/status\n"
    )
    (as_user.folder / "sub").mkdir(mode=0o777)
    setup = (
        "cd sub; umask 027; ulimit -n 99; echo three >../3; trap '' PIPE; "
        "exec nice -n 5 env --block-signal=USR2 ../tool 3<../3"
    )
    line = prepared(as_user, text)
    done = as_user.run(*line, "bash", "-c", setup)
    assert done.stderr == b""
    niceness = str(min(os.nice(0) + 5, 19))
    said = done.stdout.decode().splitlines()
    assert said[:5] == [str(as_user.folder / "sub"), "0027", "99", niceness, "three"]
    natively = as_user.native("bash", "-c", setup.replace("../tool", "../real-tool"))
    assert done.stdout == natively.stdout


@pytest.mark.parametrize("limit", [12, 30])
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


# Signals to a stub, its end and its command's, and the terminal's keys.


@pytest.mark.parametrize("decision", ["deny", "allow"])
def test_a_signal_to_the_stub_is_the_commands(as_user: Sigwrap, decision: str) -> None:
    """What it passes on, it may, whatever the policy says of signals."""
    names = ("USR1", "INT", "HUP", "QUIT", "TERM")
    # A trap that is due before a wait begins is run when that is over.
    waits = "while :; do read -t 0.1 x; done"
    traps = "; ".join(f"trap 'echo got {name}' {name}" for name in names[:-1])
    text = f"#!/bin/bash\n{traps}; trap 'echo got TERM; exit 5' TERM\necho ready\n{waits}\n"
    rule = f"signal_rules: [{{name: all, signals: ['@all'], decision: {decision}}}]"
    line = prepared(as_user, text, rule)
    process = as_user.start(*line, "sh", "-c", "./tool; echo $?")
    said, stub = ready(as_user, process)
    for name in names:
        os.kill(stub, getattr(signal, f"SIG{name}"))
        assert said.line() == f"got {name}".encode()
    assert said.line() == b"5"
    assert process.wait(PATIENCE_S) == 0
    sent = as_user.sealed_events("signal_sent")
    assert [event.payload["signal_name"] for event in sent] == [f"SIG{name}" for name in names]
    assert {(event.pid, event.payload["rule_name"]) for event in sent} == {(stub, "builtin:stub")}


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
    assert ended.payload["reason"] in ("its stub ended", "its stub closed the connection")


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
        terminal.continue_job()
        terminal.type(f"line {number}\n")
        terminal.output.until(b"got line %d" % number)
    terminal.press("D")
    assert terminal.await_status() == 0


# A replacement keeps the original's terminal.


@needs("less")
@pytest.mark.parametrize("via", ["exec", "stub"])
def test_a_pager_keeps_the_terminal(sigwrap: Sigwrap, via: str) -> None:
    """Its keys, its size, Ctrl+Z and fg."""
    rules = f"""
  - {{name: more, commands: [more], decision: redirect,
     redirect_to: {{command: less, append_args: true, via: {via}}}}}
"""
    text = sigwrap.folder / "text"
    text.write_text("".join(f"line-{number}.\n" for number in range(1, 200)))
    script(sigwrap.folder, "more", "#!/bin/sh\necho the original\n")
    line = ("-p", policy(sigwrap.folder, rules), "--no-report", "--", "./more", str(text))
    terminal = sigwrap.on_terminal(*line, env={"TERM": "vt100"})
    output = terminal.output
    terminal.resize(10, 40)
    output.until(rb"line-1\.")
    terminal.type("G")
    output.until(rb"line-199\.")
    terminal.type("g")
    output.until(rb"line-1\.")
    terminal.resize(30, 40)
    output.until(rb"line-25\.")
    terminal.press("z")
    terminal.await_stop()
    (pager,) = (pid for pid in tree(terminal.pid) if procfs.comm(pid) == "less")
    await_state(pager, "T")  # it puts the terminal in order first
    terminal.continue_job()
    output.until(rb"line-25\.")
    terminal.type(" ")
    output.until(rb"line-50\.")
    terminal.type("q")
    assert terminal.await_status() == 0
    assert b"the original" not in output.seen
    assert len(sigwrap.sealed_events("exec_redirected")) == 1


def test_stop_reaches_a_recorded_command_once(as_user: Sigwrap) -> None:
    """Its stub is in the command's process group too, and passes signals on."""
    text = (
        f"#!{PYTHON[0]} -IS\nimport signal, time\ngot = []\n"
        "signal.signal(signal.SIGINT, lambda *_: got.append(1))\nprint('ready', flush=True)\n"
        "while not got:\n    time.sleep(0.01)\n"
        "time.sleep(0.3)\nprint('got', len(got), flush=True)\n"
    )
    line = prepared(as_user, text)
    process = as_user.start(*line, "bash", "-c", "trap : INT; ./tool; echo end")
    said = reader(process.stdout)
    said.until(rb"ready\n")
    assert as_user.run("stop").returncode == 0
    assert b"got 1\n" in said.rest()
    assert process.wait(PATIENCE_S) == INTERRUPTED
