"""Whose name counts: an allowing rule is about what runs, a denying one about any name of it."""

from __future__ import annotations

from typing import Any

import pytest

from sigwrap.policy.judge.request import Action, CommandRequest, Program
from sigwrap.policy.tools.cases import command_request
from tests.policy.conftest import MakeEngine, Parse


def called(name: str, path: str, **facts: Any) -> CommandRequest:
    return CommandRequest(programs=(Program(path=path, name=name, argv=(name,), **facts),))


@pytest.mark.parametrize("decision", ["allow", "audit"])
@pytest.mark.parametrize("word", ["ls", "l?", "l*"])
def test_a_link_is_allowed_by_its_name_only_where_it_is_the_systems(
    engine: MakeEngine, decision: str, word: str
) -> None:
    decide = engine(
        f"command_rules: [{{name: r, commands: ['{word}'], decision: {decision}}}]\n"
    ).decide_command
    assert decide(called("ls", "/usr/bin/bash", system_file=True)).rule == "r"
    assert decide(called("ls", "/usr/bin/bash", system_file=lambda: True)).rule == "r"
    assert decide(called("ls", "/usr/bin/bash", system_file=False)).action is Action.DENY
    assert decide(called("x", "/usr/bin/ls", system_file=False)).rule == "r"


@pytest.mark.parametrize("decision", ["deny", "approve"])
def test_what_is_denied_or_asked_about_is_so_by_either_name(
    engine: MakeEngine, decision: str
) -> None:
    decide = engine(
        "defaults: {command: allow}\n"
        f"command_rules: [{{name: r, commands: [ls], decision: {decision}}}]\n"
    ).decide_command
    assert decide(called("ls", "/usr/bin/bash", system_file=False)).rule == "r"
    assert decide(called("x", "/usr/bin/ls", system_file=False)).rule == "r"


def test_where_nothing_is_known_of_a_file_its_path_tells(engine: MakeEngine) -> None:
    decide = engine("command_rules: [{name: r, commands: [sh], decision: allow}]\n").decide_command
    assert decide(called("sh", "/usr/bin/dash")).rule == "r"
    assert decide(called("sh", "/home/user/dash")).action is Action.DENY


def test_whose_a_file_is_is_a_condition(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: theirs, commands: [ls], system_file: true, decision: allow}\n"
        "  - {name: own, commands: [ls], system_file: false, decision: audit}\n"
    ).decide_command
    assert decide(called("ls", "/usr/bin/ls", system_file=True)).rule == "theirs"
    assert decide(called("ls", "/w/ls", system_file=False)).rule == "own"


def test_what_is_elsewhere_is_allowed_by_no_name(engine: MakeEngine) -> None:
    decide = engine(
        "defaults: {command: approve}\n"
        "command_rules:\n"
        "  - {name: no, commands: [rm], decision: deny}\n"
        "  - {name: all, commands: [ls, '/usr/bin/*'], decision: allow}\n"
    ).decide_command
    assert decide(called("ls", "/usr/bin/ls")).rule == "all"
    assert decide(called("ls", "/usr/bin/ls", elsewhere=True)).rule == "builtin:default"
    assert decide(called("rm", "/usr/bin/rm", elsewhere=True)).rule == "no"


def test_a_path_that_is_not_told_may_be_any_that_a_rule_denies(engine: MakeEngine) -> None:
    """And none that a rule allows, whatever it is called: that can be a link's name."""
    rules = """
defaults: {command: audit}
command_rules:
  - {name: here, commands: [/srv/**], decision: allow}
  - {name: by-name, commands: [ls, "l?", "**/ls"], decision: allow}
  - {name: audited, commands: [ls], decision: audit}
  - {name: named, commands: [/usr/bin/rm], decision: deny}
  - {name: no, commands: [/home/**], subcommands: [rm], decision: deny}
"""
    decide = engine(rules).decide_command
    assert decide(called("ls", ".../ls")).rule == "builtin:default"
    assert decide(called("rm", ".../rm")).rule == "builtin:default"
    request = called("cat", ".../cat")
    words = request.programs[0]._replace(argv=("cat", "rm"))
    assert decide(request._replace(programs=(words,))).rule == "no"
    assert decide(called("cat", "/usr/bin/cat")).rule == "builtin:default"


def test_a_rule_for_all_programs_allows_what_is_not_told(engine: MakeEngine) -> None:
    decide = engine(
        "defaults: {command: deny}\n"
        "command_rules: [{name: all, commands: ['*'], decision: allow}]\n"
    ).decide_command
    assert decide(called("x", ".../x")).rule == "all"


def test_from_a_folder_that_is_not_told_rules_deny_what_may_be_meant(engine: MakeEngine) -> None:
    """And allow nothing by it."""
    decide = engine(
        "defaults: {command: audit}\n"
        "command_rules:\n"
        "  - {name: mine, commands: [rm, mv], paths: ['/**'], decision: allow}\n"
        "  - {name: keep, commands: [rm], paths: [/etc, '/srv/**'], decision: deny}\n"
        "  - {name: ask, commands: [mv], sources: [/etc], decision: approve}\n"
    ).decide_command

    def rule(line: str, folder: str) -> str:
        argv = tuple(line.split(" "))
        request = called(argv[0], f"/usr/bin/{argv[0]}")
        programs = (request.programs[0]._replace(argv=argv),)
        return decide(request._replace(programs=programs, cwd=folder)).rule

    assert rule("rm x", "/project") == "mine"
    assert rule("rm ../x", "") == "keep"
    assert rule("mv ../x y", "") == "ask"
    assert rule("mv x ../y", "") == "builtin:default"


def test_loaded_code_is_a_condition_and_looked_for_last(engine: MakeEngine) -> None:
    decide = engine(
        "command_rules:\n"
        "  - {name: clean, commands: [ls], subcommands: [x], loads_code: false, decision: allow}\n"
        "  - {name: loaded, commands: [cat], loads_code: true, decision: approve}\n"
    ).decide_command
    asked: list[int] = []

    def loads() -> bool:
        asked.append(1)
        return False

    assert decide(called("ls", "/usr/bin/ls", loads_code=loads)).action is Action.DENY
    assert not asked
    assert decide(called("cat", "/usr/bin/cat", loads_code=True)).rule == "loaded"
    assert decide(called("cat", "/usr/bin/cat", loads_code=loads)).action is Action.DENY
    assert asked


def test_where_nobody_is_asked_an_approval_is_a_denial(parse: Parse, engine: MakeEngine) -> None:
    decide = engine(
        "approvals: deny\ndefaults: {command: approve, signal: approve}\n"
        "command_rules: [{name: r, commands: [x], decision: approve, message: no}]\n"
    ).decide_command
    denied = decide(command_request(["x"]))
    assert (denied.action, denied.rule, denied.message) == (Action.DENY, "r", "no")
    assert "approvals: deny" in denied.reason
    assert decide(command_request(["y"])).action is Action.DENY
    base = "version: 1\nname: base\napprovals: deny\n"
    inherits = parse("version: 1\nname: a\nextends: base\n", {"base": base})
    asks = parse("version: 1\nname: a\nextends: base\napprovals: ask\n", {"base": base})
    assert not inherits.asks and asks.asks
