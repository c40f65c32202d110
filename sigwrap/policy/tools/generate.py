"""Recorded events to requests, and to a policy that allows such programs, subcommands, signals and
connections.

What was let through is learned; what was denied, absorbed or replaced is not. Arguments aren't
learned: a build has others each time. policy/tools/suggest.py makes rules for these very ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.escape import printable
from sigwrap.events import CONNECTION_TYPES, EXEC_TYPES, SIGNAL_TYPES, Event
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.network import Endpoint
from sigwrap.policy.judge.recorded import command_request, connection_request, signal_request
from sigwrap.policy.judge.request import (
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.policy.judge.subcommand import has_subcommands, name_for_subcommands, readings
from sigwrap.policy.tools import connections
from sigwrap.policy.tools.literal import as_it_is_read, glob_of, yaml_list, yaml_word
from sigwrap.policy.tools.written_folders import WrittenFolders

LEARNED_EVENTS = frozenset(
    {
        *("exec_allowed", "exec_audited", "signal_sent", "signal_approved"),
        *("connection_allowed", "connection_audited", "connection_approved"),
    }
)

_DESCRIPTION = (
    "Generated from recorded sessions. Programs and subcommands may have any arguments, and "
    "signals any target of their type."
)

Request = CommandRequest | SignalRequest | Endpoint


def requests_from_events(events: Iterable[Event]) -> Iterator[tuple[Event, Request]]:
    """What was asked of the policy then, to be decided again; events of other types are skipped."""
    for event in events:
        if event.type in EXEC_TYPES:
            yield event, command_request(event.payload)
        elif event.type in SIGNAL_TYPES:
            yield event, signal_request(event.payload)
        elif event.type in CONNECTION_TYPES:
            yield event, connection_request(event.payload)


def generate_policy(events: Iterable[Event], *, name: str) -> str:
    profile = _Profile()
    written = WrittenFolders()
    for event, request in requests_from_events(written.watching(events)):
        if event.type in LEARNED_EVENTS:
            profile.add(request)
        profile.is_of_network |= isinstance(request, Endpoint)
    return profile.policy_text(name) + written.policy_text()


class _Profile:
    def __init__(self) -> None:
        self._names: set[str] = set()
        self._subcommands: dict[str, set[str]] = {}
        self._untold: set[str] = set()  # commands of which one is no text, so no policy names it
        self._signals: dict[TargetType, set[int]] = {}
        self._connections = connections.Profile()
        self.is_of_network = False  # else nobody looked at connections, and none is known

    def add(self, request: Request) -> None:
        match request:
            case CommandRequest():
                for program in request.programs:
                    if not program.counts_by_name:
                        self._add_program(program)
            case SignalRequest() if request.signal in ALL and request.target_types:
                target = most_specific(request.target_types)
                self._signals.setdefault(target, set()).add(request.signal)
            case Endpoint():
                self._connections.add(request)

    def policy_text(self, name: str) -> str:
        lines = ["version: 1", f"name: {yaml_word(name)}"]
        lines += [f"description: {_DESCRIPTION}"]
        network = ", network: deny" if self.is_of_network else ""
        lines += [f"defaults: {{command: deny, signal: deny{network}}}"]
        if self._names or self._subcommands:
            lines += ["", "command_rules:", *self._command_lines()]
        if self._signals:
            lines += ["", "signal_rules:", *self._signal_lines()]
        if rules := list(self._connections.rule_lines()):
            lines += ["", "network_rules:", *rules]
        if left_out := self._connections.left_out:
            lines += ["", "# Left out, because no rule can name them:"]
            lines += [f"# {printable(each)}" for each in sorted(left_out)]
        if self._untold:
            lines += ["", "# Left out, because they are not valid text: subcommands of"]
            lines += [f"# {', '.join(sorted(self._untold))}"]
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
            told = {word for word in named if as_it_is_read(word) == word}
            if told:
                self._subcommands.setdefault(called, set()).update(told)
            if told != named:
                self._untold.add(called)
        else:
            self._names.add(name)

    def _command_lines(self) -> Iterator[str]:
        for command, words in sorted(self._subcommands.items()):
            yield f"  - name: {command}"
            yield f"    commands: [{command}]"
            yield f"    subcommands: {yaml_list(sorted(words))}"
            yield "    decision: allow"
        if self._names:
            yield "  - name: other-commands"
            yield "    commands:"
            for word in sorted({glob_of(name) for name in self._names}):
                yield f"      - {yaml_word(word)}"
            yield "    decision: allow"

    def _signal_lines(self) -> Iterator[str]:
        # From the most specific target: an allowance for `session` would shadow one for `children`.
        for target in TargetType:
            if target in self._signals:
                yield f"  - name: to-{target.value}"
                yield f"    signals: {yaml_list(_signal_words(self._signals[target]))}"
                yield f"    target: {target.value}"
                yield "    decision: allow"


def _signal_words(numbers: set[int]) -> list[str]:
    words = []
    for group, members in GROUPS.items():
        if group != "@all" and members <= numbers:
            words.append(group)
            numbers = numbers - members
    return words + [signal_name(number) for number in sorted(numbers)]
