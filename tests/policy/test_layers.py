"""A policy's rule does not weaken a rule of its base, unless it says so with `overrides`."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.layers import is_stricter
from sigwrap.policy.judge.network import Direction, endpoint_of
from sigwrap.policy.judge.request import (
    Action,
    Decision,
    Operation,
    SignalRequest,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import FileRule, Policy
from sigwrap.policy.problems import Place
from sigwrap.policy.tools.cases import command_request, weakenings
from sigwrap.policy.tools.explain import explain_command, explanation_text
from sigwrap.policy.tools.show import policy_text
from tests.policy.conftest import Parse, Problems

BASE = """\
version: 1
name: base
defaults: {command: deny}
command_rules:
  - {name: keep, commands: [rm], args_patterns: [^/$], decision: deny}
  - {name: home, commands: [rm], args_patterns: [^/home$], decision: deny}
  - {name: some, commands: [rm, ls], decision: allow}
signal_rules:
  - {name: outside, signals: ["@all"], target: user, decision: deny}
file_rules:
  - {name: public, paths: [/secret/public], operations: [read], decision: allow}
  - {name: secret, paths: [/secret], operations: [read], decision: deny}
network_rules:
  - {name: metadata, destinations: [192.0.2.1], decision: deny}
tests:
  - {command: rm /, decision: deny}
  - {command: rm /home, decision: deny}
  - {command: rm x, decision: allow}
  - {signal: TERM, target: user, decision: deny}
  - {file: /secret/key, operation: read, decision: deny}
  - {connect: "192.0.2.1:80", decision: deny}
