"""Make recorded decisions again, each from its event alone.

`policy try` makes them under another policy, `verify` under the recorded one: a decision that comes
out otherwise was changed. Decisions that the log alone cannot settle are counted by reason and are
no failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sigwrap.bare import NamedTuple
from sigwrap.errors import PolicyError
from sigwrap.events import (
    CONNECTION_TYPES,
    DECISION_TYPES,
    DENIED_TYPES,
    EVENT_TYPES,
    EXEC_TYPES,
    QUESTION_CHARACTERS,
    SIGNAL_TYPES,
    Event,
    Payload,
    kind_of,
    text,
    texts,
)
from sigwrap.log.codec import CUT
from sigwrap.policy.judge.engine import Engine, Facts
from sigwrap.policy.judge.network import Direction, NetworkRules, Protocol, reaching
from sigwrap.policy.judge.recorded import (
    JUDGEMENT,
    command_request,
    connection_request,
    crowd,
    programs_here,
    signal_request,
)
from sigwrap.policy.judge.request import (
    Action,
    AskedFact,
    CommandRequest,
    Decision,
    is_below_policies,
)
from sigwrap.policy.judge.rules import Policy, exceeded, used_up
from sigwrap.policy.language.document import Source, digest_of_texts, has_digest, is_shipped
from sigwrap.policy.language.parse import MAX_BASES, parse_policy
from sigwrap.policy.tools.again import Again
from sigwrap.text import beginning

BUILT_IN = "built-in rules made them, not the policy"
MASKED = "possible secrets in them were masked"
TOO_LONG = "they were too long for the log and were cut"
NOT_RECORDED = "the log lacks facts that the other policy needs"
TRACED = "another program traced their caller"

_MASK = "***"  # text.py
NO_APPROVAL = "no approval came before it"
OTHER_VERSION = "another version of sigwrap made them"

# The actions of a policy that result in an event type with a decision. Approvals and replacements
# can fail, and a call that cannot ask, replace or absorb is denied.
_RESULTS_OF = {
    ("exec_allowed", "allow"): {Action.ALLOW},
    ("exec_allowed", "approve"): {Action.APPROVE},
    ("exec_audited", "audit"): {Action.AUDIT},
    ("exec_redirected", "redirect"): {Action.REDIRECT},
    ("exec_denied", "absorb"): {Action.ABSORB},
    ("exec_denied", "deny"): {Action.DENY, Action.APPROVE, Action.REDIRECT},
    ("signal_sent", "allow"): {Action.ALLOW},
    ("signal_sent", "audit"): {Action.AUDIT},
    ("signal_approved", "approve"): {Action.APPROVE},
    ("signal_redirected", "redirect"): {Action.REDIRECT},
    ("signal_absorbed", "absorb"): {Action.ABSORB},
    ("signal_blocked", "approve"): {Action.APPROVE},
    ("signal_blocked", "deny"): {Action.DENY, Action.APPROVE, Action.REDIRECT, Action.ABSORB},
    ("connection_allowed", "allow"): {Action.ALLOW},
    ("connection_audited", "audit"): {Action.AUDIT},
    ("connection_approved", "approve"): {Action.APPROVE},
    ("connection_denied", "deny"): {Action.DENY, Action.APPROVE},
}
_STARTS_A_PROGRAM = frozenset({"exec_allowed", "exec_audited"})
_APPROVED = frozenset({"exec_allowed", "signal_approved", "connection_approved"})
_MAX_EXECS_RULE = "limits.max_execs"
# Signal calls that can reach some of a group and not others.
_REACHES_SOME = frozenset(
    "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal".split()
)
_MOST_ROWS_NAMED = 5


class NoPolicy(Exception):
    """The log has no usable policy."""


def has_other_texts(started: Payload) -> bool:
    """Return whether the recorded digest is that of other texts."""
    return "policy_sources" in started and started.get("policy_digest") != digest_of_texts(started)


def recorded_variables(started: Payload) -> dict[str, str]:
    recorded = started.get("policy_variables")
    items = recorded.items() if isinstance(recorded, dict) else ()
    return {name: value for name, value in items if isinstance(value, str)}


def recorded_policy(
    started: Payload, variables: Mapping[str, str] | None = None, *, longest: int = 0
) -> Policy:
    """Load the policy from the texts in the log, with `variables` instead of the recorded ones.

    It reads no file of this machine: one that the policy extends may have changed since.

    `longest` limits the texts that are not shipped, together: a megabyte takes seconds to load.
    """
    sources = recorded_sources(started)
    if longest and sum(len(each.text) for each in sources if not each.shipped) > longest:
        raise NoPolicy("the recorded policy is too long")
    rest = iter(sources[1:])
    try:
        # The texts are in the order in which they were loaded.
        return parse_policy(
            sources[0],
            variables=recorded_variables(started) if variables is None else variables,
            find_base=lambda _name, _source: next(rest, None),
        )
    except PolicyError as error:
        raise NoPolicy(f"cannot load the recorded policy: {_first_line(error)}") from error


def recorded_sources(started: Payload) -> list[Source]:
    """Return the recorded texts, the policy's own first; never empty."""
    recorded = started.get("policy_sources")
    sources = [
        _source(each, text(started.get("sigwrap")))
        for each in (recorded[: MAX_BASES + 1] if isinstance(recorded, list) else [])
        if isinstance(each, dict)
    ]
    if not sources:
        raise NoPolicy("the log has no policy")
    return sources


