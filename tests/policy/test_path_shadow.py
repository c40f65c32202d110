"""A program that is found along PATH before the system's of that name."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.request import Action, CommandRequest, Decision, Program
from sigwrap.policy.judge.system_folders import PATH_SHADOW_RULE
from sigwrap.policy.tools.explain import explain_command, explanation_text
from tests.policy.conftest import MakeEngine

RULES = """\
defaults: {command: allow}
trust: {path_shadow: %s}
command_rules:
  - {name: no, commands: [rm], decision: deny}
  - {name: ask, commands: [npm], decision: approve}
  - {name: other, commands: [curl], decision: redirect, redirect_to: {command: echo}}
  - {name: mark, commands: [ls], decision: audit}
  - {name: mine, commands: [/home/u/bin/python3, /home/u/tools/git], decision: allow}
  - {name: mine-asked, commands: [/home/u/bin/node], decision: approve}
  - {name: known, commands: [gh], sha256: ["%s"], decision: allow}
  - {name: anywhere, commands: ["**/jq", /home/u/bin/y*], decision: allow}
  - {name: venv, commands: [/opt/py/python3.11, /home/u/venv/bin/python], decision: allow}
  - {name: bare, commands: [/opt/py/python3.12, python], decision: allow}
  - {name: content, commands: [python3.13], sha256: ["%s"], decision: allow}
