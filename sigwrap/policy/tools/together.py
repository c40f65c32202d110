"""The rules for all requests of one kind, up to a number."""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.policy.tools.draft import Draft

MOST_RULES_TOGETHER = 8


@dataclass(slots=True)
class Together:
    rules: dict[tuple[Draft, ...], None] = field(default_factory=dict)
    requests: int = 0  # that the rules are for
    why_not: str = ""  # for the first other request

    def add(self, drafts: tuple[Draft, ...] | str) -> None:
        """Add the rules for a request, or why there are none."""
        if isinstance(drafts, str):
            self.why_not = self.why_not or drafts
        elif drafts in self.rules or len(self.rules) < MOST_RULES_TOGETHER:
            self.rules[drafts] = None
            self.requests += 1
        else:
            self.why_not = self.why_not or "more rules would be needed"
