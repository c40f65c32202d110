"""Watch for rules that escalate, loops, drift, attempts on sigwrap and shadows.

Each one becomes an agent signal; the policy decides what follows it. They are noticed in the middle
of a request, and a signal may end the run. So the signal is sent at the end of the loop's turn: by
then, the request has its answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sigwrap.agent.signals import AgentSignal
from sigwrap.agent.watches import DriftWatch, LoopWatch, program_and_subcommand
from sigwrap.bare import TYPE_CHECKING, NamedTuple, deque
from sigwrap.events import EXEC_TYPES, Payload, number, text
from sigwrap.exec.facts import ExecFacts, line_of, subject_of
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP
from sigwrap.session.effects import Escalation, TellWatchers
from sigwrap.text import masked_text, printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LONGEST = 300
# A process can repeat the same thing a thousand times a second.
_MOST_TOLD = 100  # drifts, and shadows, of a run
_ATTEMPT_AGAIN_AFTER_S = 10.0


class _Kind(NamedTuple):
    signal: AgentSignal
    source: str
    escalates: bool = True  # the policy may send another signal after it


_LOOP = _Kind(AgentSignal.SIGLOOP, "watch.loop")
_DRIFT = _Kind(AgentSignal.SIGDRIFT, "watch.drift")
_ATTEMPT = _Kind(AgentSignal.SIGTRUST, "trust.boundary")
_SHADOW = _Kind(AgentSignal.SIGTRUST, "trust.path_shadow", escalates=False)


class Watchers:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._policy = session.policy.name
        self._rule = session.policy.watch.loop
        self._same_execs = None
        if self._rule is not None:
            self._same_execs = LoopWatch(self._rule.same_exec, self._rule.within_s)
        self._profile = session.plan.profile
        self.counts_execs = self._same_execs is not None
        self.looks_at_execs = self._profile is not None  # not only at how often a program runs
        self._drifts: set[object] = set()
        self._shadows: set[object] = set()
        self._attempts_s: dict[str, float] = {}  # event -> when it was last sent
        self.watched = EXEC_TYPES | _READERS.keys()  # events
        self._due: deque[tuple[_Kind, str]] = deque()

    def on_escalation(self, escalation: Escalation) -> None:
        source = f"rule {escalation.rule} of {self._policy}"
        self._raise(_Kind(AgentSignal.SIGPOLICY, source), escalation.what)

    def on_exec(self, _request: object, effect: TellWatchers) -> None:
        if self._same_execs is not None:
            self._look_for_loop(self._same_execs, effect.facts, time.monotonic())
        # The policy itself chose a replacement, and no profile has it.
        if self._profile is not None and not effect.is_replaced:
            self._look_for_drift(self._profile, effect)

    def on_repeated_exec(self, facts: ExecFacts) -> None:
        """Count one more of an exec that on_exec has seen before."""
        if self._same_execs is not None:
            self._look_for_loop(self._same_execs, facts, time.monotonic())

    def on_event(self, event: str, payload: Payload) -> None:
        """Look at an event before it is written: a full log must not hide it."""
        if event in EXEC_TYPES:
            if shadowed := payload.get("shadows"):
                file = text(payload.get("path"))
                self._raise_once(self._shadows, file, _SHADOW, f"{file} shadows {shadowed}")
            return
        attempt = attempt_on_boundary(event, payload)
        if not attempt:
            return
        if event == "control_refused" and not self._session.is_inside(payload["peer_pid"]):
            return
        last_s, now_s = self._attempts_s.get(event), time.monotonic()
        if last_s is None or now_s - last_s >= _ATTEMPT_AGAIN_AFTER_S:
            self._attempts_s[event] = now_s
            self._raise(_ATTEMPT, attempt)

    @property
    def has_due(self) -> bool:
        """Return whether a signal waits until the loop is next idle."""
        return bool(self._due)

    def send_what_is_due(self) -> None:
        while self._due:
            kind, reason = self._due.popleft()
            self._session.agent_signals.send(
                kind.signal, kind.source, reason, escalates=kind.escalates
            )

    def _look_for_loop(self, watch: LoopWatch, facts: ExecFacts, now_s: float) -> None:
        main, rule = facts.programs[0], self._rule
        if rule is not None and watch.noted(main.path, main.argv, facts.cwd, now_s):
            what = f"{line_of(facts)}: {rule.same_exec} times within {rule.within_s} s"
            self._raise(_LOOP, what)

    def _look_for_drift(self, profile: DriftWatch, effect: TellWatchers) -> None:
        program = profile.outside(subject_of(effect.facts, traced=effect.traced))
        if program is not None:
            what = f"{line_of(effect.facts)}: {program.path} is not in the profile {profile.name}"
            key = program_and_subcommand(program)
            self._raise_once(self._drifts, key, _DRIFT, what)

    def _raise_once(self, told: set[object], key: object, kind: _Kind, what: str) -> None:
        if key in told or len(told) == _MOST_TOLD:
            return
        told.add(key)
        is_last = len(told) == _MOST_TOLD
        more = f" (sigwrap reports no more of these: {_MOST_TOLD} so far)" if is_last else ""
        self._raise(kind, what, more)

    def _raise(self, kind: _Kind, what: str, more: str = "") -> None:
        reason = printable(what)
        if len(reason) > _LONGEST:
            reason = f"{reason[: _LONGEST - 1]}…"
        if not self._due:
            self._session.loop.call_in(0, self.send_what_is_due)
        self._due.append((kind, reason + more))


# Events that are attempts on sigwrap. A shadow of a system command is none: it may be intended, as
# the agent installed a tool.


def attempt_on_boundary(event: str, payload: Payload) -> str:
    """Return the attempt on sigwrap that an event reports, not escaped; empty if it is none."""
    read = _READERS.get(event)
    return "" if read is None else read(payload)


def _signal(payload: Payload) -> str:
    """Return nothing for PTRACE_TRACEME, which names no process, and for a signal to a whole group,
    which sigwrap may be in."""
    target = payload.get("target_pid")
    if payload.get("rule_name") != PROTECTS_SIGWRAP.rule or not target or "correlation" in payload:
        return ""
    sender = f"{text(payload.get('source_cmd'))} ({number(payload.get('source_pid'))})"
    signal, call = text(payload.get("signal_name")), text(payload.get("syscall"))
    return f"{sender} tried to send {signal} by {call} to sigwrap ({target})"


def _peer(payload: Payload) -> str:
    pid = number(payload.get("peer_pid"))
    if not payload.get("inside_session") or not pid:
        return ""
    command = masked_text(text(payload.get("peer_cmd")))
    return f"process {pid} connected to the control socket: {command}"


def _store(payload: Payload) -> str:
    return f"{text(payload.get('what'))}: {text(payload.get('path'))}"


def _own_files(payload: Payload) -> str:
    files = payload.get("files") or ["?"]
    more = number(payload.get("count")) - 1
    return f"sigwrap's file {files[0]} was changed" + f" and {more} more" * (more > 0)


def _kill_switch(payload: Payload) -> str:
    path = text(payload.get("path"))
    return f"sigwrap killswitch on did not announce {path}"


_READERS: dict[str, Callable[[Payload], str]] = {
    "signal_blocked": _signal,
    "control_refused": _peer,
    "store_tampered": _store,
    "own_files_changed": _own_files,
    "killswitch_invented": _kill_switch,
}
