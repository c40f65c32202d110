"""What a rule lets through beside what was recorded."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import CommandRequest, Program
from sigwrap.policy.tools.wide import ANY_ARGUMENTS, FURTHER_ARGUMENTS, THAT_READ_SO, note_on
from tests.policy.test_suggest import base

DENIES = Engine(base("version: 1\nname: x\n"))
ALLOWS = Engine(base("version: 1\nname: x\ndefaults: {command: allow}\n"))


def note(keys: str, *argv: str, engine: Engine | None = DENIES) -> str:
    program = Program(f"/usr/bin/{argv[0]}", argv[0], argv)
    line = f"- {{name: r, commands: [{argv[0]}], {keys}decision: allow}}"
    return note_on(line, [CommandRequest((program,))], engine)


@pytest.mark.parametrize("engine", [DENIES, None])
@pytest.mark.parametrize(
    ("keys", "argv", "said"),
    [
        ("subcommands: [push], ", ["git", "push"], FURTHER_ARGUMENTS),
        ("args_patterns: [^build], ", ["rm", "build"], FURTHER_ARGUMENTS),
        ("args_patterns: [^$], ", ["rm"], THAT_READ_SO),
        ("args_patterns: ['^-u [a-z-]+$'], ", ["curl", "-u", "***"], FURTHER_ARGUMENTS),
    ],
)
def test_it_is_found_out_by_asking(
    keys: str, argv: list[str], said: str, engine: Engine | None
) -> None:
    assert note(keys, *argv, engine=engine) == said


def test_what_the_policy_lets_through_as_well_is_no_news() -> None:
    assert note("", "rm", "-rf", "build", engine=ALLOWS) == ""


SCRIPT = Program("/project/deny.sh", "deny.sh", ("./deny.sh",))
SHELL = Program("/usr/bin/dash", "sh", ("/bin/sh", "./deny.sh"), system_file=True)
# A script without arguments is its interpreter's only one, which a pattern fits by itself.
EXACTLY = "subcommands: ['', ./deny.sh], args_patterns: ['^$', '^\\./deny\\.sh$'], "


def of_a_script(keys: str, engine: Engine | None, *arguments: str) -> str:
    line = f"- {{name: r, commands: [deny.sh, sh], {keys}decision: allow}}"
    return note_on(line, [script(*arguments)], engine)


def script(*arguments: str) -> CommandRequest:
    programs = (each._replace(argv=(*each.argv, *arguments)) for each in (SCRIPT, SHELL))
    return CommandRequest(tuple(programs))


@pytest.mark.parametrize("engine", [DENIES, None])
def test_what_a_rule_lets_through_of_an_interpreter_alone_is_said_of_that(
    engine: Engine | None,
) -> None:
    assert of_a_script(EXACTLY, engine) == f"{FURTHER_ARGUMENTS}, for sh itself"
    line = f"- {{name: r, commands: [deny.sh, sh], {EXACTLY}decision: allow}}"
    after = Engine(base(f"version: 1\nname: x\ncommand_rules:\n{line}\n"))
    further = script("foo", "bar")
    assert after.decide_command(script()).action.value == "allow"
    assert after.decide_command(further).action.value == "deny"
    by_itself = further._replace(programs=further.programs[1:])
    assert after.decide_command(by_itself).action.value == "allow"


@pytest.mark.parametrize("engine", [DENIES, None])
def test_a_scripts_arguments_are_its_interpreters_as_well(engine: Engine | None) -> None:
    assert of_a_script("", engine) == ANY_ARGUMENTS
    assert of_a_script("args_patterns: [^foo$], ", engine, "foo") == FURTHER_ARGUMENTS


def test_another_spelling_that_no_rule_names_holds_nothing_back() -> None:
    node = Program("/usr/bin/node", "node", ("node", "/usr/bin/npm", "run", "x"))
    npm = Program("/usr/bin/node", "npm", ("npm", "run", "x"), counts_by_name=True)
    line = "- {name: r, commands: [node], args_patterns: ['^/usr/bin/npm run x$'], decision: allow}"
    assert note_on(line, [CommandRequest((node, npm))], DENIES) == THAT_READ_SO


def test_a_name_moves_no_cursor() -> None:
    shell = SHELL._replace(name="s\x1b[2Jh\nx" + "y" * 100)
    line = f"- {{name: r, commands: ['*'], {EXACTLY}decision: allow}}"
    found = note_on(line, [script()._replace(programs=(SCRIPT, shell))], DENIES)
    assert found.startswith(FURTHER_ARGUMENTS)
    assert found.isprintable()
    assert len(found) < 100
