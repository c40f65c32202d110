"""Agent signals in a run: the one place to which they are sent, and where they are carried out.

An action is an exec that goes on. SIGSTOP and SIGINT wait for those, but not for long: whoever
would rather not be stopped could have one that never ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sigwrap.agent.dispatcher import STATE_AFTER, Dispatcher, Outcome, State
from sigwrap.agent.reactions import EFFECTS, Effect, escalations
from sigwrap.agent.signals import AgentSignal, SignalInfo, known_signal, unknown
from sigwrap.bare.contextlib import ExitStack
from sigwrap.errors import StoreError
from sigwrap.escape import printable
from sigwrap.events import Payload, text
from sigwrap.hints import Any
from sigwrap.linux.peer import Peer
from sigwrap.mediate.diagnosis import Standstill
from sigwrap.mediate.masking import masked_text
from sigwrap.mediate.run_end import KillDemanded, LimitReached, TerminationDemanded
from sigwrap.policy.judge.rules import Policy
from sigwrap.protocols.control import ControlReply, ControlRequest, refusal
from sigwrap.run.ending import Ending
from sigwrap.run.execs.gate import Gate
from sigwrap.run.freezing import Freezing
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder

_ACTIONS_END_WITHIN_S = 2.0

_DELIVERED = Outcome.DELIVERED.value
_ONLY_TELL = (AgentSignal.SIGUSR1, AgentSignal.SIGUSR2)
_NEEDS_ITS_EVENT = frozenset(
    signal
    for signal, effect in EFFECTS.items()
    if effect in (Effect.RECORD, Effect.CONTINUE, Effect.DIAGNOSE, Effect.CHECKPOINT)
)
_NO_EVENT = "the log can't be written"


class NotRecorded(Exception):
    """Its event is all of it, or it lets something go on."""


class AgentSignals:
    def __init__(
        self,
        *,
        policy: Policy,
        gate: Gate,
        freezing: Freezing,
        recorder: Recorder,
        ending: Ending,
        loop: Loop,
        command_pid: int,
        grace_s: float,
        interrupt: Callable[[str], None],
        diagnose: Callable[[], bool],
        checkpoint: Callable[[], str],
    ) -> None:
        """`interrupt` gets who sent a SIGINT; `diagnose` and `checkpoint` are SIGUSR1's and
        SIGUSR2's."""
        self._gate = gate
        self._freezing = freezing
        self._recorder = recorder
        self._ending = ending
        self._loop = loop
        self._command_pid = command_pid
        self._grace_s = grace_s
        self._interrupt = interrupt
        self._diagnose = diagnose
        self._checkpoint = checkpoint
        self._escalations = escalations(policy.watch, policy.trust)
        self._dispatcher = Dispatcher(
            clock=time.time_ns, perform=self._perform, escalations=self._escalations
        )
        self._told: dict[int, str] = {}  # sequence -> the outcome that its last event has
        self._actions: ExitStack | None = None
        self._stopped_by, self._stopped_s = "", 0.0
        self._copied = (0, "", "")  # the last checkpoint: its signal, its path, why there is none
        self._is_for_limit = False
        self._only_told: set[int] = set()  # sequences of those that nothing follows
        self._has_killed = False

    @property
    def stopped(self) -> Standstill | None:
        """None where the session isn't."""
        if not self._freezing.is_frozen:
            return None
        return Standstill(self._stopped_by, time.monotonic() - self._stopped_s, self._gate.held)

    def send(self, signal: AgentSignal, source: str, reason: str) -> Outcome:
        """What has come of it by now; an event says so."""
        sequence = self._send(signal, source, reason)
        return Outcome(self._entry(sequence)["outcome"])

    def note(self, signal: AgentSignal, source: str, reason: str) -> None:
        """Sends it, and nothing that the policy has for it follows."""
        self._send(signal, source, reason, escalates=False)

    def _send(
        self, signal: AgentSignal, source: str, reason: str, *, escalates: bool = True
    ) -> int:
        """Its sequence."""
        self._mark_actions()
        known = len(self._dispatcher.get_signal_history()) + self._dispatcher.dropped_from_history
        if not escalates:
            self._only_told.add(known + 1)
        self._carefully(
            lambda: self._dispatcher.send_signal(
                signal, source=source, reason=reason, escalates=escalates
            ),
            signal,
        )
        return known + 1

    def limit_reached(self, reached: LimitReached) -> None:
        """Its event is in the log, and what ends the run follows."""
        self._is_for_limit = True
        self.send(AgentSignal.SIGBUDGET, f"limit {reached.limit}", reached.why)

    # What is in flight

    def _mark_actions(self) -> None:
        """All execs in flight are one action: nobody but SIGSTOP and SIGINT asks for any."""
        if self._actions is None and self._gate.in_flight and self._dispatcher.may_act:
            self._actions = actions = ExitStack()
            actions.enter_context(self._dispatcher.action())
            now_s = time.monotonic()
            self._gate.on_idle = lambda: self._loop.call_at(
                time.monotonic(), lambda: self._actions_ended(actions)
            )
            self._loop.call_at(now_s + _ACTIONS_END_WITHIN_S, lambda: self._actions_ended(actions))

    def _actions_ended(self, actions: ExitStack) -> None:
        if self._actions is actions:
            self._actions = None
            self._gate.on_idle = lambda: None
            self._carefully(actions.close, None)

    # One signal

    def _carefully(self, deliver: Callable[[], object], signal: AgentSignal | None) -> None:
        bug: Exception | None = None
        try:
            deliver()
        except Exception as error:
            bug = error
        self._tell_of_outcomes()
        self._set_gate()
        if bug is not None and signal not in _ONLY_TELL and not isinstance(bug, NotRecorded):
            # Whoever sent it counts on what it does.
            name = "an agent signal" if signal is None else signal.name
            what = f"{type(bug).__name__}: {bug}"
            self._ending.on(KillDemanded(f"internal error of sigwrap at {name}: {what}"))

    def _set_gate(self) -> None:
        dispatcher = self._dispatcher
        is_over = dispatcher.state is State.TERMINATED
        if dispatcher.may_act or is_over or self._freezing.ends:
            if self._gate.is_closed:
                self._gate.open()
        else:
            self._gate.close()

    def _tell_of_outcomes(self) -> None:
        """Of those that are not carried out just now: these have their event already."""
        told, self._told = self._told, {}
        for entry in self._dispatcher.get_signal_history():
            sequence, outcome = entry["sequence"], entry["outcome"]
            assert isinstance(sequence, int) and isinstance(outcome, str)
            before = told.get(sequence)
            is_known = before == _DELIVERED and outcome != Outcome.FAILED.value
            self._told[sequence] = _DELIVERED if is_known else outcome
            if is_known or before == outcome:
                continue
            if outcome == Outcome.NO_OP.value and self._kills_all_the_same(entry):
                entry["outcome"] = _DELIVERED
                self._record(entry)
                self._kill(_from(entry))
            else:
                self._record(entry)

    def _kills_all_the_same(self, entry: dict[str, Any]) -> bool:
        """The state says that the run ends; until it has, it can be killed."""
        comes_to = self._follows(entry) or AgentSignal[entry["signal"]]
        return (
            comes_to is AgentSignal.SIGKILL
            and not self._has_killed
            and self._dispatcher.state is State.TERMINATED
        )

    def _follows(self, entry: dict[str, Any]) -> AgentSignal | None:
        if entry["sequence"] in self._only_told:
            return None
        return self._escalations.get(AgentSignal[entry["signal"]])

    def _entry(self, sequence: int) -> dict[str, Any]:
        return next(
            each for each in self._dispatcher.get_signal_history() if each["sequence"] == sequence
        )

    def _record(self, entry: dict[str, Any]) -> bool:
        payload = {
            "signal": entry["signal"],
            "number": AgentSignal[entry["signal"]].value,
            "source": entry["source"],
            "reason": entry["reason"],
            "cause": entry["cause"],
            "outcome": entry["outcome"],
            "state_before": entry["state_before"],
            "state_after": entry["state_after"],
            "sequence": entry["sequence"],
        }
        if entry["errors"]:
            payload["error"] = "; ".join(entry["errors"])
        return self._recorder.record("agent_signal", self._command_pid, payload)

    def _perform(self, info: SignalInfo) -> None:
        before = self._dispatcher.state
        entry = self._entry(info.sequence)
        self._told[info.sequence] = _DELIVERED
        after = STATE_AFTER.get(info.signal, before)
        entry |= {
            "outcome": _DELIVERED,
            "state_before": before.value,
            "state_after": after.value,
        }
        # What ends or stops is better done than not.
        if not self._record(entry) and info.signal in _NEEDS_ITS_EVENT:
            raise NotRecorded(_NO_EVENT)
        root = info.cause or info
        match info.signal:
            case AgentSignal.SIGSTOP:
                by = _from_root(root)
                self._recorder.tell(f"stopped by {by}; sigwrap resume continues it")
                self._stopped_by, self._stopped_s = by, time.monotonic()
                self._freezing.freeze()
            case AgentSignal.SIGCONT:
                self._recorder.tell(f"goes on after {_from(entry)}")
                self._freezing.thaw()
            case AgentSignal.SIGINT:
                self._freezing.let_run()
                self._recorder.tell(f"interrupted by {_from(entry)}")
                self._interrupt(_source(entry))
            case AgentSignal.SIGTERM if root.signal is AgentSignal.SIGBUDGET:
                if not self._is_for_limit:
                    self._terminate(_from_root(root), is_for_budget=True)
            case AgentSignal.SIGTERM:
                self._terminate(_from(entry))
            case AgentSignal.SIGKILL:
                self._kill(_from_root(root))
            case AgentSignal.SIGUSR1:
                if not self._diagnose():
                    raise NotRecorded(_NO_EVENT)
            case AgentSignal.SIGUSR2:
                self._copy_log(info.sequence)
            case _:
                pass  # its event is all; what follows it comes by itself

    def _terminate(self, by: str, *, is_for_budget: bool = False) -> None:
        self._recorder.tell(f"ended by {by}")
        demanded = TerminationDemanded(f"ended by {by}", is_for_budget=is_for_budget)
        self._ending.on(demanded)

    def _kill(self, by: str) -> None:
        self._has_killed = True
        self._recorder.tell(f"killed by {by}")
        self._ending.on(KillDemanded(by))

    def _copy_log(self, sequence: int) -> None:
        try:
            self._copied = (sequence, self._checkpoint(), "")
        except StoreError as failure:
            self._copied = (sequence, "", str(failure))
            raise

    def freeze_again(self) -> None:
        """The run goes on after all."""
        is_stopped = self._dispatcher.state is State.STOPPED
        self._freezing.goes_on_after_all(is_stopped=is_stopped)

    # The control socket

    def on_request(
        self, request: ControlRequest, peer: Peer, is_typed: Callable[[], bool]
    ) -> ControlReply:
        """`is_typed`: whether the session itself may have typed it."""
        match request:
            case {"do": "signal", "signal": str(word)}:
                return self._on_signal(word, text(request.get("reason")), peer, is_typed)
            case {"do": "signal-outcome", "sequence": int(sequence)}:
                return self._outcome(sequence)
            case _:
                return refusal("bad-request", "a signal has a name")

    def _on_signal(
        self, word: str, reason: str, peer: Peer, is_typed: Callable[[], bool]
    ) -> ControlReply:
        signal = known_signal(word)
        if signal is None:  # what was meant, `sigwrap signal` says: a run imports no difflib
            return refusal("unknown-signal", unknown(word))
        if signal is AgentSignal.SIGCONT and is_typed():
            return refusal(
                "typed", "the session may have typed this itself: send it from another terminal"
            )
        source = f"uid {peer.uid}, pid {peer.pid}"
        return self._outcome(self._send(signal, source, masked_text(reason)))

    def _outcome(self, sequence: int) -> ControlReply:
        try:
            entry = self._entry(sequence)
        except StopIteration:
            return refusal("unknown-signal", f"there is no agent signal {sequence}")
        follows = self._follows(entry)
        killed = (
            self._has_killed
            and AgentSignal.SIGKILL in (AgentSignal[entry["signal"]], follows)
            and entry["outcome"] == Outcome.NO_OP.value
        )
        freezing = self._freezing
        goes_on = AgentSignal[entry["signal"]] is AgentSignal.SIGCONT
        copied, path, no_path = self._copied
        is_copied = copied == sequence
        reply: Payload = {
            "ok": True,
            "session_id": self._recorder.log.session_id,
            "signal": entry["signal"],
            "sequence": sequence,
            "outcome": _DELIVERED if killed else entry["outcome"],
            "state": self._dispatcher.state.value,
            "follows": None if follows is None else follows.name,
            "frozen": freezing.stands_still,
            "processes": freezing.went_on if goes_on else freezing.count(),
            "held": freezing.released if goes_on else self._gate.held,
            "in_flight": self._gate.in_flight,
            "ending": freezing.ends,
            "grace_s": self._grace_s,
            "error": no_path if is_copied else "; ".join(entry["errors"]),
        }
        if is_copied:
            reply["checkpoint"] = path
        return reply


def _source(entry: dict[str, Any]) -> str:
    reason = f": {entry['reason']}" if entry["reason"] else ""
    return printable(f"{entry['source'] or 'sigwrap'}{reason}")


def _from(entry: dict[str, Any]) -> str:
    return f"agent signal {entry['signal']} from {_source(entry)}"


def _from_root(info: SignalInfo) -> str:
    return _from({"signal": info.signal.name, "source": info.source, "reason": info.reason})
