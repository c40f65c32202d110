"""Limits of the policy on the process tree, checked at an exec."""

from __future__ import annotations

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.request import Action, Decision
from sigwrap.policy.judge.rules import Limits


class Crowd(NamedTuple):
    """Numbers of known processes, the caller among them."""

    siblings: int  # children of its parent
    processes: int  # of the session


def exceeded(limits: Limits, depth: int, crowd: Crowd) -> Decision | None:
    if limits.max_depth and depth > limits.max_depth:
        return _denial("max_depth", f"depth {depth} exceeds the limit of {limits.max_depth}")
    if limits.at_fork:
        return None  # the others are checked at each fork
    if limits.max_children and crowd.siblings > limits.max_children:
        why = f"{crowd.siblings} children exceed the limit of {limits.max_children}"
        return _denial("max_children", why)
    if limits.max_processes and crowd.processes > limits.max_processes:
        why = f"{crowd.processes} processes exceed the limit of {limits.max_processes}"
        return _denial("max_processes", why)
    return None


def used_up(limits: Limits, execs: int) -> Decision | None:
    """Check `max_execs` against the number of execs so far, the first one included."""
    if not limits.max_execs or execs < limits.max_execs:
        return None
    return _denial("max_execs", f"{execs} programs were started, which is the limit")


def _denial(limit: str, why: str) -> Decision:
    text = f"{limit}: {why}"
    return Decision(action=Action.DENY, rule=f"limits.{limit}", reason=text, message=text)
