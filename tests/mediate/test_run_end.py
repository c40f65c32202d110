"""The end of a run as a transcript: what happens goes in, what is to be done comes out."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, cast

import pytest

from sigwrap.session.run_end import LimitReached, NotExecuted, RunEnd, SwitchedOff

Call = tuple[Any, ...]  # a method, and its arguments

OUT_OF_TIME = LimitReached("wall_time", 5, "wall_time: 5 s are over")
TOO_MANY = LimitReached("max_execs", 9, "max_execs: 9 programs were started, which is the limit")
ENDED = ("command_ended", 3, None)
KILLED = ("command_ended", None, 9)
SECOND = ("kill", "second interrupt")
GRACE_OVER = ("grace_over",)
NOTHING_LEFT = ("no_process_is_left",)
WITHDRAWN = ("interrupt_withdrawn",)
AT_LIMIT = ("limit_reached", OUT_OF_TIME)


def interrupted(number: int) -> Call:
    return ("interrupted", number)


RECORDS_LIMIT = (
    "record",
    "limit_exceeded",
    {
        "limit": "wall_time",
        "maximum": 5,
        "effect": "terminated",
        "reason": "wall_time: 5 s are over",
    },
)


def records_kill(why: str) -> Call:
    return ("record_with_count", "interrupt_escalated", {"reason": why})


KILLS = ("kill_tree",)
LETS_RUN = ("let_run",)
ENDING = (
    RECORDS_LIMIT,
    ("signal_budget", OUT_OF_TIME),
    ("stop_asking", "a limit was reached"),
    ("terminate_command",),
    LETS_RUN,
    ("wait", 10.0),
)
CLEARING = (("terminate_descendants",), LETS_RUN, ("wait", 2.0))
ASKS_NO_MORE = (("stop_asking", "sigwrap was interrupted"), LETS_RUN)
KILLING = (records_kill("second interrupt"), KILLS)

SWITCHED = ("switch_off", SwitchedOff("a drill", "the operator", 7))
SWITCHING = (
    (
        "record_with_count",
        "killswitch_activated",
        {"reason": "a drill", "by": "the operator", "since_ns": 7},
    ),
    ("stop_asking", "the kill switch is on"),
    ("grant_nothing",),
    KILLS,
)


class Steps(list[Call]):
    """Records each call of a step."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *words: self.append((name, *words))


class Run:
    def __init__(self) -> None:
        self.steps = Steps()
        self.end = RunEnd(cast(Any, self.steps), grace_s=10.0)

    def on(self, happening: Call, *steps: Call) -> Run:
        self.steps.clear()
        name, *words = happening
        getattr(self.end, name)(*words)
        assert tuple(self.steps) == steps
        return self

    def is_over(self, status: int, reason: str) -> None:
        was_over = self.end.is_over
        self.on(NOTHING_LEFT)
        assert (was_over, self.end.is_over) == (False, True)
        assert self.end.result()[::2] == (status, reason)


@pytest.fixture
def run() -> Run:
    return Run()


def test_command_ends_by_itself_and_what_it_left_is_asked_to_end(run: Run) -> None:
    had_ended = run.end.command_has_ended
    run.on(ENDED, *CLEARING)
    assert (had_ended, run.end.command_has_ended) == (False, True)
    run.is_over(3, "the command ended")
    run = Run()
    run.on(("command_ended", 0, None), *CLEARING).is_over(0, "the command ended")
    run = Run()
    run.on(ENDED, *CLEARING).on(GRACE_OVER, KILLS).is_over(3, "the command ended")
    run = Run()
    run.on(KILLED, *CLEARING).is_over(137, "the command died of SIGKILL")
    run = Run()
    run.is_over(125, "the command ended")


@pytest.mark.parametrize(
    ("error", "status"), [(errno.ENOENT, 127), (errno.EACCES, 126), (errno.ENOEXEC, 126)]
)
def test_command_could_not_be_executed(run: Run, error: int, status: int) -> None:
    run.end.not_executed = NotExecuted(error, "why")
    run.on(("command_ended", 126, None), *CLEARING)
    run.is_over(status, "the command could not be run: why")


def test_an_interrupt_sets_the_status_unless_it_was_commands_own(run: Run) -> None:
    run.on(interrupted(2), *ASKS_NO_MORE).on(ENDED, *CLEARING).is_over(130, "interrupted")
    run = Run()
    run.on(ENDED, *CLEARING).on(NOTHING_LEFT).on(interrupted(2))
    assert run.end.result()[::2] == (130, "interrupted")
    run = Run()
    run.on(interrupted(2), *ASKS_NO_MORE).on(WITHDRAWN, ("ask_again",), ("freeze_again",))
    run.on(ENDED, *CLEARING).is_over(3, "the command ended")
    assert run.end.result().signal == 0
    run = Run()
    run.on(interrupted(2), *ASKS_NO_MORE).on(AT_LIMIT, *ENDING).on(WITHDRAWN)


def test_the_signal_of_a_run_is_that_which_interrupted_it_or_which_command_died_of(
    run: Run,
) -> None:
    run.on(interrupted(15), *ASKS_NO_MORE).on(KILLED, *CLEARING)
    assert run.end.result().signal == 15
    run = Run()
    assert run.end.result().signal == 0
    run.on(KILLED, *CLEARING)
    assert run.end.result().signal == 9
    run = Run()
    run.on(AT_LIMIT, *ENDING).on(KILLED, *CLEARING)
    assert run.end.result().signal == 0


