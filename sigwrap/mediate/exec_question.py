"""What somebody is asked about an exec, and whether what then runs is what that one has seen."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from sigwrap.escape import shell_words
from sigwrap.mediate.effects import Effect, ReadContent, ReadWhereabouts, Whereabouts
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.mediate.masking import masked
from sigwrap.mediate.questions import Question
from sigwrap.policy.judge.request import Decision
from sigwrap.tuples import NamedTuple

_CHANGED = "it has changed since it was asked about: look at it anew"
_NOT_READ = "it has more words than are read: the rest of them is not known"
_NOT_OURS = "in another root or mount namespace: its names may lead elsewhere than yours"


class Ground(NamedTuple):
    """What a yes stands on besides the facts: read only where somebody is asked."""

    content: tuple[str, ...]
    where: Whereabouts

    @property
    def is_known(self) -> bool:
        return bool(self.where.identity)


def read_ground() -> Generator[Effect, Any, Ground]:
    where: Whereabouts = yield ReadWhereabouts()
    content: tuple[str, ...] = yield ReadContent()
    return Ground(content, where)


def question_about(
    facts: ExecFacts, ground: Ground, decision: Decision, *, asked_before: bool
) -> Question:
    main, where = facts.programs[0], ground.where
    is_ours = where.are_ours and not any(each.elsewhere for each in facts.programs)
    notes = [_CHANGED] * asked_before + [_NOT_READ] * facts.truncated + [_NOT_OURS] * (not is_ours)
    key = ("exec", *asked_for(facts, decision), where.folder, where.identity, *ground.content)
    return Question(
        kind="exec",
        pid=facts.process.pid,
        process=facts.process.comm,
        depth=facts.process.depth,
        # Whoever is asked sees all of it: what looks like a secret may be what it runs.
        what=shell_words(main.argv),
        rule=decision.rule,
        message=decision.message,
        # A root and a folder that are not ours can be made anew with the numbers of those before.
        key=key if is_ours and not facts.truncated else (),
        files=tuple(dict.fromkeys(each.path for each in facts.programs)),
        folder=where.folder,
        note="; ".join(notes),
        masked=shell_words(masked(main.argv)),
    )


def asked_for(facts: ExecFacts, decision: Decision) -> tuple[str, ...]:
    main = facts.programs[0]
    return (decision.rule, main.path, *main.argv)


def is_the_same(before: ExecFacts, ground: Ground, now: ExecFacts, ground_now: Ground) -> bool:
    return ground.is_known and ground == ground_now and _shown(before) == _shown(now)


def _shown(facts: ExecFacts) -> tuple[object, ...]:
    programs = [(each.path, each.name, each.argv, each.elsewhere) for each in facts.programs]
    return facts.path, facts.cwd, facts.truncated, facts.readable, programs
