"""The table of faults in docs/reliability.md, from what tests say of themselves:

    @pytest.mark.fault("where", "what is wrong", sees="by the user", keeps="the log")

`python -m tests.docs.faults --write` puts it where it belongs. A row is there because its test is.
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

GROUPS = (
    "the log's place",
    "what the machine lacks",
    "sigwrap's own processes",
    "the clock",
    "who calls",
    "large calls",
    "files that somebody else serves",
    "the caller's terminal and streams",
    "several at once",
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
        test = f"`{self.test}` in `{self.path}`"
        return f"| {self.what} | {self.sees} | {self.keeps} | {test} |"


def faults() -> list[Fault]:
    """By group; within it in the order of the tests."""
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


def tables() -> str:
    found = faults()
    parts = []
    for group in GROUPS:
        rows = [each.row for each in found if each.group == group]
        head = (
            "| fault | what the user sees | what the log keeps | test |\n| --- | --- | --- | --- |"
        )
        parts.append("\n".join([f"**{group[0].upper()}{group[1:]}**", "", head, *rows]))
    return "\n\n".join(parts)


def page_with_tables(page: str) -> str:
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(tables() + "\n")
