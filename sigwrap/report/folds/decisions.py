"""What became of a request, whatever the policy's word for it was: what was asked about and refused
is denied."""

from __future__ import annotations

from sigwrap.events import Event

ALLOWED = "allowed"
AUDITED = "audited"
APPROVED = "approved"
REDIRECTED = "redirected"
ABSORBED = "absorbed"
DENIED = "denied"
REFUSED = "refused"  # a file, by the kernel

# From what one would act on first.
OUTCOMES = (DENIED, REFUSED, REDIRECTED, ABSORBED, APPROVED, AUDITED, ALLOWED)

# What becomes of a question.
APPROVAL_ANSWERS = ("approval_granted", "approval_denied", "approval_expired")

_BY_TYPE = {
    "exec_allowed": ALLOWED,
    "exec_audited": AUDITED,
    "exec_denied": DENIED,
    "exec_redirected": REDIRECTED,
    "signal_sent": ALLOWED,
    "signal_blocked": DENIED,
    "signal_redirected": REDIRECTED,
    "signal_absorbed": ABSORBED,
    "signal_approved": APPROVED,
    "connection_allowed": ALLOWED,
    "connection_audited": AUDITED,
    "connection_approved": APPROVED,
    "connection_denied": DENIED,
    "file_refused_likely": REFUSED,
}


def outcome(event: Event) -> str:
    """Of an exec, a signal or a connection; empty for every other event."""
    found = _BY_TYPE.get(event.type, "")
    if found == ALLOWED:
        payload = event.payload
        if payload.get("decision") == "audit":
            return AUDITED
        if payload.get("approval_id"):
            return APPROVED
    return found
