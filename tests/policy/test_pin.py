"""Rules by which a tool is the file that it was, or denied."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Action, CommandRequest, Program
from sigwrap.policy.language.lint import lint
from sigwrap.policy.tools.cases import command_request
from sigwrap.policy.tools.explain import explain_command, explanation_text
from sigwrap.policy.tools.pin import Pin, pinning_policy
from tests.policy.conftest import MakeEngine, Parse

A, B = "a1" * 32, "b2" * 32
BASE = "version: 1\nname: base\ndefaults: {command: allow}\n"
HOSTILE = "a # b\n  - {name: all, commands: ['*'], decision: allow}"
DENIES = f"""\
defaults: {{command: allow}}
command_rules:
  - {{name: pin, commands: [git, pip, "["], not_sha256: ["{A}", "{B}"], decision: deny}}
"""
ALLOWS = f"""\
command_rules:
  - {{name: newer, commands: [git], not_sha256: ["{A}"], decision: allow}}
"""


def of_digest(name: str, digest: str) -> CommandRequest:
    return CommandRequest((Program(f"/usr/bin/{name}", name, (name,), lambda: digest),))


def test_a_changed_or_unreadable_file_is_denied(engine: MakeEngine) -> None:
    decide = engine(DENIES).decide_command
    for digest, rule in ((A, "builtin:default"), (B, "builtin:default"), ("c3" * 32, "pin")):
        assert decide(of_digest("git", digest)).rule == rule
    assert decide(of_digest("git", "")).rule == "pin"
    gone = Program("/usr/bin/git", "git", ("git",), missing=True)
    assert decide(CommandRequest((gone,))).rule == "pin"


def test_an_allowance_needs_a_digest(engine: MakeEngine) -> None:
    decide = engine(ALLOWS).decide_command
    assert decide(of_digest("git", B)).action is Action.ALLOW
    for digest in (A, ""):
        assert decide(of_digest("git", digest)).action is Action.DENY


def test_another_spelling_is_not_the_tools_own_file(engine: MakeEngine) -> None:
    """`python3 -m pip` is python3's file, `git-lfs` one of its own: neither is held against git's
    or pip's digest."""
    decide = engine(DENIES).decide_command
    spelled = Program("/usr/bin/python3", "pip", ("pip", "list"), counts_by_name=True)
    python = Program("/usr/bin/python3", "python3", ("python3", "-m", "pip"), lambda: B)
    assert decide(CommandRequest((python, spelled))).action is Action.ALLOW


def test_without_a_digest_a_file_counts_as_the_pinned_one(engine: MakeEngine) -> None:
    compiled = engine(DENIES)
    request = command_request(["git", "push"])
    assert compiled.decide_command(request).action is Action.ALLOW
    text = explanation_text(explain_command(compiled, request))
    assert "pin  needs not_sha256: " in text


def test_a_wider_pin_below_another_gets_no_warning(parse: Parse) -> None:
    head = "version: 1\nname: x\ncommand_rules:\n"
    rule = "  - {name: %s, commands: [git], not_sha256: [%s], decision: deny}\n"
    one, two = f'"{A}"', f'"{A}", "{B}"'
    assert lint(parse(head + rule % ("a", two) + rule % ("b", one))) == ()
    (found,) = lint(parse(head + rule % ("a", one) + rule % ("b", two)))
    assert "a" in found.message


def test_one_rule_for_each_name(parse: Parse) -> None:
    pins = [
        Pin("git", "/usr/bin/git", A),
        Pin("git", "/opt/git", B),
        Pin("git", "/usr/bin/git", A),
        Pin("g++", "/usr/bin/g++-12", A),
        Pin("g--", "/usr/bin/g--", B),
        Pin("[", "/usr/bin/[", A),
        Pin("${HOME}", "/x/${HOME}", A),
        Pin("on", "/usr/bin/on", "1" * 64),
    ]
    policy = parse(pinning_policy("base", pins), {"base": BASE})
    rules = {rule.name: rule for rule in policy.command_rules}
    assert list(rules) == ["pin-git", "pin-g", "pin-g-2", "pin", "pin-HOME", "pin-on"]
    assert rules["pin-git"].not_sha256 == {A, B}
    assert rules["pin-git"].decision is Action.DENY
    assert "sigwrap policy pin git" in rules["pin-git"].message
    assert lint(policy) == ()


@pytest.mark.parametrize(
    "name",
    [*("[", "a*b", "g++", "${HOME}", "on", "é", 'a"b', "a\\b", "a # b"), HOSTILE, f'"{HOSTILE}'],
)
def test_a_name_may_have_any_characters(parse: Parse, name: str) -> None:
    policy = parse(pinning_policy("base", [Pin(name, f"/x/{name}", A)]), {"base": BASE})
    assert len(policy.command_rules) == 1
    engine = Engine(policy)
    assert engine.decide_command(of_digest(name, A)).action is Action.ALLOW
    assert engine.decide_command(of_digest(name, B)).action is Action.DENY
