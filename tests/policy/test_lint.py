"""A rule that can never fire is a bug; so is one that allows more than it says (doubts.txt)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sigwrap.policy.judge.globs import Glob
from sigwrap.policy.language import lint as lint_module
from sigwrap.policy.language.lint import lint
from tests.policy.conftest import Parse

Warnings = Callable[[str], list[str]]


@pytest.fixture
def warnings(parse: Parse) -> Warnings:
    return lambda sections: [
        each.message for each in lint(parse("version: 1\nname: x\n" + sections))
    ]


COMMANDS = "command_rules:\n  - {name: a, %s, decision: deny}\n  - {name: b, %s, decision: deny}\n"


def test_a_rule_of_the_base_may_be_shadowed(parse: Parse) -> None:
    base = "version: 1\nname: b\ncommand_rules: [{name: r, commands: [x], decision: deny}]\n"
    child = base.replace("name: b", "name: c\nextends: b").replace("name: r", "name: s")
    assert lint(parse(child, {"b": base})) == ()


def test_of_very_many_words_only_those_are_compared_that_could_match(
    warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each held against each, a policy of 256 KB took 43 s."""
    above = ", ".join(f"a{number}*" for number in range(2_000))
    below = ", ".join(f"b{number}" for number in range(2_000))
    matched: list[str] = []

    def matches(self: Glob, text: str) -> bool:
        matched.append(text)
        return False

    monkeypatch.setattr(Glob, "matches", matches)
    assert warnings(COMMANDS % (f"commands: [{above}]", f"commands: [{below}]")) == []
    assert matched == []


def test_what_has_too_much_to_compare_is_not_compared_for_ever(
    warnings: Warnings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = COMMANDS % ("commands: ['*x', '*y']", "commands: [ax, ay, az]")
    (warning,) = warnings(rules)
    assert warning == "rule b cannot match ax, ay: rule a (line 4) decides first"
    monkeypatch.setattr(lint_module, "_MOST_COMPARISONS", 4)
    (warning,) = warnings(rules)
    assert warning == "rule b cannot match ax: rule a (line 4) decides first"


def test_the_environment_of_a_base_is_its_own_affair(parse: Parse) -> None:
    base = {"base": "version: 1\nname: base\nenv_policy: {remove: ['*']}\n"}
    policy = parse("version: 1\nname: x\nextends: base\n", base)
    assert [each.message for each in lint(policy)] == []
