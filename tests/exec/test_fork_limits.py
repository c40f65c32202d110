"""`limits.at_fork`: no more processes than the policy says, whatever makes them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.backstop import Backstop
from tests.support.harness import INTERRUPTED, IS_BINARY, Sigwrap
from tests.support.policies import policy
from tests.support.programs import needs
from tests.support.waiting import PATIENCE_S, await_end, await_that, reader

BOMB_S = "2"
OWN = 3 + IS_BINARY  # processes of sigwrap itself, and the thread that writes a denial


def limited(sigwrap: Sigwrap, limits: str) -> str:
    return policy(sigwrap.folder, " []\n", f"limits: {{at_fork: true, {limits}}}")


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(as_user: Sigwrap, backstop: Backstop) -> Start:
    """Behind the kernel's own limit."""

    def run(limits: str, *words: str, grace: str = "10") -> subprocess.Popen[bytes]:
        line = as_user.line("--grace", grace, "--policy", limited(as_user, limits), "--", *words)
        return as_user.start_line([*backstop.words, *as_user.as_user(), *line])

    return run


@pytest.fixture
def forks(compiled: Path) -> str:
    return str(compiled / "forks")


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(b"", PATIENCE_S)
    return process.returncode, out, err


def refusals(sigwrap: Sigwrap, limit: str) -> int:
    """The first is an event, and further ones are another, with their number."""
    first, *further = sigwrap.sealed_events("limit_exceeded")
    payload = first.payload
    assert (payload["limit"], payload["effect"]) == (limit, "refused")
    assert "count" not in payload and len(further) <= 1
    more: int = sum(event.payload["count"] for event in further)
    return 1 + more


# Bombs


@pytest.mark.parametrize("way", ["fork", "beside", "clone32"])
def test_a_bomb_is_held_at_the_limit(
    as_user: Sigwrap, backstop: Backstop, start: Start, forks: str, way: str
) -> None:
    status, out, err = ended(start("max_processes: 12", forks, "bomb", way, "stays", BOMB_S))
    assert (status, out.split()) == (0, [b"begun", b"12"])
    assert err.splitlines() == [
        b"sigwrap: denied: forks: no new process: max_processes is 12 (rule limits.max_processes, "
        b"policy test). Do not work around this; tell the user."
    ]
    assert backstop.most_so_far() <= 12 + OWN
    assert refusals(as_user, "max_processes") > 1
    assert as_user.alive() == []


def test_who_waits_to_be_reaped_takes_up_room(as_user: Sigwrap, start: Start, forks: str) -> None:
    process = start("max_processes: 12", forks, "bomb", "fork", "ends", "1")
    assert ended(process)[1].split() == [b"begun", b"12"]
    refusals(as_user, "max_processes")


def test_clone3_is_not_there(start: Start, forks: str) -> None:
    """Its flags could be changed behind the filter's back."""
    for way in ("clone3", "clone3-32"):
        process = start("max_processes: 12", forks, "fill", way, "1")
        assert ended(process)[:2] == (0, b"0 ENOSYS\n")


def test_a_shells_bomb(as_user: Sigwrap, backstop: Backstop, start: Start) -> None:
    """A shell that may not fork tries again, and waits longer each time: it is interrupted.
    COMMAND stays meanwhile: its own children end at once, and it would with them."""
    stays = "while [ $SECONDS -lt 8 ]; do :; done"
    text = f"f() {{ [ $SECONDS -lt 8 ] || exit; f | f & }}; f; {stays}"
    process = start("max_processes: 12", "bash", "-c", text)
    assert b"no new process: max_processes is 12" in reader(process.stderr).until(rb"sigwrap.*\n")
    process.terminate()
    process.wait(PATIENCE_S)
    assert process.returncode == INTERRUPTED
    assert backstop.most_so_far() <= 12 + OWN
    refusals(as_user, "max_processes")
    assert as_user.alive() == []


def test_the_key_ends_a_bomb_that_does_not_want_to_end(
    as_user: Sigwrap, backstop: Backstop, forks: str
) -> None:
    words = (forks, "bomb", "fork", "stays", "60", "deaf")
    line = as_user.line("--policy", limited(as_user, "max_processes: 12"), "--", *words)
    terminal = as_user.terminal_for([*backstop.words, *as_user.as_user(), *line])
    terminal.output.until(rb"begun")
    await_that(lambda: bool(as_user.events("limit_exceeded")))
    terminal.press("C")
    await_that(lambda: bool(as_user.events("interrupt_received")))
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    await_end(terminal.pid)
    assert as_user.alive() == []
    refusals(as_user, "max_processes")


def test_a_chain_of_forks_is_held_and_ended(
    as_user: Sigwrap, backstop: Backstop, start: Start, forks: str
) -> None:
    """Each process forks once and ends: none is there for long."""
    process = start("max_processes: 12", forks, "churn", "4", grace="0.2")
    assert reader(process.stdout).line() == b"begun"
    process.terminate()
    assert process.wait(PATIENCE_S) == INTERRUPTED
    assert backstop.most_so_far() <= 12 + OWN
    assert as_user.alive() == []


# The other limits


def test_a_process_has_no_more_children_than_it_may(
    as_user: Sigwrap, start: Start, forks: str
) -> None:
    ways = ("fork", "clone", "fork32", "clone32")
    text = "\n".join(f"{forks} fill {way} 20" for way in ways)
    status, out, _ = ended(start("max_children: 7", "sh", "-c", text))
    assert (status, out) == (0, b"7 EAGAIN\n" * len(ways))
    assert refusals(as_user, "max_children") == len(ways)


# What people do


def test_threads_are_not_counted(as_user: Sigwrap, start: Start, forks: str) -> None:
    process = start("max_processes: 3, max_children: 3", forks, "threads", "50")
    assert ended(process)[:2] == (0, b"50\n")
    assert as_user.sealed_events("limit_exceeded") == []


def test_posix_spawn_and_vfork(as_user: Sigwrap, start: Start, forks: str) -> None:
    """One at a time, so one more than COMMAND is enough."""
    process = start("max_processes: 2, max_children: 1", forks, "spawn", "100")
    assert ended(process)[:2] == (0, b"200\n")
    assert as_user.sealed_events("limit_exceeded") == []


@needs("dash")
def test_a_shell_that_handles_sigchld_can_fork(start: Start) -> None:
    """Without SA_RESTART, as dash does: a child that ends while the next fork waits for the
    supervisor must not make it fail."""
    loop = (
        "i=0; while [ $i -lt 40 ]; do echo a | cat | tr a b >/dev/null; i=$((i+1)); done; echo $i"
    )
    process = start("max_processes: 50", "dash", "-c", loop)
    assert ended(process) == (0, b"40\n", b"")
