"""Judges a shell line by a policy: each command in it, each file that it opens, and what is not
known of it. `Machine` looks up what has to be looked up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.bare import Protocol, re
from sigwrap.hooks import line_targets
from sigwrap.hooks.line_targets import LineTargets
from sigwrap.hooks.shell_line import Command, FileUse, Line, Unknown
from sigwrap.hooks.verdict import Answer, Finding, asked, finding_of
from sigwrap.hooks.words import Word, without_quotes
from sigwrap.policy.judge.engine import CompiledCommandRule, Engine, Facts
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    LENIENT,
    CommandRequest,
    Decision,
    Program,
    strictest,
)
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.judge.subcommand import name_for_subcommands, subcommand

_OF_ALL_WORDS = frozenset({"args", "flags", "paths", "sources", "outside", "args_patterns"})
_OUTPUT = re.compile(r"--o|=--?(?![\w-])")
_READING = frozenset(  # subcommands of git that only read, whatever words follow but --output
    "show log diff status rev-parse blame ls-files cat-file describe merge-base rev-list".split()
)
_NO_FOLDER = "/nonexistent" + "/x" * 9  # of which no rule speaks; `..` doesn't lead out of it soon
_POSSIBLE_FOLDERS = ("/", "/usr", "/var")  # with what a rule may speak of, where none is known


class Machine(line_targets.Machine, Protocol):
    def request(
        self, words: Sequence[str], folder: str, depth: int, variables: frozenset[str]
    ) -> CommandRequest: ...

    def names(self, pattern: str, folder: str) -> tuple[str, ...] | None:
        """Return the names that match a glob now; None if they are not known."""

    def where(self, word: str, folder: str) -> str:
        """Return a path with its symbolic links resolved; any other word as it is."""

    def file(self, path: str, folder: str, *, writes: bool) -> Decision | None:
        """Return None if the path depends on a directory that is not known."""


def judged(line: Line, engine: Engine, machine: Machine, *, inside: bool) -> Iterator[Finding]:
    policy = engine.policy
    targets = LineTargets(line, machine, policy.name, inside=inside)
    for command in line.commands:
        for folder in command.folders:
            words = words_in(command, folder, machine)
            yield _command(command, words, folder, line, engine, machine, inside=inside)
            yield from targets.of_command(command, words, folder)
    for use in line.files:
        if not use.writes and not use.word.known and targets.shows_values_of(use.text):
            continue
        for folder in use.folders:
            yield _file(use, folder, engine, machine, inside=inside)
    yield from targets.of_mentions()
    for command in line.possible:
        yield from _possibly(command, line, engine, machine, inside=inside)
    for unknown in line.unknown:
        if not (unknown.is_signal and _lets_all_signals(policy)):
            yield _unknown(unknown, inside=inside)


def _lets_all_signals(policy: Policy) -> bool:
    decisions = {policy.default_signal, *(rule.decision for rule in policy.signal_rules)}
    return decisions <= LENIENT


def _unknown(unknown: Unknown, *, inside: bool) -> Finding:
    return asked(unknown.text, unknown.why, inside=inside)


def _possibly(
    command: Command, line: Line, engine: Engine, machine: Machine, *, inside: bool
) -> Iterator[Finding]:
    """Ask about words that a rule denies as a command: a program may run them."""
    words = tuple(word.text for word in command.words)
    request = machine.request(words, line.folder, command.depth, line.variables)
    decision = engine.decide_command(request)
    if decision.action not in LENIENT and decision.rule != DEFAULT_RULE:
        why = f"rule {decision.rule} is about it, and a program may run it"
        yield _unknown(Unknown(" ".join(words), why), inside=inside)


def _command(
    command: Command,
    words: tuple[str, ...],
    folder: str,
    line: Line,
    engine: Engine,
    machine: Machine,
    *,
    inside: bool,
) -> Finding:
    """Judge a command, whose words are `words` in `folder`."""

    def judged_in(folder: str) -> Finding:
        found = words_in(command, folder, machine)
        return _command_in(command, found, folder, line, engine, machine, inside=inside)

    if folder:
        return _command_in(command, words, folder, line, engine, machine, inside=inside)
    found = judged_in(_NO_FOLDER)
    for possible in ("", *_POSSIBLE_FOLDERS, engine.home or "/home"):
        if found.answer is not Answer.NO_OPINION:
            return found
        there = judged_in(possible)
        if there.answer is not Answer.NO_OPINION:
            rule = f"rule {there.decision.rule}" if there.decision else "a rule"
            why = f"{rule} may match: its directory is not known in advance"
            return _unknown(Unknown(command.text, why), inside=inside)
    return found


def _command_in(
    command: Command,
    words: tuple[str, ...],
    folder: str,
    line: Line,
    engine: Engine,
    machine: Machine,
    *,
    inside: bool,
) -> Finding:
    sure = _known_beginning(command.words)
    if sure is None and any(UNTOLD in word for word in words):
        sure = next(at for at, word in enumerate(command.words) if word.pattern)
    request, *others = (
        machine.request(each, folder, command.depth, line.variables)
        for each in (words, *_other_readings(command, words, folder, machine))
    )
    decision = strictest(map(engine.decide_command, (request, *others)))
    if not command.is_sure and decision.rule == DEFAULT_RULE:
        if decision.action in LENIENT:
            return Finding(command.text, Answer.NO_OPINION, "no rule is about it", decision)
        why = "the program that it runs is not known in advance"
        return _unknown(Unknown(command.text, why), inside=inside)
    found = finding_of(command.text, decision, engine.policy.name, inside=inside)
    found = found._replace(is_command=True)
    if sure is None or found.answer is not Answer.NO_OPINION:
        return found
    only_reads = sure > 1 and words[:1] == ("git",) and words[1] in _READING
    if only_reads and not _OUTPUT.search(without_quotes(line.text)):
        return found
    stricter = _strictest_possible(engine, request, sure)
    if stricter.action in LENIENT:
        return found
    why = f"rule {stricter.rule} may match: its arguments are not known in advance"
    return _unknown(Unknown(command.text, why), inside=inside)


def _other_readings(
    command: Command, words: tuple[str, ...], folder: str, machine: Machine
) -> Iterator[tuple[str, ...]]:
    if any(word.pattern for word in command.words):  # `~/*` is the folder to a rule, too
        yield tuple(word.text for word in command.words)
    led = (*words[:1], *(machine.where(word, folder) for word in words[1:]))
    if led != words:  # by symbolic links, before `..` counts
        yield led


def words_in(command: Command, folder: str, machine: Machine) -> tuple[str, ...]:
    """Return the words, with globs replaced by the names that match now."""
    return tuple(_expanded(command.words, folder, machine))


def _expanded(words: Sequence[Word], folder: str, machine: Machine) -> Iterator[str]:
    for word in words:
        names = machine.names(word.pattern, folder) if word.pattern else None
        if names is None and word.pattern:
            yield word.text + UNTOLD
        elif names:
            yield from names
        else:
            yield word.text


def _known_beginning(words: Sequence[Word]) -> int | None:
    """Return how many words come before one that may be several; None if all are known.

    The names of a glob are judged as they are now.
    """
    if all(word.known or word.pattern for word in words):
        return None
    return next((at for at, word in enumerate(words) if word.splits or word.pattern), len(words))


def _strictest_possible(engine: Engine, request: CommandRequest, sure: int) -> Decision:
    """Return the strictest decision that the unknown words could lead to."""
    outer = len(request.programs[0].argv)
    return strictest(
        decision
        for program in request.programs
        for decision in _possible(engine, program, request, sure - (outer - len(program.argv)))
    )


def _possible(
    engine: Engine, program: Program, request: CommandRequest, sure: int
) -> Iterator[Decision]:
    facts = Facts(program, request, engine.home)
    for rule in engine.command_rules:
        if not rule.names(facts):
            continue
        failing = rule.failing_condition(facts)
        if failing is None:
            yield rule.decision
            is_last = rule.decision.action not in LENIENT or not _asks_for_words(rule)
            if is_last and not rule.rule.layer:  # with other words, a base may be stricter
                return
        elif failing in _OF_ALL_WORDS or (
            failing == "subcommands" and not _is_settled(rule, facts, max(0, sure))
        ):
            yield rule.decision
    if not program.counts_by_name:
        yield engine.default_command


def _asks_for_words(rule: CompiledCommandRule) -> bool:
    return rule.rule.judges_words or bool(rule.rule.subcommands)


def _is_settled(rule: CompiledCommandRule, facts: Facts, sure: int) -> bool:
    """Return whether the known words rule out the rule's subcommands."""
    name = name_for_subcommands(facts.basename, facts.program.name)
    found = subcommand(name, facts.program.argv[:sure])
    if not found or UNTOLD in found:
        return False
    return not any(word == found or word.startswith(f"{found} ") for word in rule.rule.subcommands)


def _file(use: FileUse, folder: str, engine: Engine, machine: Machine, *, inside: bool) -> Finding:
    if not use.word.known:
        if not engine.files.restricted:
            return Finding(use.text, Answer.NO_OPINION, "no rule denies a file")
        why = "the file that it opens is not known in advance"
        return _unknown(Unknown(use.text, why), inside=inside)
    decision = machine.file(use.word.text, folder, writes=use.writes)
    if decision is None:
        return _unknown(Unknown(use.text, "its directory is not known"), inside=inside)
    return finding_of(use.text, decision, engine.policy.name, inside=inside)
