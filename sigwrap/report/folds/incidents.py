"""What happened to the session itself: limits, tampering, the kill switch, refused calls. Equal
ones are one, with a count."""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.events import Event, times

# By which of its fields two events of a type are equal.
INCIDENT_TYPES = {
    "killswitch_activated": "reason",
    "store_tampered": "what",
    "exec_verification_failed": "path",
    "limit_exceeded": "limit",
    "mediation_failed": "error",
    "control_refused": "reason",
    "own_files_changed": "count",
    "servers_killed": "count",
    "killswitch_invented": "reason",
    "killswitch_missed": "url",
    "abi_refused": "syscall_number",
    "call_refused": "reason",
    "agent_signal": "signal",
    "limit_near": "limit",
}
_INCIDENTS_LIMIT = 200
_CHARACTERS_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    first: Event
    count: int
    last_seq: int


class IncidentsFold:
    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Incident] = {}
        self._more = 0

    def add(self, event: Event) -> None:
        name = event.type
        key = name, str(event.payload.get(INCIDENT_TYPES[name]))[:_CHARACTERS_KEPT]
        known = self._found.get(key)
        if known is None and len(self._found) >= _INCIDENTS_LIMIT:
            self._more += times(event.payload)
            return
        self._found[key] = Incident(
            first=known.first if known is not None else event,
            count=(known.count if known is not None else 0) + times(event.payload),
            last_seq=event.seq,
        )

    def result(self) -> tuple[Incident, ...]:
        """The most serious first."""
        order = list(INCIDENT_TYPES)
        found = self._found.values()
        return tuple(sorted(found, key=lambda each: (order.index(each.first.type), each.first.seq)))

    @property
    def more(self) -> int:
        return self._more
