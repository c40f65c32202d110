"""What goes wrong beside a run, and is nobody's attack: what the user sees, and what is kept."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.harness import EXECS, PYTHON, REFUSED, Sigwrap
from tests.support.killswitch import switch
from tests.support.policies import policy
from tests.support.processes import Roles
from tests.support.waiting import PATIENCE_S, Watch, reader

OBSERVE = ("-p", "agent-observe", "--no-report")
ECHOES = "echo ready; while read x; do /bin/echo $x; echo $?; done"


@pytest.mark.fault(
    "missing resources",
    "no free descriptor for a while",
    sees="one warning; execs fail (126) meanwhile",
    keeps="complete before and after; refused calls as `call_refused` or `unrecorded`",
)
def test_no_descriptor_is_left_for_a_while(as_user: Sigwrap) -> None:
    process = as_user.start(*OBSERVE, "--", "sh", "-c", ECHOES)
    said, complaints = reader(process.stdout), reader(process.stderr)
    said.until(rb"ready\n")
    limit = ["prlimit", f"--pid={Roles.of(process.pid).supervisor}"]
    assert as_user.native(*limit, "--nofile=3:").returncode == 0
    process.say(b"one\n")
    assert said.line() == b"126"
    complaints.until(
        rb"Too many open files; sigwrap denies every exec and signal until it can write"
    )
    assert as_user.native(*limit, "--nofile=1024:").returncode == 0
    complaints.until(rb"it could not be written for a while; sigwrap wrote it again\n")
    process.say(b"two\n")
    assert (said.line(), said.line()) == (b"two", b"0")
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    events = as_user.sealed_events()
    ran = [each.payload["argv"][-1] for each in events if each.type in EXECS]
    assert ran[-1] == "two" and "one" not in ran
    refused = [each for each in events if each.type == "call_refused"]
    assert refused or events[-1].payload["unrecorded"]
    (tampered,) = as_user.events("store_tampered")
    assert "could not be written" in tampered.payload["what"]


@pytest.mark.fault(
    "missing resources",
    "no /dev/null",
    sees="status 125, and how to make it",
    keeps="nothing ran",
)
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_without_dev_null(sigwrap: Sigwrap) -> None:
    for words in (("--", "touch", "ran"), ("--as", "forward", "--", "touch", "ran"), ("report",)):
        text = 'mount -t tmpfs none /dev; exec "$@"'
        done = sigwrap.native("unshare", "-m", "sh", "-c", text, "sh", *sigwrap.line(*words))
        assert done.returncode == REFUSED
        (line,) = done.stderr.decode().splitlines()
        assert line.endswith(
            "/dev/null is missing, and sigwrap needs it (create it: mknod -m 666 /dev/null c 1 3)"
        )
    assert not (sigwrap.folder / "ran").exists()


@pytest.mark.fault(
    "the store",
    "read-only file system",
    sees="status 125",
    keeps="nothing ran",
)
def test_a_read_only_store(sigwrap: Sigwrap, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    store = str(small_disk / "store")
    done = sigwrap.run("--store", store, "--", "touch", "ran")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"sigwrap: can't create the event log {store}/")
    assert line.endswith(
        ": Read-only file system (choose a writable directory with --store or $SIGWRAP_STORE)"
    )
    assert done.returncode == REFUSED
    assert not (sigwrap.folder / "ran").exists()


@pytest.mark.fault(
    "the clock",
    "the system clock jumps by a day or a year",
    sees="nothing; an approval request may show a wrong time of day",
    keeps="in order, with a true duration",
)
def test_the_clock_of_the_day_jumps(sigwrap: Sigwrap, compiled: Path) -> None:
    off = sigwrap.folder / "off"
    off.write_text("0")
    rule = "\n  - {name: ask, commands: [id], decision: approve}"
    words = ("-p", policy(sigwrap.folder, rule), "--approvals", "control", "--no-report", "--")
    text = "echo ready; read x; /bin/echo one; id -u; read x; /bin/echo two"
    shown = {"LD_PRELOAD": str(compiled / "other_clock"), "CLOCK_OFF": str(off)}
    process = sigwrap.start(*words, "sh", "-c", text, env=shown)
    said = reader(process.stdout)
    said.until(rb"ready\n")
    off.write_text("-86400")
    process.say(b"\n")
    assert said.line() == b"one"
    question = reader(process.stderr).until(rb"sigwrap approve [0-9a-f]+ ")
    off.write_text("31536000")
    approved = sigwrap.run("approve", question.split()[2].decode())
    assert approved.returncode == 0, approved.stderr
    assert said.line() == b"%d" % os.getuid()
    process.say(b"\n")
    assert said.line() == b"two"
    assert process.wait(PATIENCE_S) == 0
    (ended,) = sigwrap.sealed_events("session_ended")
    assert ended.payload["duration_ns"] < PATIENCE_S * 1e9
    times_s = [each.time_ns // 1_000_000_000 for each in sigwrap.events()]
    steps = {round((b - a) / 86_400) for a, b in pairwise(times_s)}
    assert steps == {0, -1, 366}
    assert sigwrap.run("report").returncode == 0


_EXECS = """
import os, sys
for size, count in ((65536, 1), (131071, 1), (131072, 1), (100_000, 100)):
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/bin/true", ["true"] + ["x" * size] * count)
        except OSError as failure:
            os._exit(failure.errno)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@pytest.mark.fault(
    "large calls",
    "arguments of 64 KiB, of 128 KiB, of 10 MB in all",
    sees="the first runs, the others fail with E2BIG, as natively",
    keeps="the exec, cut (`truncated`), with a digest",
)
@pytest.mark.fault(
    "large calls",
    "10,000 variables, half a megabyte",
    sees="as natively",
    keeps="the exec; variables are not logged",
)
def test_large_arguments_and_environments(as_user: Sigwrap) -> None:
    env = {f"VARIABLE_{number}": "x" * 40 for number in range(10_000)}
    native = as_user.native(*PYTHON, "-c", _EXECS, env=env)
    assert native.stdout == b"0\n0\n7\n7\n"
    done = as_user.run(*OBSERVE, "--", *PYTHON, "-c", _EXECS, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, native.stdout, b"")
    execs = [each.payload for each in as_user.sealed_events(*EXECS)]
    large = [each for each in execs if each["argv"][0] == "true"]
    assert all(each["truncated"] for each in large)
    assert max(len(json.dumps(each)) for each in execs) < 20_000


