"""What needs attention, in words for every form. All of them are escaped for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, Payload, kind_of, number, text, texts
from sigwrap.outcomes import APPROVED, AUDITED, REFUSED
from sigwrap.policy.judge.network import Direction, reaching
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.attention import Group
from sigwrap.report.folds.steps import shell_line
from sigwrap.report.folds.tree import words

_COMMAND_CHARACTERS = 300
_CALLER_CHARACTERS = 60
_REASON_CHARACTERS = 300
_NAMES_SHOWN = 5


def label(group: Group) -> str:
    """Return the outcome, and whether it needed approval."""
    if group.outcome == REFUSED:
        return "probably refused"
    if group.answer in ("", APPROVED):
        return group.outcome
    return "approval expired" if group.answer == "expired" else "not approved"


def command(group: Group) -> str:
    """Return the program of an exec, and its subcommand if it has any."""
    return shortened(shell_words(group.command), _COMMAND_CHARACTERS)


def lines(group: Group) -> list[tuple[str, int]]:
    """Return its first command lines, or what else it did, and how often."""
    return [(what(event), count) for event, count in group.lines]


def is_of_several(group: Group) -> bool:
    """Return whether it has several command lines, so that each needs its own number."""
    return len(group.lines) > 1 or group.other_lines > 0


def reason(group: Group) -> str:
    """Return the rule's message, or what the decision says beyond the rule's name."""
    payload = group.first.payload
    message, given = text(payload.get("message")), text(payload.get("reason"))
    shadows = text(payload.get("shadows"))
    if group.outcome == AUDITED and shadows:
        message = f"shadows {shadows}"
    if "exit_code" in payload:
        message = f"its command ended with {payload['exit_code']}"
    elif not message and not given.startswith(f"rule {group.rule}"):
        message = given
        if group.outcome == APPROVED and group.count > 1:
            message += ", the first time"  # another approver may have approved the others
    return shortened(printable(" ".join(message.split())), _REASON_CHARACTERS)


def rule_line(group: Group) -> str:
    said = reason(group)
    return f"rule {printable(group.rule) or '?'}{f': {said}' if said else ''}"


def callers(group: Group) -> list[tuple[int, str, int]]:
    """Return the pid, the command and the number of actions of each caller."""
    return [
        (
            by.pid,
            shortened(shell_words(words(by.command)) if by.command else "?", _CALLER_CHARACTERS),
            count,
        )
        for by, count in group.by.values()
    ]


def by_line(group: Group) -> str:
    found = callers(group)
    shown = ", ".join(
        f"{command} ({pid})" + (f" {count} times" if len(found) > 1 and count > 1 else "")
        for pid, command, count in found
    )
    others = f", others {group.by_more} times" if group.by_more else ""
    return f"by {shown}{others}"


def is_asked_by_its_shell(group: Group) -> bool:
    """Return whether its only caller is a shell that was given this very command."""
    if len(group.by) != 1 or group.by_more:
        return False
    ((by, _),) = group.by.values()
    return bool(by.command) and shell_line(words(by.command)) == what(group.first)


def suggest_command(session_id: str) -> str:
    return f"sigwrap policy suggest {shell_words([session_id])}"


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
