"""What another policy would have decided, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from enum import Enum

from sigwrap.escape import printable
from sigwrap.outcomes import counted
from sigwrap.report.check.what_if import Difference, Outcome, WhatIf
from sigwrap.report.forms.layout import wrapped, yaml_wrapped
from sigwrap.report.forms.markdown import block, code, table
from sigwrap.report.forms.rules import grouped_lines
from sigwrap.report.forms.style import PLAIN, Style

WHAT_IF_SCHEMA = "sigwrap.what-if/1"

_SHOWN_OF_EACH = 40
_TITLES = {
    Outcome.DENIED: "Would be denied",
    Outcome.ASKED: "Would need approval",
    Outcome.REPLACED: "Would be redirected",
    Outcome.ABSORBED: "Would be absorbed",
    Outcome.LET_THROUGH: "Would be allowed",
}
_COLUMNS = ("times", "what", "rule", "was", "first at event", "such as")
_RULES = "To allow these, add to your policy"


class WhatIfForm(Enum):
    TEXT = "text"
    MD = "md"
    JSON = "json"


def what_if_text(found: WhatIf, style: Style = PLAIN, columns: int = 0) -> str:
    """`columns` is the width of the terminal, or 0 for lines of any length."""
    lines = [_headline(found, printable(found.policy))]
    for title, shown, more in _sections(found):
        lines += ["", style.heading(title)]
        for each in map(_line, shown):
            lines += wrapped(f"  {each}", columns, "      ")
        lines += [f"  {each}" for each in more]
    if rules := _rules(found):
        lines += ["", style.heading(_RULES)]
        for rule in rules:
            lines += yaml_wrapped(f"  {rule}", columns)
    if found.differ:
        lines.append("")
    return "\n".join([*lines, *_notes(found)])


def what_if_md(found: WhatIf) -> str:
    lines = [f"## {_headline(found, code(printable(found.policy)))}"]
    for title, shown, more in _sections(found):
        lines += ["", f"### {title}", "", *table(_COLUMNS, map(_row, shown))]
        lines += [line for each in more for line in ("", each)]
    if rules := _rules(found):
        lines += ["", f"### {_RULES}", "", *block(rules, "yaml")]
    if notes := list(_notes(found)):
        lines += ["", *(f"- {each}" for each in notes)]
    return "\n".join(lines)


def what_if_json(session_id: str, found: WhatIf) -> str:
    document = {
        "schema": WHAT_IF_SCHEMA,
        "session_id": session_id,
        "policy": found.policy,
        "decisions": found.decisions,
        "differ": found.differ,
        "by_other_rule": found.by_other_rule,
        "own": found.own,
        "differences": [
            {
                "kind": each.kind,
                "what": each.what,
                "was": each.was.value,
                "was_by": each.was_by,
                "would_be": each.would_be.value,
                "would_be_by": each.would_be_by,
                "count": each.count,
                "first_seq": each.first_seq,
                "example": each.example,
                "rules": [rule.line for rule in each.rules],
                "rules_for": each.rules_for,
                "why_not": each.why_not or None,
            }
            for each in found.differences
        ],
        "left_out": found.left_out,
        "doubtful": found.doubtful,
    }
    return json.dumps(document, indent=2)


def _headline(found: WhatIf, policy: str) -> str:
    decisions = counted(found.decisions, "decision")
    if not found.differ:
        return f"Under {policy}, nothing would differ: {decisions}"
    return f"Under {policy}, {found.differ} of {decisions} would differ"


def _sections(found: WhatIf) -> Iterator[tuple[str, list[Difference], list[str]]]:
    """Yield a title, the differences to show, and a line about the others."""
    for outcome, title in _TITLES.items():
        those = [each for each in found.differences if each.would_be is outcome]
        left = len(those) - _SHOWN_OF_EACH
        more = [f"and {left} more kinds (--format json has them)"] if left > 0 else []
        if those:
            yield title, those[:_SHOWN_OF_EACH], more


def _line(each: Difference) -> str:
    was = f"was {each.was.value} by {printable(each.was_by) or '?'}"
    example = f"first at event {each.first_seq}: {printable(each.example)}"
    return f"{_requests(each)} by rule {printable(each.would_be_by) or '?'} ({was}; {example})"


def _row(each: Difference) -> Iterable[str]:
    yield str(each.count)
    yield code(printable(each.what))
    yield code(printable(each.would_be_by) or "?")
    yield f"{each.was.value} by {code(printable(each.was_by) or '?')}"
    yield str(each.first_seq)
    yield code(printable(each.example))


def _rules(found: WhatIf) -> list[str]:
    shown = [each for _, those, _ in _sections(found) for each in those]
    lines = list(grouped_lines((each.rules, _for_some(each)) for each in shown))
    return lines + [
        f"# none for {_requests(each)}: {printable(each.why_not)}"
        for each in shown
        if each.why_not and not each.rules
    ]


def _for_some(each: Difference) -> str:
    if each.rules_for == each.count:
        return ""
    why_not = printable(each.why_not)
    return f"# for {each.rules_for} of the {_requests(each)}; of the others: {why_not}"


def _requests(each: Difference) -> str:
    return f"{counted(each.count, each.kind)} of {printable(each.what)}"


def _notes(found: WhatIf) -> Iterator[str]:
    if found.differ:
        yield "The commands that would have run after a difference are not known"
    if found.left_out:
        yield f"{found.left_out} more differ, of too many kinds to list"
    if found.by_other_rule:
        yield f"{counted(found.by_other_rule, 'decision')} would be the same by another rule"
    if found.own:
        yield f"{counted(found.own, 'decision')} of sigwrap itself, which no policy changes"
    for reason, count in sorted(found.doubtful.items()):
        yield f"{counted(count, 'decision')} may differ: {reason}"
