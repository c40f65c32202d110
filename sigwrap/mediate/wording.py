"""The lines that a caller reads on its standard error: what it asked for is denied, or waits."""

from __future__ import annotations

from sigwrap.escape import printable
from sigwrap.mediate.questions import Answer

_LONGEST = 120


def denial(what: str, rule: str, policy: str, message: str) -> str:
    """`what`: a command line, or a signal and its target."""
    because = denied_by(rule, policy, message)
    return f"sigwrap: {_short(printable(what))}: {because} (sigwrap report tells more)"


def denied_by(rule: str, policy: str, message: str = "") -> str:
    because = f": {printable(message)}" if message else ""
    return f"denied by {named_rule(rule, policy)}{because}"


def killed(what: str, why: str) -> str:
    return (
        f"sigwrap: {_short(printable(what))}: killed: {printable(why)} (sigwrap report tells more)"
    )


def waiting(what: str, rule: str, policy: str) -> str:
    """Until when, and how to answer, is added by whoever asks."""
    return f"sigwrap: {_short(printable(what))}: waits for approval ({named_rule(rule, policy)})"


def refusal(answer: Answer) -> str:
    """Why what needs approval is denied."""
    match answer.reason:
        case "denied":
            text = "not approved"
        case "expired":
            text = "not approved in time"
        case "nobody":
            text = "needs approval, and nobody can be asked"
        case _:
            text = f"needs approval: {answer.reason}"
    return f"{text}: {answer.message}" if answer.message else text


def named_rule(rule: str, policy: str) -> str:
    """A built-in rule belongs to no policy."""
    return f"rule {rule}" if rule.startswith("builtin:") else f"rule {rule} of {policy}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
