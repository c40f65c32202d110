"""An event as it comes, in a line; nothing of what simply went through."""

from __future__ import annotations

from sigwrap.escape import printable
from sigwrap.events import Event, text
from sigwrap.outcomes import ALLOWED, outcome
from sigwrap.report.folds.incidents import INCIDENT_TYPES
from sigwrap.report.forms.detail import detail

_SAID = ("interrupt_received", "tree_frozen", "tree_thawed", "tool_call_judged", *INCIDENT_TYPES)


def live_line(event: Event, started_ns: int) -> str:
    """Empty where there is nothing to say."""
    said = _said(event)
    return f"{(event.time_ns - started_ns) / 1e9:>+10.3f} s  {said}" if said else ""


def _said(event: Event) -> str:
    became = outcome(event)
    if became:
        return "" if became == ALLOWED else f"{became}  {detail(event)}"
    if event.type == "approval_requested":
        request = printable(text(event.payload.get("approval_id")))
        return f"request {request}  {detail(event)}  (sigwrap approve {request})"
    is_death = event.type == "process_exited" and event.payload.get("signal_name")
    return detail(event) if is_death or event.type in _SAID else ""
