"""The last line of defence holds when its processes can open nothing any more: whoever could change
their limits would otherwise leave a process behind."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs
from tests.support.harness import REFUSED, Running, Sigwrap
from tests.support.processes import Roles, tree
from tests.support.waiting import PATIENCE_S, Watch, await_that, reader

# A daemon, one that ignores signals, and a chain below it.
LEAVES = (
    'setsid sh -c \'trap "" TERM HUP; sh -c "sleep 600; :" & echo here; wait\' & '
    "setsid sleep 600 & read x; exit 7"
)


def _start(subject: Sigwrap) -> tuple[Running, Roles, Watch]:
    process = subject.start("--no-report", "--", "sh", "-c", LEAVES)
    reader(process.stdout).until(rb"here")
    roles = Roles.of(process.pid)
    await_that(lambda: len(tree(roles.supervisor)) >= 6)
    return process, roles, Watch(tree(process.pid))


def _limit(subject: Sigwrap, open_files: int, *pids: int) -> None:
    """As its own user: root may lack the right to do it to others."""
    for pid in pids:
        line = ("prlimit", f"--pid={pid}", f"--nofile={open_files}:{open_files}")
        done = subject.native(*line)
        assert (done.returncode, done.stderr) == (0, b"")


def _nobody_is_left(subject: Sigwrap, watch: Watch) -> None:
    with watch:
        assert watch.unharmed == []
        watch.await_ends()
    assert subject.alive() == []


@pytest.mark.fault(
    "front process and supervisor",
    "neither process can open files at the end",
    sees="no process is left",
    keeps="what could be written",
)
def test_when_neither_can_open_anything(as_user: Sigwrap) -> None:
    process, roles, watch = _start(as_user)
    _limit(as_user, 3, roles.front, roles.supervisor)
    _, said = process.communicate(b"x\n", PATIENCE_S)
    assert process.returncode in (7, REFUSED), said
    assert b"Traceback" not in said
    _nobody_is_left(as_user, watch)


@pytest.mark.parametrize("victim", ["supervisor", "front"])
@pytest.mark.parametrize("open_files", [0, 3])
def test_when_the_other_is_killed_too(as_user: Sigwrap, open_files: int, victim: str) -> None:
    process, roles, watch = _start(as_user)
    _limit(as_user, open_files, roles.front if victim == "supervisor" else roles.supervisor)
    os.kill(getattr(roles, victim), signal.SIGKILL)
    _, said = process.communicate(b"", PATIENCE_S)
    assert b"Traceback" not in said
    with watch:
        if victim == "supervisor":
            assert (process.returncode, watch.unharmed) == (REFUSED, [])
        watch.await_ends()
    assert as_user.alive() == []


def test_two_interrupts_when_neither_can_open_anything(as_user: Sigwrap) -> None:
    process, roles, watch = _start(as_user)
    _limit(as_user, 0, roles.front, roles.supervisor)
    os.kill(roles.front, signal.SIGINT)
    os.kill(roles.front, signal.SIGTERM)
    process.communicate(None, PATIENCE_S)
    assert process.returncode in (130, REFUSED)
    _nobody_is_left(as_user, watch)


def test_one_that_outlives_sigkill_is_given_up_and_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits in the kernel for what doesn't come: here nobody sends it the signal."""
    monkeypatch.setattr(linux_process, "_GIVES_UP_AFTER_S", 3.0)
    child = os.fork()
    if child == 0:
        _sweep_with_one_left()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def _sweep_with_one_left() -> None:
    code = 1
    try:
        here, there = os.pipe()
        left, other = _sleeper(there), _sleeper(there)
        os.read(here, 2)
        really = linux_process.send

        def send(pid: int, signal_number: int) -> bool:
            return pid == left or really(pid, signal_number)

        linux_process.send = send
        reaped: list[int] = []
        sweep = linux_process.Sweep(lambda pid, _status: reaped.append(pid))
        assert sweep.run(timeout_s=PATIENCE_S)
        assert (sweep.unkillable, reaped) == ([left], [other])
        assert procfs.stat(left) is not None
        os.kill(left, signal.SIGKILL)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def _sleeper(ready: int) -> int:
    pid = os.fork()
    if pid == 0:
        os.write(ready, b"x")
        signal.pause()
        os._exit(0)
    return pid
