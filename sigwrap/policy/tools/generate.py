"""Requests from recorded events, and a policy that allows what sessions did.

The policy allows programs and subcommands with any arguments, because a build has other arguments
each time. A program or subcommand of which the session denied something gets only the exact
arguments that were allowed. The policy learns nothing from actions that were denied, absorbed or
redirected. If the session audited files, it allows writing only in the directories in which the
session wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.escape import printable
from sigwrap.events import CONNECTION_TYPES, EXEC_TYPES, SIGNAL_TYPES, Event, text
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.network import Endpoint, Protocol
from sigwrap.policy.judge.recorded import command_request, connection_request, signal_request
from sigwrap.policy.judge.request import (
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.policy.judge.subcommand import name_for_subcommands, readings
from sigwrap.policy.judge.tools import has_subcommands
from sigwrap.policy.tools import connections
from sigwrap.policy.tools.draft import COMMAND_RULES, Draft, NoRule, rule_line, unused_name
from sigwrap.policy.tools.literal import (
    as_it_is_read,
    glob_of,
    yaml_arguments,
    yaml_list,
    yaml_word,
)

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
_ENDPOINT_SHOWN = 100
_MOST_LINES = 100  # of one program or subcommand
_LONGEST_LINE = 4_000
_MOST_PLACES = 50
_CHANGES = "[write, create, delete]"
_TEMPORARY = "/tmp"

Request = CommandRequest | SignalRequest | Endpoint


def requests_from_events(events: Iterable[Event]) -> Iterator[tuple[Event, Request]]:
    """Yield each decision with its request. Other events are skipped."""
    for event in events:
        if event.type in EXEC_TYPES:
            yield event, command_request(event.payload)
        elif event.type in SIGNAL_TYPES:
            yield event, signal_request(event.payload)
        elif event.type in CONNECTION_TYPES:
            yield event, connection_request(event.payload)


def generate_policy(events: Iterable[Event], *, name: str) -> str:
    profile, written = _Profile(), set[str]()
    for event, request in requests_from_events(_noting_changes(events, written)):
        if event.type in LEARNED_EVENTS:
            profile.add(request, is_whole=not _is_changed(event))
        elif event.type == "exec_denied":
            profile.add_denied(request)
        profile.judges_network |= isinstance(request, Endpoint)
    lines = [*profile.lines(name), *_file_lines(written)]
    if not profile.judges_network:
        lines += ["", "# The sessions recorded no connections, so this policy restricts none."]
    if not written:
        lines += ["", "# The sessions audited no files, so this policy restricts none."]
    return "\n".join(lines) + "\n"


def _is_changed(event: Event) -> bool:
    """Return whether the log masks or cuts words of this event."""
    return event.payload.get("masked") is True or "cut" in event.payload


class _Profile:
    def __init__(self) -> None:
        # By program and subcommand, which is empty for a program that has none.
        self._lines: dict[tuple[str, str], dict[tuple[str, ...], None]] = {}
        self._denied: set[tuple[str, str]] = set()
        self._not_text: set[str] = set()  # commands with a subcommand that no policy can contain
        self._signals: dict[TargetType, set[int]] = {}
        self._connections: dict[Draft, None] = {}
        self._left_out: set[str] = set()
        self.judges_network = False  # without network rules, no connection is recorded

    def add(self, request: Request, *, is_whole: bool) -> None:
        match request:
            case CommandRequest():
                for program in request.programs:
                    if not program.counts_by_name:
                        self._add_program(program, is_whole=is_whole and not request.truncated)
            case SignalRequest() if request.signal in ALL and request.target_types:
                target = most_specific(request.target_types)
                self._signals.setdefault(target, set()).add(request.signal)
            case Endpoint():
                self._add_connection(request)

    def add_denied(self, request: Request) -> None:
        if isinstance(request, CommandRequest):
            for program in request.programs:
                self._denied |= _kinds(program)

    def lines(self, name: str) -> Iterator[str]:
        network = ", network: deny" if self.judges_network else ""
        yield "version: 1"
        yield f"name: {yaml_word(name)}"
        yield f"description: {_DESCRIPTION}"
        yield f"defaults: {{command: deny, signal: deny{network}}}"
        if any(found or kind not in self._denied for kind, found in self._lines.items()):
            yield from ("", "command_rules:")
        yield from self._command_lines()
        if self._signals:
            yield from ("", "signal_rules:", *self._signal_lines())
        if self._connections:
            yield from ("", "network_rules:", *self._connection_lines())
        if self._left_out:
            yield from ("", "# Left out, because no rule can name them:")
            yield from (f"# {printable(each)}" for each in sorted(self._left_out))
        if self._not_text:
            yield from ("", "# Left out, because they are not valid text: subcommands of")
            yield f"# {', '.join(sorted(self._not_text))}"

    def _add_program(self, program: Program, *, is_whole: bool) -> None:
        kinds = _kinds(program)
        valid = {(called, word) for called, word in kinds if as_it_is_read(word) == word}
        self._not_text |= {called for called, _ in kinds - valid}
        arguments = program.argv[1:]
        is_text = all(as_it_is_read(each) == each for each in arguments)
        is_kept = is_whole and is_text and sum(map(len, arguments)) < _LONGEST_LINE
        for kind in valid:
            lines = self._lines.setdefault(kind, {})
            if is_kept and len(lines) < _MOST_LINES:
                lines[arguments] = None

    def _add_connection(self, endpoint: Endpoint) -> None:
        try:
            self._connections[connections.draft_of(endpoint)] = None
        except NoRule:
            if endpoint.address or endpoint.names or endpoint.protocol is Protocol.UNIX:
                self._left_out.add(str(endpoint)[:_ENDPOINT_SHOWN])

    def _command_lines(self) -> Iterator[str]:
        names: list[str] = []
        tools: dict[str, list[str]] = {}
        for called, word in sorted(self._lines.keys() - self._denied):
            if has_subcommands(called):
                tools.setdefault(called, []).append(word)
            else:
                names.append(called)
        for command, words in tools.items():
            yield f"  - name: {command}"
            yield f"    commands: [{command}]"
            yield f"    subcommands: {yaml_list(words)}"
            yield "    decision: allow"
        taken = set(tools) | {"other-commands"}
        for called, word in sorted(self._lines.keys() & self._denied):
            denied = printable(f"{called} {word}".rstrip())
            yield f"  # The sessions were denied {denied} with other arguments."
            for arguments in self._lines[called, word]:
                named = (called, *arguments)
                keys = (
                    ("commands", yaml_list([glob_of(called)])),
                    ("args", yaml_arguments(arguments)),
                    ("decision", "allow"),
                )
                draft = Draft(COMMAND_RULES, named, keys)
                yield f"  {rule_line(draft, unused_name(named, taken))}"
        if names:
            yield "  - name: other-commands"
            yield "    commands:"
            for glob in sorted(map(glob_of, names)):
                yield f"      - {yaml_word(glob)}"
            yield "    decision: allow"

    def _signal_lines(self) -> Iterator[str]:
        # The most specific target first: an allowance for `session` would shadow `children`.
        for target in TargetType:
            if target in self._signals:
                yield f"  - name: to-{target.value}"
                yield f"    signals: {yaml_list(_signal_words(self._signals[target]))}"
                yield f"    target: {target.value}"
                yield "    decision: allow"

    def _connection_lines(self) -> Iterator[str]:
        taken = set[str]()
        for draft in sorted(self._connections):
            allowing = draft._replace(keys=(*draft.keys, ("decision", "allow")))
            yield f"  {rule_line(allowing, unused_name(draft.words, taken))}"


def _kinds(program: Program) -> set[tuple[str, str]]:
    """Return the names by which a rule allows this program, each with a subcommand or ""."""
    name = program.name if is_system_file(program) else program.basename
    if not name:
        return set()  # only in a log that sigwrap did not write
    called = name_for_subcommands(program.basename, name)
    if not has_subcommands(called):
        return {(name, "")}
    words = {next(iter(each), "") for each in readings(called, program.argv)}
    # After `--`, a subcommand may look like an option, which a rule cannot name.
    return {(called, word) for word in words if word == "-" or not word.startswith("-")}


def _signal_words(numbers: set[int]) -> list[str]:
    words = []
    for group, members in GROUPS.items():
        if group != "@all" and members <= numbers:
            words.append(group)
            numbers = numbers - members
    return words + [signal_name(number) for number in sorted(numbers)]


def _noting_changes(events: Iterable[Event], places: set[str]) -> Iterator[Event]:
    """Pass the events on, and add the directories of changed files to `places`."""
    for event in events:
        if event.type == "file_audited":
            path, to = text(event.payload.get("path")), text(event.payload.get("to"))
            is_link = to and event.payload.get("operation") != "rename"
            changed = ("" if is_link else path, to)
            places |= {_place_of(each) for each in changed if each.startswith("/")}
        yield event


def _file_lines(places: set[str]) -> Iterator[str]:
    if not places:
        return
    yield from ("", "file_rules:", "  - name: written", "    paths:")
    yield from (f"      - {yaml_word(glob_of(each))}" for each in _few(places))
    yield from (f"    operations: {_CHANGES}", "    decision: allow")
    for name, paths, decision in (
        ("devices-and-processes", "[/dev, /proc]", "allow"),
        ("nowhere-else", "[/]", "deny"),
    ):
        yield from (f"  - name: {name}", f"    paths: {paths}")
        yield from (f"    operations: {_CHANGES}", f"    decision: {decision}")


def _place_of(path: str) -> str:
    """Return the directory of a file, or only the file if its directory has much else."""
    folder = path.rpartition("/")[0]
    names = folder.split("/")[1:]
    is_a_home = len(names) == 2 and names[0] == "home"
    return path if is_a_home or (len(names) < 2 and folder != _TEMPORARY) else folder


def _few(places: set[str]) -> list[str]:
    """Replace the deepest directories by their parents until there are few enough."""
    found = _outermost(places)
    while len(found) > _MOST_PLACES:
        deepest = max(each.count("/") for each in found)
        fewer = _outermost(
            {_place_of(each) if each.count("/") == deepest else each for each in found}
        )
        if fewer == found:
            break
        found = fewer
    return found


def _outermost(places: Iterable[str]) -> list[str]:
    found: list[str] = []
    for each in sorted(places, key=lambda place: place.split("/")):
        if not found or not f"{each}/".startswith(f"{found[-1]}/"):
            found.append(each)
    return found
