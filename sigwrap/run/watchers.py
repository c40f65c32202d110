"""Who notices what: rules that escalate, loops, drift, attempts on sigwrap, shadows. Each is told
by an agent signal, and what follows for that is not decided here.

They are noticed in the middle of a request, and a signal may end the run. So it is sent at the end
of the loop's turn, when the request has its answer.
"""

from __future__ import annotations

import time

from sigwrap.agent.signals import AgentSignal
from sigwrap.agent.watches import DriftWatch, LoopWatch, program_and_subcommand
from sigwrap.bare.collections import deque
from sigwrap.escape import printable
from sigwrap.events import Payload
from sigwrap.hints import TYPE_CHECKING
from sigwrap.mediate.effects import Escalation, TellWatchers
from sigwrap.mediate.exec import line_of, subject_of
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.mediate.watch import (
    MOST_TOLD,
    Once,
    Seldom,
    Telling,
    attempt_on_boundary,
    shadow_of,
)
from sigwrap.tuples import NamedTuple

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_LONGEST = 300


class _Kind(NamedTuple):
    signal: AgentSignal
    source: str
    may_be_followed: bool = True  # by what the policy says of the signal


_LOOP = _Kind(AgentSignal.SIGLOOP, "watch.loop")
_DRIFT = _Kind(AgentSignal.SIGDRIFT, "watch.drift")
_ATTEMPT = _Kind(AgentSignal.SIGTRUST, "trust.boundary")
_SHADOW = _Kind(AgentSignal.SIGTRUST, "trust.path_shadow", may_be_followed=False)


class Watchers:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._policy = session.policy.name
        self._rule = session.policy.watch.loop
        self._same_execs = None
        if self._rule is not None:
            self._same_execs = LoopWatch(self._rule.same_exec, self._rule.within_s)
        self._profile = session.plan.profile
        self._drifts = Once()
        self._shadows = Once()
        self._attempts = Seldom()
        self._due: deque[tuple[_Kind, str]] = deque()

    @property
    def watch_execs(self) -> bool:
        return self._same_execs is not None or self._profile is not None

    def on_escalation(self, escalation: Escalation) -> None:
        source = f"rule {escalation.rule} of {self._policy}"
        self._raise(_Kind(AgentSignal.SIGPOLICY, source), escalation.what)

    def on_exec(self, _scope: object, effect: TellWatchers) -> None:
        if self._same_execs is not None:
            self._look_for_loop(self._same_execs, effect.facts, time.monotonic())
        # A replacement is the policy's own doing, and no profile has it.
        if self._profile is not None and not effect.is_replaced:
            self._look_for_drift(self._profile, effect)

    @property
    def looks_at_execs(self) -> bool:
        """At what each one is, not only how often it comes."""
        return self._profile is not None

    @property
    def counts_execs(self) -> bool:
        return self._same_execs is not None

    def on_repeated_exec(self, facts: ExecFacts, at_s: float) -> None:
        """One of an exec that on_exec has seen before. Only how often it came counts."""
        if self._same_execs is not None:
            self._look_for_loop(self._same_execs, facts, at_s)

    def execs_left(self, facts: ExecFacts) -> int:
        """How many more of this exec nobody has to look at as they come; -1: any number."""
        if self._same_execs is None:
            return -1
        main = facts.programs[0]
        return self._same_execs.left(main.path, main.argv, facts.cwd, time.monotonic())

    def on_event(self, event: str, payload: Payload) -> None:
        """Before it is written: that the log is full must not be a way out."""
        shadow = shadow_of(event, payload)
        if shadow is not None:
            self._tell_once(self._shadows, shadow.file, _SHADOW, shadow.what)
            return
        attempt = attempt_on_boundary(event, payload)
        if attempt is None or (attempt.peer_pid and not self._session.is_inside(attempt.peer_pid)):
            return
        if self._attempts.may_tell(event, time.monotonic()):
            self._raise(_ATTEMPT, attempt.what)

    def send_what_is_due(self) -> None:
        while self._due:
            kind, reason = self._due.popleft()
            signals = self._session.agent_signals
            send = signals.send if kind.may_be_followed else signals.note
            send(kind.signal, kind.source, reason)

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
            self._tell_once(self._drifts, key, _DRIFT, what)

    def _tell_once(self, told: Once, key: object, kind: _Kind, what: str) -> None:
        match told.about(key):
            case Telling.TELL:
                self._raise(kind, what)
            case Telling.TELL_AS_LAST:
                more = f" (sigwrap reports no more of these: {MOST_TOLD} so far)"
                self._raise(kind, what, more)
            case Telling.LEAVE:
                pass

    def _raise(self, kind: _Kind, what: str, more: str = "") -> None:
        reason = printable(what)
        if len(reason) > _LONGEST:
            reason = f"{reason[: _LONGEST - 1]}…"
        if not self._due:
            self._session.loop.call_at(time.monotonic(), self.send_what_is_due)
        self._due.append((kind, reason + more))
