"""The quick ones of the programs; `make test-programs` has them all, under every policy."""

from __future__ import annotations

import os

import pytest

from tests.programs import selected, table
from tests.programs.checking import Result, Verdict, subject
from tests.programs.program import Program, User
from tests.programs.table import Compared

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
def test_the_documented_programs_exist_and_their_differences_are_explained() -> None:
    programs, page = selected.programs(), table.PAGE.read_text(encoding="utf-8")
    documented = table.known(page)
    assert len(documented) > 50
    assert set(documented) <= {program.name for program in programs}
    assert all(
        program.differs for program in programs if documented.get(program.name) is Compared.DIFFERS
    )
    assert table.page_with(programs, {}, page) == page


@pytest.mark.tier("quick")
def test_a_result_moves_a_program() -> None:
    programs, page = selected.programs(), table.PAGE.read_text(encoding="utf-8")
    program = next(each for each in programs if each.name == "vim")
    result = Result(program.name, "us", "package", "ci", Verdict.SAME)
    results = {(program.name, "us", "package", "ci"): result}
    assert table.known(page)["vim"] is Compared.SAME
    assert table.known(table.page_with(programs, results, page))["vim"] is Compared.PARTLY
