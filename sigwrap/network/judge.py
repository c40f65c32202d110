"""Judges connections, datagrams and listening sockets by a copy of the address. The supervisor then
makes the call itself, on its duplicate of the socket, and never reads the caller's memory again.

A connection to a server of the same user, outside the session, hands work to it: the server runs
what it is asked to, and no rule judges that. Such a connection gets its own event. The decision
uses the socket's name, because only a made connection shows the listener.
"""

from __future__ import annotations

import errno

from sigwrap.approve.requests import (
    Answer,
    ApprovalRequest,
    denial,
    refusal,
    waiting,
    with_rules_message,
)
from sigwrap.bare import NamedTuple
from sigwrap.events import Payload
from sigwrap.policy.judge.globs import Glob
from sigwrap.policy.judge.network import (
    OUT_OF_RULES,
    SOCKETS,
    Direction,
    Endpoint,
    NetworkRules,
    Protocol,
    address_text,
    reaching,
)
from sigwrap.policy.judge.request import LENIENT, Action, Decision
from sigwrap.session.effects import (
    Ask,
    Continue,
    Fail,
    Judgement,
    Look,
    LookUpNames,
    MakeSocket,
    Outside,
    Reach,
    Reached,
    Record,
    RecordRepeated,
    Steps,
    Succeed,
    Tell,
    Unrecorded,
    would_fail,
)
from sigwrap.session.lineage import Process
from sigwrap.text import masked

_COUNTED_FOR_S = 1.0
_TOLD_KEPT = 256
_MOST_EVENTS = 256
_EVENTS = {
    Action.ALLOW: "connection_allowed",
    Action.AUDIT: "connection_audited",
    Action.APPROVE: "connection_approved",
    Action.DENY: "connection_denied",
}
_WORK_COUNTED_FOR_S = 60.0
_WORDS_KEPT, _CHARACTERS_KEPT = 20, 200
# Rules name these, and every `git push` or window uses one.
_HAVE_RULES = ("dbus", "x11", "wayland", "ssh-agent", "gpg-agent")
_RUN_NOTHING = (
    "/dev/log",
    "/run/avahi-daemon/*",
    "/run/cups/*",
    "/run/nscd/*",
    "/run/pcscd/*",
    "/run/systemd/journal/*",
    "/run/systemd/notify",
    "/run/systemd/resolve/*",
    "/run/systemd/userdb/*",
    "/run/user/*/pipewire-*",
    "/run/user/*/pulse/*",
    "/var/lib/sss/pipes/**",
)
_names: list[Glob] = []


class OutOfRules(NamedTuple):
    """No rule can cover the call, and it could reach others: sigwrap denies it."""

    what: str
    why: str = "network_rules cannot cover it, so sigwrap denies it"


# What reaches no address that a rule could be about gets its answer at once.
SocketAim = Endpoint | OutOfRules | Reach | MakeSocket | Continue | Fail


class NetworkFacts(NamedTuple):
    process: Process
    syscall: str
    aim: SocketAim


class NetworkMediator:
    def __init__(self, rules: NetworkRules, policy: str) -> None:
        self._rules = rules
        self._policy = policy
        self._told: dict[tuple[str, str], None] = {}
        self._events: dict[tuple[Process, str, str, Endpoint], RecordRepeated] = {}

    def mediate(self) -> Steps:
        facts: NetworkFacts = yield Look()
        aim = facts.aim
        match aim:
            case Endpoint():
                needs_names = self._rules.names and aim.address and not aim.names
                if needs_names and self._rules.depend_on_names(aim):
                    aim = aim._replace(names=(yield LookUpNames(aim.address)))
                yield from self._one(facts, aim)
            case OutOfRules(what=what, why=why):
                decision = Decision(Action.DENY, OUT_OF_RULES, why)
                payload = {**_payload(facts, decision), "destination": what}
                event = Record(_EVENTS[Action.DENY], payload)
                yield from self._deny(event, what, OUT_OF_RULES, why, errno.EPERM)
            case Reach():
                yield _answer((yield aim), aim.unrecorded)
            case MakeSocket():
                error: int = yield aim
                if error:
                    yield would_fail(error)
            case _:
                yield aim

    def _one(self, facts: NetworkFacts, endpoint: Endpoint) -> Steps:
        decision = self._rules.decide(endpoint)
        is_allowed = decision.action in LENIENT
        if not is_allowed:
            what, why = reaching(endpoint.direction.value, str(endpoint)), decision.message
        if decision.action is Action.APPROVE:
            answer: Answer = yield self._asks(facts, endpoint, decision, what)
            is_allowed = answer.granted
            why = with_rules_message(refusal(answer), why)
        if not is_allowed:
            event = _event(facts, endpoint, decision._replace(action=Action.DENY))
            yield from self._deny(event, what, decision.rule, why, _refusal(endpoint))
        elif not (yield self._granted(facts, endpoint, decision)):
            yield Fail(errno.EPERM)
        else:
            reached: Reached = yield Reach()
            outside = reached.outside
            if outside is None or (yield from _record_work(outside, facts, endpoint)):
                yield _answer(reached)
            else:
                yield Fail(errno.EPERM)

    def _granted(
        self, facts: NetworkFacts, endpoint: Endpoint, decision: Decision
    ) -> RecordRepeated:
        """Return the event, which is the same for each repeat."""
        key = facts.process, facts.process.comm, facts.syscall, endpoint
        event = self._events.get(key)
        if event is None:
            if len(self._events) >= _MOST_EVENTS:
                self._events.clear()
            event = self._events[key] = _event(facts, endpoint, decision)
        return event

    def _deny(
        self, event: Record | RecordRepeated, what: str, rule: str, why: str, error: int
    ) -> Steps:
        if (yield event) and self._is_new(rule, what):
            yield Tell(denial(what, rule, self._policy, why))
        yield Fail(error)

    def _asks(self, facts: NetworkFacts, endpoint: Endpoint, decision: Decision, what: str) -> Ask:
        process = facts.process
        request = ApprovalRequest(
            kind="connection",
            pid=process.pid,
            process=process.comm,
            depth=process.depth,
            what=what,
            rule=decision.rule,
            message=decision.message,
            key=("connection", endpoint.direction.value, endpoint.protocol.value, str(endpoint)),
            execs=process.execs,
        )
        return Ask(request, waiting(what, decision.rule, self._policy))

    def _is_new(self, rule: str, what: str) -> bool:
        if (rule, what) in self._told:
            return False
        self._told[rule, what] = None
        if len(self._told) > _TOLD_KEPT:
            del self._told[next(iter(self._told))]
        return True


