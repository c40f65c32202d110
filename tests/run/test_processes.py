"""The table of processes, where the kernel's is a stand-in."""

from __future__ import annotations

import errno
import os

import pytest

from sigwrap.kernel import procfs
from sigwrap.session.processes import Processes
from tests.support.stand_in import session_of

SUPERVISOR = os.getpid()
COMMAND = 1_000_000  # beyond any real process
GENERATIONS = 5000


def place(monkeypatch: pytest.MonkeyPatch, parents: dict[int, int]) -> Processes:
    def stat(pid: int) -> procfs.Stat | None:
        if pid not in parents:
            return None
        return procfs.Stat(
            pid, "bash", "S", parents[pid], pid, pid, False, False, 1, pid, 0, (1, 2, 3)
        )

    def none_left(pid: int) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(procfs, "stat", stat)
    monkeypatch.setattr(os, "pidfd_open", none_left)
    table = Processes(session_of())
    table.adopt_command(COMMAND)
    return table


def test_a_chain_of_forks_that_nobody_has_seen_may_be_of_any_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parents = {COMMAND: SUPERVISOR}
    parents |= {COMMAND + n: COMMAND + n - 1 for n in range(1, GENERATIONS + 1)}
    last = place(monkeypatch, parents).of_thread(COMMAND + GENERATIONS)
    assert last is not None
    assert last.depth == GENERATIONS


def test_of_a_long_chain_from_outside_nobody_is_of_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parents = {COMMAND: SUPERVISOR, 2_000_000: 1}
    parents |= {2_000_000 + n: 2_000_000 + n - 1 for n in range(1, GENERATIONS + 1)}
    table = place(monkeypatch, parents)
    assert table.of_thread(2_000_000 + GENERATIONS) is None
    assert len(table) == 1


def test_a_process_that_can_t_be_watched_is_known_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Full:
        def register(self, *_: object) -> None:
            raise OSError(errno.ENOSPC, "no watches left")

    held = os.open("/", os.O_RDONLY)
    table = place(monkeypatch, {COMMAND: SUPERVISOR, COMMAND + 1: COMMAND})
    monkeypatch.setattr(os, "pidfd_open", lambda _pid: os.dup(held))
    monkeypatch.setattr(table, "ends", Full())
    before = len(os.listdir("/proc/self/fd"))
    found = table.of_thread(COMMAND + 1)
    assert found is not None and found.depth == 1
    assert table.has(COMMAND + 1) and table.held(COMMAND + 1) is None
    assert len(os.listdir("/proc/self/fd")) == before
    os.close(held)
