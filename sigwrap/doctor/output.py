"""Findings as lines, as JSON and as an exit status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap import errors
from sigwrap.bare import NamedTuple
from sigwrap.doctor.items import ITEMS, RUN, Finding, Level, level_of, shortfall_of
from sigwrap.report.forms.layout import Style, wrapped
from sigwrap.text import printable

SCHEMA = "sigwrap.doctor/1"
WORKS_LIMITED = 1
ALWAYS = (
    "In every run, on every machine, sudo, su and other setuid programs gain no privileges "
    "(no_new_privs)."
)
_UNCHECKED = "Items marked ? could not be checked; fix the others first."
_NAME_COLUMNS = max(map(len, ITEMS))
_LEVEL_COLUMNS = max(len(level.value) for level in Level)
_INDENT = "    "


class Machine(NamedTuple):
    sigwrap: str
    kernel: str
    architecture: str
    user: int


def exit_status(findings: Sequence[Finding]) -> int:
    levels = {level_of(each) for each in findings}
    if Level.NO in levels:
        return errors.REFUSED
    return WORKS_LIMITED if levels & {Level.LESS, Level.UNKNOWN} else 0


def verdict(findings: Sequence[Finding]) -> str:
    match exit_status(findings):
        case 0:
            return "Runs work here, and every rule is enforced."
        case errors.REFUSED:
            return f"Runs are refused here: {_names(findings, Level.NO)}."
        case _:
            return (
                "Runs work here, with limited protection: "
                f"{_names(findings, Level.LESS, Level.UNKNOWN)}."
            )


def lines(
    machine: Machine, findings: Sequence[Finding], *, columns: int, style: Style
) -> Iterator[str]:
    """Yield the lines for a terminal of `columns`, or 0 for lines of any length."""
    who = "root" if machine.user == 0 else f"uid {machine.user}"
    what = f"sigwrap {machine.sigwrap} on Linux {machine.kernel} {machine.architecture}, as {who}"
    yield from (style.heading(line) for line in wrapped(what, columns))
    yield ""
    for each in findings:
        yield from _rows(each, columns, style)
    short = [each for each in findings if each.shortfall]
    for level in (Level.NO, Level.LESS, Level.NOTE):
        for each in short:
            if level_of(each) is level and not _is_covered(each, short):
                yield ""
                yield from _what_to_do(each, columns, style)
    if any(level_of(each) is Level.UNKNOWN for each in findings):
        yield ""
        yield from wrapped(_UNCHECKED, columns)
    yield ""
    yield from wrapped(ALWAYS, columns)
    yield from (style.heading(line) for line in wrapped(verdict(findings), columns))


def document(machine: Machine, findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        **machine._asdict(),
        "status": exit_status(findings),
        "verdict": verdict(findings),
        "items": [_as_json(each) for each in findings],
        "always": ALWAYS,
    }


def _names(findings: Sequence[Finding], *levels: Level) -> str:
    meant = [each for each in findings if level_of(each) in levels]
    return ", ".join(each.item for each in meant if not _is_covered(each, meant))


def _is_covered(finding: Finding, others: Sequence[Finding]) -> bool:
    """Return whether the test run's finding only repeats that of another item."""
    levels = {level_of(each) for each in others if each.item != RUN}
    return finding.item == RUN and level_of(finding) in levels


def _rows(finding: Finding, columns: int, style: Style) -> Iterator[str]:
    level = level_of(finding)
    row = f" {level.value:<{_LEVEL_COLUMNS}}  {finding.item:<{_NAME_COLUMNS}}  {finding.found}"
    first, *others = wrapped(printable(row), columns, _INDENT)
    yield first.replace(level.value, _painted(level, style), 1)
    yield from others


def _painted(level: Level, style: Style) -> str:
    word: str = level.value
    if level is Level.OK:
        return style.good(word)
    return style.bad(word) if level in (Level.NO, Level.LESS) else word


def _what_to_do(finding: Finding, columns: int, style: Style) -> Iterator[str]:
    shortfall = shortfall_of(finding)
    if shortfall is None:
        return
    yield style.heading(f"{finding.item}: {shortfall.level.value}")
    parts = [f"found: {finding.found}", f"lost: {shortfall.lost}", f"to do: {shortfall.todo}"]
    if finding.run_says:
        parts.append(f"a run prints: {finding.run_says}")
    for part in parts:
        yield from wrapped(f"  {printable(part)}", columns, _INDENT)


def _as_json(finding: Finding) -> dict[str, str | None]:
    shortfall = shortfall_of(finding)
    return {
        "item": finding.item,
        "level": "unknown" if level_of(finding) is Level.UNKNOWN else level_of(finding).value,
        "found": finding.found,
        "shortfall": finding.shortfall or None,
        "lost": shortfall and shortfall.lost,
        "to_do": shortfall and shortfall.todo,
        "a_run_says": finding.run_says or None,
    }
