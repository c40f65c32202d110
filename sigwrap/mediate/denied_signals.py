"""What the sender of a denied signal reads on its standard error: a line for each rule and target,
once, and no flood of them. Sigwrap's own processes are one target."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.mediate.lineage import Process
from sigwrap.mediate.wording import denial
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP, Decision
from sigwrap.tuples import NamedTuple

_LINES_EACH = 10
_SENDERS_KEPT = 256
_NO_MORE = "sigwrap: further denials of this process are only in the log (sigwrap report)"


class Denied(NamedTuple):
    what: str  # `SIGTERM to 4711 (node)`
    target: object  # one that equals no other target
    decision: Decision


class _Told:
    __slots__ = ("lines", "pairs")

    def __init__(self) -> None:
        self.lines = 0
        self.pairs: set[tuple[str, object]] = set()


class DeniedSignals:
    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._told: dict[Process, _Told] = {}

    def lines(self, sender: Process, denied: Iterable[Denied]) -> list[str]:
        """Those of a group that one rule denies share a line."""
        told = self._told.get(sender)
        if told is None:
            if len(self._told) >= _SENDERS_KEPT:
                self._told.clear()
            told = self._told[sender] = _Told()
        by_rule: dict[str, list[Denied]] = {}
        for each in denied:
            rule = each.decision.rule
            pair = rule, None if each.decision == PROTECTS_SIGWRAP else each.target
            if pair not in told.pairs and told.lines <= _LINES_EACH:
                told.pairs.add(pair)
                by_rule.setdefault(rule, []).append(each)
        lines = [self._line(rule, those) for rule, those in by_rule.items()]
        fit = max(_LINES_EACH - told.lines, 0)
        told.lines += len(lines)
        return lines if len(lines) <= fit else [*lines[:fit], _NO_MORE]

    def _line(self, rule: str, those: list[Denied]) -> str:
        first, more = those[0], len(those) - 1
        decision = first.decision
        why = decision.message or (decision.reason if rule.startswith("builtin:") else "")
        what = f"{first.what} and {more} more" if more else first.what
        return denial(what, rule, self._policy, why)
