"""Recorded events to requests, and to a policy that allows just them.

What was let through is learned; what was denied, absorbed or replaced is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.events import EXEC_TYPES, SIGNAL_TYPES, Event
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.match import escape_glob, is_glob
from sigwrap.policy.judge.recorded import command_request, signal_request
from sigwrap.policy.judge.request import (
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.policy.judge.subcommand import has_subcommands, name_for_subcommands, readings

LEARNED_EVENTS = ("exec_allowed", "exec_audited", "signal_sent", "signal_approved")

# Including those of YAML 1.1, for the sake of editors and other tools.
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})

Request = CommandRequest | SignalRequest


def requests_from_events(events: Iterable[Event]) -> Iterator[tuple[Event, Request]]:
    """What was asked of the policy then, to be decided again; events of other types are skipped."""
    for event in events:
        if event.type in EXEC_TYPES:
            yield event, command_request(event.payload)
        elif event.type in SIGNAL_TYPES:
            yield event, signal_request(event.payload)


def generate_policy(events: Iterable[Event], *, name: str) -> str:
    profile = _Profile()
    for event, request in requests_from_events(events):
        if event.type in LEARNED_EVENTS:
            profile.add(request)
    return profile.policy_text(name)


class _Profile:
    def __init__(self) -> None:
        self._names: set[str] = set()
        self._subcommands: dict[str, set[str]] = {}
        self._signals: dict[TargetType, set[int]] = {}

    def add(self, request: Request) -> None:
        match request:
            case CommandRequest():
                for program in request.programs:
                    if not program.counts_by_name:
                        self._add_program(program)
            case SignalRequest() if request.signal in ALL and request.target_types:
                target = most_specific(request.target_types)
                self._signals.setdefault(target, set()).add(request.signal)

    def policy_text(self, name: str) -> str:
        lines = ["version: 1", f"name: {quoted(name)}"]
        lines += ["description: What was observed, and nothing else."]
        lines += ["defaults: {command: deny, signal: deny}"]
        if self._names or self._subcommands:
            lines += ["", "command_rules:", *self._command_lines()]
        if self._signals:
            lines += ["", "signal_rules:", *self._signal_lines()]
        return "\n".join(lines) + "\n"

    def _add_program(self, program: Program) -> None:
        basename = program.path.rpartition("/")[2]
        name = (
            program.name if is_system_file(program) else basename
        )  # the one that an allowance is by
        if not name:
            return  # a log that sigwrap didn't write: `/` is no program
        called = name_for_subcommands(basename, name)
        if has_subcommands(called):
            words = {next(iter(each), "") for each in readings(called, program.argv)}
            # Behind `--` a subcommand may look like an option; a rule can't name it.
            named = {word for word in words if word == "-" or not word.startswith("-")}
            if named:
                self._subcommands.setdefault(called, set()).update(named)
        else:
            self._names.add(name)

    def _command_lines(self) -> Iterator[str]:
        for command, words in sorted(self._subcommands.items()):
            yield f"  - name: {command}"
            yield f"    commands: [{command}]"
            # A subcommand that YAML can't hold can't be listed: the whole command is allowed then.
            if all(map(_printable, words)):
                yield f"    subcommands: {_listed(sorted(words))}"
            yield "    decision: allow"
        if self._names:
            yield "  - name: other-commands"
            yield "    commands:"
            for word in sorted({literal_glob(name) for name in self._names}):
                yield f"      - {quoted(word)}"
            yield "    decision: allow"

    def _signal_lines(self) -> Iterator[str]:
        # From the most specific target: an allowance for `session` would shadow one for `children`.
        for target in TargetType:
            if target in self._signals:
                yield f"  - name: to-{target.value}"
                yield f"    signals: {_listed(_signal_words(self._signals[target]))}"
                yield f"    target: {target.value}"
                yield "    decision: allow"


def _signal_words(numbers: set[int]) -> list[str]:
    words = []
    for group, members in GROUPS.items():
        if group != "@all" and members <= numbers:
            words.append(group)
            numbers = numbers - members
    return words + [signal_name(number) for number in sorted(numbers)]


def literal_glob(name: str) -> str:
    """A glob for just this name, or nearly: what YAML can't hold becomes whatever isn't ASCII that
    is seen, so that a process can't have a name proposed that others have as well."""
    if is_glob(name) or "${" in name or not _printable(name):
        name = escape_glob(name).replace("${", "[$]{")
    return "".join(c if _printable(c) else "[! -~]" for c in name)


def _printable(text: str) -> bool:
    return text.isprintable()


def _listed(words: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, words))}]"


def quoted(word: str) -> str:
    plain = word.isascii() and word.replace("-", "").replace("_", "").replace(".", "").isalnum()
    if plain and word[0].isalpha() and word.lower() not in _YAML_WORDS:
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
