"""The living processes of a session: what each runs, and what may explain its end.

Both the number of processes and what is kept of one are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.events import Event, Payload, number, texts
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.bounded import Latest
from sigwrap.report.folds.cause import Sender, Why, name_of_signal, shortened, shown_command
from sigwrap.report.folds.tree import CommandLine, command_line, words

_PROCESSES_LIMIT = 65_536
_SIGNALS_OF_ONE = 128
_CHARACTERS_KEPT = 256


@dataclass(slots=True)
class Process:
    ppid: int
    command: CommandLine = ""
    command_before: CommandLine = ""
    denied_exec: str = ""  # its last exec, if that was denied, as the end of a sentence
    denied_fork: str = ""
    refused_file: str = ""  # probably, by the kernel
    is_mismatched: bool = False  # it loaded another program than the one that was judged
    child: Why | None = None  # the end of a child, whose status it may pass on
    sent: dict[str, Sender] = field(default_factory=dict)  # by other processes: the last by name
    raised: dict[str, Sender] = field(default_factory=dict)  # by itself, since then

    @property
    def shown(self) -> str:
        return shown_command(words(self.command)) if self.command else ""

    @property
    def denied(self) -> str:
        return self.denied_exec or self.denied_fork

    @property
    def last_signal(self) -> str:
        """The name of its last signal: a process raises signals after it was sent them."""
        return next(reversed(self.raised or self.sent), "")


class Processes:
    def __init__(self) -> None:
        self._living: Latest[int, Process] = Latest(_PROCESSES_LIMIT)

    def __contains__(self, pid: int) -> bool:
        return pid in self._living

    def pids(self) -> list[int]:
        return list(self._living)

    def get(self, pid: int) -> Process | None:
        return self._living.get(pid)

    def end(self, event: Event) -> Process:
        return self._living.pop(event.pid, None) or Process(number(event.payload.get("ppid")))

    def executed(self, event: Event) -> None:
        process = self._known(event.pid, event.payload)
        process.command_before, process.command = process.command, _command(event.payload)
        process.denied_exec = ""

    def exec_failed(self, event: Event) -> None:
        if (process := self._living.get(event.pid)) is not None:
            process.command = process.command_before

    def exec_denied(self, event: Event) -> None:
        what = shown_command(words(_command(event.payload)))
        rule = shortened(event.payload.get("rule_name"))
        process = self._known(event.pid, event.payload)
        process.denied_exec = f"sigwrap denied its exec of {what} (rule {rule})"

    def fork_refused(self, event: Event) -> None:
        process, limit = self._living.get(event.pid), event.payload.get("limit")
        if process is not None and limit != "log_size":
            process.denied_fork = f"sigwrap denied its fork (limit {shortened(str(limit))})"

    def file_refused(self, event: Event) -> None:
        process = self._living.get(event.pid)
        if process is not None and not process.refused_file:
            get = event.payload.get
            what, rule = shortened(f"{get('operation')} {get('path')}"), shortened(get("rule_name"))
            process.refused_file = f"the kernel refused it: {what} (rule {rule})"

    def mismatched(self, event: Event) -> None:
        self._known(event.pid, {}).is_mismatched = True

    def signalled(self, event: Event) -> None:
        payload = event.payload
        source, target = number(payload.get("source_pid")), payload.get("target_pid")
        if not isinstance(target, int) or target <= 0:
            return
        name = str(payload.get("signal_name") or "")[:_CHARACTERS_KEPT]
        sender = self._sender(event, source, name)
        process = self._known(target, {})
        received = process.raised if source == target else process.sent
        if source != target:
            process.raised.pop(name, None)
        if received.pop(name, None) is not None or len(received) < _SIGNALS_OF_ONE:
            received[name] = sender

    def _sender(self, event: Event, pid: int, name: str) -> Sender:
        """Name the sender and its parent by what they run now."""
        payload = event.payload
        known = self._living.get(pid) or Process(0)
        parent = self._living.get(known.ppid)
        asked_for = payload.get("original_signal")
        is_same = asked_for in (None, payload.get("signal"))
        return Sender(
            pid=pid,
            command=known.shown or shortened(payload.get("source_cmd")),
            parent_pid=known.ppid,
            parent_command=parent.shown if parent is not None else "",
            signal_name=shortened(name),
            asked_for="" if is_same else shortened(name_of_signal(asked_for)),
            decision=str(payload.get("decision") or "")[:_CHARACTERS_KEPT],
            rule=shortened(str(payload.get("rule_name") or "")),
            event_type=event.type,
        )

    def _known(self, pid: int, payload: Payload) -> Process:
        process = self._living.get(pid)
        if process is None:
            process = self._living[pid] = Process(number(payload.get("ppid")))
        return process


def _command(payload: Payload) -> CommandLine:
    argv = texts(payload.get("replacement_argv")) or texts(payload.get("argv"))
    return command_line(as_meant(argv or [str(payload.get("path") or "?")]))
