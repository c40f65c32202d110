from __future__ import annotations

from sigwrap.policy.request import Action, Decision
from sigwrap.policy.rules import Limits
from sigwrap.session.lineage import Process


def exceeded_limit(limits: Limits, process: Process) -> Decision | None:
    """How many processes there are is held where they are made: in birth_gate."""
    if limits.max_depth and process.depth > limits.max_depth:
        why = f"max_depth: depth {process.depth} is over {limits.max_depth}"
        return Decision(action=Action.DENY, rule="limits.max_depth", reason=why, message=why)
    return None