def test_a_second_interrupt_and_the_death_of_the_front_process_kill_the_tree(run: Run) -> None:
    run.on(interrupted(2), *ASKS_NO_MORE).on(SECOND, *KILLING)
    run.on(KILLED).is_over(130, "killed: second interrupt")
    run = Run()
    died = ("kill", "the front process died")
    run.on(died, records_kill("the front process died"), KILLS)
    run.on(KILLED).is_over(137, "killed: the front process died")
    run = Run()
    run.on(AT_LIMIT, *ENDING).on(SECOND, *KILLING).on(KILLED)
    run.is_over(124, "killed: second interrupt")
    run = Run()
    run.on(ENDED, *CLEARING).on(SECOND, *KILLING).on(GRACE_OVER)
    run = Run()
    run.on(SECOND, *KILLING).on(SECOND, *KILLING)


def test_the_first_limit_asks_command_to_end_and_is_the_reason(run: Run) -> None:
    run.on(AT_LIMIT, *ENDING).on(GRACE_OVER, KILLS).on(KILLED)
    assert run.end.reached_limit == OUT_OF_TIME
    run.is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(AT_LIMIT, *ENDING).on(ENDED, *CLEARING).is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(AT_LIMIT, *ENDING).on(("limit_reached", TOO_MANY)).on(ENDED, *CLEARING)
    run.is_over(124, "wall_time: 5 s are over")


def test_of_a_limit_and_an_interrupt_the_first_is_the_reason_and_nothing_after_the_end(
    run: Run,
) -> None:
    run.on(interrupted(2), *ASKS_NO_MORE).on(AT_LIMIT, *ENDING).on(ENDED, *CLEARING)
    assert run.end.reached_limit is None
    run.is_over(130, "interrupted")
    run = Run()
    run.on(AT_LIMIT, *ENDING).on(interrupted(2), *ASKS_NO_MORE).on(ENDED, *CLEARING)
    run.is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(ENDED, *CLEARING).on(AT_LIMIT).is_over(3, "the command ended")


def test_so_it_is_with_a_limit_that_is_known_before_it_is_told(run: Run) -> None:
    run.end.will_end(OUT_OF_TIME)
    run.end.not_executed = NotExecuted(errno.EACCES, "Permission denied")
    run.on(ENDED, *CLEARING)
    run.on(AT_LIMIT, RECORDS_LIMIT).is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(interrupted(2), *ASKS_NO_MORE)
    run.end.will_end(OUT_OF_TIME)
    run.on(ENDED, *CLEARING).on(AT_LIMIT).is_over(130, "interrupted")
    run = Run()
    run.on(ENDED, *CLEARING)
    run.end.will_end(OUT_OF_TIME)
    run.on(AT_LIMIT).is_over(3, "the command ended")


@pytest.mark.parametrize("happening", [ENDED, AT_LIMIT, SECOND, GRACE_OVER, NOTHING_LEFT])
def test_nothing_is_done_after_the_end(run: Run, happening: Call) -> None:
    run.on(ENDED, *CLEARING).on(NOTHING_LEFT).on(happening)
    assert run.end.result().exit_status == 3


def test_the_kill_switch_kills_at_once_and_refuses(run: Run) -> None:
    run.on(SWITCHED, *SWITCHING).on(KILLED)
    assert run.end.result().signal == 0
    run.is_over(125, "killed by the kill switch: a drill")
    run = Run()
    again = ("switch_off", SwitchedOff("another", "another operator", 8))
    run.on(SWITCHED, *SWITCHING).on(again).on(GRACE_OVER).on(AT_LIMIT)
    run.is_over(125, "killed by the kill switch: a drill")


@pytest.mark.parametrize("before", [AT_LIMIT, SECOND, ENDED, interrupted(2)])
def test_also_a_run_that_ends_already(run: Run, before: Call) -> None:
    name, *words = before
    getattr(run.end, name)(*words)
    run.on(SWITCHED, *SWITCHING).on(KILLED)
    run.is_over(125, "killed by the kill switch: a drill")


TERMINATING = (
    ("stop_asking", "the session is ending"),
    ("terminate_command",),
    LETS_RUN,
    ("wait", 10.0),
)


@pytest.mark.parametrize(("for_budget", "status"), [(False, 130), (True, 124)])
def test_an_agent_signal_ends_command_with_its_grace(
    run: Run, *, for_budget: bool, status: int
) -> None:
    run.end.terminate("ended by agent signal", is_for_budget=for_budget)
    assert tuple(run.steps) == TERMINATING
    run.on(("terminate", "again")).on(ENDED, *CLEARING)
    run.is_over(status, "ended by agent signal")
    assert run.end.result().signal == (15 if status == 130 else 0)


def test_who_is_killed_and_ends_by_itself_first_was_killed_all_the_same(run: Run) -> None:
    run.end.kill("agent signal SIGPOLICY from rule never of p")
    run.end.command_ended(0, None)
    assert run.end.result().exit_status == 137
    over = Run()
    over.end.command_ended(0, None)
    over.end.kill("the front process died")
    assert over.end.result().exit_status == 0
