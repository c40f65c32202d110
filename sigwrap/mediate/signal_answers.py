"""How a signal call ends where nothing is left to be judged."""

from __future__ import annotations

from sigwrap.mediate.effects import (
    Continue,
    Fail,
    Mediation,
    SetAsync,
    SetForeground,
    SetOwner,
    SignalTarget,
    Succeed,
    Unrecorded,
)
from sigwrap.mediate.signal_facts import How


def succeed_by(effect: SetOwner | SetAsync | SetForeground) -> Mediation:
    error: int = yield effect
    if error:
        yield _failed(error, effect.unrecorded)
    else:
        yield Succeed(effect.unrecorded)


def at_oneself(how: How, target: SignalTarget) -> Mediation:
    if how is How.ASYNC:
        yield from succeed_by(SetAsync(target, Unrecorded.STAYS_INSIDE))
    else:
        yield Continue(Unrecorded.STAYS_INSIDE)


def disown() -> Mediation:
    yield from succeed_by(SetOwner(None, Unrecorded.REACHES_NOBODY))


def leave_to_the_kernel() -> Mediation:
    yield Continue(Unrecorded.REACHES_NOBODY)


def stay_inside() -> Mediation:
    yield Continue(Unrecorded.STAYS_INSIDE)


def answer_question() -> Mediation:
    yield Succeed(Unrecorded.ONLY_ASKS)


def fail(error: int) -> Mediation:
    yield Fail(error, Unrecorded.NOTHING_HAPPENS)


def _failed(error: int, unrecorded: Unrecorded | None) -> Fail:
    if unrecorded in (Unrecorded.REACHES_NOBODY, Unrecorded.STAYS_INSIDE):
        unrecorded = Unrecorded.NOTHING_HAPPENS
    return Fail(error, unrecorded)
