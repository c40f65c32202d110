"""What took effect is in the log: every exec, every signal, by every route, after any death."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.support.harness import EXECS, PYTHON, REFUSED, Sigwrap
from tests.support.processes import Roles
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, Reader, reader


@pytest.fixture
def sigwrap(sigwrap: Sigwrap) -> Sigwrap:
    """Nothing is denied but signals to sigwrap itself, so every route can be walked to its end."""
    sigwrap.policy = "agent-observe"
    return sigwrap


# Plain runs


@pytest.mark.promise("nothing unrecorded")
def test_every_exec_of_a_script_in_order(sigwrap: Sigwrap, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    text = "#!/bin/sh\ncd inner\n/bin/echo one 'two words' ''\nexec env true\n"
    script(tmp_path, "tool", text)
    assert sigwrap.run("--", "./tool", "x").returncode == 0
    execs = sigwrap.sealed_events(*EXECS)
    inner = str(tmp_path / "inner")
    seen = [(e.payload["path"], e.payload["argv"], e.payload["cwd"]) for e in execs]
    true = shutil.which("true")
    assert seen == [
        ("./tool", ["./tool", "x"], str(tmp_path)),
        ("/bin/echo", ["/bin/echo", "one", "two words", ""], inner),
        (shutil.which("env"), ["env", "true"], inner),
        (true, ["true"], inner),
    ]
    assert [e.payload["depth"] for e in execs] == [0, 1, 0, 0]
    command = sigwrap.events("session_started")[0].payload["command_pid"]
    assert [e.pid == command for e in execs] == [True, False, True, True]
    assert {e.payload["decision"] for e in execs} == {"audit"}


def test_names_that_try_to_forge_the_log(sigwrap: Sigwrap, tmp_path: Path) -> None:
    name = 'a\t1\t2\tsession_ended\n"}\x1b[2J\u202e'
    program = script(tmp_path, name, "#!/bin/sh\nkill -WINCH $$\n")
    assert sigwrap.run("--", program, name).returncode == 0
    (event,) = (e for e in sigwrap.sealed_events(*EXECS))
    assert event.payload["argv"] == [program, name]


def test_a_filter_of_the_trees_own_hides_nothing(sigwrap: Sigwrap, programs: Path) -> None:
    """It can allow, and it can refuse; it can't answer in our place."""
    done = sigwrap.run("--", *PYTHON, str(programs / "filters_itself.py"))
    assert done.returncode == 0, done.stderr
    assert b"filter 0 0\nlistener -1 16\n" in done.stdout
    assert [e.payload["argv"] for e in sigwrap.sealed_events(*EXECS)][1:] == [["hidden"]]
    names = [e.payload["signal_name"] for e in sigwrap.events("signal_sent")]
    assert names == ["SIGUSR1", "SIGKILL"]


# SIGKILL of the supervisor, at any moment


def _kill_meanwhile(sigwrap: Sigwrap, effects: Path, seed: int, victim: str) -> None:
    chance = random.Random(seed)
    count = chance.choice((chance.randrange(1, 20), chance.randrange(20, 500)))
    process = sigwrap.start("--", str(effects))
    said = reader(process.stdout)
    for _ in range(count):
        said.line()
    os.kill(getattr(Roles.of(process.pid), victim), signal.SIGKILL)
    said.rest()  # up to the last one's end: nobody runs on
    status = process.wait(PATIENCE_S)
    if victim == "supervisor":
        assert status == REFUSED
        line = Reader(process.stderr.fileno()).rest().decode()
        assert re.fullmatch(r"sigwrap: signal 9 killed the supervisor[^\n]*\n", line)
        sigwrap.verify(ended=False)
    recorded_execs: Counter[tuple[int, str]] = Counter()
    recorded_signals: Counter[int] = Counter()
    for event in sigwrap.events():
        if event.type in EXECS and len(event.payload["argv"]) == 4:
            recorded_execs[event.pid, event.payload["argv"][3]] += 1
        elif event.type == "signal_sent":
            recorded_signals[event.pid] += 1
    happened = [line.split() for line in said.seen.decode().splitlines()]
    assert len(happened) >= count
    for what, subject, number in happened:
        if what == "exec":
            assert recorded_execs[int(subject), number] == 1, f"exec {number} is not in the log"
        else:
            assert recorded_signals[int(subject)] == 1, f"signal {number} is not in the log"


@pytest.mark.fault(
    "front process and supervisor",
    "SIGKILL at any moment",
    sees="as above",
    keeps="all that took effect",
)
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, marks=pytest.mark.promise("nothing unrecorded")),
        *range(1, 15),
        *(pytest.param(seed, marks=pytest.mark.tier("all")) for seed in range(15, 50)),
    ],
)
def test_killed_at_any_moment_the_log_holds_what_happened(
    sigwrap: Sigwrap, compiled: Path, seed: int
) -> None:
    _kill_meanwhile(sigwrap, compiled / "effects", seed, "supervisor")


@pytest.mark.parametrize("victim", ["supervisor", "front"])
def test_the_same_for_any_user(as_user: Sigwrap, compiled: Path, victim: str) -> None:
    _kill_meanwhile(as_user, compiled / "effects", 1000, victim)
