"""What two policies do differently."""

from __future__ import annotations

import pytest

from sigwrap.policy.tools.differences import Difference, differences, differences_text
from sigwrap.start.policy_files import SHIPPED, read_source
from tests.policy.conftest import Parse
from tests.policy.test_suggest import base

HEAD = "version: 1\nname: x\n"
MANY = ", ".join(f"a-long-name-{number}" for number in range(100))
TWO = (
    "command_rules:\n"
    "- {name: a, commands: [git], subcommands: [push], decision: deny}\n"
    "- {name: b, commands: [git, npm], decision: allow}\n"
)


def lines(parse: Parse, first: str, second: str) -> list[str]:
    found = differences(parse(HEAD + first), parse(HEAD + second))
    return differences_text(found, "one", "other").splitlines()


def test_names_and_descriptions_do_not_count(parse: Parse) -> None:
    other = "version: 1\nname: y\ndescription: z\n" + TWO
    assert differences(parse(HEAD + TWO), parse(other)) == []
    assert lines(parse, TWO, TWO) == ["one and other decide the same"]


@pytest.mark.parametrize(
    ("first", "second", "line"),
    [
        ("", "defaults: {command: audit}", "~ defaults.command: deny -> audit"),
        ("limits: {wall_time: 1h}", "", "~ limits.wall_time: 3600 -> (left out)"),
        ("env_policy: {remove: [A, B]}", "env_policy: {remove: [B]}", "- env_policy.remove: A"),
        ("", "trust: {path_shadow: deny}", "~ trust.path_shadow: (left out) -> deny"),
        (
            "command_rules: [{name: a, commands: [x], decision: deny}]",
            "command_rules: [{name: a, commands: [x, y], decision: deny}]",
            '~ command_rules: a: commands: + "y"',
        ),
        (
            f"command_rules: [{{name: a, commands: [{MANY}, x], decision: deny}}]",
            f"command_rules: [{{name: a, commands: [{MANY}, y], decision: deny}}]",
            '~ command_rules: a: commands: - "x", + "y"',
        ),
        (
            "",
            "signal_rules: [{name: s, signals: [SIGHUP], decision: allow}]",
            '+ signal_rules: s: {"signals": ["SIGHUP"], "decision": "allow"}',
        ),
        (
            "command_rules: [{name: a, commands: [x], decision: deny}]",
            "",
            '- command_rules: a: {"commands": ["x"], "decision": "deny"}',
        ),
    ],
)
def test_what_differs_has_a_line(parse: Parse, first: str, second: str, line: str) -> None:
    assert line in lines(parse, first, second)[1:]


def test_the_order_of_names_in_a_rule_says_nothing(parse: Parse) -> None:
    other = TWO.replace("[git, npm]", "[npm, git]")
    assert differences(parse(HEAD + TWO), parse(HEAD + other)) == []


def test_a_rule_that_moved_is_told_where_another_decides_now(parse: Parse) -> None:
    head, a, b = TWO.splitlines(keepends=True)
    (found,) = differences(parse(HEAD + TWO), parse(HEAD + head + b + a))
    assert found in (
        Difference(what="moved", where="command_rules: b", after="before a"),
        Difference(what="moved", where="command_rules: a", after="after b"),
    )


def test_a_rule_that_moved_past_one_about_something_else_has_not_changed(parse: Parse) -> None:
    head, a, b = TWO.replace("[git, npm]", "[npm]").splitlines(keepends=True)
    assert differences(parse(HEAD + head + a + b), parse(HEAD + head + b + a)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy_differs_from_all_others_and_not_from_itself(name: str) -> None:
    policies = {each: base(read_source(each).text) for each in SHIPPED}
    for other, found in policies.items():
        assert bool(differences(policies[name], found)) is (other != name)


@pytest.mark.tier("ci")
def test_two_thousand_rules_in_another_order_are_compared_in_time(parse: Parse) -> None:
    rules = [f"- {{name: r{n}, commands: [c{n}], decision: deny}}\n" for n in range(2000)]
    first, second = "".join(rules), "".join(reversed(rules))
    assert lines(parse, f"command_rules:\n{first}", f"command_rules:\n{second}")
