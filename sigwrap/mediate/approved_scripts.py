"""What a yes to a script goes on to cover.

`#!/usr/bin/env node` takes two execs: env's, which is asked about as the script's, and node's, by
which env goes on. Who said yes to the first has been shown the words of the second, so it is not
asked about again. It is that second one only as the next exec of the same process, by the same
rule, with the words that the first had env run, in the same root and folder and with the same
variables, of the very files that were approved, each on the same mount, while the script still lies
where it was called. Where env's words say more (`-S`, and a variable, an option, a quote), what it
makes of them is nothing that anybody has seen, and asked about as any other.
"""

from __future__ import annotations

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
from sigwrap.tuples import NamedTuple

_KEPT = 256


class Approved(NamedTuple):
    """A script that runs."""

    approval_id: str
    by: str
    rule: str
    scripts: tuple[str, ...]
    wraps: Program  # what its interpreter is to exec
    ground: Ground  # its content: the scripts, the interpreter, and what that is to exec
    environment: str

    def goes_on(self, facts: ExecFacts, rule: str) -> Judgement:
        """Whether this exec is the script's second. What is read for that has to hold at the exec
        stop."""
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
    """By the process that runs it, until its next exec."""

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
