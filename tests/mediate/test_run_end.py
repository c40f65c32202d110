"""The end of a run as a transcript: what happens goes in, what is to be done comes out."""

from __future__ import annotations

import errno

import pytest

from sigwrap.session.run_end import (
    CommandEnded,
    CommandNotExecuted,
    Do,
    GraceOver,
    Happening,
    Interrupted,
    KillDemanded,
    LimitReached,
    NoProcessLeft,
    RecordEvent,
    RunEnd,
    SignalBudget,
    Step,
    StopAsking,
    SwitchedOff,
    TerminationDemanded,
    Wait,
    Withdrawn,
)

OUT_OF_TIME = LimitReached("wall_time", 5, "wall_time: 5 s are over")
TOO_MANY = LimitReached("max_execs", 9, "max_execs: 9 programs were started, which is the limit")
ENDED = CommandEnded(3, None)
KILLED = CommandEnded(None, 9)
SECOND = KillDemanded("second interrupt")

RECORDS_LIMIT = RecordEvent(
    "limit_exceeded",
    {
        "limit": "wall_time",
        "maximum": 5,
        "effect": "terminated",
        "reason": "wall_time: 5 s are over",
    },
)


def records_kill(why: str) -> RecordEvent:
    return RecordEvent("interrupt_escalated", {"reason": why}, counts_processes=True)


ENDING = (
    RECORDS_LIMIT,
    SignalBudget(OUT_OF_TIME),
    StopAsking("a limit was reached"),
    Do.TERMINATE_COMMAND,
    Do.LET_RUN,
    Wait(10.0),
)
CLEARING = (Do.TERMINATE_DESCENDANTS, Do.LET_RUN, Wait(2.0))
ASKS_NO_MORE = (StopAsking("sigwrap was interrupted"), Do.LET_RUN)
KILLING = (records_kill("second interrupt"), Do.KILL_TREE)

SWITCHED = SwitchedOff("a drill", "somebody", 7)
SWITCHING = (
    RecordEvent(
        "killswitch_activated",
        {"reason": "a drill", "by": "somebody", "since_ns": 7},
        counts_processes=True,
    ),
    StopAsking("the kill switch is on"),
    Do.GRANT_NOTHING,
    Do.KILL_TREE,
)


class Run:
    def __init__(self) -> None:
        self.end = RunEnd(grace_s=10.0)

    def on(self, happening: Happening, *steps: Step) -> Run:
        assert self.end.on(happening) == steps
        return self

    def is_over(self, status: int, reason: str) -> None:
        was_over = self.end.is_over
        self.on(NoProcessLeft())
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
    run.on(CommandEnded(0, None), *CLEARING).is_over(0, "the command ended")
    run = Run()
    run.on(ENDED, *CLEARING).on(GraceOver(), Do.KILL_TREE).is_over(3, "the command ended")
    run = Run()
    run.on(KILLED, *CLEARING).is_over(137, "the command died of SIGKILL")
    run = Run()
    run.is_over(125, "the command ended")


@pytest.mark.parametrize(
    ("error", "status"), [(errno.ENOENT, 127), (errno.EACCES, 126), (errno.ENOEXEC, 126)]
)
def test_command_could_not_be_executed(run: Run, error: int, status: int) -> None:
    failed = CommandNotExecuted(error, "why")
    run.on(failed).on(CommandEnded(126, None), *CLEARING)
    assert run.end.not_executed == failed
    run.is_over(status, "the command could not be run: why")


def test_an_interrupt_sets_the_status_unless_it_was_commands_own(run: Run) -> None:
    run.on(Interrupted(2), *ASKS_NO_MORE).on(ENDED, *CLEARING).is_over(130, "interrupted")
    run = Run()
    run.on(ENDED, *CLEARING).on(NoProcessLeft()).on(Interrupted(2))
    assert run.end.result()[::2] == (130, "interrupted")
    run = Run()
    run.on(Interrupted(2), *ASKS_NO_MORE).on(Withdrawn(), Do.ASK_AGAIN, Do.FREEZE_AGAIN)
    run.on(ENDED, *CLEARING).is_over(3, "the command ended")
    assert run.end.result().signal == 0
    run = Run()
    run.on(Interrupted(2), *ASKS_NO_MORE).on(OUT_OF_TIME, *ENDING).on(Withdrawn())


def test_the_signal_of_a_run_is_that_which_interrupted_it_or_which_command_died_of(
    run: Run,
) -> None:
    run.on(Interrupted(15), *ASKS_NO_MORE).on(KILLED, *CLEARING)
    assert run.end.result().signal == 15
    run = Run()
    assert run.end.result().signal == 0
    run.on(KILLED, *CLEARING)
    assert run.end.result().signal == 9
    run = Run()
    run.on(OUT_OF_TIME, *ENDING).on(KILLED, *CLEARING)
    assert run.end.result().signal == 0


