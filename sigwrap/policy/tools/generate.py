"""A policy that allows what sessions did.

It allows programs and subcommands with any arguments, because a build has other arguments each
time. A program or subcommand of which the session denied something gets only the exact arguments
that were allowed. The policy learns nothing from actions that were denied, absorbed or redirected.
If the session audited files, it allows writing only in the directories in which the session wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.events import CONNECTION_TYPES, DENIED_TYPES, Event, text
from sigwrap.policy.judge.globs import readable
from sigwrap.policy.judge.network import Endpoint, Protocol
from sigwrap.policy.judge.request import (
    CommandRequest,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.policy.judge.subcommand import name_for_subcommands, readings
from sigwrap.policy.judge.tools import has_subcommands
from sigwrap.policy.tools import connections
from sigwrap.policy.tools.again import request_of
from sigwrap.policy.tools.draft import (
    COMMAND_RULES,
    SECTIONS,
    SIGNAL_RULES,
    Draft,
    NoRule,
    allowed_name,
    exact_command,
    rule_line,
    unused_name,
)
from sigwrap.policy.tools.literal import glob_of, yaml_list, yaml_word
from sigwrap.text import printable

LEARNED_EVENTS = frozenset(
    {
        *("exec_allowed", "exec_audited", "signal_sent", "signal_approved"),
        *("connection_allowed", "connection_audited", "connection_approved"),
    }
)

_HEAD = """\
version: 1
name: {name}
description: Generated from recorded sessions. Programs and subcommands may have any arguments, \
and signals any target of their type.
defaults: {{command: deny, signal: deny{network}}}"""
_ENDPOINT_SHOWN = 100
_MOST_LINES = 100  # of one program or subcommand
_MOST_PLACES = 50
_CHANGES = "[write, create, delete]"
_TEMPORARY = "/tmp"
_ALLOW = ("decision", "allow")
_TRACING = frozenset({"ptrace", "process_vm_readv", "process_vm_writev", "perf_event_open"})


def generate_policy(events: Iterable[Event], *, name: str) -> str:
    profile, written = _Profile(), set[str]()
    judges_network = False  # without network rules, no connection is recorded
    traces = False
    for event in events:
        if event.type == "file_audited":
            written |= _changed(event)
        elif event.type in LEARNED_EVENTS:
            profile.add(event)
        elif event.type in DENIED_TYPES:
            profile.add_denied(event)
        judges_network |= event.type in CONNECTION_TYPES
        traces |= event.type in LEARNED_EVENTS and _is_tracing(event)
    head = _HEAD.format(name=yaml_word(name), network=", network: deny" if judges_network else "")
    tracing = ["session: {tracing: allow}"] if traces else []
    lines = [head, *tracing, *profile.lines(), *_file_lines(written)]
    if not judges_network:
        lines += ["", "# The sessions recorded no connections, so this policy restricts none."]
    if not written:
        lines += ["", "# The sessions audited no files, so this policy restricts none."]
    return "\n".join(lines) + "\n"


def _is_tracing(event: Event) -> bool:
    """Return whether a process traces another. An unreadable program counts as traced as well, but
    sigwrap cannot verify it."""
    payload = event.payload
    is_traced = payload.get("traced") is True and payload.get("verified") is True
    return is_traced or text(payload.get("syscall")) in _TRACING


class _Profile:
    def __init__(self) -> None:
        # The key is a program and its subcommand, or "" for a program that has none.
        self._lines: dict[tuple[str, str], dict[tuple[str, ...], None]] = {}
        self._denied: set[tuple[str, str]] = set()
        self._signals: dict[TargetType, set[int]] = {}
        self._connections: dict[Draft, None] = {}
        self._left_out: set[str] = set()

    def add(self, event: Event) -> None:
        match request_of(event):
            case CommandRequest() as request:
                is_whole = not (request.truncated or event.payload.get("masked") is True)
                for program in request.programs:
                    if not program.counts_by_name:
                        is_kept = is_whole and "cut" not in event.payload
                        self._add_program(program, is_kept=is_kept)
            case SignalRequest() as request if request.signal in ALL and request.target_types:
                target = most_specific(request.target_types)
                self._signals.setdefault(target, set()).add(request.signal)
            case Endpoint() as request:
                self._add_connection(request)

    def add_denied(self, event: Event) -> None:
        request = request_of(event)
        if isinstance(request, CommandRequest):
            for program in request.programs:
                self._denied |= _kinds(program)

    def lines(self) -> Iterator[str]:
        taken = set[str]()
        drafts = [*self._commands(), *self._signal_drafts(), *sorted(self._connections)]
        for section in SECTIONS:
            found = [each for each in drafts if each.section == section]
            yield from ("", f"{section}:") if found else ()
            for draft in found:
                allowing = draft._replace(keys=(*draft.keys, _ALLOW))
                yield f"  {rule_line(allowing, unused_name(draft.words, taken))}"
        if self._left_out:
            yield from ("", "# Left out, because no rule can name them:")
            yield from (f"# {printable(each)}" for each in sorted(self._left_out))

    def _add_program(self, program: Program, *, is_kept: bool) -> None:
        for called, word in _kinds(program):
            if readable(word) != word:
                self._left_out.add(f"{called} with a subcommand that is not valid text")
                continue
            lines = self._lines.setdefault((called, word), {})
            if is_kept and len(lines) < _MOST_LINES:
                lines[program.argv[1:]] = None

    def _add_connection(self, endpoint: Endpoint) -> None:
        try:
            self._connections[connections.draft_of(endpoint)] = None
        except NoRule:
            if endpoint.address or endpoint.names or endpoint.protocol is Protocol.UNIX:
                self._left_out.add(str(endpoint)[:_ENDPOINT_SHOWN])

    def _commands(self) -> Iterator[Draft]:
        wide: dict[str, list[str]] = {}
        for called, word in sorted(self._lines.keys() - self._denied):
            wide.setdefault(called, []).append(word)
        for called, subcommands in wide.items():
            commands = ("commands", yaml_list([glob_of(called)]))
            words = (("subcommands", yaml_list(subcommands)),) if has_subcommands(called) else ()
            yield Draft(COMMAND_RULES, ("run", called), (commands, *words))
        for called, word in sorted(self._lines.keys() & self._denied):
            note = f"with other arguments, {' '.join(filter(None, (called, word)))} was denied"
            for arguments in self._lines[called, word]:
                try:
                    keys = exact_command([glob_of(called)], arguments)
                except NoRule:
                    continue
                yield Draft(COMMAND_RULES, ("run", called, *arguments), keys, note)

    def _signal_drafts(self) -> Iterator[Draft]:
        # The most specific target first: an allowance for `session` would shadow `children`.
        for target in TargetType:
            if target in self._signals:
                names = map(signal_name, sorted(self._signals[target]))
                keys = (("signals", yaml_list(names)), ("target", target.value))
                yield Draft(SIGNAL_RULES, ("to", target.value), keys)


def _kinds(program: Program) -> set[tuple[str, str]]:
    """Return the names by which a rule allows this program, each with a subcommand or ""."""
    name = allowed_name(program)
    if not name:
        return set()  # only in a log that sigwrap did not write
    called = name_for_subcommands(program.basename, name)
    if not has_subcommands(called):
        return {(name, "")}
    words = {next(iter(each), "") for each in readings(called, program.argv)}
    # After `--`, a subcommand may look like an option, which a rule cannot name.
    return {(called, word) for word in words if word == "-" or not word.startswith("-")}


def _changed(event: Event) -> set[str]:
    """Return the directories of the files that an audited operation changed."""
    path, to = text(event.payload.get("path")), text(event.payload.get("to"))
    is_link = to and event.payload.get("operation") != "rename"
    changed = ("" if is_link else path, to)
    return {_place_of(each) for each in changed if each.startswith("/")}


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
    """Cut the longest paths until there are few enough, but to no home directory."""
    found = _outermost(places)
    longest = max(each.count("/") for each in found)
    for names in range(longest, 2, -1):
        if len(found) <= _MOST_PLACES:
            break
        found = _outermost({"/".join(each.split("/")[: names + 1]) for each in found})
    return found


def _outermost(places: Iterable[str]) -> list[str]:
    found: list[str] = []
    for each in sorted(places, key=lambda place: place.split("/")):
        if not found or not f"{each}/".startswith(f"{found[-1]}/"):
            found.append(each)
    return found
