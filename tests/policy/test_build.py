"""What only several keys together can get wrong, and what they mean together."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.request import (
    Action,
    CommandRedirect,
    Operation,
    SignalRequest,
    TargetType,
    Via,
    with_implied,
)
from sigwrap.policy.judge.rules import CommandCase, PidRange, ProcessPattern, SignalCase
from tests.policy.conftest import Parse, Problems

RULE = "command_rules:\n  - {name: r, commands: [x], decision: deny%s}\n"
REDIRECT = "command_rules:\n  - {name: r, commands: [x], decision: redirect, redirect_to: {%s}}\n"
SIGNAL_RULE = "signal_rules:\n  - {name: r, signals: [TERM], decision: %s}\n"
TARGET = "signal_rules:\n  - {name: r, signals: [9], decision: deny, target: %s}\n"
SAME_NAME = "another rule here or in the base has this name"
OUT_OF_LOG = "only what a rule allows can stay out of the log"
NOT_A_LINE = "not a command line: a quote is open, or it is empty"


ONE_OF = "3:9: error: a test has one of a command, a signal, a file, a connection and a server"


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            RULE % "" + "  - {name: r, commands: [y], decision: deny}\n",
            [f'5:12: error: {SAME_NAME}: "r"'],
        ),
        (
            RULE % ", depth: {min: 4, max: 2}",
            ['4:59: error: an impossible range: min is above max: "4 to 2"'],
        ),
        # Redirects
        (SIGNAL_RULE % "redirect", ["4:42: error: a redirect needs redirect_to"]),
        (
            SIGNAL_RULE % "deny, redirect_to: 9",
            ["4:61: error: redirect_to needs `decision: redirect`"],
        ),
        (
            RULE % ", redirect_to: {command: x}",
            ["4:59: error: redirect_to needs `decision: redirect`"],
        ),
        (
            "command_rules:\n  - {name: r, commands: [x], redirect_to: {command: x}}\n",
            ["4:5: error: command_rules needs the key decision"],
        ),
        (
            REDIRECT % "command: x, record: true",
            ["4:84: error: only `via: stub` can be recorded"],
        ),
        (
            REDIRECT % "command: x, record: true, via: exec",
            ["4:84: error: only `via: stub` can be recorded"],
        ),
        # Signals
        (SIGNAL_RULE % "deny, log: false", [f"4:53: error: {OUT_OF_LOG}"]),
        (SIGNAL_RULE % "audit, log: false", [f"4:54: error: {OUT_OF_LOG}"]),
        (
            TARGET % "{type: pid_range, min: 1}",
            ["4:60: error: a pid_range target needs max"],
        ),
        (
            TARGET % "{type: pid_range, min: 2, max: 1, pattern: x}",
            [
                '4:76: error: an impossible range: min is above max: "2 to 1"',
                "4:96: error: a pid_range target has no pattern",
            ],
        ),
        (
            TARGET % "{type: children, min: 1}",
            ["4:75: error: a children target has no min"],
        ),
        (TARGET % "[self, {type: process}]", ["4:67: error: a process target needs pattern"]),
        (TARGET % "{min: 9, max: 3}", ["4:53: error: target needs the key type"]),
        # Cases
        (
            "tests: [{decision: deny}]\n",
            [ONE_OF],
        ),
        (
            "tests: [{command: ls, signal: 9, decision: deny}]\n",
            [ONE_OF],
        ),
        (
            "tests: [{signal: 9, decision: deny}]\n",
            ["3:18: error: a test of a signal needs a target"],
        ),
        (
            "tests: [{signal: 9, target: self, truncated: true, traced: true, decision: absorb}]\n",
            [
                "3:46: error: truncated belongs to a test of a command",
                "3:60: error: traced belongs to a test of a command",
            ],
        ),
        (
            "tests: [{signal: 9, target: self, depth: 1, decision: deny}]\n",
            ["3:42: error: depth belongs to a test of a command"],
        ),
        (
            "tests: [{command: ls, target: self, decision: deny}]\n",
            ["3:31: error: target belongs to a test of a signal"],
        ),
        (
            "tests: [{command: ls, handled: true, decision: deny}]\n",
            ["3:32: error: handled belongs to a test of a signal"],
        ),
        (
            "tests: [{command: ls, target_command: x, target_pid: 1, decision: deny}]\n",
            [
                "3:39: error: target_command belongs to a test of a signal",
                "3:54: error: target_pid belongs to a test of a signal",
            ],
        ),
        (
            "tests: [{command: ls, decision: absorb}]\n",
            ['3:33: error: a command can\'t be decided so: "absorb"'],
        ),
        ("tests: [{command: '', decision: deny}]\n", [f"3:19: error: {NOT_A_LINE}"]),
        ('tests: [{command: "ls \'x", decision: deny}]\n', [f"3:19: error: {NOT_A_LINE}"]),
        ("tests: [{command: ls}]\n", ["3:9: error: tests needs the key decision"]),
        (
            "tests: [{command: 5, decision: deny}]\n",
            ['3:19: error: command is a text; put it in quotes: "5"'],
        ),
    ],
)
def test_keys_that_do_not_go_together(problems: Problems, sections: str, said: list[str]) -> None:
    found = [str(each).removeprefix("policy.yaml:") for each in problems(sections)]
    assert found == said


def test_patterns_may_be_too_much_together(problems: Problems) -> None:
    patterns = "'a{900}', 'b{900}', 'c{900}', 'd{900}', 'e{900}'"
    (problem,) = problems(RULE % f", args_patterns: [{patterns}]")
    assert problem.message.startswith("these patterns together: ")


def test_rules_of_different_kinds_may_have_one_name(parse: Parse) -> None:
    policy = parse("version: 1\nname: x\n" + RULE % "" + SIGNAL_RULE % "deny")
    assert policy.command_rules[0].name == policy.signal_rules[0].name


@pytest.mark.parametrize(
    ("written", "targets"),
    [
        ("children", (TargetType.CHILDREN,)),
        ("{type: children}", (TargetType.CHILDREN,)),
        ("[self, {type: user}]", (TargetType.SELF, TargetType.USER)),
        ("{type: process, pattern: 'x*'}", (ProcessPattern(glob="x*"),)),
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
    assert command.min_depth is command.max_depth is command.truncated is command.traced is None
    assert command.redirect_to == CommandRedirect(command="y", via=Via.EXEC)
    assert (signal.targets, signal.redirect_signal, signal.fallback) == ((), 0, None)
    assert signal.log is True


def test_rules_on_files_and_hosts(parse: Parse) -> None:
    policy = parse(
        """
version: 1
name: x
unenforced: warn
file_rules: [{name: f, paths: ["/x/**"], operations: [read, write], decision: deny}]
network_rules: [{name: n, destinations: [a.example], decision: approve, message: ask}]
"""
    )
    (file,), (network,) = policy.file_rules, policy.network_rules
    assert (file.name, file.paths, file.operations) == (
        "f",
        ("/x/**",),
        (Operation.READ, Operation.WRITE),
    )
    assert (file.decision, file.make_missing) == (Action.DENY, False)
    assert (network.name, network.destinations, network.ports) == ("n", ("a.example",), ())
    assert (network.decision, network.message) == (Action.APPROVE, "ask")


def test_a_range_of_one_depth(parse: Parse) -> None:
    policy = parse("version: 1\nname: x\n" + RULE % ", depth: {min: 3, max: 3}")
    assert (policy.command_rules[0].min_depth, policy.command_rules[0].max_depth) == (3, 3)


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
    assert words == CommandCase(
        place=words.place,
        argv=("ls", "a b", ""),
        cwd="/project/app",
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
