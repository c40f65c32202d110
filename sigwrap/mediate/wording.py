"""The line that a denied caller reads on its standard error."""

from __future__ import annotations

from sigwrap.escape import printable

_LONGEST = 120


def denial(what: str, rule: str, policy: str, message: str) -> str:
    """`what`: a command line, or a signal and its target. A built-in rule belongs to no policy."""
    by = f"rule {rule}" if rule.startswith("builtin:") else f"rule {rule} of {policy}"
    because = f": {printable(message)}" if message else ""
    return (
        f"sigwrap: {_short(printable(what))}: denied by {by}{because} (sigwrap report tells more)"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
