"""An exec that can't be held, as it looks from outside."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.linux.execs.tracing import Where
from sigwrap.mediate.effects import LoadedOther, Ran
from sigwrap.run.execs import unheld
from sigwrap.run.execs.turns import Turns
from sigwrap.run.execs.unheld import Unheld
from tests.support.stand_in import session_of

PID, TID, OTHER_TID = 4000, 4000, 4001
BEFORE, LOADED = ("sh", (1,), b"sh\0"), ("ls", (2,), b"ls\0")


class Watched:
    """A process, and what became of its mediators."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state: Any = self.as_state(BEFORE)
        self.in_exec = True
        self.problem = ""
        self.where = Where.UNDERWAY
        self.meanwhile = 0
        self.outcomes: list[object] = []
        self.killed: list[int] = []
        self.later: list[Callable[[], None]] = []
        self.process: Any = SimpleNamespace(pid=PID, start_time=7)
        self.scope: Any = SimpleNamespace(tid=TID, process=self.process)
        self.stat = SimpleNamespace(has_ended=False, start_time=7)
        image = SimpleNamespace(
            state=lambda _pid, _judged: self.state,
            file=lambda _pid: None if self.state is None else self.state.file,
            difference=lambda _pid, _judged, **_options: self.problem,
            shown=lambda _pid: ("/bin/other", ("other",)),
        )
        monkeypatch.setattr(unheld, "image", image)
        monkeypatch.setattr("sigwrap.linux.procfs.stat", lambda _pid: self.stat)
        monkeypatch.setattr(unheld, "_may_be_in_an_exec", lambda _pid, _tid: self.in_exec)
        monkeypatch.setattr("os.kill", lambda pid, _number: self.killed.append(pid))
        monkeypatch.setattr(unheld, "where", lambda _pid, _tid: self.where)
        monkeypatch.setattr(unheld, "_MOST_EXECS_TAKE_NS", 0)
        performer: Any = SimpleNamespace(
            resume=lambda _scope, outcome: self.outcomes.append(outcome),
            drop=lambda _scope: self.outcomes.append("dropped"),
        )
        loop = SimpleNamespace(call_at=lambda _at, call: self.later.append(call))
        self.turns = Turns()
        mediation: Any = SimpleNamespace(performer=performer)
        self.subject = Unheld(session_of(loop=loop), mediation, self.turns)

    @staticmethod
    def as_state(seen: tuple[str, tuple[int, ...], bytes]) -> Any:
        return SimpleNamespace(file=seen[0], layout=seen[1], line=seen[2], is_half_loaded=False)

    def goes_on(self, *, held: bool = False) -> None:
        judged: Any = SimpleNamespace(is_read_slowly=lambda: False, verified_image=None)
        self.subject.go_on(self.scope, judged, lambda: None, self._wait if held else None)

    def _wait(self) -> None:
        self.meanwhile += 1

    def loads(self, problem: str = "") -> None:
        self.state, self.problem = self.as_state(LOADED), problem

    def a_while_passes(self) -> None:
        later, self.later = self.later, []
        for call in later:
            call()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_the_right_program_is_let_run(watched: Watched) -> None:
    watched.goes_on()
    watched.a_while_passes()
    assert watched.outcomes == []
    watched.loads()
    watched.a_while_passes()
    assert (watched.outcomes, watched.killed, watched.later) == ([Ran()], [], [])


def test_other_threads_have_to_wait_until_it_is_over(watched: Watched) -> None:
    watched.goes_on()
    assert watched.turns.is_taken(watched.process)
    watched.turns.put_off(watched.process, lambda: watched.outcomes.append("another"))
    watched.loads()
    watched.a_while_passes()
    assert watched.outcomes == [Ran(), "another"]
    assert not watched.turns.is_taken(watched.process)


@pytest.mark.parametrize("problem", ["", "the kernel loaded another file"])
def test_whose_tracer_stands_is_compared_where_it_stops(watched: Watched, problem: str) -> None:
    """Before, whatever it looks like is its own doing."""
    watched.goes_on(held=True)
    watched.loads(problem)
    watched.a_while_passes()
    assert (watched.outcomes, watched.meanwhile) == ([], 1)
    watched.where = Where.LOADED
    watched.a_while_passes()
    (outcome,) = watched.outcomes
    if problem:
        assert isinstance(outcome, LoadedOther) and outcome.problem == problem
    assert watched.killed == ([PID] if problem else [])


@pytest.mark.parametrize(("where", "outcome"), [(Where.FAILED, Ran()), (Where.ENDED, "dropped")])
def test_whose_tracer_stands_may_load_nothing(
    watched: Watched, where: Where, outcome: object
) -> None:
    watched.goes_on(held=True)
    watched.where = where
    watched.a_while_passes()
    assert (watched.outcomes, watched.later) == ([outcome], [])


def test_no_tracer_stands_for_ever(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unheld, "_STANDS_AT_MOST_S", -1.0)
    watched.goes_on(held=True)
    watched.a_while_passes()
    (outcome,) = watched.outcomes
    assert isinstance(outcome, LoadedOther) and "too long" in outcome.problem
    assert watched.killed == [PID]


def test_another_is_killed_and_it_is_said_that_it_may_have_run(watched: Watched) -> None:
    watched.goes_on()
    watched.loads("the kernel loaded another file")
    watched.a_while_passes()
    (outcome,) = watched.outcomes
    assert isinstance(outcome, LoadedOther) and "may have run" in outcome.problem
    assert outcome.path == "/bin/other"
    assert watched.killed == [PID]


def test_who_loses_its_tracer_is_killed(watched: Watched) -> None:
    watched.goes_on()
    watched.subject.is_lost(watched.scope)
    (outcome,) = watched.outcomes
    assert isinstance(outcome, LoadedOther) and "tracer ended" in outcome.problem
    assert watched.killed == [PID]
    watched.subject.is_lost(watched.scope)
    watched.a_while_passes()
    assert watched.killed == [PID]


def test_an_exec_that_failed_is_over_when_its_thread_does_something_else(watched: Watched) -> None:
    watched.goes_on()
    watched.in_exec = False
    watched.a_while_passes()
    assert (watched.outcomes, watched.later) == ([Ran()], [])


@pytest.mark.parametrize("problem", ["", "the kernel loaded another file"])
def test_what_asks_for_its_next_exec_is_looked_at_before(watched: Watched, problem: str) -> None:
    watched.goes_on()
    watched.loads(problem)
    assert watched.subject.is_other(watched.process, TID) is bool(problem)
    assert len(watched.outcomes) == 1
    assert not watched.subject.is_other(watched.process, TID)
    watched.a_while_passes()
    assert len(watched.outcomes) == 1


def test_whoever_asks_again_has_failed_before(watched: Watched) -> None:
    watched.goes_on()
    assert not watched.subject.is_other(watched.process, OTHER_TID)
    assert watched.outcomes == []
    assert not watched.subject.is_other(watched.process, TID)
    assert watched.outcomes == [Ran()]


def test_what_is_about_to_end_has_loaded_nothing(watched: Watched) -> None:
    watched.goes_on()
    watched.state = None
    watched.a_while_passes()
    assert (watched.outcomes, watched.killed) == ([], [])
    watched.process.start_time = 8  # its id is another's
    watched.a_while_passes()
    assert watched.outcomes == ["dropped"]
