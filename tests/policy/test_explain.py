"""An explanation is for someone who has never seen the file."""

from __future__ import annotations

from sigwrap.policy.judge.request import SignalRequest, TargetType, with_implied
from sigwrap.policy.tools.cases import command_request
from sigwrap.policy.tools.explain import explain_command, explain_signal, explanation_text
from tests.policy.conftest import MakeEngine

RULES = """\
description: x
command_rules:
  - {name: other, commands: [ls], decision: allow}
  - {name: deep, commands: [git], depth: {min: 4}, decision: deny}
  - {name: forced, commands: [git], subcommands: [push], args_patterns: ["^--force"],
     decision: deny, description: A push that rewrites what others have., message: left to people}
  - {name: exact, commands: [git], args: [push, x], decision: deny}
  - {name: flagged, commands: [git], flags: [f, mirror], decision: deny}
  - {name: long, commands: ["*"], truncated: true, decision: deny}
  - {name: traced, commands: ["*"], traced: true, decision: deny}
  - {name: pinned, commands: [git], sha256: ["%s"], decision: allow}
  - {name: swap, commands: [wget], decision: redirect, redirect_to: {command: echo, args: [no]}}
  - {name: git, commands: [git, sudo], decision: allow}
signal_rules:
  - {name: hup, signals: [HUP], target: external, decision: deny}
  - {name: own, signals: [KILL], target: [children, {type: process, pattern: x}],
     decision: redirect, redirect_to: TERM}
""" % ("a" * 64)


def explain(engine: MakeEngine, *argv: str, depth: int = 1) -> str:
    return explanation_text(
        explain_command(engine(RULES), command_request(list(argv), depth=depth))
    )


def test_the_deciding_rule_and_its_message(engine: MakeEngine) -> None:
    assert explain(engine, "git", "push", "--force") == (
        "/usr/bin/git push --force: deny\n"
        "  Why: rule forced matches (policy.yaml:7:5).\n"
        "       A push that rewrites what others have.\n"
        "  Message: left to people\n"
        "  Earlier rules that do not match:\n"
        "    deep  needs depth: {min: 4} (line 6)\n"
        "  1 rule before it does not apply."
    )


def test_why_each_earlier_rule_does_not_match(engine: MakeEngine) -> None:
    text = explain(engine, "git", "pull")
    for line in (
        "forced   needs subcommands: push (line 7)",
        "exact    needs args: push, x (line",
        "flagged  needs flags: f, mirror (line",
        "long     needs truncated: true (line",
        "traced   needs traced: true (line",
        f"pinned   needs sha256: {'a' * 64} (line",
    ):
        assert f"    {line}" in text
    assert "needs args_patterns: ^--force (line" in explain(engine, "git", "push")


def test_the_place_is_that_of_the_alternative_that_matches(engine: MakeEngine) -> None:
    compiled = engine(
        "command_rules:\n  - name: r\n    decision: deny\n    any:\n"
        "      - {commands: [ls], args: [x]}\n      - {commands: [ls], args: [y]}\n"
    )
    text = explanation_text(explain_command(compiled, command_request(["ls", "y"])))
    assert "Why: rule r matches (policy.yaml:8:9)." in text
    assert "r  needs args: x (line 7)" in text


def test_many_words_are_cut(engine: MakeEngine) -> None:
    for count, shown in ((5, "a, b, c, d, e"), (6, "a, b, c, d, e, 1 more")):
        rules = f"[{{name: r, commands: [x], subcommands: [{', '.join('abcdef'[:count])}]"
        compiled = engine(f"command_rules: {rules}, decision: deny}}]\n")
        text = explanation_text(explain_command(compiled, command_request(["x"])))
        assert f"needs subcommands: {shown} (line" in text


def test_no_rule_matches(engine: MakeEngine) -> None:
    text = explain(engine, "unheard-of")
    assert "unheard-of: deny\n  Why: no command rule of x matches; its default is deny." in text


def test_a_wrapper_is_explained_program_by_program(engine: MakeEngine) -> None:
    text = explain(engine, "sudo", "git", "push", "--force")
    assert "/usr/bin/sudo git push --force: allow" in text
    assert text.endswith("The strictest decision applies: deny, by forced.")


def test_a_signal(engine: MakeEngine) -> None:
    request = SignalRequest(
        signal=9,
        target_types=with_implied([TargetType.CHILDREN]),
        target_command="node",
        target_pid=7,
    )
    assert explanation_text(explain_signal(engine(RULES), request)) == (
        "SIGKILL to children node (pid 7): redirect\n"
        "  Why: rule own matches (policy.yaml:18:5).\n"
        "  Sends instead: SIGTERM\n"
        "  1 rule before it does not apply."
    )
    sigwrap = SignalRequest(signal=9, target_types=with_implied([TargetType.SIGWRAP]))
    assert explanation_text(explain_signal(engine("defaults: {signal: allow}\n"), sigwrap)) == (
        "SIGKILL to parent: deny\n  Why: processes in a session cannot signal or trace sigwrap."
    )
    outside = SignalRequest(signal=9, target_types=frozenset())
    text = explanation_text(explain_signal(engine(RULES), outside))
    assert "SIGKILL to external: deny" in text
    assert "own  needs target: children, {type: process, pattern: x} (line 18)" in text


def test_a_rule_for_targets_without_a_handler(engine: MakeEngine) -> None:
    policy = engine(
        "signal_rules:\n"
        "  - {name: deaf, signals: [USR1], target: agent, handled: false, decision: deny}\n"
        "  - {name: hears, signals: [USR1], target: agent, handled: true, decision: allow}\n"
    )

    def text(*, handled: bool) -> str:
        types = with_implied([TargetType.AGENT])
        request = SignalRequest(signal=10, target_types=types, handled=handled)
        return explanation_text(explain_signal(policy, request))

    assert "deaf  needs handled: false" in text(handled=True)
    assert text(handled=False).startswith("SIGUSR1 to agent: deny\n  Why: rule deaf matches")


def test_a_rule_that_escalates(engine: MakeEngine) -> None:
    rules = "command_rules:\n  - {name: r, commands: [ls], decision: deny, escalate: SIGPOLICY}\n"
    text = explanation_text(explain_command(engine(rules), command_request(["ls"])))
    assert text.endswith("Then sigwrap raises SIGPOLICY and kills the whole process tree.")
