"""What only several keys together can get wrong, and what they mean together."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import (
    Action,
    CommandRedirect,
    SignalRequest,
    TargetType,
    Via,
    with_implied,
)
from sigwrap.policy.judge.rules import CommandCase, PidRange, ProcessPattern, SignalCase
from sigwrap.policy.tools.cases import command_request
from sigwrap.policy.tools.show import policy_text
from tests.policy.conftest import Parse, Problems

RULE = "command_rules:\n  - {name: r, commands: [x], decision: deny%s}\n"
ALTERNATIVES = """\
version: 1
name: base
command_rules:
- name: r
  commands: [git]
  any:
  - {subcommands: [push], flags: [f]}
  - {subcommands: [tag]}
  decision: deny
  message: no, thanks
"""
REDIRECT = "command_rules:\n  - {name: r, commands: [x], decision: redirect, redirect_to: {%s}}\n"
SIGNAL_RULE = "signal_rules:\n  - {name: r, signals: [TERM], decision: %s}\n"
TARGET = "signal_rules:\n  - {name: r, signals: [9], decision: deny, target: %s}\n"


def test_patterns_may_be_too_much_together(problems: Problems) -> None:
    patterns = "'a{900}', 'b{900}', 'c{900}', 'd{900}', 'e{900}'"
    (problem,) = problems(RULE % f", args_patterns: [{patterns}]")
    assert problem.message.startswith("args_patterns together: ")


def test_rules_of_different_kinds_may_have_one_name(parse: Parse) -> None:
    policy = parse("version: 1\nname: x\n" + RULE % "" + SIGNAL_RULE % "deny")
    assert policy.command_rules[0].name == policy.signal_rules[0].name


@pytest.mark.parametrize(
    ("written", "targets"),
    [
        ("children", (TargetType.CHILDREN,)),
        ("{type: children}", (TargetType.CHILDREN,)),
        ("[self, {type: user}]", (TargetType.SELF, TargetType.USER)),
        ("{type: user, pattern: x}", (ProcessPattern(glob="x", kind=TargetType.USER),)),
        ("{type: pid_range, min: 7, max: 7}", (PidRange(minimum=7, maximum=7),)),
    ],
)
def test_the_ways_to_write_a_target(
    parse: Parse, written: str, targets: tuple[object, ...]
) -> None:
    policy = parse("version: 1\nname: x\n" + TARGET % written)
    assert policy.signal_rules[0].targets == targets


def test_what_is_left_out_of_a_rule(parse: Parse) -> None:
    policy = parse("version: 1\nname: x\n" + REDIRECT % "command: y" + SIGNAL_RULE % "allow")
    command, signal = policy.command_rules[0], policy.signal_rules[0]
    assert (command.depth, command.args, command.truncated, command.traced) == (None,) * 4
    assert command.redirect_to == CommandRedirect(command="y", via=Via.EXEC)
    assert (signal.targets, signal.redirect_signal, signal.fallback) == ((), 0, None)
    assert signal.log is True


def test_alternatives_are_rules_of_one_name_each_at_its_own_line(parse: Parse) -> None:
    policy = parse(ALTERNATIVES)
    assert [(each.name, each.place.line, each.message) for each in policy.command_rules] == [
        ("r", 7, "no, thanks"),
        ("r", 8, "no, thanks"),
    ]
    first, second = policy.command_rules
    assert (first.commands, first.subcommands, first.flags) == (("git",), ("push",), ("f",))
    assert (second.commands, second.subcommands, second.args) == (("git",), ("tag",), None)


def test_alternatives_are_shown_as_one_rule(parse: Parse) -> None:
    shown = policy_text(parse(ALTERNATIVES))
    assert shown.count("name: r\n") == 1 and shown.index("any:") < shown.index("decision:")
    again = parse(shown).command_rules
    places = [each.place for each in again]
    assert [each._replace(place=places[0]) for each in again] == [
        each._replace(place=places[0]) for each in parse(ALTERNATIVES).command_rules
    ]


def test_an_override_covers_all_alternatives(parse: Parse) -> None:
    mine = (
        "version: 1\nname: mine\nextends: base\ncommand_rules:\n"
        "- {name: m, commands: [git], decision: allow, overrides: [%s]}\n"
    )
    for overrides, expected in (("", "r"), ("r", "m")):
        engine = Engine(parse(mine % overrides, {"base": ALTERNATIVES}))
        for line in ("push -f", "tag x"):
            decided = engine.decide_command(command_request(["git", *line.split()]))
            assert decided.rule == expected


def test_an_override_of_a_rule_that_became_an_alternative_is_told_its_rule(
    problems: Problems,
) -> None:
    (problem,) = problems(RULE % ", overrides: [r-by-mv]")
    assert str(problem).endswith('no rule of a base has this name: "r-by-mv" (did you mean "r"?)')


def test_a_range_of_one_depth(parse: Parse) -> None:
    policy = parse("version: 1\nname: x\n" + RULE % ", depth: {min: 3, max: 3}")
    assert policy.command_rules[0].depth == (3, 3)


def test_what_a_case_asks(parse: Parse) -> None:
    line, words, signal = parse(
        """
version: 1
name: x
tests:
  - {command: "ls 'a b'", decision: deny}
  - {command: [ls, "a b", ""], depth: 0, truncated: true, traced: true, decision: audit, rule: r}
  - {signal: TERM, target: [user, self], target_command: x, target_pid: 5, handled: true,
     decision: absorb}
"""
    ).cases
    assert line == CommandCase(
        place=line.place,
        argv=("ls", "a b"),
        cwd="/project/app",
        depth=1,
        truncated=False,
        traced=False,
        decision=Action.DENY,
        rule="",
    )
    assert words == line._replace(
        place=words.place,
        argv=("ls", "a b", ""),
        depth=0,
        truncated=True,
        traced=True,
        decision=Action.AUDIT,
        rule="r",
    )
    assert signal == SignalCase(
        place=signal.place,
        request=SignalRequest(
            signal=15,
            target_types=with_implied([TargetType.USER, TargetType.SELF]),
            target_command="x",
            target_pid=5,
            handled=True,
        ),
        decision=Action.ABSORB,
        rule="",
    )