"""
DIGEST = "ab" * 32


def shadowing(name: str, folder: str = "/home/u/bin", sha256: str = "") -> CommandRequest:
    program = Program(f"{folder}/{name}", name, (name,), lambda: sha256, shadows=f"/usr/bin/{name}")
    return CommandRequest((program,))


def decided(engine: MakeEngine, reaction: str, request: CommandRequest) -> Decision:
    return engine(RULES % (reaction, DIGEST, DIGEST)).decide_command(request)


@pytest.mark.parametrize(
    ("name", "audit", "deny"),
    [
        ("git", ("audit", "builtin:default"), ("deny", PATH_SHADOW_RULE)),
        ("ls", ("audit", "mark"), ("deny", PATH_SHADOW_RULE)),
        ("npm", ("approve", "ask"), ("deny", PATH_SHADOW_RULE)),
        ("jq", ("audit", "anywhere"), ("deny", PATH_SHADOW_RULE)),
        ("yes", ("audit", "anywhere"), ("deny", PATH_SHADOW_RULE)),
        ("gh", ("audit", "builtin:default"), ("deny", PATH_SHADOW_RULE)),
        ("rm", ("deny", "no"), ("deny", "no")),
        ("curl", ("redirect", "other"), ("redirect", "other")),
    ],
)
def test_it_is_marked_or_denied_and_what_is_stricter_stays(
    engine: MakeEngine, name: str, audit: tuple[str, str], deny: tuple[str, str]
) -> None:
    for reaction, expected in (("audit", audit), ("deny", deny)):
        decision = decided(engine, reaction, shadowing(name))
        assert (decision.action.value, decision.rule) == expected
        assert decision.shadows == f"/usr/bin/{name}"


@pytest.mark.parametrize("reaction", ["audit", "deny"])
def test_what_a_rule_names_by_a_path_of_its_own_or_by_its_digest_was_chosen(
    engine: MakeEngine, reaction: str
) -> None:
    for request, rule in (
        (shadowing("python3"), "mine"),
        (shadowing("git", "/home/u/tools"), "mine"),
        (shadowing("gh", sha256=DIGEST), "known"),
    ):
        decision = decided(engine, reaction, request)
        assert (decision.action, decision.rule, decision.shadows) == (Action.ALLOW, rule, "")
    asked = decided(engine, reaction, shadowing("node"))
    assert (asked.action, asked.rule, asked.shadows) == (Action.APPROVE, "mine-asked", "")


def link(found: str, to: str, sha256: str = "") -> CommandRequest:
    name = found.rpartition("/")[2]
    program = Program(to, name, (name,), lambda: sha256, shadows=f"/usr/bin/{name}", found=found)
    return CommandRequest((program,), cwd="/home/u")


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (link("/home/u/venv/bin/python", "/opt/py/python3.11"), "venv"),
        (link("venv/bin/python", "/opt/py/python3.11"), "venv"),
        (link("/anywhere/python", "/opt/py/python3.12"), "bare"),
        (link("/anywhere/python3.13", "/opt/py/python3.13", DIGEST), "content"),
    ],
)
def test_a_link_is_chosen_by_its_own_name_and_its_file(
    engine: MakeEngine, request_: CommandRequest, rule: str
) -> None:
    decision = decided(engine, "deny", request_)
    assert (decision.action, decision.rule, decision.shadows) == (Action.ALLOW, rule, "")


@pytest.mark.parametrize(
    ("found", "file"),
    [
        ("/home/u/venv/bin/git", "/opt/py/python3.11"),
        ("/home/u/other/bin/python", "/opt/py/python3.11"),
        ("/home/u/venv/bin/python", "/opt/py/python3.14"),
        ("/home/u/bin/git", "/opt/py/python3.12"),
        ("bin/python", "/opt/py/python3.11"),
    ],
)
def test_an_interpreter_is_not_chosen_under_another_name(
    engine: MakeEngine, found: str, file: str
) -> None:
    request = link(found, file, DIGEST)
    assert decided(engine, "deny", request).rule == PATH_SHADOW_RULE
    assert decided(engine, "audit", request).action is Action.AUDIT


@pytest.mark.parametrize("found", ["/home/u/venv/bin/ls", "venv/bin/ls", "./venv/bin/ls"])
def test_a_denial_names_what_was_found_and_then_its_file(engine: MakeEngine, found: str) -> None:
    decision = decided(engine, "deny", link(found, "/opt/py/python3.14"))
    shown = "/home/u/venv/bin/ls -> /opt/py/python3.14"
    assert decision.reason == f"path_shadow: {shown} shadows /usr/bin/ls"
    assert decision.message == (
        f"{shown} comes before /usr/bin/ls in PATH: run the intended program by its full path, "
        "or add a rule that names the link and its file "
        "(commands: [/home/u/venv/bin/ls, /opt/py/python3.14])"
    )
    remedy = decision.message.partition("commands: ")[2].rstrip(")")
    rules = f"command_rules:\n  - {{name: own, commands: {remedy}, decision: allow}}\n"
    chosen = engine(f"trust: {{path_shadow: deny}}\n{rules}")
    assert chosen.decide_command(link(found, "/opt/py/python3.14")).action is Action.ALLOW


def test_where_the_callers_folder_is_not_known_a_relative_path_chooses_nothing(
    engine: MakeEngine,
) -> None:
    request = link("venv/bin/python", "/opt/py/python3.11")._replace(cwd="")
    decision = decided(engine, "deny", request)
    assert decision.rule == PATH_SHADOW_RULE
    assert "commands: [python, /opt/py/python3.11]" in decision.message


def test_the_denial_says_what_is_shadowed_and_what_to_do(engine: MakeEngine) -> None:
    message = decided(engine, "deny", shadowing("git")).message
    assert message == (
        "/home/u/bin/git comes before /usr/bin/git in PATH: run the intended program by its full "
        "path, or add a rule that names it by path "
        "(commands: [/home/u/bin/git]) or sha256"
    )
    assert len(decided(engine, "deny", shadowing("git", "/x" * 2000)).message) < 700


def test_one_of_several_programs_is_enough(engine: MakeEngine) -> None:
    env = Program("/usr/bin/env", "env", ("env", "git"))
    request = CommandRequest((env, *shadowing("git").programs))
    assert decided(engine, "audit", request).action is Action.AUDIT
    assert decided(engine, "deny", request).rule == PATH_SHADOW_RULE


def test_under_deny_it_can_not_be_said_that_everything_runs(engine: MakeEngine) -> None:
    text = "defaults: {command: allow}\ntrust: {path_shadow: %s}\n"
    assert engine(text % "audit").lets_everything_run
    assert not engine(text % "deny").lets_everything_run


def test_it_is_explained(engine: MakeEngine) -> None:
    compiled = engine(RULES % ("deny", DIGEST, DIGEST))
    text = explanation_text(explain_command(compiled, shadowing("ls")))
    assert text.startswith("/home/u/bin/ls: deny\n  Comes before /usr/bin/ls in PATH.\n")
    assert "  Why: trust.path_shadow; without it, the rules decide audit.\n" in text
    assert "  Why: rule mark matches (" in text
    assert "  Message: /home/u/bin/ls comes before /usr/bin/ls in PATH" in text
    assert text.endswith("It shadows /usr/bin/ls (trust.path_shadow): deny, by trust.path_shadow.")
    linked = explanation_text(explain_command(compiled, link("/home/u/bin/ls", "/opt/x")))
    assert linked.startswith("/home/u/bin/ls -> /opt/x: deny\n")
    chosen = explanation_text(explain_command(compiled, shadowing("python3")))
    assert chosen.startswith("/home/u/bin/python3: allow\n")
    assert "trust.path_shadow" not in chosen
    marking = engine(RULES % ("audit", DIGEST, DIGEST))
    marked = explanation_text(explain_command(marking, shadowing("git")))
    assert marked.startswith("/home/u/bin/git: audit\n")
