"""The result of `sigwrap verify`, and its short form in a report."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.events import counted
from sigwrap.report.check.decisions import Reproduction
from sigwrap.report.check.verify import Outcome, Verification
from sigwrap.report.folds.ending import Ending
from sigwrap.report.forms.layout import PLAIN, Style
from sigwrap.text import printable

_WITHOUT_END = {
    Ending.RUNNING: "the session is running",
    Ending.NOT_CLEAN: "the session did not end cleanly",
    Ending.HOOKS: "the log of an agent's hooks has no end",
    Ending.MOMENT: "it is a copy of a running session",
}


def render_verification(
    session_id: str,
    verification: Verification,
    ending: Ending,
    style: Style = PLAIN,
    reproduction: Reproduction | None = None,
) -> str:
    name = printable(session_id)
    events = counted(verification.events, "event")
    match verification.outcome:
        case Outcome.INTACT:
            lines = [f"{name}: {events}, {trust(verification, style)}"]
            if not verification.ended:
                lines.append(_WITHOUT_END[ending])
            lines += _reproduced(reproduction)
            lines.append(f"head {verification.head}")
            if not verification.head_given:
                lines.append(
                    "To detect a truncated log, pass the head printed by the run with --head"
                )
            return "\n".join(lines)
        case Outcome.BROKEN | Outcome.UNCHECKED:
            return f"{name}: {trust(verification, style)}"


def _reproduced(reproduction: Reproduction | None) -> Iterator[str]:
    if reproduction is None or not reproduction.decisions:
        return
    same, count = reproduction.reproduced, reproduction.decisions
    yield f"{same} of {counted(count, 'decision')} reproduced under the recorded policy"
    for reason, unknown in sorted(reproduction.not_judged.items()):
        rows = _rows(reproduction.not_judged_rows.get(reason, ()), unknown)
        yield f"{counted(unknown, 'decision')} cannot be reproduced: {printable(reason)}{rows}"


def _rows(first: tuple[int, ...], count: int) -> str:
    if not first:
        return ""
    listed = ", ".join(map(str, first))
    more = f" and {count - len(first)} more" if count > len(first) else ""
    return f" (row {listed})" if count == 1 else f" (rows {listed}{more})"


def trust(verification: Verification, style: Style) -> str:
    """Return the state of the hash chain. A report repeats no decisions."""
    match verification.outcome:
        case Outcome.INTACT:
            how = "with the key" if verification.keyed else "no key"
            return f"{style.good('hash chain intact')} ({how})"
        case Outcome.BROKEN:
            return f"{style.bad('NOT INTACT')}: {problem_of(verification)}"
        case Outcome.UNCHECKED:
            return f"{style.bad('not checked')}: {problem_of(verification)}"


def problem_of(verification: Verification) -> str:
    where = f"row {verification.row}: " if verification.row else ""
    return where + printable(verification.problem)
