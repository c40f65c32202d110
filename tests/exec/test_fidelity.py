"""A replacement stands in for the original in every way: status, streams, terminal.

SIGWRAP_TRANSFER_MB lengthens the transfers (1024 for a thorough run; -rP shows the throughput)."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from sigwrap.linux import procfs
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.processes import tree
from tests.support.programs import needs, script
from tests.support.waiting import PATIENCE_S, await_state

TRANSFER_MB = int(os.environ.get("SIGWRAP_TRANSFER_MB", "1"))
TRANSFER_S = PATIENCE_S + TRANSFER_MB / 20
BLOCK = bytes(range(256)) * 4096  # 1 MiB, every byte value


@pytest.fixture(params=["exec", "stub"])
def standing_in(sigwrap: Sigwrap, request: pytest.FixtureRequest) -> Sigwrap:
    """`tool` becomes `replacement`, `more` becomes `less`, and so on; arguments are kept."""
    folder = sigwrap.folder
    script(folder, "tool", "#!/bin/sh\necho the original\n")
    script(folder, "replacement", '#!/bin/sh\neval "$1"\n')
    rules = "".join(
        f"""
  - {{name: {name}, commands: [{name}], decision: redirect,
     redirect_to: {{command: {command}, append_args: true, via: {request.param}}}}}"""
        for name, command in {"tool": f"{folder}/replacement", "more": "less"}.items()
    )
    policy(folder, rules + "\n")
    sigwrap.policy = str(folder / "policy.yaml")
    return sigwrap


def test_its_status(standing_in: Sigwrap) -> None:
    text = 'for status in 0 1 42 126 127 255; do ./tool "exit $status"; echo $?; done'
    done = standing_in.run("--", "sh", "-c", text)
    assert (done.stdout, done.stderr) == (b"0\n1\n42\n126\n127\n255\n", b"")
    assert standing_in.run("--", "./tool", "exit 42").returncode == 42


def test_its_death_by_a_signal(standing_in: Sigwrap, programs: Path) -> None:
    names = ("TERM", "KILL", "INT", "SEGV", "USR1")
    done = standing_in.run("--", *PYTHON, str(programs / "dies_of.py"), *names)
    assert done.stdout.split() == [b"%d" % -signal.Signals[f"SIG{name}"] for name in names]


def test_a_signal_to_it(standing_in: Sigwrap, programs: Path) -> None:
    """By the id that its parent knows it by."""
    assert standing_in.run("--", *PYTHON, str(programs / "terminates_it.py")).stdout == b"told 5\n"


@pytest.mark.tier("all")
def test_the_order_of_its_lines(standing_in: Sigwrap) -> None:
    tool = "i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i + 1)); done"
    done = standing_in.run("--", "sh", "-c", 'exec 2>&1; ./tool "$1"', "sh", tool)
    assert done.stdout == b"".join(b"out %d\nerr %d\n" % (i, i) for i in range(500))


def test_the_end_of_its_input(standing_in: Sigwrap) -> None:
    """It comes when the writer closes, and not before."""
    process = standing_in.start("--", "./tool", "echo err >&2; cat; echo over")
    process.say(b"first\n")
    assert process.stdout.readline() == b"first\n"
    process.stdin.close()
    assert (process.stdout.read(), process.stderr.read()) == (b"over\n", b"err\n")
    assert process.wait(PATIENCE_S) == 0
    assert standing_in.run("--", "sh", "-c", "./tool cat </dev/null; echo $?").stdout == b"0\n"


def test_a_reader_that_leaves(standing_in: Sigwrap) -> None:
    done = standing_in.run("--", "bash", "-c", "./tool yes | head -1; echo ${PIPESTATUS[0]}")
    assert done.stdout == b"y\n141\n"


@pytest.mark.tier("all")
@pytest.mark.parametrize("direction", ["out", "in"])
def test_many_bytes(standing_in: Sigwrap, direction: str, programs: Path) -> None:
    digest = hashlib.sha256()
    for _ in range(TRANSFER_MB):
        digest.update(BLOCK)
    write = f"{' '.join(PYTHON)} {programs}/write.py {TRANSFER_MB}"
    text, native = {
        "out": (f"./tool '{write}' | sha256sum", f"{write} | sha256sum"),
        "in": (f"{write} | ./tool sha256sum", f"{write} | sha256sum"),
    }[direction]
    took = []
    for run, line in (
        (standing_in.native, ("sh", "-c", native)),
        (standing_in.run, ("--", "sh", "-c", text)),
    ):
        started = time.monotonic()
        done = run(*line, within_s=TRANSFER_S)
        took.append(time.monotonic() - started)
        assert done.stdout.split()[:1] == [digest.hexdigest().encode()]
    speeds = " against ".join(f"{TRANSFER_MB / each:.0f}" for each in reversed(took))
    sys.stdout.write(f"{direction}: {speeds} MiB/s natively\n")


@needs("less")
def test_a_pager_keeps_the_terminal(standing_in: Sigwrap) -> None:
    """Its keys, its size, Ctrl+Z and fg."""
    text = standing_in.folder / "text"
    text.write_text("".join(f"line-{number}.\n" for number in range(1, 200)))
    script(standing_in.folder, "more", "#!/bin/sh\necho the original\n")
    terminal = standing_in.on_terminal(
        "--no-report", "--", "./more", str(text), env={"TERM": "vt100"}
    )
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
    assert len(standing_in.sealed_events("exec_redirected")) == 1


@pytest.mark.tier("all")
def test_a_full_screen_program(standing_in: Sigwrap, programs: Path) -> None:
    """Every key is its own, Ctrl+C and Ctrl+Z too, and it hears of every size."""
    tool = f"exec {' '.join(PYTHON)} {programs}/edit.py"
    terminal = standing_in.on_terminal("--no-report", "--", "./tool", tool)
    terminal.output.until(rb"size-\d+x\d+\.")
    for rows, columns in ((20, 60), (31, 77)):
        terminal.resize(rows, columns)
        terminal.output.until(b"size-%dx%d" % (rows, columns))
    for key in "cz":
        terminal.press(key)
        terminal.output.until(b"key-%d" % (ord(key) - ord("a") + 1))
    terminal.type("q")
    assert terminal.await_status() == 0
