"""However a run ends, nothing of its tree remains, not even a zombie. What is not dead when sigwrap
ends has been killed by then, unless it was the front process that was killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, PYTHON, REFUSED, Sigwrap
from tests.support.processes import Roles, tree
from tests.support.waiting import PATIENCE_S, Watch, await_state, await_that, reader

KINDS = 8
Start = Callable[..., tuple[int, Watch, Callable[[], int]]]


@pytest.fixture
def start_tree(programs: Path) -> Start:
    def start(sigwrap: Sigwrap, how: str, *options: str) -> tuple[int, Watch, Callable[[], int]]:
        process = sigwrap.start(*options, "--", *PYTHON, str(programs / "tree.py"), how)
        said = reader(process.stdout)
        for _ in range(KINDS):
            said.until(rb"here [^\n]*\n")
        watch = Watch(tree(process.pid))
        assert len(watch.processes) >= KINDS + 3
        if how == "leaves":
            process.say(b"x")
        return process.pid, watch, lambda: process.wait(PATIENCE_S)

    return start


def _nobody_is_left(sigwrap: Sigwrap, watch: Watch, *, at_once: bool = True) -> None:
    with watch:
        if at_once:
            assert watch.unharmed == []
        watch.await_ends()
        # What was left to init is reaped when init gets to it.
        await_that(lambda: not watch.zombies)
    assert sigwrap.alive() == []


@pytest.mark.parametrize(
    ("how", "signals", "status"),
    [
        pytest.param("leaves", [], 7, id="after COMMAND's own end"),
        pytest.param("stays", [signal.SIGTERM], 130, id="after an interrupt and the grace"),
        pytest.param("leaderless", [signal.SIGTERM], 130, id="of threads whose first has ended"),
        pytest.param("deaf", [signal.SIGINT, signal.SIGTERM], 130, id="after two interrupts"),
    ],
)
def test_after_an_end_of_any_kind(
    sigwrap: Sigwrap, start_tree: Start, how: str, signals: list[signal.Signals], status: int
) -> None:
    options = [] if how == "deaf" else ["--grace", "0.2"]
    pid, watch, end = start_tree(sigwrap, how, *options)
    for number in signals:
        os.kill(pid, number)
    assert end() == status
    _nobody_is_left(sigwrap, watch)
    sigwrap.verify(ended=True)


def test_after_the_death_of_command(sigwrap: Sigwrap, start_tree: Start) -> None:
    _, watch, end = start_tree(sigwrap, "stays")
    os.kill(sigwrap.command_pid(), signal.SIGKILL)
    assert end() == 128 + signal.SIGKILL
    _nobody_is_left(sigwrap, watch)


@pytest.mark.fault(
    "front process and supervisor",
    "SIGKILL to the front process",
    sees="the caller sees it killed; no process is left",
    keeps="complete",
)
def test_after_the_front_was_killed(as_user: Sigwrap, start_tree: Start) -> None:
    pid, watch, end = start_tree(as_user, "stays")
    os.kill(Roles.of(pid).front, signal.SIGKILL)
    end()
    _nobody_is_left(as_user, watch, at_once=False)
    as_user.verify(ended=True)  # the supervisor lived to seal it


@pytest.mark.fault(
    "front process and supervisor",
    "SIGKILL to the supervisor",
    sees="status 125; no process is left",
    keeps="intact up to then, without an end",
)
@pytest.mark.promise("no process outlives sigwrap")
def test_after_the_supervisor_was_killed(as_user: Sigwrap, start_tree: Start) -> None:
    pid, watch, end = start_tree(as_user, "stays")
    os.kill(Roles.of(pid).supervisor, signal.SIGKILL)
    assert end() == REFUSED
    _nobody_is_left(as_user, watch)
    as_user.verify(ended=False)


@pytest.mark.fault(
    "front process and supervisor",
    "SIGKILL to both, the supervisor stopped before",
    sees="the command dies; processes that it left behind can stay",
    keeps="intact up to then, without an end",
)
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
        watch.await_ends()


@pytest.mark.parametrize("step", ["fork", "setsid"])
@pytest.mark.parametrize("victim", ["front", "supervisor"])
def test_a_chain_of_forks_does_not_escape(
    sigwrap: Sigwrap, victim: str, step: str, programs: Path
) -> None:
    process = sigwrap.start("--", *PYTHON, str(programs / "fork_chain.py"), step)
    said = reader(process.stdout)
    said.until(rb"ready")
    roles = Roles.of(process.pid)
    process.say(b"x")
    said.until(rb"here")
    os.kill(getattr(roles, victim), signal.SIGKILL)
    process.wait(PATIENCE_S)
    assert b"survived" not in said.rest()
    await_that(lambda: sigwrap.alive() == [])


def test_leftovers_are_asked_first_and_a_stopped_one_as_well(
    sigwrap: Sigwrap, tmp_path: Path
) -> None:
    polite = tmp_path / "polite"
    polite.write_text(
        f"trap 'echo asked >>{tmp_path}/asked; exit' TERM; echo $1 $$.\n"
        "[ $1 = waits ] || kill -STOP $$\nsleep 600 & wait\n"
    )
    text = f"for how in waits stops; do sh {polite} $how & done; read x"
    process = sigwrap.start("--", "sh", "-c", text)
    said = reader(process.stdout)
    said.until(rb"\d+\.\n\w+ \d+\.\n")
    pids = dict(line.rstrip(b".").split() for line in said.seen.splitlines())
    await_state(int(pids[b"stops"]), "T")
    watch = Watch(tree(process.pid))
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0
    assert (tmp_path / "asked").read_text() == "asked\n" * 2
    _nobody_is_left(sigwrap, watch)


@pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")
@pytest.mark.parametrize("victim", ["outer", "supervisor"])
def test_the_binary_leaves_no_folder_behind(
    sigwrap: Sigwrap, start_tree: Start, victim: str
) -> None:
    assert sigwrap.run("--", "ls").stdout.startswith(b"_MEI")
    pid, watch, end = start_tree(sigwrap, "stays")
    roles = Roles.of(pid)
    assert roles.front != pid
    os.kill(pid if victim == "outer" else roles.supervisor, signal.SIGKILL)
    end()
    _nobody_is_left(sigwrap, watch, at_once=victim == "supervisor")
    assert [path.name for path in sigwrap.folder.glob("_MEI*")] == []


def test_a_start_that_fails_leaves_no_child_that_waits_for_orders(as_user: Sigwrap) -> None:
    assert as_user.run("-p", "missing", "--", "true").returncode == REFUSED
    assert as_user.alive() == []
