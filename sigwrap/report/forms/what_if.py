"""What another policy would have decided, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from enum import Enum

from sigwrap.events import counted
from sigwrap.report.check.what_if import Difference, Outcome, WhatIf
from sigwrap.report.forms.layout import PLAIN, Style, wrapped
from sigwrap.report.forms.markdown import block, plain
from sigwrap.report.forms.rules import policy_lines
from sigwrap.text import printable

WHAT_IF_SCHEMA = "sigwrap.what-if/1"

_SHOWN_OF_EACH = 40
_TITLES = {
    Outcome.DENIED: ("Would be denied", "denied"),
    Outcome.ASKED: ("Would need approval", "an approval request"),
    Outcome.REPLACED: ("Would be redirected", "redirected"),
    Outcome.ABSORBED: ("Would be absorbed", "absorbed"),
    Outcome.LET_THROUGH: ("Would be allowed", "allowed"),
}
_RULES = "To allow these, add to your policy"


class WhatIfForm(Enum):
    TEXT = "text"
    MD = "md"
    JSON = "json"


def what_if_text(found: WhatIf, style: Style = PLAIN, columns: int = 0) -> str:
    """`columns` is the width of the terminal, or 0 for lines of any length."""
    lines = [_headline(found)]
    shown: list[Difference] = []
    for outcome, (title, _) in _TITLES.items():
        those = [each for each in found.differences if each.would_be is outcome]
        if not those:
            continue
        lines += ["", style.heading(title)]
        for each in those[:_SHOWN_OF_EACH]:
            lines += wrapped(f"  {_line(each)}", columns, "      ")
        if (left := len(those) - _SHOWN_OF_EACH) > 0:
            lines.append(f"  and {left} more kinds (--format json has them)")
        shown += those[:_SHOWN_OF_EACH]
    if rules := list(_rules(shown)):
        # Not wrapped, so that a copy of them means the same.
        lines += ["", style.heading(_RULES), *(f"  {rule}" for rule in rules)]
    if found.differ:
        lines.append("")
    return "\n".join([*lines, *_notes(found)])


def what_if_md(found: WhatIf) -> str:
    headline, _, rest = what_if_text(found).partition("\n")
    lines = ["", *block(rest.strip("\n").split("\n"))] if rest else []
    return "\n".join((f"## {plain(headline)}", *lines))


def what_if_json(session_id: str, found: WhatIf) -> str:
    document = {"schema": WHAT_IF_SCHEMA, "session_id": session_id, **asdict(found)}
    for each, shown in zip(found.differences, document["differences"], strict=True):
        shown["was"], shown["would_be"] = each.was.value, each.would_be.value
        shown["rules"] = [rule.line for rule in each.rules]
        shown["why_not"] = each.why_not or None
    return json.dumps(document, indent=2)


def _headline(found: WhatIf) -> str:
    policy, decisions = printable(found.policy), counted(found.decisions, "decision")
    if not found.differ:
        return f"Under {policy}, nothing would differ: {decisions}"
    return f"Under {policy}, {found.differ} of {decisions} would differ"


def _line(each: Difference) -> str:
    was = f"was {_TITLES[each.was][1]} by {printable(each.was_by) or '?'}"
    example = f"first at event {each.first_seq}: {each.example}"
    return f"{_requests(each)} by rule {printable(each.would_be_by) or '?'} ({was}; {example})"


def _rules(shown: list[Difference]) -> Iterator[str]:
    yield from policy_lines(rule for each in shown for rule in each.rules)
    for each in shown:
        if each.why_not:
            part = f"{each.count - each.rules_for} of the " if each.rules_for else ""
            yield f"# none for {part}{_requests(each)}: {printable(each.why_not)}"


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
