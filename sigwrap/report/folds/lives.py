"""Which processes live, what each runs, and what was sent to it: what the end of one is explained
by. A sender and its parent are named by what they ran when the signal was sent.

Hardly any of this is ever shown, so it is kept as it was recorded, and made readable when somebody
asks. What is kept of one process is bounded, and so is their number.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from sigwrap.events import Event, Payload, number, texts
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.cause import Sender, Why, name_of_signal, shortened, shown_command
from sigwrap.tuples import NamedTuple

_LIVING_LIMIT = 65_536
_SIGNALS_OF_ONE = 128
_WORDS_KEPT, _CHARACTERS_KEPT = 32, 256

Ran = list[str] | str  # the words, or what is to be shown of them


class Refused(NamedTuple):
    ran: Ran
    rule: str


class Sent(NamedTuple):
    pid: int
    ran: Ran
    parent_pid: int
    parent_ran: Ran
    signal_name: str
    asked_for: str  # where that was another one
    decision: str
    rule: str
    event_type: str

    @property
    def sender(self) -> Sender:
        return Sender(
            pid=self.pid,
            command=shown(self.ran),
            parent_pid=self.parent_pid,
            parent_command=shown(self.parent_ran),
            signal_name=shortened(self.signal_name),
            asked_for=self.asked_for,
            decision=self.decision,
            rule=shortened(self.rule),
            event_type=self.event_type,
        )


@dataclass(slots=True)
class Living:
    ppid: int
    ran: Ran = ""
    ran_before: Ran = ""
    refused: Refused | None = None  # its last exec, where that was denied
    refused_fork: str = ""  # by this limit
    refused_file: str = ""  # probably, by the kernel
    is_mismatched: bool = False  # it loaded something other than what was judged
    child: Why | None = None  # the end of one, whose status it may pass on
    sent: dict[str, Sent] | None = None  # by another, the last one of each signal
    raised: dict[str, Sent] | None = None  # at itself, since then

    @property
    def is_plain(self) -> bool:
        """Nothing but its command tells of its end."""
        has_none = self.refused is None and not self.refused_fork and not self.refused_file
        return self.child is None and has_none

    def last_sent(self, name: str) -> Sent | None:
        return None if self.sent is None else self.sent.get(name)

    def last_raised(self, name: str) -> Sent | None:
        return None if self.raised is None else self.raised.get(name)

    def last_name(self) -> str:
        """Of the signals that it got; what it raised comes after what it was sent."""
        got = self.raised or self.sent
        return next(reversed(got)) if got else ""


class Lives:
    def __init__(self) -> None:
        self._living: OrderedDict[int, Living] = OrderedDict()

    def __contains__(self, pid: int) -> bool:
        return pid in self._living

    def pids(self) -> list[int]:
        return list(self._living)

    def get(self, pid: int) -> Living | None:
        return self._living.get(pid)

    def end(self, pid: int) -> Living | None:
        return self._living.pop(pid, None)

    # What happens

    def executed(self, event: Event) -> None:
        payload = event.payload
        living = self._living.get(event.pid)
        if living is None:
            living = self._meet(event.pid, number(payload.get("ppid")))
        living.ran_before, living.ran = living.ran, _ran(payload)
        living.refused = None

    def exec_failed(self, event: Event) -> None:
        if (living := self._living.get(event.pid)) is not None:
            living.ran = living.ran_before

    def exec_denied(self, event: Event) -> None:
        payload = event.payload
        living = self._living.get(event.pid) or self._meet(event.pid, number(payload.get("ppid")))
        living.refused = Refused(
            _ran(payload), str(payload.get("rule_name") or "?")[:_CHARACTERS_KEPT]
        )

    def fork_refused(self, event: Event) -> None:
        if (living := self._living.get(event.pid)) is not None:
            living.refused_fork = str(event.payload.get("limit"))[:_CHARACTERS_KEPT]

    def file_refused(self, event: Event) -> None:
        if (living := self._living.get(event.pid)) is not None and not living.refused_file:
            get = event.payload.get
            what, rule = shortened(f"{get('operation')} {get('path')}"), shortened(get("rule_name"))
            living.refused_file = f"the kernel refused it: {what} (rule {rule})"

    def mismatched(self, event: Event) -> None:
        living = self._living.get(event.pid) or self._meet(event.pid, 0)
        living.is_mismatched = True

    def signalled(self, event: Event) -> None:
        payload = event.payload
        target = payload.get("target_pid")
        if not isinstance(target, int) or target <= 0:
            return
        source = number(payload.get("source_pid"))
        sender = self._living.get(source)
        parent_pid = sender.ppid if sender is not None else 0
        parent = self._living.get(parent_pid)
        name = str(payload.get("signal_name") or "")[:_CHARACTERS_KEPT]
        asked_for = payload.get("original_signal")
        living = self._living.get(target) or self._meet(target, 0)
        if source == target:
            of_living = living.raised = living.raised or {}
        else:
            of_living = living.sent = living.sent or {}
            if living.raised:
                living.raised.pop(name, None)
        if of_living.pop(name, None) is None and len(of_living) >= _SIGNALS_OF_ONE:
            return
        of_living[name] = Sent(
            source,
            (sender.ran if sender is not None else "") or shortened(payload.get("source_cmd")),
            parent_pid,
            parent.ran if parent is not None else "",
            name,
            "" if asked_for in (None, payload.get("signal")) else _named(asked_for),
            str(payload.get("decision") or "")[:_CHARACTERS_KEPT],
            str(payload.get("rule_name") or "")[:_CHARACTERS_KEPT],
            event.type,
        )

    def _meet(self, pid: int, ppid: int) -> Living:
        living = self._living[pid] = Living(ppid)
        if len(self._living) > _LIVING_LIMIT:
            self._living.popitem(last=False)
        return living


def _named(signal: object) -> str:
    return shortened(name_of_signal(signal))


def shown(ran: Ran) -> str:
    return ran if isinstance(ran, str) else shown_command(ran)


def _ran(payload: Payload) -> Ran:
    argv = payload.get("replacement_argv") or payload.get("argv")
    if not argv or not isinstance(argv, list):
        return shown_command([str(payload.get("path") or "?")])
    try:
        argv = as_meant(argv)
        if len(argv) <= _WORDS_KEPT and len("".join(argv)) <= _CHARACTERS_KEPT:
            return argv
    except (AttributeError, TypeError):  # not all of them are text
        pass
    return shown_command(texts(argv[:_WORDS_KEPT]))
