"""Explain a shell line: each command, file and address in it, as a run and a hook judge them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sigwrap.cli.hook_facts import ThisMachine
from sigwrap.escape import printable, shell_words
from sigwrap.hooks.judged_line import judged, words_in
from sigwrap.hooks.line_targets import LineTargets
from sigwrap.hooks.shell_line import Command, Line
from sigwrap.hooks.shell_reader import read_words
from sigwrap.hooks.verdict import Answer, Finding, combined
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.tools.explain import Explanation, explain_command, explanation_text

_NOT_KNOWN = "…"
_TO_A_HOOK = {
    Answer.NO_OPINION: "leaves the decision to the agent",
    Answer.ASK: "asks the user",
    Answer.DENY: "denies the line",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A file or an address, or a command that the line does not show."""

    what: str
    answer: Answer
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedLine:
    commands: tuple[Explanation, ...]
    others: tuple[Other, ...]
    hook: Answer  # to the whole line


def explain_line(engine: Engine, words: Sequence[str], depth: int) -> ExplainedLine | None:
    """Explain the line of `SHELL -c LINE`; None if the words start no shell with a line."""
    home = os.environ.get("HOME", "")
    line = read_words(words, folder=os.getcwd(), home=home, depth=depth)
    return None if line is None else _explained(engine, line)


def explain_targets(engine: Engine, words: Sequence[str], depth: int) -> ExplainedLine | None:
    """Explain the files and addresses of a command; None if it shows none."""
    folder, text = os.getcwd(), shell_words(words)
    told = tuple(map(Word, words))
    command = Command(told, text, (folder,), depth)
    line = Line((command,), (), (), frozenset(), text=text, folder=folder)
    machine = ThisMachine(engine)
    targets = LineTargets(line, machine, engine.policy.name, inside=False)
    found = [*targets.of_command(command, words, folder), *targets.of_mentions()]
    verdict = combined([*found, *judged(line, engine, machine, inside=False)])
    return ExplainedLine(commands=(), others=_others(found), hook=verdict.answer) if found else None


def _explained(engine: Engine, line: Line) -> ExplainedLine:
    machine = ThisMachine(engine)
    requests = [
        machine.request(words_in(command, folder, machine), folder, command.depth, line.variables)
        for command in line.commands
        for folder in command.folders
    ]
    commands = [_shown(explain_command(engine, request)) for request in requests]
    verdict = combined(judged(line, engine, machine, inside=False))
    others = _others(
        each for each in verdict.findings if each.decision is None or not each.is_command
    )
    return ExplainedLine(
        commands=tuple(dict.fromkeys(commands)), others=others, hook=verdict.answer
    )


def _others(findings: Iterable[Finding]) -> tuple[Other, ...]:
    return tuple(
        Other(what=each.what, answer=each.answer, why=each.why) for each in dict.fromkeys(findings)
    )


def _shown(explanation: Explanation) -> Explanation:
    """Replace unknown words by a mark."""
    told = [
        replace(
            each,
            what=each.what.replace(UNTOLD, _NOT_KNOWN),
            passed=tuple(
                replace(rule, why=rule.why.replace(UNTOLD, _NOT_KNOWN)) for rule in each.passed
            ),
        )
        for each in explanation.judgements
    ]
    return replace(explanation, judgements=tuple(told))


def line_text(shell: Explanation, line: ExplainedLine) -> str:
    parts = [explanation_text(shell)]
    if line.commands:
        parts += ["In the shell line:", *map(explanation_text, line.commands)]
    if line.others:
        parts.append("\n".join(printable(f"{each.what}: {each.why}") for each in line.others))
    parts.append(f"As an agent hook, sigwrap {_TO_A_HOOK[line.hook]}.")
    return "\n\n".join(parts)
