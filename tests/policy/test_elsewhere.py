"""What lies on a mount that isn't sigwrap's is allowed by no path and no name."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
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
