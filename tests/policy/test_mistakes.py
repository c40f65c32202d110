"""Lists of policies, each with all that is said about it: those that are wrong, and others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sigwrap.policy.language.lint import lint
from sigwrap.policy.problems import InvalidPolicy
from tests.policy.conftest import Parse


def _listed(file: str) -> Iterator[tuple[int, str, list[str]]]:
    """The line where each ends, what follows its `version` and `name`, and what is said of it."""
    sections, said = "", list[str]()
    lines = Path(__file__).with_name(file).read_text().split("\n")
    for number, (line, next_line) in enumerate(zip(lines, [*lines[1:], ""], strict=True), start=1):
        if line.startswith("! "):
            said.append(line.removeprefix("! "))
            if not next_line.startswith("! "):
                yield number, sections, said
                sections, said = "", []
        elif line and not line.startswith("#"):
            sections += f"{line}\n"


def _said(parse: Parse, sections: str) -> tuple[str, list[str]]:
    """Whether it loads, and what is said about it."""
    try:
        policy = parse(f"version: 1\nname: x\n{sections}")
        loads, problems = "loads", [*policy.warnings, *lint(policy)]
    except InvalidPolicy as error:
        loads, problems = "doesn't load", list(error.problems)
    return loads, [str(each).removeprefix("policy.yaml:") for each in problems] or ["nothing"]


def _differing(parse: Parse, file: str, *, loads: str) -> list[str]:
    return [
        f"{file}:{number}: {loads} with {said} was expected, and it {found[0]} with {found[1]}"
        for number, sections, said in _listed(file)
        if (found := _said(parse, sections)) != (loads, said)
    ]


def test_of_a_policy_that_is_wrong_all_is_said_and_nothing_else(parse: Parse) -> None:
    assert _differing(parse, "mistakes.txt", loads="doesn't load") == []
    assert len(list(_listed("mistakes.txt"))) > 100


def test_of_a_rule_that_can_never_fire_or_allows_more_than_it_says_a_warning_is_given(
    parse: Parse,
) -> None:
    assert _differing(parse, "doubts.txt", loads="loads") == []
    assert len(list(_listed("doubts.txt"))) > 120
