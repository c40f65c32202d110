"""Policies in a line each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sigwrap.escape import printable, shortened
from sigwrap.policy.judge.rules import CommandRule, Policy, SignalRule

_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    selector: str  # for -p
    shipped: bool = False
    bases: tuple[str, ...] = ()
    about: str = ""  # the first sentence of its description
    command: str = ""  # what becomes of what no rule is about
    signal: str = ""
    rules: int = 0  # its bases' too
    decisions: dict[str, int] = field(default_factory=dict)  # how many rules decide so
    problem: str = ""  # why it doesn't load; then the rest is unknown

    @classmethod
    def of(cls, selector: str, policy: Policy, *, shipped: bool = False) -> Listed:
        rules: list[CommandRule | SignalRule] = [*policy.command_rules, *policy.signal_rules]
        return cls(
            selector=selector,
            shipped=shipped,
            bases=policy.bases,
            about=_first_sentence(policy.description),
            command=policy.default_command.value,
            signal=policy.default_signal.value,
            rules=len(rules),
            decisions=dict(Counter(rule.decision.value for rule in rules).most_common()),
        )


def listing_text(listed: Sequence[Listed]) -> str:
    width = max(len(printable(each.selector)) for each in listed)
    return "\n".join(f"{printable(each.selector):<{width}}  {_line(each)}" for each in listed)


def _line(listed: Listed) -> str:
    return "; ".join(_parts(listed))


def _parts(listed: Listed) -> Iterator[str]:
    if listed.problem:
        yield f"does not load; see: sigwrap policy check {printable(listed.selector)}"
        return
    yield "shipped" if listed.shipped else "file"
    if listed.bases:
        yield f"extends {printable(listed.bases[0])}"
    yield "1 rule" if listed.rules == 1 else f"{listed.rules} rules"
    yield f"default: command {listed.command}, signal {listed.signal}"
    if listed.about:
        yield shortened(printable(listed.about), _SHOWN)
    elif listed.decisions:
        counts = [f"{count} {decision}" for decision, count in listed.decisions.items()]
        yield f"no description; rules: {', '.join(counts)}"
    else:
        yield "no description"


def _first_sentence(description: str) -> str:
    words = " ".join(description.split())
    return re.split(r"(?<=[.:;]) ", words, maxsplit=1)[0].rstrip(":;")
