"""What the agent did: its tool calls in order, each with its end and what ran below it.

A tool call is what a hook judged, or a shell that an agent gave a command. If the session's command
is no agent, its own children are the steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from sigwrap.bare import NamedTuple
from sigwrap.events import ALLOWED, AUDITED, DENIED, Event, Payload, counted, number, text, texts
from sigwrap.policy.presets import PRESETS
from sigwrap.report.folds.bounded import Latest
from sigwrap.text import printable, shell_words, shortened

STEPS_KEPT = 500
_CALLS_KEPT = 200
_BELOW_KEPT = 20
_OWN_CHARACTERS = 200
_CHARACTERS = 300
_SHOWN = 12
_BELOW_SHOWN = 3
_LEFT = "left to the user"  # the agent asks, and the log has no answer
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})


class Exec(NamedTuple):
    """An exec that a process requested, and its outcome."""

    event: Event
    ppid: int
    below: int  # the nearest ancestor that ran a program, if that isn't its parent
    argv: list[str]  # without what an agent wrapped it in
    line: str  # the same words, as the tree keeps them
    is_wrapped: bool
    outcome: str
    is_selected: bool = True


@dataclass(slots=True)
class Step:
    seq: int
    time_ns: int
    what: str  # printable
    tool: str = ""  # as a hook named it
    answer: str = ""  # of the hook
    reason: str = ""
    pid: int = 0  # of its first process; 0: unknown
    exit_code: int | None = None
    signal_name: str = ""
    ended_ns: int = 0
    is_denied: bool = False  # its own exec was denied, so nothing ran
    is_call: bool = False  # a tool call: judged by a hook, or `SHELL -c COMMAND`
    is_wrapped: bool = False  # the agent put the command into a line of its own
    is_selected: bool = False
    is_over: bool = False  # the session has ended
    ran: int = 0  # commands, itself included
    below: list[str] = field(default_factory=list)  # the first commands below
    denied: list[str] = field(default_factory=list)  # the first denied actions
    denials: int = 0

    @property
    def outcome(self) -> str:
        if self.is_denied or self.answer == "deny" or self.what in self.denied:
            return DENIED
        if self.signal_name:
            return f"killed by {self.signal_name}"
        if self.exit_code is not None:
            return f"exit {self.exit_code}" if self.exit_code else "ok"
        if self.pid:
            return "no end seen" if self.is_over else "running"
        return "asked" if self.answer == "ask" else "allowed"

    @property
    def is_bad(self) -> bool:
        return bool(self.denials) or self.outcome not in ("ok", "allowed", "running", "no end seen")

    @property
    def line(self) -> str:
        tool = f"{self.tool}: " if self.tool else ""
        outcome = _LEFT if self.outcome == "asked" else self.outcome
        return f"{outcome:<8}  {tool}{self.what}{self._notes()}"

    @property
    def judged_line(self) -> str:
        """What a hook denied or left to the user, in one line."""
        label = DENIED if self.answer == "deny" else _LEFT
        why = f"  ({self.reason})" if self.reason else ""
        return f"{label}  {self.tool}: {self.what}{why}"

    def deny(self, what: str) -> None:
        self.denials += 1
        if len(self.denied) < _BELOW_KEPT:
            self.denied.append(shortened(printable(what), _CHARACTERS))

    def end(self, event: Event) -> None:
        """Take the end of a process."""
        if self.pid == event.pid:
            code = event.payload.get("exit_code")
            self.exit_code = code if isinstance(code, int) else None
            self.signal_name = printable(text(event.payload.get("signal_name")))[:20]
            self.ended_ns = event.time_ns

    def _notes(self) -> str:
        """Return what ran below, in a few words."""
        notes = [f"denied: {each}" for each in self.denied[:_BELOW_SHOWN] if each != self.what]
        if len(notes) < self.denials and self.what not in self.denied:
            notes.append(f"{self.denials} denied")
        others = [each for each in self.below if each != self.what]
        if others and self.what not in others:
            names = dict.fromkeys(each.partition(" ")[0].rpartition("/")[2] for each in others)
            more = ", …" if len(names) > _BELOW_SHOWN else ""
            notes.append(f"ran {', '.join(list(names)[:_BELOW_SHOWN])}{more}")
        return f"  ({'; '.join(notes)})" if notes else ""


class Steps:
    def __init__(self) -> None:
        self.by_agent = False
        self.found: list[Step] = []
        self.more = 0
        self.own: dict[str, int] = {}  # by program: what an agent ran without a tool call
        self._command_pid = 0
        self._calls: Latest[str, Step] = Latest(_CALLS_KEPT)  # judged, not started yet
        # The steps that are only counted, by whether they are wrapped.
        self._counted = {is_wrapped: _counted_step() for is_wrapped in (False, True)}

    @property
    def judged(self) -> list[Step]:
        """The calls that a hook denied or left to the user."""
        return [each for each in self.found if each.answer in ("deny", "ask")]

    @property
    def title(self) -> str:
        count = len(self.found) + self.more
        if self.by_agent:
            return f"What the agent did ({counted(count, 'tool call')})"
        return f"What the command did ({counted(count, 'step')})"

    def lines(self, started_ns: int, is_whole: bool) -> Iterator[str]:
        """Yield a line for each step; of many, choose first the ones that went wrong."""
        found = self.found
        shown = set(range(len(found)))
        if not is_whole and len(found) > _SHOWN:
            order = sorted(shown, key=lambda at: (not found[at].is_bad, at))
            shown = set(order[: _SHOWN if len(found) > _SHOWN + 1 else None])
        rows, hidden = [], 0
        # Equal steps in a row are one line, and so are hidden ones.
        for line, group in groupby(
            range(len(found)), lambda at: found[at].line if at in shown else ""
        ):
            first, *others = group
            hidden = 0 if line else 1 + len(others)
            offset = f"{(found[first].time_ns - started_ns) / 1e9:>+8.2f} s"
            times = f"  x{1 + len(others)}" if others else ""
            rows.append(f"{offset}  {line}{times}" if line else _more(hidden))
        if hidden and self.more:
            rows.pop()
        yield from rows
        if self.more:
            yield _more(hidden + self.more)
        if self.own:
            names = ", ".join(f"{printable(name)} ({n})" for name, n in self.own.items())
            yield shortened(
                f"and {sum(self.own.values())} commands of the agent itself: {names}",
                _OWN_CHARACTERS,
            )

    def start(self, payload: Payload) -> None:
        command = texts(payload.get("command"))
        self._command_pid = number(payload.get("command_pid"))
        name = command[0].rpartition("/")[2] if command else ""
        self.by_agent = bool(payload.get("preset")) or name in PRESETS

    def judge(self, event: Event, is_selected: bool) -> None:
        """Take a hook's decision on a tool call."""
        get = event.payload.get
        self.by_agent = True
        lines = text(get("what")).split("\n")
        what = shortened(printable("; ".join(lines)), _CHARACTERS)
        step = Step(event.seq, event.time_ns, what, is_call=True, is_selected=is_selected)
        step.tool, step.answer = printable(text(get("tool"))[:40]), text(get("answer"))
        step.reason = shortened(printable(text(get("reason"))), _CHARACTERS)
        self._keep(step)
        if step.answer != "deny":
            self._calls[what] = step

    def exec(self, run: Exec, step: Step | None) -> Step | None:
        """Take an exec of a process of this step, and return its step now; None for the command."""
        is_wrapped, became = run.is_wrapped, run.outcome
        if run.event.pid == self._command_pid and not is_wrapped:
            return None
        is_first = step is None or (is_wrapped and not step.is_wrapped)
        if step is None or is_first:
            step = self._begin(run)
            step.is_wrapped = is_wrapped
        step.is_selected |= run.is_selected
        if became == DENIED:
            step.is_denied |= is_first
            step.deny(shell_line(run.argv) if len(step.denied) < _BELOW_KEPT else "")
            return step
        step.is_denied = False
        step.ran += 1
        if not is_first and len(step.below) < _BELOW_KEPT:
            how = "" if became in (ALLOWED, AUDITED) else f" ({became})"
            step.below.append(shell_line(run.argv) + how)
        return step

    def end(self, *, is_over: bool) -> None:
        self.found = [each for each in self.found if each.is_selected]
        for each in self.found:
            each.is_over = is_over
        self.by_agent |= any(each.is_wrapped for each in self.found)
        if self.by_agent:
            for each in self.found:
                if not each.is_call and not each.is_bad:
                    name = each.what.partition(" ")[0].rpartition("/")[2]
                    self.own[name] = self.own.get(name, 0) + 1
            self.found = [each for each in self.found if each.is_call or each.is_bad]

    def _begin(self, run: Exec) -> Step:
        if len(self.found) >= STEPS_KEPT and not self._calls:
            self.more += 1
            return self._counted[run.is_wrapped]
        event, meant = run.event, run.argv
        what = shell_line(meant)
        step = self._calls.pop(what, None)
        if step is None:
            step = Step(event.seq, event.time_ns, what, is_call=_is_shell_line(meant))
            self._keep(step)
        step.pid = event.pid
        return step

    def _keep(self, step: Step) -> None:
        if len(self.found) < STEPS_KEPT:
            self.found.append(step)
        else:
            self.more += 1


def _counted_step() -> Step:
    nothing_more = [""] * _BELOW_KEPT
    return Step(0, 0, "", is_over=True, below=nothing_more, denied=nothing_more)


def _more(count: int) -> str:
    return f"{'':>10}  ... {count} more"


def _is_shell_line(argv: list[str]) -> bool:
    """Return whether it is SHELL -c COMMAND, or -lc."""
    is_shell = len(argv) == 3 and argv[0].rpartition("/")[2] in _SHELLS
    return is_shell and argv[1].startswith("-") and argv[1].endswith("c")


def shell_line(argv: list[str]) -> str:
    """Return the command line, or what a shell was given as one."""
    said = argv[2] if _is_shell_line(argv) else shell_words(argv[:64])
    return shortened(printable("; ".join(said.strip().split("\n"))), _CHARACTERS)
