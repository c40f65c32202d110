"""What the agent did: its tool calls in order, each with its end and what ran below it.

A tool call is what a hook judged, or a shell that an agent gave a command. Where the command of the
session is no agent, its own children are the steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Event, Payload, number, text, texts
from sigwrap.outcomes import ALLOWED, AUDITED, DENIED
from sigwrap.policy.presets import PRESETS

STEPS_KEPT = 500
_LIVING_KEPT = 65_536
_CALLS_KEPT = 200
_BELOW_KEPT = 20
_OWN_KEPT = 100
_CHARACTERS = 300
_NOTHING_MORE = [""] * _BELOW_KEPT  # of a step that is only counted
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})


@dataclass(slots=True)
class Step:
    seq: int
    time_ns: int
    what: str  # printable
    tool: str = ""  # as a hook named it
    answer: str = ""  # of the hook
    reason: str = ""
    pid: int = 0  # of its first process; 0: none is known
    exit_code: int | None = None
    signal_name: str = ""
    ended_ns: int = 0
    is_denied: bool = False  # its own exec, so nothing ran
    is_call: bool = False  # of an agent's tool: judged by a hook, or `SHELL -c COMMAND`
    is_wrapped: bool = False  # an agent has put the command into a line of its own
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    by_agent: bool
    found: tuple[Step, ...]
    more: int
    own: dict[str, int]  # by program: what an agent ran that no tool call asked for

    @property
    def judged(self) -> tuple[Step, ...]:
        """Those that a hook denied or asked about."""
        return tuple(each for each in self.found if each.answer in ("deny", "ask"))


class StepsFold:
    def __init__(self) -> None:
        self._command_pid = 0
        self._by_agent = False
        self._found: list[Step] = []
        self._more = 0
        self._living: dict[int, Step] = {}  # whose processes these are
        self._calls: dict[str, Step] = {}  # judged by a hook, and not started yet

    def started(self, payload: Payload) -> None:
        command = texts(payload.get("command"))
        self._command_pid = number(payload.get("command_pid"))
        name = command[0].rpartition("/")[2] if command else ""
        self._by_agent = bool(payload.get("preset")) or name in PRESETS

    def judged(self, event: Event, is_selected: bool) -> None:
        """Take a hook's decision on a tool call."""
        get = event.payload.get
        self._by_agent = True
        lines = text(get("what")).split("\n")
        what = shortened(printable("; ".join(lines)), _CHARACTERS)
        step = Step(event.seq, event.time_ns, what, is_call=True, is_selected=is_selected)
        step.tool, step.answer = printable(text(get("tool"))[:40]), text(get("answer"))
        step.reason = shortened(printable(text(get("reason"))), _CHARACTERS)
        self._keep(step)
        if step.answer != "deny":
            self._calls[what] = step
            if len(self._calls) > _CALLS_KEPT:
                del self._calls[next(iter(self._calls))]

    def exec(
        self, event: Event, meant: list[str], is_wrapped: bool, became: str, is_selected: bool
    ) -> None:
        """Take an exec. `meant`: its words as the agent meant them, which has wrapped them."""
        pid, get = event.pid, event.payload.get
        if pid == self._command_pid and not is_wrapped:
            return
        step = (
            self._living.get(pid)
            or self._living.get(number(get("ppid")))
            or self._living.get(number(get("below")))
        )
        is_first = step is None or (is_wrapped and not step.is_wrapped)
        if step is None or is_first:
            step = self._begin(event, meant)
            step.is_wrapped = is_wrapped
        step.is_selected |= is_selected
        self._living[pid] = step
        if len(self._living) > _LIVING_KEPT:
            del self._living[next(iter(self._living))]
        if became == DENIED:
            step.is_denied |= is_first
            self.denied(pid, shell_line(meant))
            return
        step.is_denied = False
        step.ran += 1
        if not is_first and len(step.below) < _BELOW_KEPT:
            how = "" if became in (ALLOWED, AUDITED) else f" ({became})"
            step.below.append(shell_line(meant) + how)

    def denied(self, pid: int, what: str) -> None:
        if (step := self._living.get(pid)) is not None:
            step.denials += 1
            if len(step.denied) < _BELOW_KEPT:
                step.denied.append(shortened(printable(what), _CHARACTERS))

    def exited(self, event: Event) -> None:
        step = self._living.pop(event.pid, None)
        if step is None or step.pid != event.pid:
            return
        code = event.payload.get("exit_code")
        step.exit_code = code if isinstance(code, int) else None
        step.signal_name = printable(text(event.payload.get("signal_name")))[:20]
        step.ended_ns = event.time_ns

    def result(self, *, is_over: bool) -> Steps:
        found = [each for each in self._found if each.is_selected]
        for each in found:
            each.is_over = is_over
        own: dict[str, int] = {}
        by_agent = self._by_agent or any(each.is_wrapped for each in found)
        if by_agent:
            for each in found:
                if not each.is_call and not each.is_bad:
                    name = each.what.partition(" ")[0].rpartition("/")[2]
                    own[name] = own.get(name, 0) + 1
            found = [each for each in found if each.is_call or each.is_bad]
        return Steps(by_agent=by_agent, found=tuple(found), more=self._more, own=own)

    def _begin(self, event: Event, meant: list[str]) -> Step:
        if len(self._found) >= STEPS_KEPT and not self._calls:
            self._more += 1
            return Step(event.seq, event.time_ns, "", is_over=True, below=_NOTHING_MORE)
        what = shell_line(meant)
        step = self._calls.pop(what, None)
        if step is None:
            step = Step(event.seq, event.time_ns, what, is_call=_is_shell_line(meant))
            self._keep(step)
        step.pid = event.pid
        return step

    def _keep(self, step: Step) -> None:
        if len(self._found) < STEPS_KEPT:
            self._found.append(step)
        else:
            self._more += 1


def _is_shell_line(argv: list[str]) -> bool:
    """Return whether it is SHELL -c COMMAND, or -lc."""
    is_shell = len(argv) == 3 and argv[0].rpartition("/")[2] in _SHELLS
    return is_shell and argv[1].startswith("-") and argv[1].endswith("c")


def shell_line(argv: list[str]) -> str:
    """Return the command line, or what a shell was given as one."""
    said = argv[2] if _is_shell_line(argv) else shell_words(argv[:64])
    return shortened(printable("; ".join(said.strip().split("\n"))), _CHARACTERS)
