"""Agent signals of a run: every one is sent here, logged, and carried out.

An action in flight is an exec that goes on. SIGSTOP and SIGINT wait for those, but not for long: a
program that does not want to be stopped could start an exec that never ends.

The tool calls that a hook reports are recorded here too (ToolCalls).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap.agent.dispatcher import Dispatcher, Outcome, Scope, Sent, State
from sigwrap.agent.signals import (
    EFFECTS,
    AgentSignal,
    Effect,
    SignalInfo,
    escalations,
    known_signal,
    unknown,
)
from sigwrap.approve.control_socket import (
    CALLS_SUFFIX,
    MOST_CALL_BYTES,
    ControlReply,
    ControlRequest,
    control_folder,
    refusal,
    socket_path,
)
from sigwrap.bare import TYPE_CHECKING, json, socket
from sigwrap.errors import StoreError
from sigwrap.events import Payload, number, text
from sigwrap.kernel.descriptors import refuse_descriptors
from sigwrap.kernel.peer import Peer
from sigwrap.log.folder import private_folder
from sigwrap.session.run_end import LimitReached
from sigwrap.text import masked_text, printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_ACTIONS_END_WITHIN_S = 2.0

_ONLY_TELL = (AgentSignal.SIGUSR1, AgentSignal.SIGUSR2)
# Without their event they fail. A signal that stops or ends something is carried out without it.
_NEED_THEIR_EVENT = (Effect.RECORD, Effect.CONTINUE, Effect.DIAGNOSE, Effect.CHECKPOINT)
_NO_EVENT = "the log can't be written"

_ANSWERS = ("no opinion", "ask", "deny")
_TEXTS = (
    *("agent", "conversation", "call_id", "tool", "what", "cwd", "answer", "rule_name", "reason"),
)
_OF_A_FINDING = ("what", "answer", "why", "rule_name")
_MOST_FINDINGS = 20


class NotRecorded(Exception):
    """The log cannot be written, and a signal that needs its event fails."""


class AgentSignals:
    def __init__(self, session: Session) -> None:
        self._session = session
        policy = session.policy
        self._turns = session.exec_turns
        self._freezing = session.freezing
        self._recorder = session.recorder
        self._run = session.ending.run
        self._loop = session.loop
        self._command_pid = session.command_pid
        self._grace_s = session.settings.grace_s
        self._dispatcher = Dispatcher(
            clock=time.time_ns,
            perform=self._perform,
            escalations=escalations(policy.watch, policy.trust),
            on_outcome=self._on_outcome,
        )
        self._action: Scope | None = None
        self._stopped_by, self._stopped_s = "", 0.0
        self._copied = (0, "", "")  # the last checkpoint: sequence, path, error
        self._is_for_limit = False
        self._has_killed = False

    @property
    def stopped(self) -> Payload | None:
        """The stop of the whole session, None if it is not stopped."""
        if not self._freezing.is_frozen:
            return None
        for_s = round(time.monotonic() - self._stopped_s, 1)
        return {"by": self._stopped_by, "for_s": for_s, "held": self._turns.held}

    def send(
        self, signal: AgentSignal, source: str, reason: str, *, escalates: bool = True
    ) -> Sent:
        """Send a signal, and after it the one that the policy wants, unless it doesn't escalate."""
        self._begin_action()
        sent = self._dispatcher.queue(signal, source, reason, escalates=escalates)
        self._carefully(self._dispatcher.deliver, signal)
        if sent.outcome is Outcome.QUEUED:
            self._record(sent)
        return sent

    def limit_reached(self, reached: LimitReached) -> None:
        """Send SIGBUDGET. The limit has its event, and the caller ends the run."""
        self._is_for_limit = True
        self.send(AgentSignal.SIGBUDGET, f"limit {reached.limit}", reached.why)

    def freeze_again(self) -> None:
        """Freeze a stopped tree again whose end was called off."""
        self._freezing.cancel_end(is_stopped=self._dispatcher.state is State.STOPPED)

    # Execs in flight

    def _begin_action(self) -> None:
        """Count all execs in flight as one action."""
        if self._action is None and self._turns.in_flight and self._dispatcher.may_act:
            action = self._action = self._dispatcher.action()
            action.__enter__()
            self._turns.is_end_awaited = True
            self._end_action_after(_ACTIONS_END_WITHIN_S, action)

    def no_exec_in_flight(self) -> None:
        """End the action soon: the last exec ends in the middle of a request."""
        if self._action is not None:
            self._end_action_after(0, self._action)

    def _end_action_after(self, seconds: float, action: Scope) -> None:
        self._loop.call_in(seconds, self._end_action, action)

    def _end_action(self, action: Scope) -> None:
        if self._action is action:
            self._action = None
            self._turns.is_end_awaited = False
            self._carefully(action.__exit__, None)

    # One signal

    def _carefully(self, deliver: Callable[[], object], signal: AgentSignal | None) -> None:
        """Kill the run if a signal fails: its sender relies on its effect."""
        bug: Exception | None = None
        try:
            deliver()
        except Exception as error:
            bug = error
        self._set_gate()
        if bug is not None and signal not in _ONLY_TELL and not isinstance(bug, NotRecorded):
            name = "an agent signal" if signal is None else signal.name
            what = f"{type(bug).__name__}: {bug}"
            self._run.kill(f"internal error of sigwrap at {name}: {what}")

    def _set_gate(self) -> None:
        dispatcher = self._dispatcher
        is_over = dispatcher.state is State.TERMINATED
        if not (dispatcher.may_act or is_over or self._freezing.ends):
            self._turns.close()
        elif self._turns.is_closed:
            self._turns.open()

    def _on_outcome(self, sent: Sent) -> None:
        """Log the outcome. It is logged before the signal takes effect."""
        if sent.outcome is Outcome.NO_OP and _is_kill(sent) and not self._has_killed:
            # For the dispatcher, a run that ends is over. Until it is, a kill ends it at once.
            sent.outcome = Outcome.DELIVERED
            self._record(sent)
            self._kill(_from(sent.info))
            return
        needs_event = EFFECTS[sent.info.signal] in _NEED_THEIR_EVENT
        if not self._record(sent) and sent.outcome is Outcome.DELIVERED and needs_event:
            raise NotRecorded(_NO_EVENT)

    def _record(self, sent: Sent) -> bool:
        payload = sent.as_dict()
        del payload["timestamp"], payload["errors"]
        payload["number"] = sent.info.signal.value
        if sent.errors:
            payload["error"] = "; ".join(sent.errors)
        return self._recorder.record("agent_signal", self._command_pid, payload)

    def _perform(self, info: SignalInfo) -> None:
        """Carry a signal out. RECORD needs nothing more than its event."""
        root = info.cause or info
        match EFFECTS[info.signal]:
            case Effect.STOP:
                self._stopped_by, self._stopped_s = _from(root), time.monotonic()
                self._recorder.tell(f"stopped by {_from(root)}; sigwrap resume continues it")
                self._freezing.freeze()
            case Effect.CONTINUE:
                self._recorder.tell(f"goes on after {_from(info)}")
                self._freezing.thaw()
            case Effect.INTERRUPT:
                self._freezing.let_run()
                self._recorder.tell(f"interrupted by {_from(info)}")
                self._session.job_control.wake_front()  # which decides, and can't while stopped
                self._session.front.interrupt(_source(info))
            case Effect.TERMINATE:
                is_for_budget = root.signal is AgentSignal.SIGBUDGET
                if not (is_for_budget and self._is_for_limit):
                    self._terminate(_from(root if is_for_budget else info), is_for_budget)
            case Effect.KILL:
                self._kill(_from(root))
            case Effect.DIAGNOSE:
                if not self._session.diagnostic.tell():
                    raise NotRecorded(_NO_EVENT)
            case Effect.CHECKPOINT:
                self._copy_log(info.sequence)

    def _terminate(self, by: str, is_for_budget: bool) -> None:
        self._recorder.tell(f"ended by {by}")
        self._run.terminate(f"ended by {by}", is_for_budget=is_for_budget)

    def _kill(self, by: str) -> None:
        self._has_killed = True
        self._recorder.tell(f"killed by {by}")
        self._run.kill(by)

    def _copy_log(self, sequence: int) -> None:
        try:
            self._copied = (sequence, self._session.diagnostic.save(), "")
        except StoreError as failure:
            self._copied = (sequence, "", str(failure))
            raise

    # The control socket

    def on_request(self, request: ControlRequest, peer: Peer) -> ControlReply:
        match request:
            case {"do": "signal", "signal": str(word)}:
                return self._on_signal(word, text(request.get("reason")), peer)
            case {"do": "signal-outcome", "sequence": int(sequence)}:
                return self._outcome_of(sequence)
            case _:
                return refusal("bad-request", "a signal has a name")

    def _on_signal(self, word: str, reason: str, peer: Peer) -> ControlReply:
        signal = known_signal(word)
        if signal is None:  # `sigwrap signal` suggests the closest name
            return refusal("unknown-signal", unknown(word))
        if signal is AgentSignal.SIGCONT and self._session.approvals.is_typed(peer):
            return refusal(
                "typed", "the session may have typed this itself: send it from another terminal"
            )
        source = f"uid {peer.uid}, pid {peer.pid}"
        return self._reply(self.send(signal, source, masked_text(reason)))

    def _outcome_of(self, sequence: int) -> ControlReply:
        sent = self._dispatcher.find(sequence)
        if sent is None:
            return refusal("unknown-signal", f"there is no agent signal {sequence}")
        return self._reply(sent)

    def _reply(self, sent: Sent) -> ControlReply:
        # The run is being killed, whether by this signal or by an earlier one.
        is_killed = sent.outcome is Outcome.NO_OP and _is_kill(sent)
        freezing = self._freezing
        goes_on = sent.info.signal is AgentSignal.SIGCONT
        copied, path, no_path = self._copied
        is_copied = copied == sent.info.sequence
        reply: Payload = {
            "ok": True,
            "session_id": self._recorder.log.session_id,
            "signal": sent.info.signal.name,
            "sequence": sent.info.sequence,
            "outcome": (Outcome.DELIVERED if is_killed else sent.outcome).value,
            "state": self._dispatcher.state.value,
            "follows": None if sent.follows is None else sent.follows.name,
            "frozen": freezing.stands_still,
            "processes": freezing.went_on if goes_on else freezing.count(),
            "held": freezing.released if goes_on else self._turns.held,
            "in_flight": self._turns.in_flight,
            "ending": freezing.ends,
            "grace_s": self._grace_s,
            "error": no_path if is_copied else "; ".join(sent.errors),
        }
        if is_copied:
            reply["checkpoint"] = path
        return reply