@pytest.mark.fault(
    "terminal and streams",
    "standard error is a full pipe",
    sees="no messages from sigwrap, and no delay",
    keeps="complete",
)
def test_a_full_pipe_of_what_nobody_reads(as_user: Sigwrap) -> None:
    rules = "\n  - {name: no, commands: [id], decision: deny}"
    as_user.policy = policy(as_user.folder, rules)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    try:
        done = as_user.run("--", "sh", "-c", "id 2>/dev/null; echo $?", stderr=writing)
        assert (done.returncode, done.stdout) == (0, b"126\n")
        assert as_user.run("--report", "--", "id", stderr=writing).returncode == 126
    finally:
        os.close(reading)
        os.close(writing)
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["rule_name"] == "no"


@pytest.mark.fault(
    "several sessions",
    "kill switch while sessions start",
    sees="each ends with 125; no process is left",
    keeps="complete",
)
def test_the_kill_switch_while_sessions_start(alone: Sigwrap) -> None:
    first = alone.start(*OBSERVE, "--", "sh", "-c", "echo ready; sleep 1000")
    reader(first.stdout).until(rb"ready")
    starting = [alone.start(*OBSERVE, "--", "sleep", "1000") for _ in range(4)]
    status, said = switch(alone, "on")
    assert status == 0, said
    late = alone.start(*OBSERVE, "--", "sleep", "1000")
    with Watch([each.pid for each in (first, *starting, late)]) as watch:
        watch.await_ends()
    assert [each.wait(PATIENCE_S) for each in (first, *starting, late)] == [REFUSED] * 6
    assert alone.alive() == []
