"""What was found, for people: results are kept between runs, so that a part can be run anew."""

from __future__ import annotations

import json

from tests.programs.checking import Result, Verdict
from tests.programs.place import CACHE
from tests.programs.program import POLICIES, Program

KEPT = CACHE.parent / "results.json"

Key = tuple[str, str, str, str]

_INTRO = """\
# Programs

Real programs run natively and under sigwrap, as root and as an ordinary user. What is compared:
exit status, standard output and error, screens of terminal programs, and the files left behind.
`make test-programs` runs them (it takes a while; `PROGRAMS=git` runs one, `FORM=binary` runs them
with the one-file binary), and `make test-programs WRITE=1` writes this table from what has been
run. The quick ones are part of `make test`.
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
    rows = []
    for kept in results.values():
        rows.append(
            {
                "program": kept.program,
                "user": kept.user,
                "form": kept.form,
                "policy": kept.policy,
                "verdict": kept.verdict.value,
                "detail": kept.detail,
                "log": kept.log,
            }
        )
    KEPT.write_text(json.dumps(rows, indent=1))


def _key(result: Result) -> Key:
    return (result.program, result.user, result.form, result.policy)


def markdown(programs: list[Program], results: dict[Key, Result]) -> str:
    lines = [_INTRO]
    lines.append("| program | " + " | ".join(POLICIES) + " |")
    lines.append("| --- |" + " --- |" * len(POLICIES))
    reasons = []
    for program in programs:
        cells = [_cell(program, policy, results) for policy in POLICIES]
        if any(cells):
            lines.append(f"| {program.name} | " + " | ".join(cells) + " |")
            for why in dict.fromkeys(program.differs.values()):
                reasons.append(f"- {program.name}: {why}")
    if reasons:
        lines += ["", "Why some differ:", "", *reasons]
    return "\n".join(lines) + "\n"


_USERS = {"us": "root", "ordinary": "an ordinary user"}


def _cell(program: Program, policy: str, results: dict[Key, Result]) -> str:
    """One word where all users and forms came out alike, else who did how."""
    found: dict[str, list[str]] = {}
    for result in results.values():
        is_meant = result.program == program.name and (result.policy == policy or program.forwarded)
        if is_meant and result.verdict is not Verdict.SKIPPED:
            whose = found.setdefault(result.verdict.value, [])
            whose.append(_USERS[result.user] + (", binary" if result.form == "binary" else ""))
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{verdict} ({'; '.join(whose)})" for verdict, whose in found.items())
