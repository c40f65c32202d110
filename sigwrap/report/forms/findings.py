"""What needs attention, in words: one finding for each group, whatever the form."""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, Payload, kind_of, number, text, texts
from sigwrap.outcomes import APPROVED, AUDITED, REFUSED
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.network import Direction, reaching
from sigwrap.policy.presets import as_meant
from sigwrap.policy.tools.suggest import Suggester, Suggestion
from sigwrap.report.check.recorded_policy import NoPolicy, recorded_policy
from sigwrap.report.folds.attention import By, Group
from sigwrap.report.folds.steps import shell_line
from sigwrap.report.folds.tree import words

_COMMAND_CHARACTERS = 300
_ASKER_CHARACTERS = 60
_REASON_CHARACTERS = 300
_POLICY_CHARACTERS = 100_000  # of a policy that isn't shipped: half a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Every text in it is fit for a terminal."""

    kind: str  # exec, signal or connection
    outcome: str
    label: str  # the outcome, and whether it needed approval
    answer: str  # the answer to the approval request; empty where there was none
    what: str  # of the first
    command: str  # of an exec: the program, and its subcommand where it has such
    lines: tuple[tuple[str, int], ...]  # what, and how often; of an exec, the first command lines
    other_lines: int  # how often with other command lines
    rule: str
    reason: str
    count: int
    by: tuple[tuple[int, str, int], ...]  # pid, command, how often
    by_more: int
    first_seq: int
    last_seq: int
    first_ns: int
    is_shell_line: bool  # what the first caller was given as SHELL -c
    suggestion: Suggestion | None

    @property
    def is_asked_by_its_shell(self) -> bool:
        """Return whether only a shell asked for it that was given this very command."""
        return self.is_shell_line and len(self.by) == 1 and not self.by_more

    @property
    def is_of_several(self) -> bool:
        """Command lines, so that none of them says what was done how often."""
        return len(self.lines) > 1 or self.other_lines > 0


class Findings:
    """Of one report. The recorded policy is loaded once something needs a rule."""

    def __init__(self, started: Payload) -> None:
        self._started = started
        self._suggester: Suggester | None = None

    def of(self, group: Group, *, with_rule: bool = True) -> Finding:
        first = group.first
        whats = (what(each) for each in (first, *group.examples))
        return Finding(
            kind=group.kind,
            outcome=group.outcome,
            label=_label(group),
            answer=group.answer,
            what=what(first),
            command=shortened(shell_words(group.command), _COMMAND_CHARACTERS),
            lines=tuple(zip(whats, group.each, strict=True)),
            other_lines=group.with_others,
            rule=printable(group.rule),
            reason=_reason(group),
            count=group.count,
            by=tuple((by.pid, _asker(by), count) for by, count in group.by),
            by_more=group.by_more,
            first_seq=first.seq,
            last_seq=group.last_seq,
            first_ns=first.time_ns,
            is_shell_line=bool(group.by) and _is_given(group.by[0][0], what(first)),
            suggestion=self._suggestion(group) if with_rule else None,
        )

    def _suggestion(self, group: Group) -> Suggestion | None:
        if group.outcome in (APPROVED, REFUSED):
            return None
        decision = "deny" if group.outcome == AUDITED else "allow"
        if self._suggester is None:
            self._suggester = Suggester(_engine(self._started))
        events = (group.first, *group.examples)
        return self._suggester.rule_for(events, decision, are_some=group.with_others > 0)


def what(event: Event) -> str:
    """A command line, a signal and its target, or a direction and a destination."""
    return shortened(_WHAT[kind_of(event.type)](event.payload), _COMMAND_CHARACTERS)


def rule_line(found: Finding) -> str:
    reason = f": {found.reason}" if found.reason else ""
    return f"rule {found.rule or '?'}{reason}"


def by_line(found: Finding) -> str:
    shown = ", ".join(
        f"{command} ({pid})" + (f" {count} times" if len(found.by) > 1 and count > 1 else "")
        for pid, command, count in found.by
    )
    others = f", others {found.by_more} times" if found.by_more else ""
    return f"by {shown}{others}"


def suggest_command(session_id: str) -> str:
    return f"sigwrap policy learn {shell_words([session_id])}"


def audited_line(groups: list[Group]) -> str:
    """Such as "4 audited: python3 (2), git (2)"."""
    by_name: dict[str, int] = {}
    for group in groups:
        name = group.command[0] if group.command else what(group.first)
        by_name[name] = by_name.get(name, 0) + group.count
    listed = sorted(by_name.items(), key=lambda each: -each[1])
    names = ", ".join(
        f"{printable(name)} ({n})" if n > 1 else printable(name) for name, n in listed[:5]
    )
    more = ", …" if len(listed) > 5 else ""
    return f"{sum(by_name.values())} audited: {names}{more} (--only audited)"


def _label(group: Group) -> str:
    if group.first.type == "file_refused_likely":
        return "probably refused"
    if group.answer in ("", APPROVED):
        return group.outcome
    return "approval expired" if group.answer == "expired" else "not approved"


def _engine(started: Payload) -> Engine | None:
    try:
        return Engine(recorded_policy(started, longest=_POLICY_CHARACTERS))
    except NoPolicy:
        return None


def _reason(group: Group) -> str:
    """The rule's message; where it has none, what the decision says beyond the rule's name."""
    payload = group.first.payload
    message, reason = text(payload.get("message")), text(payload.get("reason"))
    shadows = text(payload.get("shadows"))
    if group.outcome == AUDITED and shadows:
        message = f"shadows {shadows}"
    if "exit_code" in payload:
        message = f"its command ended with {payload['exit_code']}"
    elif not message and not reason.startswith(f"rule {group.rule}"):
        message = reason
        if group.outcome == APPROVED and group.count > 1:
            message += ", the first time"  # another approver may have approved the others
    return shortened(printable(" ".join(message.split())), _REASON_CHARACTERS)


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


def connection_line(payload: Payload) -> str:
    """Told as the denied caller reads it."""
    destination = printable(text(payload.get("destination")) or "?")
    direction = text(payload.get("direction"))
    return reaching(direction, destination) if direction in _DIRECTIONS else destination


def _file(payload: Payload) -> str:
    return printable(f"{text(payload.get('operation'))} {text(payload.get('path'))}")


_WHAT = {"file": _file, "exec": _command, "signal": _signal, "connection": connection_line}


def _is_given(by: By, line: str) -> bool:
    return bool(by.command) and shell_line(words(by.command)) == line


def _asker(by: By) -> str:
    return shortened(shell_words(words(by.command)) if by.command else "?", _ASKER_CHARACTERS)
