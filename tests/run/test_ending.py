"""The waits of a run's end, on a loop that keeps its calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.kernel import process as linux_process
from sigwrap.session.ending import Ending
from sigwrap.session.run_end import LimitReached
from tests.support.stand_in import Anything, session_of

COMMAND = 40


class Calls(Anything):
    def __init__(self) -> None:
        self.later: list[Callable[[], None]] = []

    def call_in(self, _seconds: float, call: Callable[..., None], *words: Any) -> None:
        self.later.append(partial(call, *words))


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    happened: list[str] = []

    def kill(*_words: Any, **_named: Any) -> bool:
        happened.append("killed")
        return True

    monkeypatch.setattr(linux_process, "send", lambda *_words: True)
    monkeypatch.setattr(linux_process, "descendants", lambda _pid: [41, 42])
    monkeypatch.setattr(linux_process.Sweep, "run", kill)
    return happened


def ending_on(loop: Calls, usage: Any = None) -> Ending:
    settings = SimpleNamespace(grace_s=10.0)
    return Ending(session_of(command_pid=COMMAND, settings=settings, loop=loop, usage=usage))


def test_what_command_leaves_has_a_grace_of_its_own(killed: list[str]) -> None:
    """COMMAND may end when nearly all of its time to end is over."""
    loop = Calls()
    ending = ending_on(loop)
    ending.run.limit_reached(LimitReached("wall_time", 1, "wall_time: 1 s are over"))
    ending.reaped(COMMAND, 0)
    of_command, of_what_it_left = loop.later
    of_command()
    assert killed == []
    of_what_it_left()
    assert killed == ["killed"]


def test_a_command_that_stays_is_killed_after_its_grace(killed: list[str]) -> None:
    loop = Calls()
    ending_on(loop).run.limit_reached(LimitReached("wall_time", 1, "wall_time: 1 s are over"))
    loop.later.pop()()
    assert killed == ["killed"]


def test_a_limit_that_ended_command_is_why_the_run_ended(killed: list[str]) -> None:
    """As where the kernel killed it for want of memory."""
    reached = LimitReached("memory", 1, "memory: the kernel killed a process")
    ending = ending_on(Calls(), SimpleNamespace(limit_at_end=lambda: reached))
    ending.reaped(COMMAND, 9)
    ending.run.no_process_is_left()
    assert ending.run.result()[::2] == (124, reached.why)
