"""A transcript: under these rules, this request is decided so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sigwrap.policy.judge.engine import MAX_KEPT_CANDIDATES
from sigwrap.policy.judge.request import (
    STRICTNESS,
    Action,
    CommandRequest,
    Fact,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
    with_implied,
)
from sigwrap.policy.tools.cases import command_request
from tests.policy.conftest import MakeEngine


def program(
    path: str, *args: str, name: str = "", sha256: Callable[[], str] | None = None
) -> Program:
    name = name or path.rpartition("/")[2]
    return Program(path=path, name=name, argv=(name, *args), sha256=sha256)


def request(*programs: Program, **facts: Any) -> CommandRequest:
    return CommandRequest(programs=programs, **facts)


def signal(number: int, *types: TargetType, **facts: Any) -> SignalRequest:
    return SignalRequest(signal=number, target_types=with_implied(types), **facts)


def test_the_first_rule_that_matches_decides(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: a, commands: [git], subcommands: [push], decision: deny, message: no}\n"
        "  - {name: b, commands: [git], decision: allow}\n"
        "  - {name: c, commands: ['*'], decision: approve}\n"
    ).decide_command
    push = decide(command_request(["git", "push"]))
    assert (push.action, push.rule, push.message) == (Action.DENY, "a", "no")
    assert push.reason == "rule a (policy.yaml:4)"
    assert decide(command_request(["git", "pull"])).rule == "b"
    assert decide(command_request(["ls"])).rule == "c"


def test_no_rule_at_all_is_the_default_and_the_default_of_that_is_deny(engine: MakeEngine) -> None:
    decision = engine("").decide_command(command_request(["ls"]))
    assert (decision.action, decision.rule) == (Action.DENY, "builtin:default")
    assert "its default is deny" in decision.reason
    audit = engine("defaults: {command: audit}\n").decide_command(command_request(["ls"]))
    assert audit.action is Action.AUDIT


def test_a_bare_name_is_what_it_is_called_or_what_it_is(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: dash, commands: [dash], subcommands: [x], decision: audit}\n"
        "  - {name: sh, commands: [sh], decision: allow}\n"
        "  - {name: mkfs, commands: ['mkfs.*'], decision: deny}\n"
    ).decide_command
    assert decide(request(program("/usr/bin/dash", name="sh"))).rule == "sh"
    assert decide(request(program("/usr/bin/dash", "x", name="sh"))).rule == "dash"
    assert decide(request(program("/opt/sh"))).rule == "sh"
    assert decide(request(program("/sbin/mke2fs", name="mkfs.ext4"))).rule == "mkfs"
    assert decide(request(program("/sbin/mkfs.xfs", name="link"))).rule == "mkfs"
    assert decide(request(program("/sh/other"))).rule == "builtin:default"


def test_a_name_with_a_slash_is_a_full_path(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: exact, commands: [/usr/bin/git], decision: allow}\n"
        "  - {name: tree, commands: ['/opt/**'], decision: audit}\n"
        "  - {name: git, commands: [git], decision: deny}\n"
    ).decide_command
    assert decide(request(program("/usr/bin/git"))).rule == "exact"
    assert decide(request(program("/home/user/git"))).rule == "git"
    assert decide(request(program("/opt/a/git"))).rule == "tree"


def test_links_between_many_names_are_not_all_kept(engine: MakeEngine) -> None:
    names = [f"n{index}" for index in range(60)]
    compiled = engine(
        f"command_rules: [{{name: r, commands: [{', '.join(names)}], decision: allow}}]\n"
    )
    for name in names:
        for basename in names:
            assert compiled.decide_command(request(program(f"/{basename}", name=name))).rule == "r"
            assert len(compiled._candidates_by_words) <= MAX_KEPT_CANDIDATES


def test_conditions_must_all_hold(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: r, commands: [x], subcommands: [go], args_patterns: [^-f$], "
        "depth: {min: 1, max: 2}, decision: allow}\n"
    ).decide_command
    for depth in (1, 2):
        assert decide(request(program("/x", "go", "-f"), depth=depth)).rule == "r"
    for wrong in (
        request(program("/x", "go", "-f"), depth=0),
        request(program("/x", "go", "-f"), depth=3),
        request(program("/x", "go"), depth=1),
        request(program("/x", "-f", "no"), depth=1),
    ):
        assert decide(wrong).rule == "builtin:default"


def test_truncated_and_traced(engine: MakeEngine) -> None:
    decide = engine(
        "defaults: {command: allow}\ncommand_rules:\n"
        "  - {name: long, commands: ['*'], truncated: true, decision: deny}\n"
        "  - {name: traced, commands: ['*'], traced: true, decision: deny}\n"
        "  - {name: whole, commands: [y], truncated: false, decision: audit}\n"
    ).decide_command
    assert decide(request(program("/x"), truncated=True)).rule == "long"
    assert decide(request(program("/x", "a" * 70_000))).rule == "long"
    assert decide(request(program("/x"), traced=True)).rule == "traced"
    assert decide(request(program("/x"))).rule == "builtin:default"
    assert decide(request(program("/y"))).rule == "whole"


def test_a_digest_is_asked_for_only_where_a_rule_needs_it(engine: MakeEngine) -> None:
    digest = "ab" * 32
    decide = engine(
        "command_rules:\n"
        f"  - {{name: pinned, commands: [x], subcommands: [go], sha256: ['{digest}'], "
        "decision: allow}\n"
    ).decide_command
    asked: list[int] = []

    def sha256() -> str:
        asked.append(1)
        return digest

    assert decide(request(program("/x", "stop", sha256=sha256))).action is Action.DENY
    assert not asked
    assert decide(request(program("/x", "go", sha256=sha256))).action is Action.ALLOW
    assert decide(request(program("/x", "go", sha256=lambda: "00"))).action is Action.DENY
    assert decide(request(program("/x", "go"))).action is Action.DENY


def test_the_strictest_answer_of_what_would_run_holds(engine: MakeEngine) -> None:
    decide = engine(
        "defaults: {command: audit}\ncommand_rules:\n"
        "  - {name: fine, commands: [env, a.py], decision: allow}\n"
        "  - {name: ask, commands: [perl], decision: approve}\n"
        "  - {name: swap, commands: [git], decision: redirect, redirect_to: {command: echo}}\n"
        "  - {name: never, commands: [rm], decision: deny}\n"
        "  - {name: neither, commands: [dd], decision: deny}\n"
    ).decide_command
    script, perl = program("/w/a.py"), program("/usr/bin/perl")
    git, rm = program("/usr/bin/git"), program("/usr/bin/rm")
    assert decide(request(script)).rule == "fine"
    assert decide(request(script, program("/usr/bin/python3"))).rule == "builtin:default"
    assert decide(request(script, perl)).rule == "ask"
    assert decide(request(perl, git)).rule == "swap"
    assert decide(request(rm, git, perl)).rule == "never"
    assert decide(request(script, git, rm)).rule == "never"
    assert decide(request(script, rm, program("/usr/bin/dd"))).rule == "never"


def test_strictness_is_one_documented_order() -> None:
    ordered = [action.value for action in sorted(Action, key=STRICTNESS.__getitem__)]
    assert ordered == "allow audit approve redirect absorb deny".split()


def test_what_the_supervisor_needs_comes_with_the_decision(engine: MakeEngine) -> None:
    compiled = engine(
        "unenforced: warn\n"
        "command_rules:\n"
        "  - {name: c, commands: [x], decision: redirect, escalate: SIGPOLICY, "
        "redirect_to: {command: echo, args: [no], append_args: true}}\n"
        "signal_rules:\n"
        "  - {name: s, signals: [KILL], target: children, decision: redirect, "
        "redirect_to: TERM, fallback: audit, message: gently}\n"
        "  - {name: n, signals: [URG], target: self, decision: allow, log: false}\n"
    )
    command = compiled.decide_command(command_request(["x"]))
    assert command.redirect_to is not None and command.redirect_to.args == ("no",)
    assert command.escalate == "SIGPOLICY"
    softened = compiled.decide_signal(signal(9, TargetType.CHILDREN))
    assert (softened.redirect_signal, softened.fallback, softened.message) == (
        15,
        Action.AUDIT,
        "gently",
    )
    assert compiled.decide_signal(signal(23, TargetType.SELF)).log is False


def test_a_target_is_several_things_at_once(engine: MakeEngine) -> None:
    decide = engine(
        "signal_rules:\n"
        "  - {name: own, signals: ['@fatal'], target: descendants, decision: allow}\n"
        "  - {name: db, signals: ['@all'], target: {type: process, pattern: 'postgres*'}, "
        "decision: deny}\n"
        "  - {name: low, signals: ['@all'], target: {type: pid_range, min: 1, max: 100}, "
        "decision: absorb}\n"
        "  - {name: rest, signals: [TERM], target: [session, external], decision: audit}\n"
    ).decide_signal
    assert decide(signal(15, TargetType.CHILDREN)).rule == "own"
    assert decide(signal(15, TargetType.SIBLINGS)).rule == "rest"
    assert decide(signal(15, TargetType.USER)).rule == "rest"
    assert decide(signal(15, TargetType.USER, target_command="postgres: x")).rule == "db"
    assert decide(signal(15, TargetType.SYSTEM, target_pid=1)).rule == "low"
    assert decide(signal(15, TargetType.SYSTEM, target_pid=100)).rule == "low"
    assert decide(signal(15, TargetType.SYSTEM, target_pid=101)).rule == "rest"
    assert decide(signal(15, TargetType.SIGWRAP)).rule == "builtin:default"
    assert decide(signal(1, TargetType.CHILDREN)).rule == "builtin:default"


def test_a_rule_without_target_is_for_every_target(engine: MakeEngine) -> None:
    decide = engine("signal_rules: [{name: r, signals: [64], decision: allow}]\n").decide_signal
    assert decide(signal(64)).rule == "r"
    assert decide(signal(64, TargetType.EXTERNAL)).rule == "r"
    assert decide(signal(64, TargetType.SIGWRAP)).rule == "builtin:sigwrap"


@pytest.mark.parametrize("number", [-1, 65, 2**31])
def test_a_number_that_is_no_signal_gets_the_default(engine: MakeEngine, number: int) -> None:
    compiled = engine("signal_rules: [{name: r, signals: ['@all'], decision: allow}]\n")
    assert compiled.decide_signal(signal(number)).rule == "builtin:default"


def test_signal_0_is_a_question_and_goes_through(engine: MakeEngine) -> None:
    decision = engine("").decide_signal(signal(0, TargetType.EXTERNAL))
    assert (decision.action, decision.rule) == (Action.ALLOW, "builtin:probe")


def test_the_most_specific_type_names_the_target() -> None:
    assert most_specific(with_implied([TargetType.CHILDREN])) is TargetType.CHILDREN
    assert most_specific(with_implied([TargetType.USER])) is TargetType.USER
    assert most_specific(with_implied([TargetType.ROOT, TargetType.SELF])) is TargetType.SELF


def test_a_hostile_request_is_decided_soon(engine: MakeEngine) -> None:
    import time

    rules = "".join(
        f"  - {{name: r{i}, commands: [x], args_patterns: ['(a|aa)+{i}$'], decision: deny}}\n"
        for i in range(5)
    )
    decide = engine("command_rules:\n" + rules).decide_command
    for argv in (["x", "a" * 2**21], ["x", *["a"] * 2**18], ["x", *["aa\udcff"] * 20_000]):
        started = time.process_time()
        decide(command_request(argv))
        assert time.process_time() - started < 0.5


def test_whether_a_target_handles_it_is_asked_only_where_a_rule_gets_that_far(
    engine: MakeEngine,
) -> None:
    compiled = engine(
        "signal_rules:\n"
        "  - {name: own, signals: ['@all'], target: self, decision: allow}\n"
        "  - {name: deaf, signals: ['@lethal'], target: agent, handled: false, decision: deny}\n"
        "  - {name: hears, signals: ['@lethal'], target: agent, handled: true, decision: audit}\n"
    )
    asked = list[bool]()

    def fact(answer: bool) -> Fact:
        def answers() -> bool:
            asked.append(answer)
            return answer

        return answers

    def rule(number: int, target: TargetType, *, handled: bool) -> str:
        return compiled.decide_signal(signal(number, target, handled=fact(handled))).rule

    for target, number in (
        (TargetType.SELF, 10),
        (TargetType.CHILDREN, 10),
        (TargetType.AGENT, 28),
    ):
        rule(number, target, handled=True)
    assert asked == []
    assert rule(10, TargetType.AGENT, handled=False) == "deaf"
    assert rule(10, TargetType.AGENT, handled=True) == "hears"
