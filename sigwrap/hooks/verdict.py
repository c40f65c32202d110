"""The answer of a hook, and why: the strictest of several."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.approve.requests import DENIED, TO_AN_AGENT, named_rule
from sigwrap.bare import Enum, NamedTuple
from sigwrap.policy.judge.request import Action, Decision
from sigwrap.text import printable, shortened

_SHOWN = 80
_MOST_REASONS = 5


class Answer(Enum):
    """From the most lenient to the strictest."""

    NO_OPINION = "no opinion"  # the program decides as it would without sigwrap
    ASK = "ask"
    DENY = "deny"


_STRICTNESS = {answer: rank for rank, answer in enumerate(Answer)}


class Finding(NamedTuple):
    """The answer on one command, one file, or something that is not known."""

    what: str
    answer: Answer
    why: str
    decision: Decision | None = None  # the policy's, where it has one
    is_command: bool = False


class Verdict(NamedTuple):
    answer: Answer
    findings: tuple[Finding, ...] = ()

    @property
    def reason(self) -> str:
        """A line for the agent and its user."""
        about = [each for each in self.findings if each.answer is self.answer]
        told = [f"{shortened(printable(each.what), _SHOWN)}: {each.why}" for each in about]
        shown = list(dict.fromkeys(told))
        more = len(shown) - _MOST_REASONS
        rest = [f"and {more} more"] if more > 0 else []
        text = "; ".join([*shown[:_MOST_REASONS], *rest])
        return denial(text) if self.answer is Answer.DENY else f"sigwrap: {text}"


def denial(text: str) -> str:
    return f"{DENIED}{text}{TO_AN_AGENT}"


def combined(findings: Iterable[Finding]) -> Verdict:
    found = tuple(dict.fromkeys(findings))
    answers = [each.answer for each in found] or [Answer.NO_OPINION]
    return Verdict(max(answers, key=_STRICTNESS.__getitem__), found)


def finding_of(what: str, decision: Decision, policy: str, *, inside: bool) -> Finding:
    """Return the answer for a decision; a session asks and redirects by itself."""
    match decision.action:
        case Action.ALLOW | Action.AUDIT:
            why = f"{decision.action.value}, by {decision.rule}"
            return Finding(what, Answer.NO_OPINION, why, decision)
        case Action.APPROVE:
            why = decision.message or "needs approval"
            answer = Answer.NO_OPINION if inside else Answer.ASK
        case Action.REDIRECT:
            instead = decision.redirect_to.command if decision.redirect_to else "another command"
            why = f"only a session can run {instead} instead"
            answer = Answer.NO_OPINION if inside else Answer.DENY
        case _:
            why = decision.message or _default_says(decision) or "not allowed"
            answer = Answer.DENY
    why = f"{printable(why)} ({named_rule(decision.rule, policy)})"
    return Finding(what, answer, why, decision)


def asked(what: str, why: str, *, inside: bool) -> Finding:
    """Ask, because the hook does not know; inside a session, leave it to the session."""
    if inside:
        return Finding(what, Answer.NO_OPINION, f"{why}: the session decides")
    return Finding(what, Answer.ASK, why)


def reads_too_much(path: str, *, inside: bool) -> Finding:
    why = "rules deny reading a part of it"
    return asked(f"read everything in {path}", why, inside=inside)


def _default_says(decision: Decision) -> str:
    return decision.reason if decision.rule.startswith("builtin:") else ""
