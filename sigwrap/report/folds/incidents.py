"""What happened to the session itself: limits, tampering, the kill switch, refused calls. Those of
which the same is told are one, with a count."""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.events import Event, text, times

# What is told of an event of each type: where one of these fields differs, it is another incident.
INCIDENT_TYPES = {
    "killswitch_activated": ("by", "reason"),
    "store_tampered": ("what", "path"),
    "exec_verification_failed": ("path", "reason"),
    "limit_exceeded": ("limit", "effect", "reason"),
    "mediation_failed": ("comm", "error"),
    "control_refused": ("peer_cmd", "reason"),
    "own_files_changed": ("files", "count"),
    "servers_killed": ("count",),
    "killswitch_invented": ("reason",),
    "killswitch_missed": ("url", "reason"),
    "abi_refused": ("comm",),
    "call_refused": ("comm", "syscall_number", "reason"),
    "agent_signal": ("signal", "source", "reason", "outcome", "error"),
    "limit_near": ("limit", "used", "maximum"),
}
_ATTEMPT, _SHADOW = "agent_signal trust.boundary", "agent_signal trust.path_shadow"
# Their kinds, the most serious first. Behind an agent signal is sometimes an attack, and sometimes
# a virtual environment that somebody has activated.
_WORST = ("killswitch_activated", "store_tampered", "exec_verification_failed", _ATTEMPT)
_ORDER = (*_WORST, *(each for each in INCIDENT_TYPES if each not in _WORST), _SHADOW)
_OF_A_KIND_LIMIT = 20
_CHARACTERS_KEPT = 200
# How many so far, each time.
_COUNTED_SO_FAR = ("killswitch_invented", "killswitch_missed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    first: Event
    count: int = 1
    last_seq: int
    by_others: bool = False  # not only by the process that was the first


class IncidentsFold:
    def __init__(self) -> None:
        self._found: dict[str, dict[tuple[str, ...], Incident]] = {}
        self._more: dict[str, int] = {}
        self._so_far: dict[str, int] = {}

    def add(self, event: Event) -> None:
        name, payload = event.type, event.payload
        kind = _kind(event)
        count = self._how_often(event)
        key = tuple(str(payload.get(each))[:_CHARACTERS_KEPT] for each in INCIDENT_TYPES[name])
        of_kind = self._found.setdefault(kind, {})
        known = of_kind.get(key)
        if known is not None:
            of_kind[key] = Incident(
                first=known.first,
                count=known.count + count,
                last_seq=event.seq,
                by_others=known.by_others or _who(event) != _who(known.first),
            )
        elif len(of_kind) < _OF_A_KIND_LIMIT:
            of_kind[key] = Incident(first=event, count=count, last_seq=event.seq)
        else:
            self._more[kind] = self._more.get(kind, 0) + count

    def result(self) -> tuple[Incident, ...]:
        """The most serious first."""
        return tuple(incident for kind in _ORDER for incident in self._found.get(kind, {}).values())

    @property
    def more(self) -> dict[str, int]:
        """How often something else of a kind, which was not kept."""
        return {kind: self._more[kind] for kind in _ORDER if kind in self._more}

    def _how_often(self, event: Event) -> int:
        name = event.type
        if name == "limit_exceeded":
            return times(event.payload)
        if name not in _COUNTED_SO_FAR:
            return 1  # where it has a count, that is of files or of processes
        so_far = times(event.payload)
        before = self._so_far.get(name, 0)
        self._so_far[name] = so_far
        return so_far - before if so_far > before else so_far


def _kind(event: Event) -> str:
    if event.type == "agent_signal":
        kind = f"agent_signal {text(event.payload.get('source'))[:_CHARACTERS_KEPT]}"
        if kind in (_ATTEMPT, _SHADOW):
            return kind
    return event.type


def _who(event: Event) -> object:
    return event.payload.get("peer_pid") or event.pid