def _answer(reached: Reached, unrecorded: Unrecorded | None = None) -> Succeed | Fail:
    if reached.errno:
        return Fail(reached.errno, unrecorded and Unrecorded.NOTHING_HAPPENS)
    return Succeed(unrecorded, reached.value)


def _event(facts: NetworkFacts, endpoint: Endpoint, decision: Decision) -> RecordRepeated:
    """Make the event. Repeats to one destination by a process share one more event each second."""
    payload = {
        **_payload(facts, decision),
        "direction": endpoint.direction.value,
        "protocol": endpoint.protocol.value,
        "destination": str(endpoint),
    }
    if endpoint.protocol is not Protocol.UNIX:
        payload["address"] = address_text(endpoint.address)
        payload["port"] = endpoint.port
    shown = set() if endpoint.protocol is Protocol.UNIX else {min(endpoint.names, default="")}
    if others := sorted(endpoint.names - shown):
        payload["names"] = others
    if endpoint.is_own:
        payload["own"] = True
    key = (facts.process, facts.syscall, endpoint, decision.rule)
    return RecordRepeated(_EVENTS[decision.action], payload, key, _COUNTED_FOR_S)


def _payload(facts: NetworkFacts, decision: Decision) -> Payload:
    payload: Payload = {
        "syscall": facts.syscall,
        "comm": facts.process.comm,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "reason": decision.reason,
    }
    if decision.message:
        payload["message"] = decision.message
    return payload


def _refusal(endpoint: Endpoint) -> int:
    """Return the errno that programs handle best: after ECONNREFUSED they try another address."""
    is_connection = endpoint.direction is Direction.CONNECT and endpoint.protocol is Protocol.TCP
    return errno.ECONNREFUSED if is_connection else errno.EACCES


def _record_work(outside: Outside, facts: NetworkFacts, endpoint: Endpoint) -> Judgement:
    """Record the handed-over work. Returns whether to go on: not if recording failed."""
    if runs_nothing(endpoint.socket):
        return True
    payload: Payload = {
        "syscall": facts.syscall,
        "comm": facts.process.comm,
        "socket": str(endpoint),
        "peer_pid": outside.pid,
        "peer_cmd": outside.comm,
        "peer_argv": _shown(outside.argv),
    }
    key = (outside.pid, outside.start_time), endpoint.socket
    return bool((yield RecordRepeated("work_handed_outside", payload, key, _WORK_COUNTED_FOR_S)))


def runs_nothing(socket: str) -> bool:
    """Return whether the server runs no work, or has rules of its own."""
    if not _names:  # most runs never need them
        globs = (*_RUN_NOTHING, *(each for word in _HAVE_RULES for each in SOCKETS[word]))
        _names.extend(map(Glob, globs))
    return any(each.matches(socket) for each in _names)


def _shown(argv: tuple[str, ...]) -> list[str]:
    words = [word[:_CHARACTERS_KEPT] for word in masked(argv[:_WORDS_KEPT])]
    return [*words, "..."] if len(argv) > _WORDS_KEPT else words
