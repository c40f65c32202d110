"""The limits on the shape of the tree, as far as an exec meets them."""

from __future__ import annotations

from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.request import Action, Decision
from sigwrap.policy.judge.rules import Limits
from sigwrap.run.processes import Processes


def exceeded_limit(limits: Limits, process: Process, processes: Processes) -> Decision | None:
    """A caller counts itself: it is already there, and the exec would make it one more command."""
    if limits.max_depth and process.depth > limits.max_depth:
        return _denial("max_depth", f"depth {process.depth} is over {limits.max_depth}")
    if limits.at_fork:
        return None  # how many there are was held where they were made
    if limits.max_children and process.parent is not None:
        siblings = sum(each.parent is process.parent for each in processes.all())
        if siblings > limits.max_children:
            return _denial("max_children", f"{siblings} children are over {limits.max_children}")
    if limits.max_processes:
        count = len(processes.all())
        if count > limits.max_processes:
            return _denial("max_processes", f"{count} processes are over {limits.max_processes}")
    return None


def used_up(limits: Limits, execs: int) -> Decision | None:
    """`execs` have gone on so far, COMMAND's own among them."""
    if not limits.max_execs or execs < limits.max_execs:
        return None
    return _denial("max_execs", f"{execs} programs have been started")


def _denial(limit: str, why: str) -> Decision:
    return Decision(
        action=Action.DENY,
        rule=f"limits.{limit}",
        reason=f"{limit}: {why}",
        message=f"{limit}: {why}",
    )
