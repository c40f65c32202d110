"""Finds execs that may repeat an earlier one without a new judgement.

A mediator's answer depends on its facts alone, so equal facts give the same answer. Three things
need a new judgement each time: file facts beyond the file's state, approvals, and counts.
"""

from __future__ import annotations

from sigwrap.mediate.effects import Record
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.policy.judge.request import AskedFact, Program, answer_of
from sigwrap.policy.judge.rules import Limits

_REPEATED = frozenset({"exec_allowed", "exec_audited"})
_NOT_REPEATED = ("approval_id", "elsewhere", "shadows")


def limits_allow_repeats(limits: Limits) -> bool:
    """Return whether no limit counts execs or forks, since a count needs each one."""
    return not (limits.max_execs or limits.at_fork)


def is_repeatable(facts: ExecFacts, recorded: Record) -> bool:
    """Return whether the exec can be repeated. `recorded`: the event with which it goes on."""
    if recorded.event not in _REPEATED or recorded.escalation is not None:
        return False
    if not (facts.readable and recorded.payload.get("verified")) or facts.truncated:
        return False
    if len(facts.programs) != 1 or facts.scripts or facts.stub_rule is not None:
        return False
    if any(name in recorded.payload for name in _NOT_REPEATED):
        return False
    return facts.syscall == "execve" and bool(facts.cwd) and _is_plain(facts.programs[0], facts)


def _is_plain(program: Program, facts: ExecFacts) -> bool:
    """Return whether the rules asked only for facts that last while the file's path and state do.
    Only root can make a file's owner less trustworthy."""
    if not program.argv or not facts.path.startswith("/") or not program.path_is_told:
        return False
    if program.elsewhere or program.shadows or program.counts_by_name or program.missing:
        return False
    if answer_of(program.loads_code) is not None or answer_of(program.system_file) is False:
        return False
    return not (isinstance(program.sha256, AskedFact) and program.sha256.answer is not None)