def _source(recorded: Payload, version: str) -> Source:
    name, content, digest = (text(recorded.get(each)) for each in ("name", "text", "digest"))
    if digest and not has_digest(name, digest):
        raise NoPolicy(f"this sigwrap lacks the policy {name} as sigwrap {version} ships it")
    # A shipped text is not checked again, and a log can claim that of any text.
    is_ours = bool(digest) or (bool(recorded.get("shipped")) and is_shipped(name, content))
    return Source(name, content, shipped=is_ours, for_a_run=is_ours, digest=digest)


def _first_line(error: PolicyError) -> str:
    lines = error.lines
    return (lines[1] if len(lines) > 1 else lines[0]).strip()


class Redecided(NamedTuple):
    decision: Decision
    doubt: str = ""  # why the decision then may have been another one; empty if certain


class Redecider:
    """Decides events under the policy of `engine`.

    `recorded` is the session's own policy if it is known. The log has only the facts that it
    asked for.
    """

    def __init__(self, engine: Engine, recorded: Policy | None) -> None:
        self.engine = engine
        self._limits = engine.policy.limits
        self._is_recorded = engine.policy is recorded
        rules = () if recorded is None else recorded.command_rules
        self._has_code = any(each.loads_code is not None for each in rules)
        hosts = frozenset[str]() if recorded is None else NetworkRules.of(recorded).names
        self._lacks_hosts = bool(self.engine.network.names - hosts)
        self._pins = [
            each for each in self.engine.command_rules if each.rule.sha256 or each.rule.not_sha256
        ]
        self._again = Again(self._redecided)

    def decide(self, event: Event, execs: int) -> Redecided | str:
        """Return the decision, or why no policy makes it. `execs` programs were started before."""
        if is_built_in(event.payload):
            return BUILT_IN
        found = self._again.decided(event)
        if event.type in EXEC_TYPES and found.decision.action is not Action.DENY:
            limit = used_up(self._limits, execs)
            found = found if limit is None else Redecided(limit)
        return found._replace(doubt=found.doubt or _missing_words(event.payload))

    def _redecided(self, event: Event) -> Redecided:
        if event.type in SIGNAL_TYPES:
            return self._signal(event.payload)
        if event.type in CONNECTION_TYPES:
            return self._connection(event.payload)
        return self._exec(event.payload)

    def _exec(self, payload: Payload) -> Redecided:
        request = command_request(payload)
        limit = exceeded(self._limits, request.depth, crowd(payload))
        if limit is not None:
            return Redecided(limit)
        code = [AskedFact(lambda: False) for _ in request.programs]
        if not self._has_code:
            programs = (
                program if program.loads_code else program._replace(loads_code=fact)
                for program, fact in zip(request.programs, code, strict=True)
            )
            request = request._replace(programs=tuple(programs))
        decision = self.engine.decide_exec(request, programs_here(payload, request))
        if request.traced and decision != self.engine.decide_command(request):
            return Redecided(decision, TRACED)
        lacks = any(fact.answer is not None for fact in code) or self._lacks_digest(request)
        return self._with_doubt(decision, lacks)

    def _lacks_digest(self, request: CommandRequest) -> bool:
        return any(
            rule.names(Facts(program, request))
            for program in request.programs
            if not (program.sha256 or program.counts_by_name or program.missing)
            for rule in self._pins
        )

    def _signal(self, payload: Payload) -> Redecided:
        handled = AskedFact(lambda: payload.get("target_handles") is True)
        decision = self.engine.decide_signal(signal_request(payload)._replace(handled=handled))
        lacks = handled.answer is not None and "target_handles" not in payload
        return self._with_doubt(decision, lacks)

    def _connection(self, payload: Payload) -> Redecided:
        endpoint = connection_request(payload)
        decision = self.engine.network.decide(endpoint)
        has_no_host = endpoint.protocol is Protocol.UNIX or endpoint.direction is Direction.BIND
        return self._with_doubt(decision, self._lacks_hosts and not has_no_host)

    def _with_doubt(self, decision: Decision, lacks_facts: bool) -> Redecided:
        return Redecided(decision, NOT_RECORDED if lacks_facts and not self._is_recorded else "")


