"""Log events and the registry of their types.

EVENT_TYPES   every type with its version, meaning and fields; other types cannot be written.
              docs/events.md is generated from this table
UPCASTERS     steps that convert a payload of an older version as it is read; rows stay as written
EXEC_TYPES, SIGNAL_TYPES, CONNECTION_TYPES   decisions about an exec, a signal or a connection
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable

from sigwrap.bare import Any, NamedTuple

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]

_INT64 = 1 << 63

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
    meaning: str
    fields: tuple[str, ...]


# Field names that other programs expect: `sigwrap export` writes all of them, in this order, for
# every signal.
EXPORTED_SIGNAL_FIELDS = (
    *("signal", "signal_name", "source_pid", "source_cmd", "target_pid", "target_cmd"),
    *("target_type", "decision", "rule_name", "fallback", "original_signal", "platform"),
    "syscall",
)
SIGNAL_FIELDS = (
    *EXPORTED_SIGNAL_FIELDS,
    "target_types",
    "target_handles",  # it catches or ignores the signal; only if a rule needs it
    "evaluation_us",
    "message",  # the rule's own text, if it has one
    "count",  # of repeated signals of a process to itself: how many within a second
    "correlation",  # the same for every member of a group
)
EXEC_FIELDS = (
    *("path", "argv", "cwd", "comm", "ppid", "depth"),
    *("decision", "rule_name", "reason", "syscall"),
    "truncated",  # only the first arguments were read and matched
    "traced",
    "verified",
    "evaluation_us",
    "programs",  # all files that would run, links resolved; absent if only `path`
    "here",  # how many of them this exec runs itself, not a wrapper later; absent if all
    "masked",  # true if possible secrets in the arguments are masked
    "siblings",  # and processes: their numbers; absent if no limit counts them
    "processes",
    "stub",  # true if a stub runs the command that was decided before
    "elsewhere",  # true if sigwrap does not see the same file under this name
    "shadows",  # the system command of the same name; absent if not found along PATH
    "approval_id",  # of the approved request; absent if there was none
    "message",  # the rule's own text, unless the reason has it
    "below",  # the nearest ancestor that ran a program, if not `ppid`
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
    *("decision", "rule_name", "reason", "message"),
    "count",  # of the same operation by one process within a second
    "evaluation_us",
    "names",  # other names of the host or socket in rules; absent if none
    "own",  # true if a server in the session owns the socket
)


# `count`: of the same operation by one process within a second
_FILE_FIELDS = "syscall comm operation path to rule_name reason verified count evaluation_us"


def _types() -> tuple[EventType, ...]:
    def event(name: str, meaning: str, *fields: str, version: int = 1) -> EventType:
        """`fields`: texts with one or more names."""
        return EventType(name, version, meaning, tuple(" ".join(fields).split()))

    return (
        event(
            "session_started",
            "the run began; always first. `inside`: the session that this run joined (`--nested "
            "join`), from the caller's `SIGWRAP_SESSION`; its log has the execs and signals. "
            "`joined`: commands join this session; `command_pid` is its fork server. "
            "`environment_removed`: variables withheld from the command. `daemons_outside`: the "
            "agent's daemons that ran before. `kind`: `hook` for a log of hooks, which has no "
            "end",
            # `judgement`: version of the judging; another one may decide differently
            "kind session_id name joined inside command command_pid cwd user uid host sigwrap",
            "kernel machine policy profile policy_sources policy_variables policy_digest",
            "judgement grace_s capabilities missing keyed environment_removed preset",
            "daemons_outside",
            version=2,
        ),
        event("exec_allowed", "exec allowed", *EXEC_FIELDS),
        event("exec_audited", "exec allowed, and marked for review", *EXEC_FIELDS),
        event("exec_denied", "exec failed with EACCES", *EXEC_FIELDS),
        event(
            "exec_redirected",
            "another command ran instead",
            *EXEC_FIELDS,
            "replacement replacement_argv replacement_env via record",
        ),
        event(
            "exec_waiting",
            "an exec needs approval. Until the answer its process runs sigwrap-stub, which then "
            "makes the same exec",
            "path rule_name",
        ),
        event(
            "io_recorded",
            "bytes that a recorded command reads or writes, logged before sigwrap passes them on",
            # `base64`: if it is not text
            "stream offset size text base64",
        ),
        event(
            "recording_ended",
            "all standard streams of a recorded command have ended",
            "stub_pid stdin stdout stderr reason",
        ),
        event(
            "exec_verification_failed",
            "the kernel loaded something other than the judged program. The process was killed "
            "before its first instruction, or, if the exec was not `verified`, on discovery",
            "path reason loaded_path loaded_argv rule_name",
        ),
        event(
            "exec_failed",
            "the kernel refused an exec that the policy allowed or redirected; nothing ran",
            "path error rule_name",
        ),
        event("signal_sent", "signal allowed", *SIGNAL_FIELDS),
        event(
            "signal_blocked",
            "signal denied with EPERM, or EFAULT if its arguments could not be read in time",
            *SIGNAL_FIELDS,
        ),
        event("signal_redirected", "another signal was sent instead", *SIGNAL_FIELDS),
        event("signal_absorbed", "the sender got success, and no signal was sent", *SIGNAL_FIELDS),
        event("signal_approved", "signal approved", *SIGNAL_FIELDS),
        event(
            "connection_allowed",
            "connection, datagram or listening socket allowed",
            *CONNECTION_FIELDS,
        ),
        event("connection_audited", "the same, allowed and marked for review", *CONNECTION_FIELDS),
        event("connection_approved", "the same, approved", *CONNECTION_FIELDS),
        event(
            "connection_denied",
            "denied: ECONNREFUSED for TCP, EPERM for io_uring, raw sockets and others that no "
            "rule can cover, otherwise EACCES",
            *CONNECTION_FIELDS,
        ),
        event(
            "work_handed_outside",
            "a process connected to a unix socket of a server outside this session, of the same "
            "user; sigwrap does not judge what that server does. `peer_pid`: the process that "
            "called listen(2), 0 in another container; no `peer_cmd` if it has exited. Not logged"
            " for D-Bus, X11, Wayland, SSH and GPG agents, sound, name lookup and system log",
            # `count`: of the same within a minute, by any process in the session
            "syscall comm socket peer_pid peer_cmd peer_argv count",
        ),
        event(
            "file_audited",
            "a process is about to write, create, delete or rename a file that a rule audits. "
            "Logged before the kernel acts, which may still fail; never `verified`, because "
            "another thread can change the path. `path` and `to` (new name) have links resolved. "
            "`operation` may be `unseen`, with a `reason`",
            _FILE_FIELDS,
        ),
        event(
            "file_refused_likely",
            "an inference: a command ended with `exit_code`, and one of its words is a file that "
            "the file rules deny. Once per file, at most 100; the line comes at each attempt",
            "operation path rule_name comm command exit_code",
        ),
        event(
            "tool_call_judged",
            "a hook judged an agent's tool call before it ran. `answer`: `no opinion` (the agent "
            "decides), `ask` or `deny`. `findings`: what was not allowed. In the log of a run, a "
            "process inside reported it, which is no proof",
            "agent conversation call_id tool what cwd answer rule_name reason findings",
            "evaluation_us",
        ),
        event(
            "approval_requested",
            "an exec, signal or connection waits for approval",
            *_APPROVAL_FIELDS,
            "comm depth runs loads files cwd note timeout_s asked exec",
            version=2,
        ),
        event("approval_granted", "approved", *APPROVAL_ANSWER_FIELDS, version=2),
        event(
            "approval_denied",
            "denied by the approver, because no approver could be reached, or because the process"
            " that asked ended",
            *APPROVAL_ANSWER_FIELDS,
            version=2,
        ),
        event(
            "approval_expired", "no answer in time, so denied", *APPROVAL_ANSWER_FIELDS, version=2
        ),
        event(
            "control_refused",
            "the control socket, or the kill switch by its signal, refused a process",
            "reason peer_pid peer_uid peer_cmd inside_session",
        ),
        event("abi_refused", "an x32 system call got ENOSYS", "syscall_number comm"),
        event(
            "call_refused",
            "EPERM for a call that sigwrap does not know, for a caller outside this session, or "
            "after the kill switch (`builtin:killswitch`)",
            "syscall_number arch arguments comm reason",
        ),
        event(
            "mediation_failed",
            "an internal error while sigwrap decided; the call failed with EPERM, unless it was "
            "`answered` before",
            "error comm answered",
        ),
        event(
            "command_joined",
            "the process of `pid` handed a command to this session (`--join-name`). `call`: its "
            "number in this session",
            "call command cwd environment_removed",
        ),
        event(
            "command_left",
            "a joined command ended. `signal`: the signal that killed it, or 0",
            "call exit_status signal",
        ),
        event(
            "own_files_changed",
            "files that sigwrap runs from changed; this run had loaded the old ones. The first "
            "files, and how many",
            "files count",
        ),
        event(
            "limit_exceeded",
            "a limit was reached. `effect`: `terminated` (status 124) or `refused` (forks fail "
            "with EAGAIN, `limits.at_fork`, or everything is denied, `limits.at_log_size`). "
            "`count`: further refusals within a minute",
            # `used`: in the unit of `maximum`; absent if unknown
            "limit maximum effect reason used comm depth syscall count",
        ),
        event("limit_near", "half of a limit is used up", "limit maximum used"),
        event(
            "store_tampered",
            "the session's files or its control socket were removed, moved, replaced or changed; "
            "the supervisor wrote them again",
            "what path",
        ),
        event(
            "killswitch_missed",
            "no valid answer from the remote kill switch `url`; `--killswitch-fail-closed` ends "
            "the run at the third miss in a row. Logged for the first and every 30th; `count`: "
            "misses in a row",
            "url reason count",
        ),
        event(
            "killswitch_reached",
            "the remote kill switch answers again. `missed`: polls without an answer",
            "url missed",
        ),
        event(
            "interrupt_received",
            "sigwrap got an interrupt. `taken_by`: `sigwrap` (the run ends) or `command` "
            "(`--interrupt`). `sender_place`: `inside` or `outside` this session, `elsewhere` "
            "(another pid namespace), `ended`, `timer` (the caller's alarm), `outer-process` (of "
            "the one-file binary; sender unknown), `agent-signal` (see `sender_cmd`), "
            "`caller-ended` (`--end-with-caller`). Ctrl+C has no sender",
            "signal signal_name origin taken_by sender_pid sender_uid sender_place sender_cmd",
        ),
        event(
            "interrupt_withdrawn",
            "the run goes on: the command returned to its prompt, so the Ctrl+C was for the "
            "command",
        ),
        event(
            "interrupt_forwarded",
            "sigwrap passed a signal on to the command, for its sender or as its own next step",
            "signal signal_name sender_pid sender_uid sender_place sender_cmd",
        ),
        event(
            "interrupt_escalated",
            "force kill of the process tree: second interrupt, end of the grace period, or an "
            "agent SIGKILL",
            "reason processes",
        ),
        event(
            "agent_signal",
            "a signal to the whole session ([signals](signals.md)) and its outcome so far; a "
            "waiting one gets another event later. `cause`: `sequence` of the signal that led to "
            "it",
            "signal number source reason cause outcome state_before state_after sequence error",
        ),
        event(
            "tree_frozen",
            "an agent SIGSTOP stopped all processes and holds new execs: how many of each. "
            "`again`: a process outside this session had continued them",
            "processes held again",
        ),
        event(
            "tree_thawed",
            "the stopped processes and held execs go on, after an agent SIGCONT or because the "
            "run ends",
            "processes released",
        ),
        event(
            "killswitch_activated",
            "the kill switch was turned on: nothing more was allowed, and the process tree was "
            "killed",
            "reason by since_ns processes",
        ),
        event(
            "killswitch_invented",
            "a kill switch file without the signal of `sigwrap killswitch on`",
            "path reason count",
        ),
        event(
            "diagnostic",
            "state on SIGUSR1: processes, limits and their use. `stopped`: how long an agent "
            "SIGSTOP holds, its source, and held execs",
            "stopped processes processes_left_out approvals approvals_left_out limits counts",
            "unrecorded log_bytes head",
        ),
        event(
            "checkpoint",
            "SIGUSR2: a copy of the log at `path`, or the `error`. `seq` and `head` of its last "
            "event",
            "path error head seq processes processes_left_out",
        ),
        event(
            "process_exited",
            "a process ended. After a SIGKILL by others: `oom_kills` (kills by the OOM killer "
            "since the start) and `cpu_limit_s` (hard RLIMIT_CPU if used up, otherwise 0)",
            "ppid comm depth exit_code signal signal_name oom_kills cpu_limit_s",
        ),
        event(
            "session_ended",
            "the run is over; always the last event of a clean session",
            # `denied`: actions, as the report counts them
            "exit_status reason duration_ns counts denied head unrecorded repeated",
        ),
    )


EVENT_TYPES: dict[str, EventType] = {kind.name: kind for kind in _types()}

EXEC_TYPES = frozenset(kind.name for kind in EVENT_TYPES.values() if "argv" in kind.fields)
SIGNAL_TYPES = frozenset(kind.name for kind in EVENT_TYPES.values() if "target_pid" in kind.fields)
CONNECTION_TYPES = frozenset(
    kind.name for kind in EVENT_TYPES.values() if "destination" in kind.fields
)


def kind_of(type_name: str) -> str:
    """Return exec, signal or connection for one of DECISION_TYPES, file for a refused file."""
    if type_name in EXEC_TYPES:
        return "exec"
    if type_name == "file_refused_likely":
        return "file"
    return "signal" if type_name in SIGNAL_TYPES else "connection"


DECISION_TYPES = EXEC_TYPES | SIGNAL_TYPES | CONNECTION_TYPES
DENIED_TYPES = frozenset({"exec_denied", "signal_blocked", "connection_denied"})


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
    ("approval_requested", 1): _request_id_to_approval_id,
    ("approval_granted", 1): _request_id_to_approval_id,
    ("approval_denied", 1): _request_id_to_approval_id,
    ("approval_expired", 1): _request_id_to_approval_id,
}


# Read a payload field as the type that is needed: a foreign log may hold anything.


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def number(value: object) -> int:
    """Return a 64-bit integer, or 0: sigwrap writes no larger one, and a log may hold any."""
    return value if isinstance(value, int) and -_INT64 <= value < _INT64 else 0


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