"""
OWN = {
    "command_rules": "commands: [rm]",
    "signal_rules": "signals: [TERM]",
    "file_rules": "paths: [/**], operations: [read]",
    "network_rules": 'destinations: ["*"]',
}
WEAKENED = {
    "command_rules": ["keep", "home"],
    "signal_rules": ["outside"],
    "file_rules": ["secret"],
    "network_rules": ["metadata"],
}


def extended(parse: Parse, rules: str, base: str = BASE) -> Policy:
    return parse(f"version: 1\nname: own\nextends: base\n{rules}\n", {"base": base})


def own(section: str, decision: str, overrides: str = "") -> str:
    more = f", overrides: [{overrides}]" if overrides else ""
    return f"{section}:\n  - {{name: own, {OWN[section]}, decision: {decision}{more}}}"


def decided(policy: Policy, section: str) -> str:
    engine = Engine(policy)
    match section:
        case "command_rules":
            decision = engine.decide_command(command_request(["rm", "/"]))
        case "signal_rules":
            types = with_implied([TargetType.USER])
            decision = engine.decide_signal(SignalRequest(15, types, "", 7))
        case "file_rules":
            decision = engine.files.decide(Operation.READ, "/secret/key")
        case _:
            decision = engine.network.decide(endpoint_of("192.0.2.1:80", Direction.CONNECT))
    return f"{decision.action.value} by {decision.rule}"


@pytest.mark.parametrize("section", OWN)
def test_a_base_stays_as_strict_as_it_is_unless_it_is_overridden(
    parse: Parse, section: str
) -> None:
    names = WEAKENED[section]
    laxer = extended(parse, own(section, "allow"))
    assert decided(laxer, section) == f"deny by {names[0]}"
    assert [each.message.partition(" for ")[0] for each in weakenings(laxer)] == [
        f"own weakens {name}: deny → allow" for name in names
    ]
    told = extended(parse, own(section, "allow", ", ".join(names)))
    assert decided(told, section) == "allow by own"
    assert weakenings(told) == ()
    stricter = extended(parse, own(section, "deny"))
    assert decided(stricter, section) == "deny by own"
    assert weakenings(stricter) == ()


@pytest.mark.parametrize("section", OWN)
def test_what_is_shown_decides_the_same(parse: Parse, section: str) -> None:
    for text in (own(section, "allow"), own(section, "allow", ", ".join(WEAKENED[section]))):
        policy = extended(parse, text)
        shown = parse(policy_text(policy))
        assert decided(shown, section) == decided(policy, section)
        above = own(section, "allow").replace("name: own", "name: above")
        assert decided(extended(parse, above, policy_text(policy)), section) == (
            decided(policy, section).replace("allow by own", "allow by above")
        )


def test_only_the_rules_that_are_named_are_overridden(parse: Parse) -> None:
    policy = extended(parse, own("command_rules", "approve", "keep"))
    engine = Engine(policy)
    for words, action in (("rm /", "approve"), ("rm / /home", "deny"), ("rm x", "approve")):
        assert engine.decide_command(command_request(words.split())).action.value == action
    assert weakenings(policy) == ()  # `overrides` says what is meant
    engine = Engine(extended(parse, "defaults: {command: allow}"))
    assert engine.decide_command(command_request(["rm", "/"])).action is Action.DENY


def test_an_empty_list_accepts_what_the_base_decides(parse: Parse) -> None:
    rules = own("command_rules", "approve").replace("approve}", "approve, overrides: []}")
    policy = extended(parse, rules)
    assert decided(policy, "command_rules") == "deny by keep"
    assert weakenings(policy) == ()


def test_a_rule_of_a_middle_file_is_held_to_the_file_below(parse: Parse) -> None:
    middle = f"version: 1\nname: middle\nextends: base\n{own('command_rules', 'approve')}\n"
    top = (
        "version: 1\nname: top\nextends: middle\ncommand_rules:\n"
        "  - {name: top, commands: [rm], decision: allow, overrides: [%s]}\n"
    )
    for overrides, answers in (
        ("", ("deny by keep", "approve by own")),
        ("own", ("deny by keep", "allow by top")),
        ("own, keep, home", ("allow by top", "allow by top")),
    ):
        engine = Engine(parse(top % overrides, {"middle": middle, "base": BASE}))
        found = [engine.decide_command(command_request(["rm", each])) for each in ("/", "x")]
        assert tuple(f"{each.action.value} by {each.rule}" for each in found) == answers


def test_explain_names_the_rule_that_would_be_weakened(parse: Parse) -> None:
    engine = Engine(extended(parse, own("command_rules", "allow")))
    text = explanation_text(explain_command(engine, command_request(["rm", "/"])))
    assert "own  would weaken keep (deny), which it does not list in overrides" in text


def test_overrides_names_rules_that_exist(parse: Parse, problems: Problems) -> None:
    (problem,) = problems(own("command_rules", "allow", "kepe"))
    assert str(problem).endswith('no rule of a base has this name: "kepe"')


def test_files_beneath_an_override_are_as_the_base_says(parse: Parse) -> None:
    files = FileRules.of(extended(parse, own("file_rules", "allow")))
    assert Operation.READ in files.restricted
    opened = {each.path for each in files.sandbox_rules({"/": [("secret", True), ("a", True)]}.get)}
    assert opened == {"/a"}
    names = {"/": [("secret", True)], "/secret": [("public", True), ("key", False)]}
    opened = {each.path for each in files.sandbox_rules(names.get)}
    assert opened == {"/secret/public"}
    rules = own("file_rules", "allow", "secret")
    assert FileRules.of(extended(parse, rules)).restricted == frozenset()


PATHS = ("/", "/a", "/a/b", "/a/*", "/a/b/c", "/b")
DECISIONS = st.sampled_from(["allow", "deny"])
SOME_RULES = st.lists(st.tuples(st.sampled_from(PATHS), DECISIONS), max_size=4)
TREE = {"/": [("a", True), ("b", True)], "/a": [("b", True), ("x", True)], "/a/b": [("c", True)]}


@example([("/", "allow"), ("/", "deny")], [("/a", "allow"), ("/", "deny")], False)
@given(SOME_RULES, SOME_RULES, st.booleans())
def test_the_kernel_gets_what_the_rules_decide(
    above: list[tuple[str, str]], below: list[tuple[str, str]], overrides: bool
) -> None:
    rules = [
        FileRule(
            Place("p", 1, 1), f"{layer}{at}", Action(decision), (path,), (Operation.READ,)
        )._replace(layer=layer, overrides=("00",) if overrides and layer else None)
        for layer, found in ((1, above), (0, below))
        for at, (path, decision) in enumerate(found)
    ]
    files = FileRules(rules, Decision(Action.DENY, "", ""))
    found = list(files.sandbox_rules(lambda folder: TREE.get(folder, [])))
    opened = [each.path for each in found if Operation.READ in each.operations]
    if Operation.READ not in files.restricted:
        opened = ["/"]
    for path in ("/a/b/c", "/a/x", "/b"):
        is_open = any(f"{path}/".startswith(f"{rule.rstrip('/')}/") for rule in opened)
        assert is_open is (files.decide(Operation.READ, path).action is Action.ALLOW), path


def test_audit_is_no_stricter_than_allow() -> None:
    assert not is_stricter(Action.AUDIT, Action.ALLOW)
    order = [Action.ALLOW, Action.APPROVE, Action.REDIRECT, Action.ABSORB, Action.DENY]
    assert all(is_stricter(later, earlier) for earlier, later in pairwise(order))