def is_built_in(payload: Payload) -> bool:
    """Return whether sigwrap decided this itself, below every policy."""
    rule = text(payload.get("rule_name"))
    return payload.get("stub") is True or is_below_policies(rule)


def replaced_otherwise(payload: Payload, decision: Decision) -> bool:
    """Return whether the event has another replacement than the decision."""
    if decision.redirect_to is not None:
        then = texts(payload.get("replacement_argv"))[:1]
        return bool(then) and then != [decision.redirect_to.command.rpartition("/")[2]]
    if decision.redirect_signal:
        return payload.get("signal") != decision.redirect_signal
    return False


def judged_lines(payload: Payload) -> list[list[str]]:
    """Return the arguments of each program that the policy judged, the exec's own first."""
    listed = payload.get("programs")
    programs = listed if isinstance(listed, list) else []
    found = [texts(each.get("argv")) for each in programs if isinstance(each, dict)]
    return found or [texts(payload.get("argv"))]


def _missing_words(payload: Payload) -> str:
    """Return why the event may lack words that the policy saw."""
    if isinstance(payload.get(CUT), dict):
        return TOO_LONG
    is_masked = payload.get("masked") is True
    has_mask = is_masked and any(_MASK in word for line in judged_lines(payload) for word in line)
    return MASKED if has_mask else ""


@dataclass(slots=True, kw_only=True)
class Reproduction:
    """`row` is the first whose decision is not the policy's, or 0."""

    decisions: int = 0
    reproduced: int = 0
    problem: str = ""
    row: int = 0
    not_judged: dict[str, int] = field(default_factory=dict)  # how many, by the reason
    not_judged_rows: dict[str, tuple[int, ...]] = field(default_factory=dict)  # the first of these


