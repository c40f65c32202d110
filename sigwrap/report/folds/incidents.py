"""What happened to the session itself: limits, tampering, the kill switch, refused calls. Incidents
that say the same are one, with a count."""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, number, text, texts, times

# The fields that an incident of each type shows: events that differ in one are two incidents.
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
# The most serious kind first. trust.path_shadow comes last: often the agent installed a tool.
_WORST = ("killswitch_activated", "store_tampered", "exec_verification_failed", _ATTEMPT)
_ORDER = (*_WORST, *(each for each in INCIDENT_TYPES if each not in _WORST), _SHADOW)
_OF_A_KIND_LIMIT = 20
_CHARACTERS_KEPT = 200
_CHARACTERS = 300
_FILES_SHOWN = 3
# Their "count" is the total so far.
_CUMULATIVE = ("killswitch_invented", "killswitch_missed")
_NAME_A_PROCESS = ("abi_refused", "call_refused", "control_refused", "mediation_failed")


@dataclass(slots=True, kw_only=True)
class Incident:
    first: Event
    last_seq: int
    count: int = 1
    by_others: bool = False  # also by other processes than the first

    @property
    def sentence(self) -> str:
        said = shortened(printable(" ".join(_said(self.first).split())), _CHARACTERS)
        if self.count == 1:
            return said
        by_several = self.by_others and self.first.type in _NAME_A_PROCESS
        return f"{said} ({self.count} times{', by several processes' if by_several else ''})"


class Incidents:
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
            known.count += count
            known.last_seq = event.seq
            known.by_others |= _caller(event) != _caller(known.first)
        elif len(of_kind) < _OF_A_KIND_LIMIT:
            of_kind[key] = Incident(first=event, last_seq=event.seq, count=count)
        else:
            self._more[kind] = self._more.get(kind, 0) + count

    @property
    def found(self) -> list[Incident]:
        """The most serious first."""
        return [incident for kind in _ORDER for incident in self._found.get(kind, {}).values()]

    @property
    def more(self) -> dict[str, int]:
        """Counts of incidents that were not kept, by kind."""
        return {kind: self._more[kind] for kind in _ORDER if kind in self._more}

    def sentences(self) -> list[str]:
        """Return a sentence for each, and one for those that were not kept."""
        said = [each.sentence for each in self.found]
        if more := self.more:
            kinds = ", ".join(f"{count} {_name(kind)}" for kind, count in more.items())
            said.append(f"and {sum(more.values())} more: {kinds}")
        return said

    def _how_often(self, event: Event) -> int:
        name = event.type
        if name == "limit_exceeded":
            return times(event.payload)
        if name not in _CUMULATIVE:
            return 1  # its "count", if any, is of files or of processes
        so_far, before = times(event.payload), self._so_far.get(name, 0)
        self._so_far[name] = so_far
        return so_far - before if so_far > before else so_far


def _kind(event: Event) -> str:
    if event.type == "agent_signal":
        kind = f"agent_signal {text(event.payload.get('source'))[:_CHARACTERS_KEPT]}"
        if kind in (_ATTEMPT, _SHADOW):
            return kind
    return event.type


def _name(kind: str) -> str:
    type_name, _, source = kind.partition(" ")
    return type_name.replace("_", " ") + (f" from {source}" if source else "")


def _caller(event: Event) -> object:
    return event.payload.get("peer_pid") or event.pid


def _said(event: Event) -> str:
    payload = event.payload

    def field(name: str) -> str:
        value = payload.get(name)
        return "?" if value in (None, "") else str(value)

    process = f"{field('comm')} ({event.pid})"
    why = f": {field('reason')}" if payload.get("reason") else ""
    match event.type:
        case "killswitch_activated":
            return f"the kill switch was turned on by {field('by')}{why}"
        case "killswitch_invented":
            by = "something other than sigwrap killswitch"
            return f"the kill switch file was created by {by}{why}"
        case "killswitch_missed":
            return f"the remote kill switch {field('url')} gave no answer{why}"
        case "store_tampered":
            return f"the files of the log were tampered with ({field('what')}): {field('path')}"
        case "exec_verification_failed":
            return f"{field('path')} was killed: the kernel had loaded another program{why}"
        case "limit_exceeded":
            ended = payload.get("effect") == "terminated"
            return f"the limit {field('limit')} {'ended the run' if ended else 'was reached'}{why}"
        case "limit_near":
            used = f"{field('used')} of {field('maximum')}"
            return f"half of the limit {field('limit')} is used: {used}"
        case "mediation_failed":
            return f"internal error of sigwrap while it decided for {process}: {field('error')}"
        case "control_refused":
            peer = f"{field('peer_cmd')} ({number(payload.get('peer_pid'))})"
            return f"{peer} was refused at the control socket{why}"
        case "own_files_changed":
            files = texts(payload.get("files"))[:_FILES_SHOWN]
            more = number(payload.get("count")) - len(files)
            said = f"files that sigwrap runs from were changed: {shell_words(files)}"
            return f"{said} and {more} more" if more > 0 else said
        case "servers_killed":
            return f"killed {field('count')} file system servers that kept other processes waiting"
        case "abi_refused":
            return f"{process} used an ABI that sigwrap refuses"
        case "call_refused":
            return f"{process} was refused system call {field('syscall_number')}{why}"
        case "agent_signal":
            source = text(payload.get("source")) or "sigwrap"
            error = f" ({text(payload.get('error'))})" if payload.get("error") else ""
            return f"agent signal {field('signal')} from {source}{why}: {field('outcome')}{error}"
        case _:
            return event.type