def test_a_second_interrupt_and_the_death_of_the_front_process_kill_the_tree(run: Run) -> None:
    run.on(Interrupted(2), *ASKS_NO_MORE).on(SECOND, *KILLING)
    run.on(KILLED).is_over(130, "killed: second interrupt")
    run = Run()
    died = KillDemanded("the front process died")
    run.on(died, records_kill("the front process died"), Do.KILL_TREE)
    run.on(KILLED).is_over(137, "killed: the front process died")
    run = Run()
    run.on(OUT_OF_TIME, *ENDING).on(SECOND, *KILLING).on(KILLED)
    run.is_over(124, "killed: second interrupt")
    run = Run()
    run.on(ENDED, *CLEARING).on(SECOND, *KILLING).on(GraceOver())
    run = Run()
    run.on(SECOND, *KILLING).on(SECOND, *KILLING)


def test_the_first_limit_asks_command_to_end_and_is_the_reason(run: Run) -> None:
    run.on(OUT_OF_TIME, *ENDING).on(GraceOver(), Do.KILL_TREE).on(KILLED)
    assert run.end.reached_limit == OUT_OF_TIME
    run.is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(OUT_OF_TIME, *ENDING).on(ENDED, *CLEARING).is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(OUT_OF_TIME, *ENDING).on(TOO_MANY).on(ENDED, *CLEARING)
    run.is_over(124, "wall_time: 5 s are over")


def test_of_a_limit_and_an_interrupt_the_first_is_the_reason_and_nothing_after_the_end(
    run: Run,
) -> None:
    run.on(Interrupted(2), *ASKS_NO_MORE).on(OUT_OF_TIME, *ENDING).on(ENDED, *CLEARING)
    assert run.end.reached_limit is None
    run.is_over(130, "interrupted")
    run = Run()
    run.on(OUT_OF_TIME, *ENDING).on(Interrupted(2), *ASKS_NO_MORE).on(ENDED, *CLEARING)
    run.is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(ENDED, *CLEARING).on(OUT_OF_TIME).is_over(3, "the command ended")


def test_so_it_is_with_a_limit_that_is_known_before_it_is_told(run: Run) -> None:
    run.end.will_end(OUT_OF_TIME)
    run.on(CommandNotExecuted(errno.EACCES, "Permission denied")).on(ENDED, *CLEARING)
    run.on(OUT_OF_TIME, RECORDS_LIMIT).is_over(124, "wall_time: 5 s are over")
    run = Run()
    run.on(Interrupted(2), *ASKS_NO_MORE)
    run.end.will_end(OUT_OF_TIME)
    run.on(ENDED, *CLEARING).on(OUT_OF_TIME).is_over(130, "interrupted")
    run = Run()
    run.on(ENDED, *CLEARING)
    run.end.will_end(OUT_OF_TIME)
    run.on(OUT_OF_TIME).is_over(3, "the command ended")


@pytest.mark.parametrize("happening", [ENDED, OUT_OF_TIME, SECOND, GraceOver(), NoProcessLeft()])
def test_nothing_is_done_after_the_end(run: Run, happening: Happening) -> None:
    run.on(ENDED, *CLEARING).on(NoProcessLeft()).on(happening)
    assert run.end.result().exit_status == 3


def test_the_kill_switch_kills_at_once_and_refuses(run: Run) -> None:
    run.on(SWITCHED, *SWITCHING).on(KILLED)
    assert run.end.result().signal == 0
    run.is_over(125, "killed by the kill switch: a drill")
    run = Run()
    again = SwitchedOff("another", "somebody else", 8)
    run.on(SWITCHED, *SWITCHING).on(again).on(GraceOver()).on(OUT_OF_TIME)
    run.is_over(125, "killed by the kill switch: a drill")


@pytest.mark.parametrize("before", [OUT_OF_TIME, SECOND, ENDED, Interrupted(2)])
def test_also_a_run_that_ends_already(run: Run, before: Happening) -> None:
    run.end.on(before)
    run.on(SWITCHED, *SWITCHING).on(KILLED)
    run.is_over(125, "killed by the kill switch: a drill")


TERMINATION = TerminationDemanded("ended by agent signal SIGTERM from somebody")
FOR_BUDGET = TerminationDemanded("ended by agent signal SIGBUDGET", is_for_budget=True)
TERMINATING = (StopAsking("the session is ending"), Do.TERMINATE_COMMAND, Do.LET_RUN, Wait(10.0))


@pytest.mark.parametrize(("demanded", "status"), [(TERMINATION, 130), (FOR_BUDGET, 124)])
def test_an_agent_signal_ends_command_with_its_grace(
    run: Run, demanded: TerminationDemanded, status: int
) -> None:
    run.on(demanded, *TERMINATING).on(demanded).on(ENDED, *CLEARING)
    run.is_over(status, demanded.why)
    assert run.end.result().signal == (15 if status == 130 else 0)


def test_who_is_killed_and_ends_by_itself_first_was_killed_all_the_same() -> None:
    run = RunEnd(grace_s=10.0)
    tuple(run.on(KillDemanded("agent signal SIGPOLICY from rule never of p")))
    tuple(run.on(CommandEnded(0, None)))
    assert run.result().exit_status == 137
    over = RunEnd(grace_s=10.0)
    tuple(over.on(CommandEnded(0, None)))
    tuple(over.on(KillDemanded("the front process died")))
    assert over.result().exit_status == 0
