"""Generate the faults in docs/reliability.md from the marks of tests:

    @pytest.mark.fault("where", "what is wrong", sees="by the user", keeps="the log")

`python -m tests.docs.faults --write` writes them. Every line belongs to a test.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
BEGIN = "<!-- faults: python -m tests.docs.faults --write -->"
END = "<!-- faults end -->"
# What the page says once for all rows.
COMPLETE, NOTHING = "complete", "nothing ran"

GROUPS = (
    "the store",
    "missing resources",
    "front process and supervisor",
    "the clock",
    "callers",
    "large calls",
    "served file systems",
    "terminal and streams",
    "several sessions",
)


@dataclass(frozen=True, slots=True)
class Fault:
    group: str
    what: str
    sees: str
    keeps: str
    path: str
    test: str

    @property
    def row(self) -> str:
        log = "" if self.keeps in (NOTHING, COMPLETE) else f". Log: {self.keeps}"
        return f"- **{self.what}**: {self.sees}{log}"


def faults() -> list[Fault]:
    """Return the faults by group, and within a group in the order of the tests."""
    found = [each for path in sorted((ROOT / "tests").rglob("test_*.py")) for each in _in(path)]
    return sorted(found, key=lambda fault: GROUPS.index(fault.group))


def _in(path: Path) -> Iterator[Fault]:
    text = path.read_text(encoding="utf-8")
    if ".mark.fault(" not in text:
        return
    for node in ast.parse(text).body:
        for decorator in getattr(node, "decorator_list", ()):
            if ast.unparse(decorator).startswith("pytest.mark.fault("):
                assert isinstance(node, ast.FunctionDef) and isinstance(decorator, ast.Call)
                group, what = map(ast.literal_eval, decorator.args)
                said = {each.arg: ast.literal_eval(each.value) for each in decorator.keywords}
                where = str(path.relative_to(ROOT))
                yield Fault(group, what, said["sees"], said["keeps"], where, node.name)


def lists() -> str:
    found = faults()
    return "\n\n".join(
        f"### {group[0].upper()}{group[1:]}\n\n"
        + "\n".join(each.row for each in found if each.group == group)
        for group in GROUPS
    )


def page_with_faults(page: str) -> str:
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{lists()}\n\n{END}{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with_faults(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(lists() + "\n")
