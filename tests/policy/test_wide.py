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
        ("", ["rm", "-rf", "build"], ANY_ARGUMENTS),
        ("subcommands: [push], ", ["git", "push"], FURTHER_ARGUMENTS),
        ("args_patterns: [^build], ", ["rm", "build"], FURTHER_ARGUMENTS),
        ("args_patterns: [^-rf build$], ", ["rm", "-rf", "build"], THAT_READ_SO),
        ("args_patterns: [^a b$], ", ["rm", "a b"], FURTHER_ARGUMENTS),
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
