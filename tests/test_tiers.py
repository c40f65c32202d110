"""Each promise has a process test in `make test`, and each attack is tried in .ci/run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.promises import PROMISES
from tests.support.tiers import OF_PROCESSES, TIERS, tier_of

TESTS = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Test:
    __test__ = False

    path: str
    name: str
    marks: tuple[pytest.Mark, ...]  # the closest first
    of_cases: tuple[pytest.Mark, ...]

    @property
    def tier(self) -> str:
        return tier_of(self.path, self.marks)

    @property
    def is_attack(self) -> bool:
        return self.path.startswith("attacks/") or "attack" in self.path.rpartition("/")[2]


def _tests() -> Iterator[Test]:
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_module = tuple(mark for node in tree.body for mark in _pytestmark(node))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                own = [mark for each in node.decorator_list if (mark := _mark(each))]
                inside = [_mark(each) for top in node.decorator_list for each in ast.walk(top)]
                yield Test(
                    str(path.relative_to(TESTS)),
                    node.name,
                    (*own, *of_module),
                    tuple(mark for mark in inside if mark and mark not in own),
                )


def _pytestmark(node: ast.stmt) -> list[pytest.Mark]:
    match node:
        case ast.Assign(targets=[ast.Name("pytestmark")], value=ast.List(elts=marks)):
            return [mark for each in marks if (mark := _mark(each))]
        case ast.Assign(targets=[ast.Name("pytestmark")], value=value):
            return [mark] if (mark := _mark(value)) else []
    return []


def _mark(node: ast.AST) -> pytest.Mark | None:
    """`pytest.mark.tier("ci")`, and `.promise` alike; no other."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="tier" | "promise" as name),
            args=[ast.Constant(value=str() as word)],
        ):
            return pytest.Mark(name, (word,), {}, _ispytest=True)
    return None


ALL = list(_tests())
MARKS = [(test, mark) for test in ALL for mark in (*test.marks, *test.of_cases)]


@pytest.mark.parametrize("promise", PROMISES)
def test_each_promise_has_a_test(promise: str) -> None:
    assert any(mark.name == "promise" and mark.args == (promise,) for _, mark in MARKS)


def test_each_mark_names_a_promise_or_a_tier() -> None:
    known = {"promise": PROMISES, "tier": TIERS}
    assert [(test, mark) for test, mark in MARKS if mark.args[0] not in known[mark.name]] == []


def test_each_attack_is_tried_in_ci() -> None:
    attacks = [test for test in ALL if test.is_attack]
    assert len(attacks) > 100
    deeper = [test.name for test in attacks if test.tier == "all"]
    deeper += [test.name for test in attacks for mark in test.of_cases if mark.args == ("all",)]
    assert deeper == []


def test_what_is_pure_is_in_the_quick_tier_unless_it_says_otherwise() -> None:
    def mark(name: str, word: str) -> pytest.Mark:
        return pytest.Mark(name, (word,), {}, _ispytest=True)

    assert tier_of("policy/test_glob.py", []) == "quick"
    assert {tier_of(f"{folder}/test_x.py", []) for folder in OF_PROCESSES} == {"ci"}
    assert tier_of("process/test_x.py", [mark("promise", "transparent")]) == "quick"
    assert tier_of("process/test_x.py", [mark("tier", "all"), mark("promise", "why")]) == "quick"
    assert tier_of("policy/test_glob.py", [mark("tier", "ci")]) == "ci"
    with pytest.raises(pytest.UsageError, match="tier is not one of quick, ci, all"):
        tier_of("policy/test_glob.py", [mark("tier", "fast")])
    with pytest.raises(pytest.UsageError, match="an attack is of the tier ci"):
        tier_of("attacks/test_x.py", [mark("tier", "all")])
