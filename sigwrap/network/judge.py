"""Judges connections, datagrams and listening sockets by a copy of the address. The supervisor then
makes the call itself, on its duplicate of the socket, and never reads the caller's memory again.

A connection to a server of the same user, outside the session, hands work to it: the server runs
what it is asked to, and no rule judges that. Such a connection gets its own event. The decision
uses the socket's name, because only a made connection shows the listener.
"""

from __future__ import annotations

import errno

from sigwrap.approve.questions import Answer, Question, denial, refusal, waiting, with_rules_message
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
from sigwrap.policy.judge.request import Action, Decision
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
)
from sigwrap.session.lineage import Process, WouldFail
from sigwrap.text import masked

_COUNTED_FOR_S = 1.0
_TOLD_KEPT = 256
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


class NoAddress(NamedTuple):
    """The call ends a connection, or lets the kernel choose the address."""


class NewSocket(NamedTuple):
    """The caller makes a socket whose kind is in its memory."""


class NoMatter(NamedTuple):
    """No rule covers the call, and none needs to."""


class OutOfRules(NamedTuple):
    """No rule can cover the call, and it could reach others: sigwrap denies it."""

    what: str
    why: str = "network_rules cannot cover it, so sigwrap denies it"


Aim = Endpoint | NoAddress | NoMatter | NewSocket | OutOfRules | WouldFail


class NetworkFacts(NamedTuple):
    process: Process
    syscall: str
    aim: Aim


class NetworkMediator:
    def __init__(self, rules: NetworkRules, policy: str) -> None:
        self._rules = rules
        self._policy = policy
        self._told: dict[tuple[str, str], None] = {}

    def mediate(self) -> Steps:
        facts: NetworkFacts = yield Look()
        aim = facts.aim
        if isinstance(aim, Endpoint) and self._needs_names(aim):
            names: frozenset[str] = yield LookUpNames(aim.address)
            facts = facts._replace(aim=aim._replace(names=names))
        match facts.aim:
            case Endpoint():
                yield from self._one(facts, facts.aim)
            case NoAddress():
                yield from _reach(Unrecorded.REACHES_NOBODY)
            case NewSocket():
                error: int = yield MakeSocket(Unrecorded.REACHES_NOBODY)
                if error:
                    yield Fail(error, Unrecorded.NOTHING_HAPPENS)
            case NoMatter():
                yield Continue(Unrecorded.REACHES_NOBODY)
            case OutOfRules(what=what, why=why):
                yield from self._deny_out_of_rules(facts, what, why)
            case WouldFail(errno=error):
                yield from _fail(error)

    def _needs_names(self, aim: Endpoint) -> bool:
        return bool(aim.address) and not aim.names and self._rules.depend_on_names(aim)

    def _one(self, facts: NetworkFacts, endpoint: Endpoint) -> Steps:
        decision = self._rules.decide(endpoint)
        match decision.action:
            case Action.ALLOW | Action.AUDIT:
                yield from _record_and_reach(facts, endpoint, decision)
            case Action.APPROVE:
                answer: Answer = yield self._asks(facts, endpoint, decision)
                if answer.granted:
                    yield from _record_and_reach(facts, endpoint, decision)
                else:
                    why = with_rules_message(refusal(answer), decision.message)
                    yield from self._deny(facts, endpoint, decision, why)
            case _:
                yield from self._deny(facts, endpoint, decision, decision.message)

    def _deny(self, facts: NetworkFacts, endpoint: Endpoint, decision: Decision, why: str) -> Steps:
        denied = decision._replace(action=Action.DENY)
        if (yield _event(facts, endpoint, denied)):
            what = _described(endpoint)
            if self._is_new(decision.rule, what):
                yield Tell(denial(what, decision.rule, self._policy, why))
        yield Fail(_refusal(endpoint))

    def _deny_out_of_rules(self, facts: NetworkFacts, what: str, why: str) -> Steps:
        decision = Decision(Action.DENY, OUT_OF_RULES, why)
        payload = {**_payload(facts, decision), "destination": what}
        if (yield Record(_EVENTS[Action.DENY], payload)) and self._is_new(OUT_OF_RULES, what):
            yield Tell(denial(what, OUT_OF_RULES, self._policy, why))
        yield Fail(errno.EPERM)

    def _asks(self, facts: NetworkFacts, endpoint: Endpoint, decision: Decision) -> Ask:
        process, what = facts.process, _described(endpoint)
        question = Question(
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
        return Ask(question, waiting(what, decision.rule, self._policy))

    def _is_new(self, rule: str, what: str) -> bool:
        if (rule, what) in self._told:
            return False
        self._told[rule, what] = None
        if len(self._told) > _TOLD_KEPT:
            del self._told[next(iter(self._told))]
        return True


def _record_and_reach(facts: NetworkFacts, endpoint: Endpoint, decision: Decision) -> Steps:
    if (yield _event(facts, endpoint, decision)):
        yield from _reach(None, facts, endpoint)
    else:
        yield Fail(errno.EPERM)


def _reach(
    unrecorded: Unrecorded | None,
    facts: NetworkFacts | None = None,
    endpoint: Endpoint | None = None,
) -> Steps:
    """Make the call. `facts` and `endpoint`: a connection that may lead out of the session."""
    reached: Reached = yield Reach(unrecorded)
    outside, is_told = reached.outside, True
    if outside is not None and facts is not None and endpoint is not None:
        is_told = yield from _record_work(outside, facts, endpoint)
    if not is_told:
        yield Fail(errno.EPERM)
    elif reached.errno:
        yield Fail(reached.errno, unrecorded and Unrecorded.NOTHING_HAPPENS)
    else:
        yield Succeed(unrecorded, reached.value)


def _fail(error: int) -> Steps:
    yield Fail(error, Unrecorded.NOTHING_HAPPENS)


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


def _described(endpoint: Endpoint) -> str:
    return reaching(endpoint.direction.value, str(endpoint))


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
