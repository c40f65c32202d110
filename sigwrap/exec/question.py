"""Make the approval request for an exec, and check that the approved command is what runs."""

from __future__ import annotations

from collections.abc import Generator

from sigwrap.approve.requests import ApprovalRequest
from sigwrap.bare import Any, NamedTuple
from sigwrap.exec.facts import ExecFacts, request_of
from sigwrap.policy.judge.request import Decision, Program
from sigwrap.session.effects import (
    Effect,
    Judgement,
    ReadContent,
    ReadEnvironment,
    ReadLoaded,
    ReadWhereabouts,
    Whereabouts,
)
from sigwrap.text import masked, shell_words

_CHANGED = "it changed after the request: check it again"
_NOT_READ = "it has more arguments than sigwrap reads: the rest is unknown"
_NO_VARIABLES = "its environment is unknown and may load any code"
_LOADS = "its environment loads code that may change: it can be approved once only"
_LONG_FOLDER = "the path of its directory is too long to show"
_LONG_FILE = "the path of its file is too long to show"
_NO_ARGUMENTS = "it has no arguments, not even a name"
_COVERED = "something is mounted over its directory or a parent: the path shows you another file"
_NOT_OURS = "it is in another root or mount namespace: its paths may be other files than yours"


class Ground(NamedTuple):
    """The basis of an approval besides the facts. Read only for an approval request."""

    content: tuple[str, ...]
    where: Whereabouts
    loaded: tuple[str, ...] | None = ()  # by variables, if the rule depends on those

    @property
    def is_known(self) -> bool:
        return bool(self.where.identity)


def read_ground(facts: ExecFacts, *, is_about_loading: bool) -> Generator[Effect, Any, Ground]:
    where: Whereabouts = yield ReadWhereabouts()
    content: tuple[str, ...] = yield ReadContent()
    loaded: tuple[str, ...] | None = ()
    if is_about_loading:
        names = {each.name: None for each in facts.programs}
        names |= {each.path.rpartition("/")[2]: None for each in facts.programs}
        loaded = yield ReadLoaded(tuple(names))
    return Ground(content, where, loaded)


def question_about(
    facts: ExecFacts, ground: Ground, decision: Decision, *, asked_before: bool
) -> ApprovalRequest:
    main, where, loaded = facts.programs[0], ground.where, ground.loaded
    # Each of these can change without a change of the key.
    passing = {
        _NOT_READ: facts.truncated,
        # A new root or directory can get the inode numbers of an earlier one.
        _NOT_OURS: not where.are_ours or any(each.elsewhere for each in facts.programs),
        _COVERED: where.is_covered,
        _NO_VARIABLES: loaded is None,
        _LOADS: bool(loaded),
        _LONG_FOLDER: ground.is_known and not where.folder,
        _LONG_FILE: not all(each.path_is_told for each in facts.programs),
    }
    notes = [_CHANGED] * asked_before + [_NO_ARGUMENTS] * (main.argv in ((), ("",)))
    notes += [note for note, holds in passing.items() if holds]
    covered = _covered(facts)
    notes += [f"it shadows {decision.shadows}"] if decision.shadows else []
    notes += [f"{each.path} is not there" for each in covered if each.missing]
    runs = _interpreter_argv(facts)
    key = (
        "exec",
        *asked_for(facts, decision),
        *("", *runs),
        *("", where.folder, where.identity, *ground.content),
    )
    return ApprovalRequest(
        kind="exec",
        pid=facts.process.pid,
        process=facts.process.stub_of or facts.process.comm,
        depth=facts.process.depth,
        # The approver sees everything: what looks like a secret may be the command.
        what=shell_words(main.argv or ("",)),  # as Linux passes it on
        rule=decision.rule,
        message=decision.message,
        key=() if any(passing.values()) else key,
        files=tuple(dict.fromkeys(each.path for each in covered if not each.missing)),
        runs=shell_words(runs),
        loads=shell_words(loaded or ()),
        folder=where.folder,
        note="; ".join(notes),
        masked=shell_words(masked(main.argv)),
        masked_runs=shell_words(_masked(runs)),
        masked_loads=shell_words(masked(loaded or ())),
        exec_payload=request_of(facts, decision),
    )


def _covered(facts: ExecFacts) -> tuple[Program, ...]:
    """Return the programs of this exec, with the command that a script's interpreter executes next.

    Other wrapped commands are judged when the wrapper executes them.
    """
    return facts.here if facts.script_wraps is None else (*facts.here, facts.script_wraps)


def _interpreter_argv(facts: ExecFacts) -> tuple[str, ...]:
    """Return the arguments of a script's interpreter. The script's first line can add some."""
    return facts.programs[len(facts.scripts)].argv if facts.scripts else ()


def _masked(runs: tuple[str, ...]) -> tuple[str, ...]:
    """Mask secrets. The rest of a script's first line is one argument with many words."""
    return tuple(" ".join(masked(word.split(" "))) for word in masked(runs))


def asked_for(facts: ExecFacts, decision: Decision) -> tuple[str, ...]:
    main = facts.programs[0]
    return (decision.rule, main.path, *main.argv)


def is_the_same(before: ExecFacts, ground: Ground, now: ExecFacts, ground_now: Ground) -> bool:
    return ground.is_known and ground == ground_now and _shown(before) == _shown(now)


def _shown(facts: ExecFacts) -> tuple[object, ...]:
    programs = [_shown_of(each) for each in facts.programs]
    return (
        facts.path,
        facts.cwd,
        facts.truncated,
        facts.readable,
        _interpreter_argv(facts),
        programs,
    )


# An approval of a script also covers the exec of the script's interpreter.


class Approved(NamedTuple):
    """A running script that was approved."""

    approval_id: str
    by: str
    rule: str
    scripts: tuple[str, ...]
    wraps: Program  # the command that its interpreter executes
    ground: Ground  # its content: the scripts, the interpreter, and the command that this executes
    environment: str

    def covers(self, facts: ExecFacts, rule: str) -> Judgement:
        """Return whether this exec is the script's second. The exec stop checks the same facts
        again."""
        if not (
            rule == self.rule
            and self.ground.where.folder in (facts.cwd, "")  # too long; its identity is compared
            and facts.readable
            and not facts.truncated
            and _shown_of(facts.programs[0]) == _shown_of(self.wraps)
        ):
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


def _shown_of(program: Program) -> tuple[str, str, tuple[str, ...], bool]:
    return program.path, program.name, program.argv, program.elsewhere
