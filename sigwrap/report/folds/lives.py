"""The living processes of a session: what each runs, and the signals that it was sent. The end of
a process is explained by this. A sender and its parent are named by what they ran at that time.

What is kept of one process is bounded, and so is their number.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from sigwrap.events import Event, Payload, number, texts
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.cause import Sender, Why, name_of_signal, shortened, shown_command

_LIVING_LIMIT = 65_536
_SIGNALS_OF_ONE = 128
_WORDS_KEPT, _CHARACTERS_KEPT = 32, 256

# The words of a command line, made readable only when they are shown; or a readable text.
Ran = list[str] | str


@dataclass(slots=True)
class Living:
    ppid: int
    ran: Ran = ""
    ran_before: Ran = ""
    denied_exec: str = ""  # its last exec, if that was denied, as the end of a sentence
    denied_fork: str = ""
    refused_file: str = ""  # probably, by the kernel
    is_mismatched: bool = False  # it loaded something other than what was judged
    child: Why | None = None  # the end of one, whose status it may pass on
    sent: dict[str, Sender] | None = None  # by another process, the last one of each signal
    raised: dict[str, Sender] | None = None  # at itself, since then

    @property
    def is_plain(self) -> bool:
        """Return whether nothing but its command is known that may explain its end."""
        return self.child is None and not self.denied and not self.refused_file

    @property
    def denied(self) -> str:
        return self.denied_exec or self.denied_fork

    def last_sent(self, name: str) -> Sender | None:
        return None if self.sent is None else self.sent.get(name)

    def last_raised(self, name: str) -> Sender | None:
        return None if self.raised is None else self.raised.get(name)

    def last_name(self) -> str:
        """Return its last signal; a process raises signals after it was sent them."""
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

    def executed(self, event: Event) -> None:
        living = self._known(event.pid, event.payload)
        living.ran_before, living.ran = living.ran, _ran(event.payload)
        living.denied_exec = ""

    def exec_failed(self, event: Event) -> None:
        if (living := self._living.get(event.pid)) is not None:
            living.ran = living.ran_before

    def exec_denied(self, event: Event) -> None:
        what, rule = shown(_ran(event.payload)), shortened(event.payload.get("rule_name"))
        living = self._known(event.pid, event.payload)
        living.denied_exec = f"sigwrap denied its exec of {what} (rule {rule})"

    def fork_refused(self, event: Event) -> None:
        if (living := self._living.get(event.pid)) is not None:
            limit = shortened(str(event.payload.get("limit")))
            living.denied_fork = f"sigwrap denied its fork (limit {limit})"

    def file_refused(self, event: Event) -> None:
        if (living := self._living.get(event.pid)) is not None and not living.refused_file:
            get = event.payload.get
            what, rule = shortened(f"{get('operation')} {get('path')}"), shortened(get("rule_name"))
            living.refused_file = f"the kernel refused it: {what} (rule {rule})"

    def mismatched(self, event: Event) -> None:
        self._known(event.pid, {}).is_mismatched = True

    def signalled(self, event: Event) -> None:
        payload = event.payload
        source, target = number(payload.get("source_pid")), payload.get("target_pid")
        if not isinstance(target, int) or target <= 0:
            return
        name = str(payload.get("signal_name") or "")[:_CHARACTERS_KEPT]
        sender = self._sender(event, source, name)
        living = self._known(target, {})
        if source == target:
            received = living.raised = living.raised or {}
        else:
            received = living.sent = living.sent or {}
            if living.raised:
                living.raised.pop(name, None)
        if received.pop(name, None) is not None or len(received) < _SIGNALS_OF_ONE:
            received[name] = sender

    def _sender(self, event: Event, pid: int, name: str) -> Sender:
        payload = event.payload
        known = self._living.get(pid)
        parent_pid = known.ppid if known is not None else 0
        parent = self._living.get(parent_pid)
        asked_for = payload.get("original_signal")
        is_same = asked_for in (None, payload.get("signal"))
        return Sender(
            pid=pid,
            command=(shown(known.ran) if known else "") or shortened(payload.get("source_cmd")),
            parent_pid=parent_pid,
            parent_command=shown(parent.ran) if parent is not None else "",
            signal_name=shortened(name),
            asked_for="" if is_same else shortened(name_of_signal(asked_for)),
            decision=str(payload.get("decision") or "")[:_CHARACTERS_KEPT],
            rule=shortened(str(payload.get("rule_name") or "")),
            event_type=event.type,
        )

    def _known(self, pid: int, payload: Payload) -> Living:
        living = self._living.get(pid)
        if living is None:
            living = self._living[pid] = Living(number(payload.get("ppid")))
            if len(self._living) > _LIVING_LIMIT:
                self._living.popitem(last=False)
        return living


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
