"""Approvals of scripts, which also cover the exec of the script's interpreter.

`#!/usr/bin/env node` takes two execs: env's, which needs the approval, and node's, which env does
next. The approver has seen the arguments of both, so the second exec needs no approval of its own.
It must be the next exec of the same process, under the same rule, with the arguments that the first
had env run. Root, directory, variables, mounts and the content of the approved files must be the
same, and the script must still be at its path. If env would change the arguments (`-S`, a variable,
an option, a quote), the approver has not seen the result, so the second exec needs its own
approval.
"""

from __future__ import annotations

from sigwrap.bare import NamedTuple
from sigwrap.mediate.effects import (
    Judgement,
    ReadContent,
    ReadEnvironment,
    ReadWhereabouts,
)
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.mediate.exec_question import Ground
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.request import Program

_KEPT = 256


class Approved(NamedTuple):
    """A running script that was approved."""

    approval_id: str
    by: str
    rule: str
    scripts: tuple[str, ...]
    wraps: Program  # the command that its interpreter executes
    ground: Ground  # its content: the scripts, the interpreter, and the command that this executes
    environment: str

    def goes_on(self, facts: ExecFacts, rule: str) -> Judgement:
        """Return whether this exec is the script's second. The exec stop checks the same facts
        again."""
        if not self._runs(facts, rule):
            return False
        if (yield ReadWhereabouts()) != self.ground.where:
            return False
        content: tuple[str, ...] = yield ReadContent(self.scripts)
        count, approved = len(self.scripts), self.ground.content
        if content[-count:] != approved[:count]:
            return False
        if not set(content[:-count]).issubset(approved[count + 1 :]):
            return False
        return bool(self.environment) and (yield ReadEnvironment(stays=True)) == self.environment

    def _runs(self, facts: ExecFacts, rule: str) -> bool:
        return (
            rule == self.rule
            and self.ground.where.folder in (facts.cwd, "")  # too long; its identity is compared
            and facts.readable
            and not facts.truncated
            and _shown(facts.programs[0]) == _shown(self.wraps)
        )


class ApprovedScripts:
    """Approved scripts by their process, each kept until its next exec."""

    def __init__(self) -> None:
        self._running: dict[Process, Approved] = {}

    def keep(self, process: Process, script: Approved) -> None:
        if len(self._running) >= _KEPT:
            del self._running[next(iter(self._running))]
        self._running[process] = script

    def take(self, process: Process) -> Approved | None:
        return self._running.pop(process, None) if self._running else None


def _shown(program: Program) -> tuple[str, str, tuple[str, ...], bool]:
    return program.path, program.name, program.argv, program.elsewhere
