"""However a run ends, within a second nothing of its tree remains, not even a zombie."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, PYTHON, REFUSED, Sigwrap
from tests.support.processes import Roles, tree
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, Pipe, Watch, await_state, await_that, reader

# Children of every kind, each of which says that it is there; all ignore what they can.
TREE = """
import os, signal, sys
def stay(name):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, b"here %s\\n" % name)
    while True:
        signal.pause()
def child(name, *steps):
    if os.fork() == 0:
        for step in steps:
            step()
        stay(name)
def again():
    if os.fork():
        os._exit(0)
def bare():
    os.environ.clear()
    os.execve("/bin/sh", ["sh", "-c", "trap '' TERM INT HUP; echo here bare; read x <&9"], {})
def zombie():
    if os.fork() == 0:
        os._exit(0)
def stopped():
    os.write(1, b"here stopped\\n")
    os.kill(os.getpid(), signal.SIGSTOP)
r, w = os.pipe()
os.dup2(r, 9)
child(b"child")
child(b"setsid", os.setsid)
child(b"daemon", again, os.setsid, again)
child(b"group", lambda: os.setpgid(0, 0))
child(b"deep", *[again] * 5)
child(b"with zombie", zombie)
child(b"bare", bare)
child(b"x", stopped)
"""
KINDS = 8
STAYING = TREE + "\nimport select\nselect.select([], [], [])\n"
LEAVING = TREE + "\nos.read(0, 1)\nos._exit(7)\n"


def _start_tree(sigwrap: Sigwrap, text: str, *options: str) -> tuple[int, Watch, Callable[[], int]]:
    process = sigwrap.start(*options, "--", *PYTHON, "-c", text)
    said = reader(process.stdout)
    for _ in range(KINDS):
        said.until(rb"here [^\n]*\n")
    watch = Watch(tree(process.pid))
    assert len(watch.processes) >= KINDS + 3

    def end() -> int:
        return process.wait(PATIENCE_S)

    if process.stdin is not None and text is LEAVING:
        process.stdin.write(b"x")
        process.stdin.flush()
    return process.pid, watch, end


def _nobody_is_left(sigwrap: Sigwrap, watch: Watch, within_s: float = 1.0) -> None:
    with watch:
        watch.await_ends(within_s)
        # What was left to init is reaped when init gets to it.
        await_that(lambda: not watch.zombies)
    assert sigwrap.alive() == []


def test_after_commands_own_end(as_user: Sigwrap) -> None:
    _, watch, end = _start_tree(as_user, LEAVING)
    assert end() == 7
    _nobody_is_left(as_user, watch)
    as_user.verify(ended=True)


def test_after_the_death_of_command(sigwrap: Sigwrap) -> None:
    _, watch, end = _start_tree(sigwrap, STAYING)
    os.kill(sigwrap.events("session_started")[0].payload["command_pid"], signal.SIGKILL)
    assert end() == 128 + signal.SIGKILL
    _nobody_is_left(sigwrap, watch)
    sigwrap.verify(ended=True)


def test_after_the_front_was_killed(as_user: Sigwrap) -> None:
    pid, watch, end = _start_tree(as_user, STAYING)
    os.kill(Roles.of(pid).front, signal.SIGKILL)
    end()
    _nobody_is_left(as_user, watch)
    as_user.verify(ended=True)  # the supervisor lived to seal it


def test_after_the_supervisor_was_killed(as_user: Sigwrap) -> None:
    pid, watch, end = _start_tree(as_user, STAYING)
    os.kill(Roles.of(pid).supervisor, signal.SIGKILL)
    assert end() == REFUSED
    _nobody_is_left(as_user, watch)
    as_user.verify(ended=False)


def test_after_front_and_supervisor_were_killed(sigwrap: Sigwrap) -> None:
    """Nobody is left to end the tree but the kernel: COMMAND dies with its parent. What left
    COMMAND behind before can't be reached then; the test demands COMMAND's own end."""
    process = sigwrap.start("--", "sh", "-c", "echo ready; exec cat")
    reader(process.stdout).until(rb"ready")
    roles = Roles.of(process.pid)
    watch = Watch(tree(process.pid))
    os.kill(roles.supervisor, signal.SIGSTOP)
    os.kill(roles.front, signal.SIGKILL)
    os.kill(roles.supervisor, signal.SIGKILL)
    process.wait(PATIENCE_S)
    with watch:
        watch.await_ends(1.0)


def test_after_an_interrupt_and_the_grace(as_user: Sigwrap) -> None:
    pid, watch, end = _start_tree(as_user, STAYING, "--grace", "0.2")
    os.kill(pid, signal.SIGTERM)
    assert end() == 130
    _nobody_is_left(as_user, watch)
    as_user.verify(ended=True)


def test_after_two_interrupts(sigwrap: Sigwrap) -> None:
    pid, watch, end = _start_tree(sigwrap, STAYING.replace("import select\n", STUBBORN, 1))
    os.kill(pid, signal.SIGINT)
    os.kill(pid, signal.SIGTERM)
    assert end() == 130
    _nobody_is_left(sigwrap, watch)
    sigwrap.verify(ended=True)


STUBBORN = "import select; [signal.signal(n, signal.SIG_IGN) for n in (2, 15)]\n"


# A process that is gone, with a child in its place, before anybody has read its name in /proc. It
# ends by itself after so many generations: the machine is shared.
RELAY = """
import os
os.write(1, b"ready\\n")
os.read(0, 1)
os.write(1, b"here\\n")
os.fork()
for _ in range(4000):
    if os.fork():
        os._exit(0)
    {step}
