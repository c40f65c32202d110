"""The rules for requests of one kind: as few as they fit into, and how many they are for."""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.policy.tools.draft import Draft, for_both
from sigwrap.policy.tools.generate import Request

MOST_RULES_TOGETHER = 8
_REQUESTS_KEPT = 8
_TOO_MANY = "more rules would be needed"


@dataclass(slots=True)
class OneRule:
    draft: Draft
    requests: list[Request]  # the first ones that it is for


@dataclass(slots=True)
class Together:
    most: int = MOST_RULES_TOGETHER
    rules: list[OneRule] = field(default_factory=list)
    requests: int = 0  # that the rules are for
    why_not: str = ""  # of the first one that they aren't for

    def add(self, request: Request, draft: Draft | str) -> None:
        """A draft, or why there can be none."""
        if isinstance(draft, str):
            self.why_not = self.why_not or draft
        elif self._takes(request, draft):
            self.requests += 1
        else:
            self.why_not = self.why_not or _TOO_MANY

    def _takes(self, request: Request, draft: Draft) -> bool:
        for rule in self.rules:
            both = for_both(rule.draft, draft)
            if both is not None:
                if len(rule.requests) < _REQUESTS_KEPT and request not in rule.requests:
                    rule.requests.append(request)
                rule.draft = both
                return True
        if len(self.rules) >= self.most:
            return False
        self.rules.append(OneRule(draft, [request]))
        return True
