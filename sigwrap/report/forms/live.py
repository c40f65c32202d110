"""An event as it comes, in a line; nothing of what simply went through."""

from __future__ import annotations

from sigwrap.escape import printable
from sigwrap.events import Event, number, text, times
from sigwrap.outcomes import ALLOWED, outcome
from sigwrap.report.folds.cause import sent_to_sigwrap
from sigwrap.report.folds.incidents import INCIDENT_TYPES, Incident
from sigwrap.report.forms.findings import what
from sigwrap.report.forms.incidents import sentence


def live_line(event: Event, started_ns: int) -> str:
    """Empty where there is nothing to say."""
    said = _said(event)
    return f"{(event.time_ns - started_ns) / 1e9:>+10.3f} s  {said}" if said else ""


def _said(event: Event) -> str:
    payload = event.payload
    became = outcome(event)
    if became == ALLOWED:
        return ""
    if became:
        count = f"{times(event.payload)} times  " if times(event.payload) > 1 else ""
        message = " ".join(text(payload.get("message")).split())
        rule = printable(text(payload.get("rule_name")) + (f": {message}" if message else ""))
        return f"{became}  {count}{what(event)}  (rule {rule})"
    match event.type:
        case "approval_requested":
            request = printable(text(payload.get("approval_id")))
            wanted = printable(text(payload.get("what")))
            return f"request {request}  {wanted}  (sigwrap approve {request})"
        case "interrupt_received":
            return f"interrupt  {sent_to_sigwrap(payload)}"
        case "process_exited" if payload.get("signal_name"):
            comm = printable(text(payload.get("comm")))
            return f"died  {comm} ({event.pid}) of {printable(str(payload['signal_name']))}"
        case "tree_frozen":
            return f"stopped  {number(payload.get('processes'))} processes"
        case "tree_thawed":
            return f"continued  {number(payload.get('processes'))} processes"
        case name if name in INCIDENT_TYPES:
            return sentence(Incident(first=event, last_seq=event.seq))
        case _:
            return ""