os.write(1, b"survived\\n")
"""


@pytest.mark.parametrize("step", ["pass", "os.setsid()"])
@pytest.mark.parametrize("victim", ["front", "supervisor"])
def test_a_relay_of_forks_does_not_escape(sigwrap: Sigwrap, victim: str, step: str) -> None:
    process = sigwrap.start("--", *PYTHON, "-c", RELAY.format(step=step))
    said = reader(process.stdout)
    said.until(rb"ready")
    roles = Roles.of(process.pid)
    assert process.stdin is not None
    process.stdin.write(b"x")
    process.stdin.flush()
    said.until(rb"here")
    os.kill(getattr(roles, victim), signal.SIGKILL)
    process.wait(PATIENCE_S)
    assert b"survived" not in said.rest()
    await_that(lambda: sigwrap.alive() == [])


def test_leftovers_are_asked_first(sigwrap: Sigwrap, tmp_path: Path) -> None:
    polite = script(
        tmp_path,
        "polite",
        f"#!/bin/sh\ntrap 'echo asked >{tmp_path}/asked; exit' TERM\necho here\nsleep 600 & wait\n",
    )
    text = f"setsid {polite} & read x"
    process = sigwrap.start("--", "sh", "-c", text)
    reader(process.stdout).until(rb"here")
    watch = Watch(tree(process.pid))
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0
    assert (tmp_path / "asked").read_text() == "asked\n"
    _nobody_is_left(sigwrap, watch)


def test_a_stopped_leftover_is_asked_too(sigwrap: Sigwrap, tmp_path: Path) -> None:
    polite = f"trap 'echo asked >{tmp_path}/asked; exit' TERM; echo here $$.; kill -STOP $$"
    process = sigwrap.start(
        "--", "sh", "-c", f'sh -c "{polite.replace("$", chr(92) + "$")}" & read x'
    )
    said = reader(process.stdout).until(rb"here \d+\.")
    await_state(int(said.split()[-1][:-1]), "T")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_the_callers_pipe_ends_with_us(sigwrap: Sigwrap) -> None:
    """A daemon that keeps the caller's stderr open would make it wait for ever."""
    with Pipe() as pipe:
        text = "setsid sh -c 'echo here; exec tail -f /dev/null' & read x"
        process = sigwrap.start("--", "sh", "-c", text, stderr=pipe.writing)
        pipe.let_go()
        reader(process.stdout).until(rb"here")
        process.communicate(b"\n", PATIENCE_S)
        assert pipe.rest() == b""


def test_a_tree_that_ends_by_itself_leaves_a_quick_end(sigwrap: Sigwrap) -> None:
    done = sigwrap.run("--", "sh", "-c", "for i in 1 2 3; do (true &) ; done; exit 4")
    assert done.returncode == 4


def test_a_process_that_outlives_command_only_by_its_threads(sigwrap: Sigwrap) -> None:
    text = """
import ctypes, os, threading
libc = ctypes.CDLL(None)
def stay():
    os.write(1, b"here\\n")
    threading.Event().wait()
threading.Thread(target=stay).start()
libc.syscall(60, 0)  # exit of this thread, not of the process
"""
    process = sigwrap.start("--grace", "0.2", "--", *PYTHON, "-c", text)
    reader(process.stdout).until(rb"here")
    watch = Watch(tree(process.pid))
    process.terminate()
    assert process.wait(PATIENCE_S) == 130
    _nobody_is_left(sigwrap, watch)


@pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")
def test_after_the_binarys_outer_process_was_killed(sigwrap: Sigwrap) -> None:
    pid, watch, end = _start_tree(sigwrap, STAYING)
    assert Roles.of(pid).front != pid
    os.kill(pid, signal.SIGKILL)
    end()
    _nobody_is_left(sigwrap, watch)
    assert [path.name for path in sigwrap.folder.glob("_MEI*")] == []


@pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")
def test_the_binary_leaves_no_folder_behind(sigwrap: Sigwrap) -> None:
    sigwrap.run("--", "true")
    assert [path.name for path in sigwrap.folder.glob("_MEI*")] == []
    pid, watch, end = _start_tree(sigwrap, STAYING)
    os.kill(Roles.of(pid).supervisor, signal.SIGKILL)
    end()
    _nobody_is_left(sigwrap, watch)
    assert [path.name for path in sigwrap.folder.glob("_MEI*")] == []
