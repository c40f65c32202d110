"""What is known of a file beside its path: that it lies elsewhere, and what it is as well."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.named import Named
from sigwrap.policy.judge.request import Action, CommandRequest, Program
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy

TEXT = """
version: 1
name: t
defaults: {command: %s, signal: deny}
command_rules:
  - {name: no, commands: [no, "/usr/n*"], decision: %s}
  - {name: yes, commands: [git, "/usr/bin/*"], decision: %s}
"""


def _decision(text: str, path: str, name: str) -> Action:
    policy = parse_policy(Source("t.yaml", text), variables={}, find_base=lambda _b, _s: None)
    program = Program(path, name, (name,), elsewhere=True)
    return Engine(policy).decide_command(CommandRequest((program,))).action


@pytest.mark.parametrize("lenient", ["allow", "audit"])
def test_an_allowing_rule_is_passed_over(lenient: str) -> None:
    text = TEXT % ("approve", "deny", lenient)
    assert _decision(text, "/usr/bin/git", "git") is Action.APPROVE
    assert _decision(text, "/usr/bin/x", "x") is Action.APPROVE


@pytest.mark.parametrize("strict", ["deny", "approve"])
def test_any_other_rule_holds(strict: str) -> None:
    text = TEXT % ("allow", strict, "allow")
    assert _decision(text, "/home/no", "no") is Action(strict)
    assert _decision(text, "/usr/no", "x") is Action(strict)


def test_what_everything_may_that_may_too() -> None:
    """A rule for every command goes by no name."""
    text = TEXT % ("deny", "deny", "allow")
    assert _decision(text, "/usr/bin/git", "git") is Action.DENY
    every = text.replace('[git, "/usr/bin/*"]', '["*"]')
    assert _decision(every, "/usr/bin/git", "git") is Action.ALLOW


def _also(text: str, name: str) -> Action:
    policy = parse_policy(Source("t.yaml", text), variables={}, find_base=lambda _b, _s: None)
    main = Program("/home/x", "x", ("x",))
    also = Program(f"/usr/bin/{name}", name, ("x",), counts_by_name=True)
    return Engine(policy).decide_command(CommandRequest((main, also))).action


def test_what_a_file_is_as_well_counts_where_a_rule_names_it() -> None:
    text = TEXT.replace("[git", "[x, git") % ("deny", "deny", "allow")
    assert _also(text, "no") is Action.DENY
    assert _also(text, "git") is Action.ALLOW


def test_a_default_and_a_rule_for_everything_are_about_the_program_itself() -> None:
    text = TEXT.replace("[git", "[x, git") % ("deny", "deny", "allow")
    assert _also(text.replace("/usr/bin/*", "/home/*"), "other") is Action.ALLOW
    rest = '\n  - {name: rest, commands: ["*"], decision: deny}\n'
    assert _also(text.replace("/usr/bin/*", "/home/*") + rest, "other") is Action.ALLOW


def test_the_names_of_the_rules_that_are_strict() -> None:
    text = (
        TEXT % ("allow", "approve", "allow")
        + '  - {name: e, commands: ["*", "m?"], decision: deny}'
    )
    policy = parse_policy(Source("t.yaml", text), variables={}, find_base=lambda _b, _s: None)
    named = Named(policy.command_rules)
    assert (named.names, named.paths) == (frozenset({"no"}), frozenset())
    assert named.among(["git", "no", "mv", "rm"]) == ["no", "mv"]
