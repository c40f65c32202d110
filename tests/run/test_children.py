"""What wait(2) has told, where the rest is a stand-in."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.session.ending import Children
from sigwrap.session.loop import Loop
from tests.support.stand_in import session_of

MOST_AT_ONCE = 64  # in exec/_repeated.c as well


def test_who_reads_the_signal_of_many_ends_may_leave_some(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_child(*_: int) -> None:
        raise ChildProcessError

    monkeypatch.setattr(os, "waitpid", no_child)
    ends: list[int] = []
    was_over: list[bool] = []
    ending: Any = SimpleNamespace(
        reaped=lambda pid, status: ends.append(pid),
        no_child_is_left=lambda: was_over.append(True),
    )
    loop = Loop()
    signals = SimpleNamespace(fd=os.eventfd(0))
    children = Children(
        session_of(command_pid=1, mediation=None, ending=ending, loop=loop, child_signals=signals)
    )
    children.on_waited([(pid, 0) for pid in range(2, MOST_AT_ONCE + 1)])
    loop.turn(0)
    assert not was_over
    children.on_waited([(pid, 0) for pid in range(2, MOST_AT_ONCE + 2)])
    loop.turn(0)
    assert was_over == [True]  # it has looked
    assert len(ends) == 2 * MOST_AT_ONCE - 1
    os.close(signals.fd)
