"""Results of the programs, kept between runs, and their section of docs/reliability.md."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from enum import Enum

from tests.programs.checking import Result, Verdict
from tests.programs.place import CACHE, ROOT
from tests.programs.program import POLICIES, Program, User
from tests.programs.selected import FORMS

KEPT = CACHE.parent / "results.json"

Key = tuple[str, str, str, str]

PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- programs: make test-programs WRITE=1 -->", "<!-- programs end -->"
_BETWEEN = "; "  # names have commas


class Compared(Enum):
    """How a program compares; the value begins its line on the page."""

    SAME = "Same under every policy, with both forms, as both users: "
    PARTLY = "Same in all combinations that were run: "
    DIFFERS = "Some differ, as they must:"


def load() -> dict[Key, Result]:
    if not KEPT.exists():
        return {}
    rows = json.loads(KEPT.read_text())
    results = [Result(**{**row, "verdict": Verdict(row["verdict"])}) for row in rows]
    return {_key(result): result for result in results}


def keep(results: dict[Key, Result], result: Result) -> None:
    results[_key(result)] = result
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(kept), "verdict": kept.verdict.value} for kept in results.values()]
    KEPT.write_text(json.dumps(rows, indent=1))


def _key(result: Result) -> Key:
    return (result.program, result.user, result.form, result.policy)


def known(page: str) -> dict[str, Compared]:
    """Return how the programs on the page compare, by name."""
    found: dict[str, Compared] = {}
    for line in page.partition(BEGIN)[2].partition(END)[0].splitlines():
        for how in (Compared.SAME, Compared.PARTLY):
            if line.startswith(how.value):
                found |= dict.fromkeys(line.removeprefix(how.value).split(_BETWEEN), how)
        if differs := re.match(r"- \*\*(.*?)\*\*", line):
            found[differs[1]] = Compared.DIFFERS
    return found


def page_with(programs: list[Program], results: dict[Key, Result], page: str) -> str:
    """Return the page with the results; programs that were not run stay as they are."""
    before = known(page)
    found = {each.name: _compared(each, results) or before.get(each.name) for each in programs}
    parts = [
        how.value + _BETWEEN.join(name for name, each in found.items() if each is how)
        for how in (Compared.SAME, Compared.PARTLY)
    ]
    differing = [each for each in programs if found[each.name] is Compared.DIFFERS]
    reasons = "\n".join(
        f"- **{program.name}** ({_where(places)}): {why}"
        for program in differing
        for why in dict.fromkeys(program.differs.values())
        for places in [[place for place, each in program.differs.items() if each == why]]
    )
    text = "\n\n".join([*parts, Compared.DIFFERS.value, reasons])
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}"


def _where(places: list[str]) -> str:
    names = {"*": "every policy", "* ordinary": "an ordinary user"}
    return ", ".join(names.get(place, place) for place in places)


def _compared(program: Program, results: dict[Key, Result]) -> Compared | None:
    """Return None if nothing was run."""
    found = [
        result and result.verdict
        for policy in POLICIES
        for form in FORMS
        for user in User
        for result in [_result(program, user, form, policy, results)]
    ]
    run = [each for each in found if each not in (None, Verdict.SKIPPED)]
    if not run:
        return None
    if Verdict.DIFFERS_AS_IT_MUST in run:
        return Compared.DIFFERS
    if any(each is not Verdict.SAME for each in run):
        raise SystemExit(f"{program.name}: {', '.join(str(each) for each in run)}")
    return Compared.SAME if run == found else Compared.PARTLY


def _result(
    program: Program, user: User, form: str, policy: str, results: dict[Key, Result]
) -> Result | None:
    policies = POLICIES if program.forwarded else (policy,)
    found = (results.get((program.name, user.value, form, each)) for each in policies)
    return next(filter(None, found), None)
