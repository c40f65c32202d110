"""Incidents: what happened to the session itself, such as limits, tampering, the kill switch and
refused calls. Equal incidents are one, with a count."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sigwrap.events import Event, number, text, texts, times
from sigwrap.text import printable, shell_words, shortened

# Events with equal sentences are one incident, whichever process they are about.
_SENTENCES = {
    "killswitch_activated": "the kill switch was turned on by {by}{why}",
    "store_tampered": "the files of the log were tampered with ({what}): {path}",
    "exec_verification_failed": "{path} was killed: the kernel had loaded another program{why}",
    "limit_exceeded": "the limit {limit} {became}{why}",
    "mediation_failed": "internal error of sigwrap while it decided for {comm} ({pid}): {error}",
    "control_refused": "{peer_cmd} ({pid}) was refused at the control socket{why}",
    "own_files_changed": "files that sigwrap runs from were changed: {changed}",
    "killswitch_invented": "sigwrap killswitch on did not announce the kill switch file "
    "{path}{why}",
    "killswitch_missed": "the remote kill switch {url} gave no answer{why}",
    "abi_refused": "{comm} ({pid}) used an ABI that sigwrap refuses",
    "call_refused": "{comm} ({pid}) was refused system call {syscall_number}{why}",
    "agent_signal": "agent signal {signal} from {sender}{why}: {outcome}{failure}",
    "limit_near": "half of the limit {limit} is used: {used} of {maximum}",
}
INCIDENT_TYPES = frozenset(_SENTENCES)
_ATTEMPT, _SHADOW = "agent_signal trust.boundary", "agent_signal trust.path_shadow"
# The most serious kind first. trust.path_shadow comes last: often the agent installed a tool.
_WORST = ("killswitch_activated", "store_tampered", "exec_verification_failed", _ATTEMPT)
_ORDER = (*_WORST, *(each for each in _SENTENCES if each not in _WORST), _SHADOW)
# The policy's names for the rules that logs call by their old names.
_RULES = {"watch.loop": "on.loop", "watch.drift": "on.drift", "trust.boundary": "on.boundary"}
_OF_A_KIND_LIMIT = 20
_CHARACTERS_KEPT = 200
_CHARACTERS = 300
_FILES_SHOWN = 3
# Their "count" is the total so far.
_CUMULATIVE = ("killswitch_invented", "killswitch_missed")


@dataclass(slots=True, kw_only=True)
class Incident:
    first: Event
    last_seq: int
    count: int = 1
    by_others: bool = False  # also by other processes than the first

    @property
    def sentence(self) -> str:
        said = shortened(
            printable(" ".join(_said(self.first, _caller(self.first)).split())), _CHARACTERS
        )
        if self.count == 1:
            return said
        by_several = self.by_others and "{pid}" in _SENTENCES[self.first.type]
        return f"{said} ({self.count} times{', by several processes' if by_several else ''})"


class Incidents:
    def __init__(self) -> None:
        self._found: dict[str, dict[str, Incident]] = {}
        self._more: dict[str, int] = {}
        self._so_far: dict[str, int] = {}

    def add(self, event: Event) -> None:
        kind = _kind(event)
        count = self._how_often(event)
        key = shortened(_said(event, ""), _CHARACTERS)
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


def with_new_keys(said: str) -> str:
    """Return the sentence with a rule's name as the policy has it now."""
    for old, new in _RULES.items():
        said = said.replace(f"from {old}", f"from {new}")
    return said


def _kind(event: Event) -> str:
    if event.type == "agent_signal":
        kind = f"agent_signal {text(event.payload.get('source'))[:_CHARACTERS_KEPT]}"
        if kind in (_ATTEMPT, _SHADOW):
            return kind
    return event.type


def _name(kind: str) -> str:
    type_name, _, source = kind.partition(" ")
    return with_new_keys(type_name.replace("_", " ") + (f" from {source}" if source else ""))


def _caller(event: Event) -> object:
    return event.payload.get("peer_pid") or event.pid


def _said(event: Event, pid: object) -> str:
    get = event.payload.get
    files = texts(get("files"))[:_FILES_SHOWN]
    more = number(get("count")) - len(files)
    known = {name: value for name, value in event.payload.items() if value not in (None, "")}
    fields = defaultdict(lambda: "?", known)
    fields.update(
        pid=pid,
        why=f": {get('reason')}" if get("reason") else "",
        became="ended the run" if get("effect") == "terminated" else "was reached",
        changed=shell_words(files) + (f" and {more} more" if more > 0 else ""),
        sender=text(get("source")) or "sigwrap",
        failure=f" ({text(get('error'))})" if get("error") else "",
    )
    said = _SENTENCES[event.type].format_map(fields)
    return with_new_keys(said) if event.type == "agent_signal" else said