class ReproductionFold:
    """Repeats the decisions of a session. `version` is the running version of sigwrap."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._found = Reproduction()
        self._redecider: Redecider | None = None
        self._no_policy = "the log has no policy"
        self._other_version = ""
        self._started = 0
        self._redirected = 0
        self._redirect_rules: set[str] = set()
        self._approved: set[int] = set()  # hashes: a log may have any number of approvals

    def add(self, event: Event) -> None:
        if event.seq == 1 and event.type == "session_started":
            self._start(event.payload)
        elif event.type in DECISION_TYPES:
            self._decide(event)
        elif event.type == "approval_granted":
            self._approved.add(hash(_approval(event, text(event.payload.get("kind")))))
        elif event.type not in EVENT_TYPES and not self._other_version:
            self._object(event.seq, "this version of sigwrap does not know this event type")

    def result(self) -> Reproduction:
        return self._found

    def _start(self, started: Payload) -> None:
        if has_other_texts(started):
            self._object(1, "policy_digest does not match the recorded policy")
        if started.get("judgement") != JUDGEMENT or started.get("sigwrap") != self._version:
            self._other_version = OTHER_VERSION
        try:
            policy = recorded_policy(started)
        except NoPolicy as none:
            self._no_policy = str(none)
            return
        self._redecider = Redecider(Engine(policy), policy)
        if not self._other_version and started.get("policy") != policy.name:
            self._object(1, "the recorded policy has another name")

    def _decide(self, event: Event) -> None:
        self._found.decisions += 1
        if self._redecider is None:
            self._leave(event, self._no_policy)
            return
        # A replacement counts only if it started.
        is_limit = event.payload.get("rule_name") == _MAX_EXECS_RULE
        execs = self._started + (self._redirected if is_limit else 0)
        again = self._redecider.decide(event, execs)
        self._started += event.type in _STARTS_A_PROGRAM
        if event.type == "exec_redirected":
            self._redirected += 1
            self._redirect_rules.add(text(event.payload.get("rule_name")))
        if isinstance(again, str):
            if not (problem := self._built_in_problem(event)):
                self._leave(event, again)
                return
            doubt = ""
        else:
            problem, doubt = self._difference(event, again.decision), again.doubt
            if not problem:
                self._found.reproduced += 1
                return
        if reason := self._other_version or doubt:
            self._leave(event, reason)
        else:
            self._object(event.seq, problem)

    def _difference(self, event: Event, judged: Decision) -> str:
        """Return how the event differs from the policy's decision; empty if it does not."""
        payload = event.payload
        decision, rule = text(payload.get("decision")), text(payload.get("rule_name"))
        if rule != judged.rule or not _may_result(event, decision, judged.action):
            logged = f"{decision or event.type} by {rule or 'no rule'}"
            return f"the policy says {judged.action.value} by {judged.rule}, the log {logged}"
        if replaced_otherwise(payload, judged):
            return "its replacement differs from the policy's"
        if event.type in EXEC_TYPES and texts(payload.get("argv")) != judged_lines(payload)[0]:
            return "its argv differs from the program that was decided on"
        if decision == "approve" and event.type in _APPROVED:
            is_approved = hash(_approval(event, kind_of(event.type))) in self._approved
            return "" if is_approved else NO_APPROVAL
        return ""

    def _built_in_problem(self, event: Event) -> str:
        """Return why no built-in rule can have made this decision; empty if one can."""
        if event.payload.get("stub") is True:
            is_known = text(event.payload.get("rule_name")) in self._redirect_rules
            return "" if is_known else "it says that a stub ran this, and no redirect came before"
        if event.type in DENIED_TYPES or event.type in SIGNAL_TYPES:
            return ""
        return f"no built-in rule decides {event.type}"

    def _object(self, row: int, problem: str) -> None:
        if not self._found.problem:
            self._found.problem, self._found.row = problem, row

    def _leave(self, event: Event, why: str) -> None:
        count = self._found.not_judged.get(why, 0)
        self._found.not_judged[why] = count + 1
        if count < _MOST_ROWS_NAMED:
            rows = self._found.not_judged_rows
            rows[why] = (*rows.get(why, ()), event.seq)


def _approval(event: Event, kind: str) -> tuple[str, ...]:
    """Return what is the same in an approval and in the decision that needed it."""
    get, about = event.payload.get, (kind, str(event.pid))
    if kind == "signal":  # other rules than the requested one may decide on its targets
        return about
    if kind == "exec":
        return (*about, text(get("rule_name")), text(get("approval_id")))
    what = text(get("what")) or reaching(text(get("direction")), text(get("destination")))
    return (*about, text(get("rule_name")), beginning(what, QUESTION_CHARACTERS))


def _may_result(event: Event, decision: str, action: Action) -> bool:
    if action in _RESULTS_OF.get((event.type, decision), ()):
        return True
    # A call that reaches all of a group or none is denied if one member may not be reached.
    is_of_group = "correlation" in event.payload
    is_denied = (event.type, decision) == ("signal_blocked", "deny")
    return is_of_group and is_denied and event.payload.get("syscall") not in _REACHES_SOME
