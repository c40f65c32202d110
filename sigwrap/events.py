"""Log events, the registry of their types, and the outcomes of actions.

EVENT_TYPES   every type with its version and fields; other types cannot be written.
              docs/events.md says what they mean
UPCASTERS     steps that convert a payload of an older version as it is read; rows stay as written
EXEC_TYPES, SIGNAL_TYPES, CONNECTION_TYPES   decisions about an exec, a signal or a connection
Counts        the counts of a session; every count comes from here
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable

from sigwrap.bare import Any, NamedTuple

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]

_INT64 = 1 << 63
_LEAST = -_INT64

HOOK_KIND = "hook"  # the kind of a session_started
HOOK_LOG = "hook-"  # the start of a hook log's session id
LEFT_TO_ANOTHER = "interception: left to "  # prefix of an entry of `missing` in a nested session


class Event(NamedTuple):
    seq: int
    time_ns: int
    type: str
    pid: int
    payload: Payload
    hash: str


class EventType(NamedTuple):
    name: str
    version: int
    fields: tuple[str, ...]
    outcome: str  # of an action; empty for other events. A payload adds approval and audit


# The outcome of an action (an exec, a signal or a connection) is the final one: a request that an
# approver denied is denied.
ALLOWED = "allowed"
AUDITED = "audited"
APPROVED = "approved"
REDIRECTED = "redirected"
ABSORBED = "absorbed"
DENIED = "denied"
REFUSED = "refused"  # a file that the kernel refused

# The most serious first.
OUTCOMES = (DENIED, REFUSED, REDIRECTED, ABSORBED, APPROVED, AUDITED, ALLOWED)


# Field names that other programs expect: `sigwrap export` writes all of them, in this order, for
# every signal.
EXPORTED_SIGNAL_FIELDS = (
    *("signal", "signal_name", "source_pid", "source_cmd", "target_pid", "target_cmd"),
    *("target_type", "decision", "rule_name", "fallback", "original_signal", "platform"),
    "syscall",
)
SIGNAL_FIELDS = (
    *EXPORTED_SIGNAL_FIELDS,
    *("target_types", "target_handles", "evaluation_us", "message", "count", "correlation"),
)
EXEC_FIELDS = (
    *("path", "argv", "cwd", "comm", "ppid", "depth", "decision", "rule_name", "reason"),
    *("syscall", "truncated", "traced", "verified", "evaluation_us", "programs", "here"),
    *("masked", "siblings", "processes"),
    "stub",  # true if a stub runs the command that was decided before
    *("elsewhere", "shadows", "approval_id"),
    "message",  # the rule's own text, unless the reason has it
    "below",
    "retry",  # true if it repeats a denied exec in the next directory of PATH; not counted
)
QUESTION_CHARACTERS = 1_000  # of the command; the exec's event has all of it
_APPROVAL_FIELDS = ("approval_id", "kind", "what", "rule_name", "message")
APPROVAL_ANSWER_FIELDS = (
    *_APPROVAL_FIELDS,
    *("reason", "by", "always", "answer", "waited_ms"),
    "remembered",  # true if an earlier answer for the whole session decided; not counted
)
CONNECTION_FIELDS = (
    *("syscall", "comm", "direction", "protocol", "destination", "address", "port"),
    *("decision", "rule_name", "reason", "message", "count", "evaluation_us"),
    "names",  # other names of the host or socket in rules; absent if none
    "own",
)
_FILE_FIELDS = "syscall comm operation path to rule_name reason verified count evaluation_us"


def _event(name: str, *fields: str, version: int = 1, outcome: str = "") -> EventType:
    """`fields`: texts with one or more names."""
    return EventType(name, version, tuple(" ".join(fields).split()), outcome)


_TYPES = (
    _event(
        "session_started",
        "kind session_id name joined inside command command_pid cwd user uid host sigwrap",
        "kernel machine policy profile policy_sources policy_variables policy_digest",
        "judgement grace_s capabilities missing keyed environment_removed preset",
        "daemons_outside labels traceparent policy_url policy_from",
        version=3,
    ),
    _event("exec_allowed", *EXEC_FIELDS, outcome=ALLOWED),
    _event("exec_audited", *EXEC_FIELDS, outcome=AUDITED),
    _event("exec_denied", *EXEC_FIELDS, outcome=DENIED),
    _event(
        "exec_redirected",
        *EXEC_FIELDS,
        "replacement replacement_argv replacement_env via record",
        outcome=REDIRECTED,
    ),
    _event("exec_waiting", "path rule_name"),
    _event("io_recorded", "stream offset size text base64"),  # `base64`: if it is not text
    _event("recording_ended", "stub_pid stdin stdout stderr reason"),
    _event("exec_verification_failed", "path reason loaded_path loaded_argv rule_name"),
    _event("exec_failed", "path error rule_name"),
    _event("signal_sent", *SIGNAL_FIELDS, outcome=ALLOWED),
    _event("signal_blocked", *SIGNAL_FIELDS, outcome=DENIED),
    _event("signal_redirected", *SIGNAL_FIELDS, outcome=REDIRECTED),
    _event("signal_absorbed", *SIGNAL_FIELDS, outcome=ABSORBED),
    _event("signal_approved", *SIGNAL_FIELDS, outcome=APPROVED),
    _event("connection_allowed", *CONNECTION_FIELDS, outcome=ALLOWED),
    _event("connection_audited", *CONNECTION_FIELDS, outcome=AUDITED),
    _event("connection_approved", *CONNECTION_FIELDS, outcome=APPROVED),
    _event("connection_denied", *CONNECTION_FIELDS, outcome=DENIED),
    _event(
        "work_handed_outside",
        "syscall comm socket peer_pid peer_cmd peer_argv count",  # of the same within a minute
    ),
    _event("file_audited", _FILE_FIELDS),
    _event(
        "file_refused_likely",
        "operation path rule_name comm command exit_code",
        outcome=REFUSED,
    ),
    _event(
        "tool_call_judged",
        "agent conversation call_id tool what cwd answer rule_name reason findings",
        "evaluation_us",
    ),
    _event(
        "approval_requested",
        *_APPROVAL_FIELDS,
        "comm depth runs loads files cwd note timeout_s asked exec",
        version=2,
    ),
    _event("approval_granted", *APPROVAL_ANSWER_FIELDS, version=2),
    _event("approval_denied", *APPROVAL_ANSWER_FIELDS, version=2),
    _event("approval_expired", *APPROVAL_ANSWER_FIELDS, version=2),
    _event("control_refused", "reason peer_pid peer_uid peer_cmd inside_session"),
    _event("abi_refused", "syscall_number comm"),
    _event("call_refused", "syscall_number arch arguments comm reason"),
    _event("mediation_failed", "error comm answered"),
    _event("command_joined", "call command cwd environment_removed"),
    _event("command_left", "call exit_status signal"),
    _event("own_files_changed", "files count"),
    _event(
        "limit_exceeded",  # `used`: in the unit of `maximum`; absent if unknown
        "limit maximum effect reason used comm depth syscall count",
    ),
    _event("limit_near", "limit maximum used"),
    _event("store_tampered", "what path"),
    _event("killswitch_missed", "url reason count"),
    _event("killswitch_reached", "url missed"),
    _event(
        "interrupt_received",
        "signal signal_name origin taken_by sender_pid sender_uid sender_place sender_cmd",
    ),
    _event("interrupt_withdrawn"),
    _event(
        "interrupt_forwarded",
        "signal signal_name sender_pid sender_uid sender_place sender_cmd",
    ),
    _event("interrupt_escalated", "reason processes"),
    _event(
        "agent_signal",
        "signal number source reason cause outcome state_before state_after sequence error",
    ),
    _event("tree_frozen", "processes held again"),
    _event("tree_thawed", "processes released"),
    _event("killswitch_activated", "reason by since_ns processes"),
    _event("killswitch_invented", "path reason count"),
    _event(
        "diagnostic",
        "stopped processes processes_left_out approvals approvals_left_out limits counts",
        "unrecorded log_bytes head",
    ),
    _event("checkpoint", "path error head seq processes processes_left_out"),
    _event("process_exited", "ppid comm depth exit_code signal signal_name oom_kills cpu_limit_s"),
    _event(
        "session_ended",  # `denied`: actions, as the report counts them
        "exit_status reason duration_ns counts denied head unrecorded repeated",
    ),
)
EVENT_TYPES: dict[str, EventType] = {kind.name: kind for kind in _TYPES}
OUTCOME_OF = {kind.name: kind.outcome for kind in EVENT_TYPES.values() if kind.outcome}

EXEC_TYPES = frozenset(kind.name for kind in EVENT_TYPES.values() if "argv" in kind.fields)
SIGNAL_TYPES = frozenset(kind.name for kind in EVENT_TYPES.values() if "target_pid" in kind.fields)
CONNECTION_TYPES = frozenset(
    kind.name for kind in EVENT_TYPES.values() if "destination" in kind.fields
)


def kind_of(type_name: str) -> str:
    """Return exec, signal or connection for one of DECISION_TYPES, file for a refused file."""
    return type_name.partition("_")[0]


DECISION_TYPES = EXEC_TYPES | SIGNAL_TYPES | CONNECTION_TYPES
DENIED_TYPES = frozenset(name for name, outcome in OUTCOME_OF.items() if outcome == DENIED)


_CAPABILITIES_THEN = {"births": "forks", "landlock_signal_scope": "signal_wall"}
_CAME_WITH_INTERCEPTION = ["verification", "replacement", "recording", "delivery"]


def _capabilities_of_any_platform(payload: Payload) -> Payload:
    """Convert from version 1, which named capabilities after Linux features, one for several."""
    then = texts(payload.get("capabilities"))
    now = [_CAPABILITIES_THEN.get(each, each) for each in then]
    more = _CAME_WITH_INTERCEPTION if "interception" in then else []
    return {**payload, "capabilities": [*now, *more]}


def _request_id_to_approval_id(payload: Payload) -> Payload:
    return {
        "approval_id" if name == "request_id" else name: value for name, value in payload.items()
    }


# (type, version) -> step to version + 1. A step is pure and takes any payload, because a foreign
# log may hold anything.
UPCASTERS: dict[tuple[str, int], Upcaster] = {
    ("session_started", 1): _capabilities_of_any_platform,
    ("session_started", 2): dict,  # shipped policies had their text
    ("approval_requested", 1): _request_id_to_approval_id,
    ("approval_granted", 1): _request_id_to_approval_id,
    ("approval_denied", 1): _request_id_to_approval_id,
    ("approval_expired", 1): _request_id_to_approval_id,
}


# Read a payload field as the type that is needed: a foreign log may hold anything.


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    """Return a list of texts: the very list if it is one, because copying takes longer."""
    if not isinstance(value, list):
        return []
    try:
        "".join(value)  # finds out
    except TypeError:  # only in a log that sigwrap didn't write
        return [str(each) for each in value]
    return value


def number(value: object) -> int:
    """Return a 64-bit integer, or 0: sigwrap writes no larger one, and a log may hold any."""
    return value if isinstance(value, int) and _LEAST <= value < _INT64 else 0


def times(payload: Payload) -> int:
    """Return how often it happened: repeats within a second share one event."""
    count = number(payload.get("count"))
    return count if count > 0 else 1


def io_payload(stream: str, offset: int, data: bytes) -> Payload:
    payload: Payload = {"stream": stream, "offset": offset, "size": len(data)}
    if b"\0" not in data:
        try:
            return {**payload, "text": data.decode()}
        except UnicodeDecodeError:
            pass
    return {**payload, "base64": b2a_base64(data, newline=False).decode()}


def recorded_bytes(payload: Payload) -> bytes:
    """Raise ValueError if the payload is not from io_payload."""
    if isinstance(text := payload.get("text"), str):
        return text.encode("utf-8", "surrogateescape")
    return a2b_base64(str(payload.get("base64", "")), strict_mode=True)


# Answers to an approval request.
ANSWER_OF = {
    "approval_granted": APPROVED,
    "approval_denied": DENIED,
    "approval_expired": "expired",
}
APPROVAL_ANSWERS = tuple(ANSWER_OF)

_REFUSED_FILE = "file_refused_likely"
_KINDS = {name: kind_of(name) for name in OUTCOME_OF if name != _REFUSED_FILE}
_NAMES = {"exec": "command", "signal": "signal", "connection": "connection"}
# Approvals are counted by answers: one may cover several commands.
_SHOWN = tuple(each for each in OUTCOMES if each not in (ALLOWED, APPROVED))


def outcome(event: Event) -> str:
    """Return the outcome of an exec, a signal or a connection, and "" for any other event."""
    return _outcome_of(event.type, event.payload)


def how_many(type_name: str, payload: Payload) -> int:
    """Return how many actions or answers an event counts as.

    The same command in the next directory of PATH is no new action, and a stub's command was
    counted when the policy decided on it. One answer for the whole session is one answer.
    """
    if type_name in DECISION_TYPES:
        is_stubs = payload.get("stub") is True and not payload.get("approval_id")
        return 0 if payload.get("retry") is True or is_stubs else times(payload)
    return int(type_name in APPROVAL_ANSWERS and payload.get("remembered") is not True)


class Counts:
    """Actions by kind and outcome, and answers to approval requests."""

    def __init__(self) -> None:
        self.execs: dict[str, int] = {}
        self.signals: dict[str, int] = {}
        self.connections: dict[str, int] = {}
        self.refused_files = 0
        self.answers: dict[str, int] = {}  # by APPROVED, DENIED or "expired"
        self._of_kind = {"exec": self.execs, "signal": self.signals, "connection": self.connections}

    def add(self, type_name: str, payload: Payload) -> None:
        if (kind := _KINDS.get(type_name)) is not None:
            is_one = "count" not in payload and "retry" not in payload and "stub" not in payload
            if count := 1 if is_one else how_many(type_name, payload):
                of_kind, name = self._of_kind[kind], _outcome_of(type_name, payload)
                of_kind[name] = of_kind.get(name, 0) + count
        elif type_name == _REFUSED_FILE:
            self.refused_files += 1
        elif type_name in ANSWER_OF and how_many(type_name, payload):
            name = ANSWER_OF[type_name]
            self.answers[name] = self.answers.get(name, 0) + 1

    def of_kind(self, kind: str) -> dict[str, int]:
        return self._of_kind[kind]

    @property
    def denied(self) -> int:
        return sum(each.get(DENIED, 0) for each in (self.execs, self.signals, self.connections))

    @property
    def approved(self) -> int:
        return self.answers.get(APPROVED, 0)

    def lines(self) -> list[str]:
        """Return texts such as "5 commands (1 denied)", one for each kind."""
        found = []
        for kind, name in _NAMES.items():
            counts = self.of_kind(kind)
            if not (total := sum(counts.values())):
                continue
            special = ", ".join(f"{counts[each]} {each}" for each in _SHOWN if counts.get(each))
            found.append(counted(total, name) + (f" ({special})" if special else ""))
        if self.refused_files:
            found.append(f"{counted(self.refused_files, 'file')} probably refused")
        return found


def _outcome_of(type_name: str, payload: Payload) -> str:
    found = OUTCOME_OF.get(type_name, "")
    if found == ALLOWED:
        if payload.get("decision") == "audit":
            return AUDITED
        if payload.get("approval_id"):
            return APPROVED
    return found


def counted(count: int, one: str, many: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count} {many or one + 's'}"