def _is_kill(sent: Sent) -> bool:
    return AgentSignal.SIGKILL in (sent.info.signal, sent.follows)


def _source(info: SignalInfo) -> str:
    reason = f": {info.reason}" if info.reason else ""
    return printable(f"{info.source or 'sigwrap'}{reason}")


def _from(info: SignalInfo) -> str:
    return f"agent signal {info.signal.name} from {_source(info)}"


class ToolCalls:
    """Records tool calls that an agent's hook judged inside the session, as it reports them."""

    def __init__(self, session: Session) -> None:
        """Open the socket. If that fails, hooks are not recorded; the kernel's events still are."""
        self._loop, self._recorder = session.loop, session.recorder
        self._name = self._recorder.log.session_id + CALLS_SUFFIX
        self._folder_path = control_folder(session.plan.store)
        self._end: socket.socket | None = None
        try:
            folder = private_folder(self._folder_path)
        except OSError:
            return
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            refuse_descriptors(end)
            end.bind(socket_path(folder.fd, self._name))
            self._loop.watch(end.fileno(), self._on_datagram)
            self._end = end
        except OSError:
            end.close()
        finally:
            folder.close()

    def close(self) -> None:
        if self._end is None:
            return
        self._loop.unwatch(self._end.fileno())
        self._end.close()
        self._end = None
        try:
            os.unlink(os.path.join(self._folder_path, self._name))
        except OSError:
            pass  # another process removed it

    def _on_datagram(self, _happened: int) -> None:
        """Record one; the loop comes back for more, after the other descriptors that are ready."""
        try:
            found = None if self._end is None else _decoded(self._end.recv(MOST_CALL_BYTES))
        except OSError:  # another process dropped it
            return
        if found is not None:
            self._recorder.record("tool_call_judged", *found)


def _decoded(text: bytes) -> tuple[int, Payload] | None:
    """Return the pid that the hook names, and the event; None for anything else.

    Any process in the session may send this: only text and numbers of the expected places get into
    the log.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("answer") not in _ANSWERS:
        return None
    payload = _texts(found, _TEXTS)
    findings = found.get("findings")
    payload["findings"] = [
        _texts(each, _OF_A_FINDING)
        for each in (findings if isinstance(findings, list) else [])[:_MOST_FINDINGS]
        if isinstance(each, dict)
    ]
    payload["evaluation_us"] = _number(found.get("evaluation_us"))
    return _number(found.get("pid")), payload


def _texts(found: Payload, names: tuple[str, ...]) -> Payload:
    return {name: found[name] for name in names if isinstance(found.get(name), str)}


def _number(value: object) -> int:
    return number(value) if type(value) is int and value >= 0 else 0
