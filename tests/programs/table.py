"""What was found, for people: results are kept between runs, so that a part can be run anew."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from tests.programs.checking import Result, Verdict
from tests.programs.place import CACHE
from tests.programs.program import POLICIES, Program, User
from tests.programs.selected import FORMS

KEPT = CACHE.parent / "results.json"

Key = tuple[str, str, str, str]

_INTRO = """\
# Programs

Real programs run natively and under sigwrap, as root and as an ordinary user. What is compared:
exit status, standard output and error, screens of terminal programs, and the files left behind.
`make test-programs` runs them (it takes a while; `PROGRAMS=git` runs one, `FORM=binary` runs them
with the one-file binary), and `make test-programs WRITE=1` writes the rows of this table that have
been run in this checkout, and leaves the others. The quick ones are part of `make test`.

A cell without more was run with both forms of sigwrap, the package and the one file, as both
users; else it names what was run: the forms where they don't have the same users, and the users.
Nothing else was. Suites with sigwrap-forward in their place have no policy, and were run once.
"""


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


def rows(page: str) -> dict[str, str]:
    """By the program's name."""
    return {line.split(" | ")[0].removeprefix("| "): line for line in page.splitlines()}


def markdown(programs: list[Program], results: dict[Key, Result], before: Mapping[str, str]) -> str:
    """`before`: rows that stay where nothing has been run."""
    lines = [_INTRO]
    lines.append("| program | " + " | ".join(POLICIES) + " |")
    lines.append("| --- |" + " --- |" * len(POLICIES))
    reasons = []
    for program in programs:
        cells = [_cell(program, policy, results) for policy in POLICIES]
        if any(cells):
            row = f"| {program.name} | " + " | ".join(cells) + " |"
        elif program.name in before:
            row = before[program.name]
        else:
            continue
        lines.append(row)
        if Verdict.DIFFERS_AS_IT_MUST.value in row:
            for why in dict.fromkeys(program.differs.values()):
                reasons.append(f"- {program.name}: {why}")
    if reasons:
        lines += ["", "Why some differ:", "", *reasons]
    return "\n".join(lines) + "\n"


_USERS = {User.US: "root", User.ORDINARY: "an ordinary user"}


def _cell(program: Program, policy: str, results: dict[Key, Result]) -> str:
    """One word where every user and form was run and came out alike, else who did how."""
    found: dict[str, dict[str, list[User]]] = {}
    for form in FORMS:
        for user in User:
            result = _result(program, user, form, policy, results)
            if result is not None and result.verdict is not Verdict.SKIPPED:
                found.setdefault(result.verdict.value, {}).setdefault(form, []).append(user)
    if list(found.values()) == [{form: list(User) for form in FORMS}]:
        return next(iter(found))
    return "; ".join(f"{verdict} ({_whose(forms)})" for verdict, forms in found.items())


def _result(
    program: Program, user: User, form: str, policy: str, results: dict[Key, Result]
) -> Result | None:
    policies = POLICIES if program.forwarded else (policy,)
    found = (results.get((program.name, user.value, form, each)) for each in policies)
    return next(filter(None, found), None)


def _whose(forms: dict[str, list[User]]) -> str:
    """By form, unless it is the same users with each."""
    names = {
        form: "both users" if len(users) == len(User) else _USERS[users[0]]
        for form, users in forms.items()
    }
    if list(names) == list(FORMS) and len(set(names.values())) == 1:
        return names[next(iter(FORMS))]
    return "; ".join(f"{form}: {whose}" for form, whose in names.items())
