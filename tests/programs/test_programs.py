"""The quick ones of the programs; `make test-programs` has them all, under every policy."""

from __future__ import annotations

import os
import re

import pytest

from tests.programs import selected
from tests.programs.checking import Verdict, subject
from tests.programs.place import ROOT
from tests.programs.program import Program, User

QUICK = [
    pytest.param(program, user, id=f"{program.name}-{user.value}")
    for program in selected.programs()
    if program.quick
    for user in program.users
]


@pytest.mark.parametrize(("program", "user"), QUICK)
def test_it_does_not_notice(program: Program, user: User) -> None:
    if user is User.ORDINARY and os.getuid() != 0:
        pytest.skip("needs root")
    with subject(program, user) as checked:
        result = checked.check("under test", "agent-default")
    if result.verdict is Verdict.SKIPPED:
        pytest.skip(result.detail)
    assert result.is_fine, f"{result.verdict.value}: {result.detail}\n{result.log}"


@pytest.mark.tier("quick")
def test_every_name_is_of_one_program() -> None:
    names = [program.name for program in selected.programs()]
    assert len(names) == len(set(names))


@pytest.mark.tier("quick")
def test_the_documented_programs_are_those_there_are() -> None:
    table = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| (?!program |---)([^|]+) \|", table, re.MULTILINE)
    assert documented == [
        program.name for program in selected.programs() if program.name in documented
    ]
    assert documented
