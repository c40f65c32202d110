"""Outcomes of actions, and their counts. Every count of a session comes from here.

An action is an exec, a signal or a connection. Its outcome is the final one: a request that an
approver denied is denied.
"""

from __future__ import annotations

from sigwrap.events import DECISION_TYPES, Event, Payload, kind_of, times

ALLOWED = "allowed"
AUDITED = "audited"
APPROVED = "approved"
REDIRECTED = "redirected"
ABSORBED = "absorbed"
DENIED = "denied"
REFUSED = "refused"  # a file that the kernel refused

# The most serious first.
OUTCOMES = (DENIED, REFUSED, REDIRECTED, ABSORBED, APPROVED, AUDITED, ALLOWED)

# Answers to an approval request.
ANSWER_OF = {
    "approval_granted": APPROVED,
    "approval_denied": DENIED,
    "approval_expired": "expired",
}
APPROVAL_ANSWERS = tuple(ANSWER_OF)

_REFUSED_FILE = "file_refused_likely"
# The payload adds approval and audit.
OUTCOME_OF = {
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
    _REFUSED_FILE: REFUSED,
}
_KINDS = {name: kind_of(name) for name in OUTCOME_OF if name != _REFUSED_FILE}
_NAMES = {"exec": "command", "signal": "signal", "connection": "connection"}
# Approvals are counted by answers: one may cover several commands.
_SHOWN = tuple(each for each in OUTCOMES if each not in (ALLOWED, APPROVED))


def outcome(event: Event) -> str:
    """Return the outcome of an exec, a signal or a connection, and "" for any other event."""
    return _outcome_of(event.type, event.payload)


def how_many(type_name: str, payload: Payload) -> int:
    """Return how many actions or answers an event counts as.

    The same command in the next directory of PATH is no new action, and a stub's command was
    counted when the policy decided on it. One answer for the whole session is one answer.
    """
    if type_name in DECISION_TYPES:
        is_stubs = payload.get("stub") is True and not payload.get("approval_id")
        return 0 if payload.get("retry") is True or is_stubs else times(payload)
    return int(type_name in APPROVAL_ANSWERS and payload.get("remembered") is not True)


class Counts:
    """Actions by kind and outcome, and answers to approval requests."""

    def __init__(self) -> None:
        self.execs: dict[str, int] = {}
        self.signals: dict[str, int] = {}
        self.connections: dict[str, int] = {}
        self.refused_files = 0
        self.answers: dict[str, int] = {}  # by APPROVED, DENIED or "expired"

    def add(self, type_name: str, payload: Payload) -> None:
        if type_name in _KINDS:
            is_one = "count" not in payload and "retry" not in payload and "stub" not in payload
            if count := 1 if is_one else how_many(type_name, payload):
                of_kind, name = self.of_kind(_KINDS[type_name]), _outcome_of(type_name, payload)
                of_kind[name] = of_kind.get(name, 0) + count
        elif type_name == _REFUSED_FILE:
            self.refused_files += 1
        elif type_name in ANSWER_OF and how_many(type_name, payload):
            name = ANSWER_OF[type_name]
            self.answers[name] = self.answers.get(name, 0) + 1

    def of_kind(self, kind: str) -> dict[str, int]:
        if kind == "exec":
            return self.execs
        return self.signals if kind == "signal" else self.connections

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    @property
    def denied(self) -> int:
        return sum(each.get(DENIED, 0) for each in (self.execs, self.signals, self.connections))

    @property
    def approved(self) -> int:
        return self.answers.get(APPROVED, 0)

    def lines(self) -> list[str]:
        """Return texts such as "5 commands (1 denied)", one for each kind."""
        found = []
        for kind, name in _NAMES.items():
            counts = self.of_kind(kind)
            if not (total := sum(counts.values())):
                continue
            special = ", ".join(f"{counts[each]} {each}" for each in _SHOWN if counts.get(each))
            found.append(counted(total, name) + (f" ({special})" if special else ""))
        if self.refused_files:
            found.append(f"{counted(self.refused_files, 'file')} probably refused")
        return found


def _outcome_of(type_name: str, payload: Payload) -> str:
    found = OUTCOME_OF.get(type_name, "")
    if found == ALLOWED:
        if payload.get("decision") == "audit":
            return AUDITED
        if payload.get("approval_id"):
            return APPROVED
    return found


def counted(count: int, one: str, many: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count} {many or one + 's'}"
