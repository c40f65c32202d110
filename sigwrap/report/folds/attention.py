"""What needs attention: actions that were not simply allowed, discarded changes, and work that was
handed outside the session.

Actions are in groups: what one rule did to one command, to one signal from one program to another,
or to one destination. All texts are escaped for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sigwrap.bare import NamedTuple
from sigwrap.events import (
    ANSWER_OF,
    APPROVED,
    AUDITED,
    EXEC_TYPES,
    OUTCOMES,
    REFUSED,
    Event,
    Payload,
    kind_of,
    number,
    text,
    texts,
    times,
)
from sigwrap.policy.judge.network import Direction, reaching
from sigwrap.policy.judge.subcommand import subcommand
from sigwrap.policy.judge.tools import has_subcommands
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.bounded import Latest
from sigwrap.report.folds.steps import shell_line
from sigwrap.report.folds.tree import CommandLine, command_line, words
from sigwrap.text import printable, shell_words, shortened

GROUPS_LIMIT = 1_000
_CALLERS_KEPT = 5
_LINES_KEPT = 4
_ANSWERS_KEPT = 1_000
_CHARACTERS_KEPT = 200
_COMMAND_CHARACTERS = 300
_CALLER_CHARACTERS = 60
_REASON_CHARACTERS = 300
_NAMES_SHOWN = 5
_SERVERS_KEPT = 20
_SERVER_CHARACTERS = 80


class By(NamedTuple):
    """The process that asked for an action."""

    pid: int  # of the first one that ran this command
    command: CommandLine

    @property
    def shown(self) -> str:
        line = shell_words(words(self.command)) if self.command else "?"
        return shortened(line, _CALLER_CHARACTERS)


@dataclass(slots=True, kw_only=True)
class Group:
    first: Event
    outcome: str
    answer: str  # to the approval request; empty if there was none
    rule: str
    command: tuple[str, ...]  # of an exec: the program, and its subcommand if it has any
    last_seq: int = 0
    count: int = 0
    by: dict[str, tuple[By, int]] = field(default_factory=dict)  # by command, how often
    by_more: int = 0  # how often by others
    lines: list[tuple[Event, int]] = field(default_factory=list)  # the first of each command line
    other_lines: int = 0  # how often with other command lines

    @property
    def kind(self) -> str:
        return kind_of(self.first.type)

    @property
    def label(self) -> str:
        """The outcome of the action or, after an approval request, the answer to it."""
        if self.outcome == REFUSED:
            return "probably refused"
        return self.outcome if self.answer in ("", APPROVED) else self.answer

    @property
    def program(self) -> str:
        """The program of an exec, and its subcommand if it has any."""
        return shortened(shell_words(self.command), _COMMAND_CHARACTERS)

    @property
    def whats(self) -> list[tuple[str, int]]:
        """Its first command lines, or what else it did, and how often."""
        return [(what(event), count) for event, count in self.lines]

    @property
    def is_of_several(self) -> bool:
        """Whether it has several command lines, so that each needs its own number."""
        return len(self.lines) > 1 or self.other_lines > 0

    @property
    def reason(self) -> str:
        """The rule's message, or what the decision says beyond the rule's name."""
        payload = self.first.payload
        message, given = text(payload.get("message")), text(payload.get("reason"))
        shadows = text(payload.get("shadows"))
        if self.outcome == AUDITED and shadows:
            message = f"shadows {shadows}"
        if "exit_code" in payload:
            message = f"its command ended with {payload['exit_code']}"
        elif not message and not given.startswith(f"rule {self.rule}"):
            message = given
            if self.outcome == APPROVED and self.count > 1:
                message += ", the first time"  # another approver may have approved the others
        return shortened(printable(" ".join(message.split())), _REASON_CHARACTERS)

    @property
    def rule_line(self) -> str:
        said = self.reason
        return f"rule {printable(self.rule) or '?'}{f': {said}' if said else ''}"

    @property
    def callers(self) -> list[tuple[int, str, int]]:
        """The pid, the command and the number of actions of each caller."""
        return [(by.pid, by.shown, count) for by, count in self.by.values()]

    @property
    def by_line(self) -> str:
        found = self.callers
        shown = [
            f"{command} ({pid})" + (f" {count} times" if len(found) > 1 and count > 1 else "")
            for pid, command, count in found
        ]
        shown += [f"others {self.by_more} times"] if self.by_more else []
        return f"by {', '.join(shown)}"

    @property
    def is_asked_by_its_shell(self) -> bool:
        """Whether its only caller is a shell that was given this very command."""
        if len(self.by) != 1 or self.by_more:
            return False
        ((by, _),) = self.by.values()
        return bool(by.command) and shell_line(words(by.command)) == what(self.first)

    def add(self, event: Event, by: By) -> None:
        count = times(event.payload)
        self.count += count
        self.last_seq = event.seq
        self._add_line(event, count)
        if (known := self.by.get(by.command)) is not None:
            self.by[by.command] = known[0], known[1] + count
        elif len(self.by) < _CALLERS_KEPT:
            self.by[by.command] = by, count
        else:
            self.by_more += count

    def _add_line(self, event: Event, count: int) -> None:
        argv = event.payload.get("argv") if self.command else None
        for at, (known, often) in enumerate(self.lines):
            if not self.command or known.payload.get("argv") == argv:
                self.lines[at] = known, often + count
                return
        if len(self.lines) < _LINES_KEPT:
            self.lines.append((event, count))
        else:
            self.other_lines += count


class Attention:
    def __init__(self) -> None:
        self._groups: dict[tuple[object, ...], Group] = {}
        self._kept = {True: 0, False: 0}  # by whether they are audited
        self._answers: Latest[int, str] = Latest(_ANSWERS_KEPT)  # by pid
        self.more = 0  # how often something else was not simply allowed

    def answered(self, event: Event) -> None:
        self._answers[event.pid] = ANSWER_OF[event.type]

    def ended(self, pid: int) -> None:
        self._answers.pop(pid, None)

    def add(self, event: Event, became: str, by: By) -> None:
        """Take an event whose outcome is not `allowed`."""
        payload = event.payload
        rule = text(payload.get("rule_name"))
        answer = self._answers.pop(event.pid, "")
        if became == APPROVED:
            answer = APPROVED  # approval of a script covers what it runs
        command = _command_key(payload) if event.type in EXEC_TYPES else ()
        fields = () if command else _KEYS[kind_of(event.type)]
        values = (str(payload.get(each))[:_CHARACTERS_KEPT] for each in fields)
        key = (became, answer, rule, *command, *values)
        group = self._groups.get(key)
        if group is None:
            # Audited groups have their own limit, so that they displace no denied ones.
            if self._kept[became == AUDITED] >= GROUPS_LIMIT:
                self.more += times(payload)
                return
            self._kept[became == AUDITED] += 1
            group = Group(first=event, outcome=became, answer=answer, rule=rule, command=command)
            self._groups[key] = group
        group.add(event, by)

    @property
    def serious(self) -> list[Group]:
        """All but the audited ones."""
        return [each for each in self.groups if each.outcome != AUDITED]

    @property
    def audited(self) -> list[Group]:
        return [each for each in self.groups if each.outcome == AUDITED]

    @property
    def groups(self) -> list[Group]:
        """The most serious first; among equals, those without an approval request."""
        found = self._groups.values()
        return sorted(
            found,
            key=lambda each: (OUTCOMES.index(each.outcome), each.answer != "", each.first.seq),
        )


def _command_key(payload: Payload) -> tuple[str, ...]:
    argv = texts(payload.get("argv"))
    path = text(payload.get("path")) or (argv[0] if argv else "")
    name = path.rpartition("/")[2][:_CHARACTERS_KEPT]
    if has_subcommands(name):
        return name, subcommand(name, argv)[:_CHARACTERS_KEPT]
    return (name,)


# The fields in which other actions of one group are equal.
_KEYS = {
    "file": ("operation", "path"),
    "signal": ("signal_name", "source_cmd", "target_cmd", "target_type", "original_signal"),
    "connection": ("direction", "protocol", "destination"),
}


def learn_command(session_id: str) -> str:
    return f"sigwrap policy learn {shell_words([session_id])}"


def audited_line(groups: Sequence[Group]) -> str:
    """Return such as "4 audited: python3 (2), git (2)"."""
    by_name: dict[str, int] = {}
    for group in groups:
        name = group.command[0] if group.command else what(group.first)
        by_name[name] = by_name.get(name, 0) + group.count
    listed = sorted(by_name.items(), key=lambda each: -each[1])
    names = ", ".join(
        f"{printable(name)} ({n})" if n > 1 else printable(name)
        for name, n in listed[:_NAMES_SHOWN]
    )
    more = ", …" if len(listed) > _NAMES_SHOWN else ""
    return f"{sum(by_name.values())} audited: {names}{more} (--only audited)"


def what(event: Event) -> str:
    """Return a command line, a signal and its target, a direction and a destination, or a file."""
    return shortened(_WHAT[kind_of(event.type)](event.payload), _COMMAND_CHARACTERS)


def _command(payload: Payload) -> str:
    argv = texts(payload.get("argv"))
    path = text(payload.get("path"))
    shown = shell_words(as_meant(argv) or [path or "?"])
    if path and argv and path.rpartition("/")[2] != argv[0].rpartition("/")[2]:
        shown = f"{shell_words([path])} as {shown}"
    replacement = texts(payload.get("replacement_argv"))
    return f"{shown} => {shell_words(replacement)}" if replacement else shown


def _signal(payload: Payload) -> str:
    target = printable(text(payload.get("target_cmd")) or "?")
    kind = printable(text(payload.get("target_type")))
    pid = number(payload.get("target_pid"))
    name = printable(text(payload.get("signal_name")))
    about = ", ".join(each for each in (str(pid or ""), kind) if each)
    return f"{name} to {target} ({about})" if about else f"{name} to {target}"


_DIRECTIONS = tuple(each.value for each in Direction)


def _connection(payload: Payload) -> str:
    """Use the words that the denied caller reads."""
    destination = printable(text(payload.get("destination")) or "?")
    direction = text(payload.get("direction"))
    return reaching(direction, destination) if direction in _DIRECTIONS else destination


def _file(payload: Payload) -> str:
    return printable(f"{text(payload.get('operation'))} {text(payload.get('path'))}")


_WHAT = {"file": _file, "exec": _command, "signal": _signal, "connection": _connection}


# Discarded changes

MAY_HAVE_DISCARDED = "may have discarded uncommitted changes"
# (program, subcommand) -> words of which one discards changes; none listed: it always does.
_DISCARDS: dict[tuple[str, str], frozenset[str]] = {
    ("git", "reset"): frozenset({"--hard", "--merge"}),
    ("git", "clean"): frozenset({"-f", "--force"}),
    ("git", "checkout"): frozenset({"--", ".", "-f", "--force"}),
    ("git", "switch"): frozenset({"-f", "--force", "--discard-changes"}),
    ("git", "restore"): frozenset(),
    ("hg", "revert"): frozenset(),
    ("hg", "purge"): frozenset(),
    ("hg", "update"): frozenset({"-C", "--clean"}),
    ("svn", "revert"): frozenset(),
}
_PROGRAMS = frozenset(program for program, _ in _DISCARDS)
_SUBCOMMANDS = frozenset(name for _, name in _DISCARDS)
# With one of these words, the working tree stays as it is.
_KEEPS = {
    ("git", "clean"): frozenset({"-n", "--dry-run"}),
    ("git", "restore"): frozenset({"-S", "--staged"}),
}


def may_discard_changes(argv: Sequence[str]) -> bool:
    if not argv or (program := argv[0].rpartition("/")[2]) not in _PROGRAMS:
        return False
    if _SUBCOMMANDS.isdisjoint(argv):
        return False
    name = subcommand(program, list(argv))
    if (discards := _DISCARDS.get((program, name))) is None:
        return False
    words = set(_words(argv[list(argv).index(name) + 1 :]))
    if words & _KEEPS.get((program, name), frozenset()) and not words & {"-W", "--worktree"}:
        return False
    return not discards or bool(words & discards)


def _words(rest: Sequence[str]) -> list[str]:
    """Return the words with short options apart: -fdx is -f, -d and -x."""
    found: list[str] = []
    for word in rest:
        is_short = word.startswith("-") and not word.startswith("--") and len(word) > 1
        found += [f"-{letter}" for letter in word[1:]] if is_short else [word]
    return found


def discard_text(event: Event) -> str:
    return f"{what(event)} {MAY_HAVE_DISCARDED}"


def discard_line(event: Event) -> str:
    return f"look  {discard_text(event)} ({event.pid}, event {event.seq})"


# Work handed to servers outside


@dataclass(slots=True)
class Handed:
    """Work for one server, through one socket."""

    first: Event
    often: int

    @property
    def pid(self) -> int:
        """The pid of the server; 0: in another container."""
        return number(self.first.payload.get("peer_pid"))

    @property
    def command(self) -> CommandLine:
        """What the server runs; empty if it had ended."""
        get = self.first.payload.get
        return command_line(texts(get("peer_argv")) or [text(get("peer_cmd"))])

    @property
    def socket(self) -> str:
        return text(self.first.payload.get("socket"))[:_CHARACTERS_KEPT]

    @property
    def by(self) -> str:
        """The name of the first caller."""
        return text(self.first.payload.get("comm"))[:_CHARACTERS_KEPT]

    @property
    def line(self) -> str:
        """What happened, escaped for a terminal."""
        by = f", by {printable(self.by)}" if self.by else ""
        often = f", {self.often} times" if self.often > 1 else ""
        through = f"{printable(self.socket)}{by}{often}"
        return f"handed work outside the session, to {self._server()} ({through})"

    def _server(self) -> str:
        if not self.pid:
            return "a process in another container"
        if not self.command:
            return f"PID {self.pid}, which has ended"
        program, *rest = words(self.command)
        line = shell_words([program.rpartition("/")[2] or program, *rest])
        return f"PID {self.pid} {shortened(line, _SERVER_CHARACTERS)}"


class HandedFold:
    def __init__(self) -> None:
        self._found: dict[tuple[int, CommandLine, str], Handed] = {}
        self.more = 0  # how often to other servers

    def add(self, event: Event) -> None:
        new = Handed(event, times(event.payload))
        key = new.pid, new.command, new.socket
        if (known := self._found.get(key)) is not None:
            known.often += new.often
        elif len(self._found) < _SERVERS_KEPT:
            self._found[key] = new
        else:
            self.more += new.often

    @property
    def found(self) -> list[Handed]:
        return list(self._found.values())

    def lines(self) -> Iterator[str]:
        yield from (each.line for each in self.found)
        if self.more:
            yield f"and {self.more} times to other processes outside the session"
