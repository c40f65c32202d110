"""What the log is made of: the events, and the one registry of their types.

EVENT_TYPES   every type with its version, meaning and fields; a type that isn't here can't be
              written, and docs/events.md is generated from the table
UPCASTERS     the steps by which a payload of an older version is read; no row is ever rewritten
EXEC_TYPES, SIGNAL_TYPES, CONNECTION_TYPES   the types that are a decision about an exec, a signal,
              or about whom a socket may reach
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable

from sigwrap.hints import Any
from sigwrap.tuples import NamedTuple

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]

_INT64 = 1 << 63

LEFT_TO_ANOTHER = "interception: left to "  # how what is missing begins, inside another session


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


# The names that other programs know from such logs: `sigwrap export` writes each of them, in this
# order, for every signal.
EXPORTED_SIGNAL_FIELDS = (
    "signal",
    "signal_name",
    "source_pid",
    "source_cmd",
    "target_pid",
    "target_cmd",
    "target_type",
    "decision",
    "rule_name",
    "fallback",
    "original_signal",
    "platform",
    "syscall",
)
_SIGNAL_FIELDS = (
    *EXPORTED_SIGNAL_FIELDS,
    "target_types",
    "target_handles",  # it catches or ignores the signal; where a rule asked
    "evaluation_us",
    "message",  # of the rule, where it has one
    "count",  # of a process that signals itself over and over: how often within a second
    "correlation",  # the same for every member of a group
)
_EXEC_FIELDS = (
    "path",
    "argv",
    "cwd",
    "comm",
    "ppid",
    "depth",
    "decision",
    "rule_name",
    "reason",
    "syscall",
    "truncated",  # there are more arguments than were read or are matched
    "traced",
    "verified",
    "evaluation_us",
    "programs",  # all that would run, links resolved; absent where `path` says it all
    "here",  # how many of them this very exec runs, and no wrapper later; absent where all
    "masked",  # true where what may be a secret in the arguments was
    "siblings",  # and processes: how many there were; absent where no limit counts them
    "processes",
    "stub",  # true where a stub runs what it stands in for, which was decided before
    "elsewhere",  # true where a file of it isn't one that sigwrap itself has under this name
    "shadows",  # the system's command whose name it has; absent where it was not found along PATH
    "approval_id",  # of the request that was said yes to; absent where nobody was asked
    "message",  # of the rule, where it has one that the reason doesn't say
    "below",  # the nearest process above it that has run something, where that isn't `ppid`
)
QUESTION_CHARACTERS = 1_000  # of what is asked about; the event of the exec itself has all of it
_APPROVAL_FIELDS = ("approval_id", "kind", "what", "rule_name", "message")
_APPROVAL_ANSWER_FIELDS = (
    *_APPROVAL_FIELDS,
    "reason",
    "by",
    "always",
    "answer",
    "waited_ms",
)


_CONNECTION_FIELDS = (
    "syscall",
    "comm",
    "direction",
    "protocol",
    "destination",
    "address",
    "port",
    "decision",
    "rule_name",
    "reason",
    "message",
    "count",  # of the same by one process within a second
    "evaluation_us",
    "names",  # others of the host that rules know, or of the socket; absent where there are none
    "own",  # true where a server of the session has the socket
)


_FILE_FIELDS = (
    "syscall",
    "comm",
    "operation",
    "path",
    "to",
    "rule_name",
    "reason",
    "verified",
    "count",  # of the same by one process within a second
    "evaluation_us",
)


def _types() -> tuple[EventType, ...]:
    def event(name: str, meaning: str, *fields: str, version: int = 1) -> EventType:
        return EventType(name=name, version=version, meaning=meaning, fields=fields)

    return (
        event(
            "session_started",
            "a run began; always the first event. `inside`: the session that it joined "
            "(`--nested join`), and whose log has its execs and signals; that is what its caller's "
            "`SIGWRAP_SESSION` says. That it joined one at all is what `missing` says. `joined`: "
            "true where it has no COMMAND but those that join it; `command_pid` is then the "
            "process that these are forked from. "
            "`environment_removed`: names of the variables that COMMAND was not given. `preset`: "
            "by which an agent was run (`sigwrap claude …`). `daemons_outside`: those of it "
            "that ran already, each as its pid and its words",
            "session_id",
            "name",
            "joined",
            "inside",
            "command",
            "command_pid",
            "cwd",
            "user",
            "uid",
            "host",
            "sigwrap",
            "kernel",
            "machine",
            "policy",
            "profile",
            "policy_sources",
            "policy_variables",
            "policy_digest",
            "judgement",  # the way in which sigwrap judges: another number may judge otherwise
            "grace_s",
            "capabilities",
            "missing",
            "keyed",
            "environment_removed",
            "preset",
            "daemons_outside",
            version=2,
        ),
        event("exec_allowed", "an exec was let through", *_EXEC_FIELDS),
        event("exec_audited", "an exec was let through and marked", *_EXEC_FIELDS),
        event("exec_denied", "an exec was refused: EACCES", *_EXEC_FIELDS),
        event(
            "exec_redirected",
            "another command ran in place of the one that was asked for",
            *_EXEC_FIELDS,
            "replacement",
            "replacement_argv",
            "replacement_env",
            "via",
            "record",
        ),
        event(
            "io_recorded",
            "bytes that a recorded command reads or writes, before they are passed on",
            "stream",
            "offset",
            "size",
            "text",
            "base64",  # where it is no text
        ),
        event(
            "recording_ended",
            "the standard streams of a recorded command have all ended",
            "stub_pid",
            "stdin",
            "stdout",
            "stderr",
            "reason",
        ),
        event(
            "exec_verification_failed",
            "the kernel loaded something other than what was judged; the process was killed "
            "before its first instruction, or where the exec was not `verified`, as soon as it was "
            "seen",
            "path",
            "reason",
            "loaded_path",
            "loaded_argv",
            "rule_name",
        ),
        event(
            "exec_failed",
            "the kernel refused an exec that sigwrap had allowed or redirected: nothing was run",
            "path",
            "error",
            "rule_name",
        ),
        event("signal_sent", "a signal was let through", *_SIGNAL_FIELDS),
        event("signal_blocked", "a signal was denied: EPERM", *_SIGNAL_FIELDS),
        event(
            "signal_redirected",
            "another signal was sent in place of the one that was asked for",
            *_SIGNAL_FIELDS,
        ),
        event(
            "signal_absorbed", "the sender was told success, and nothing was sent", *_SIGNAL_FIELDS
        ),
        event("signal_approved", "somebody said yes to a signal", *_SIGNAL_FIELDS),
        event(
            "connection_allowed",
            "a connection, a datagram or a socket that listens was let through",
            *_CONNECTION_FIELDS,
        ),
        event(
            "connection_audited",
            "the same, and marked",
            *_CONNECTION_FIELDS,
        ),
        event("connection_approved", "somebody said yes to it", *_CONNECTION_FIELDS),
        event(
            "connection_denied",
            "it was refused: ECONNREFUSED for a TCP connection, EPERM for what no rule can be "
            "about (io_uring, raw sockets), else EACCES",
            *_CONNECTION_FIELDS,
        ),
        event(
            "work_handed_outside",
            "a process connected to a unix socket at which a process of the same user listens that "
            "is not of the session: what that one does for it is neither judged nor recorded. The "
            "connection itself is another event, before this one, with the rule that let it "
            "through. `peer_pid` is who called listen(2); 0 where it is in another container. "
            "Without `peer_cmd` it has ended, and the socket is somebody else's by now. Not of "
            "sigwrap's own sockets, and of those by which nothing is run or of which rules speak "
            "by name: D-Bus, X11 and Wayland, ssh-agent and gpg-agent, sound, names and logs of "
            "the system",
            "syscall",
            "comm",
            "socket",
            "peer_pid",
            "peer_cmd",
            "peer_argv",
            "count",  # of the same within a minute, by anybody of the session
        ),
        event(
            "file_audited",
            "a process is about to write, make, delete or rename a file, and a rule audits that. "
            "Recorded before the kernel does it, also where that then fails, and never `verified`: "
            "another thread can change the path before the kernel reads it. `path` and `to` (of "
            "a rename, and the new name of a link) are where these lie, links on the way resolved. "
            "`operation`: write, create, delete, rename; or unseen, with the `reason`",
            *_FILE_FIELDS,
        ),
        event(
            "approval_requested",
            "an exec, a signal or a connection waits for somebody's answer",
            *_APPROVAL_FIELDS,
            "comm",
            "depth",
            "runs",
            "loads",
            "files",
            "cwd",
            "note",
            "timeout_s",
            "asked",
            "exec",
            version=2,
        ),
        event("approval_granted", "somebody said yes", *_APPROVAL_ANSWER_FIELDS, version=2),
        event(
            "approval_denied",
            "somebody said no, nobody could be asked, or the process that asked has ended",
            *_APPROVAL_ANSWER_FIELDS,
            version=2,
        ),
        event(
            "approval_expired",
            "nobody answered in time: denied",
            *_APPROVAL_ANSWER_FIELDS,
            version=2,
        ),
        event(
            "control_refused",
            "a process that connected to the control socket was refused",
            "reason",
            "peer_pid",
            "peer_uid",
            "peer_cmd",
            "inside_session",
        ),
        event(
            "abi_refused",
            "a system call by an ABI that sigwrap refuses (x32) got ENOSYS",
            "syscall_number",
            "comm",
        ),
        event(
            "call_refused",
            "a call that sigwrap doesn't know, or a caller outside the session's tree, got EPERM; "
            "or any call, once the kill switch was on (`builtin:killswitch`)",
            "syscall_number",
            "arch",
            "arguments",
            "comm",
            "reason",
        ),
        event(
            "mediation_failed",
            "an error of sigwrap's own while it decided about a call, which failed with EPERM "
            "unless it was `answered` before",
            "error",
            "comm",
            "answered",
        ),
        event(
            "command_joined",
            "a command was handed to a session that commands join (`--join-name`), by the process "
            "of the event's pid; it is forked next. `call`: its number in this session",
            "call",
            "command",
            "cwd",
            "environment_removed",
        ),
        event(
            "command_left",
            "a command that joined has ended, with the status that its caller gets; the event's "
            "pid is its own. `signal`: that it died of, or 0",
            "call",
            "exit_status",
            "signal",
        ),
        event(
            "own_files_changed",
            "files that sigwrap runs from were changed while the session ran: what ran was loaded "
            "before, but the next start would run these. The first of them, and how many",
            "files",
            "count",
        ),
        event(
            "servers_killed",
            "programs of the session that serve a file system were killed, since requests that got "
            "no answer kept others waiting. The first of them, and how many",
            "processes",
            "count",
        ),
        event(
            "limit_exceeded",
            "a limit was passed, of the policy's or `--log-size`. `effect` is `terminated` where "
            "the run was ended (exit status 124), and `refused` where a fork failed with EAGAIN "
            "(`limits.at_fork`), or where every exec and signal is denied from then on "
            "(`limits.at_log_size`); further refusals within a minute are one more event, with "
            "their `count`",
            "limit",
            "maximum",
            "effect",
            "reason",
            "used",  # in the unit of `maximum`; absent where it isn't known
            "comm",
            "depth",
            "syscall",
            "count",
        ),
        event(
            "limit_near",
            "half of what a limit allows is used up",
            "limit",
            "maximum",
            "used",
        ),
        event(
            "store_tampered",
            "somebody removed, moved, replaced or changed the session's files while it ran, or the "
            "socket that takes answers; they were written anew from what the supervisor holds",
            "what",
            "path",
        ),
        event(
            "killswitch_missed",
            "the remote kill switch (`url`, without what may be a secret in it) gave no answer "
            "that counts; the run goes on, unless `--killswitch-fail-closed` ends it at the third "
            "in a row. The first of a row, and every 30th; `count`: how many in a row so far",
            "url",
            "reason",
            "count",
        ),
        event(
            "killswitch_reached",
            "the remote kill switch answers again, after so many polls that were missed",
            "url",
            "missed",
        ),
        event(
            "interrupt_received",
            "an interrupt reached sigwrap. `taken_by` is `sigwrap` where the run is to end by it, "
            "and `command` where it is left to COMMAND (`--interrupt`). `sender_place` is `inside` "
            "or `outside` of the session; `outer-process`: the one-file binary's, which passes on "
            "what it gets, and the sender isn't known; `elsewhere`: in another pid namespace; "
            "`ended`: gone before it could be looked at; `timer`: one that sigwrap's caller set "
            "(`alarm`); `agent-signal`: SIGINT as one, from whom `sender_cmd` says; "
            "`caller-ended`: no signal, but the end of sigwrap's caller (`--end-with-caller`); "
            "`nobody`: the terminal",
            "signal",
            "signal_name",
            "origin",
            "taken_by",
            "sender_pid",
            "sender_uid",
            "sender_place",
            "sender_cmd",
        ),
        event(
            "interrupt_withdrawn",
            "the run goes on after all: COMMAND came to a prompt, so the Ctrl+C was meant for it",
        ),
        event(
            "interrupt_forwarded",
            "a signal was passed on to COMMAND, from the sender, or, where that is `nobody`, as "
            "sigwrap's own next step",
            "signal",
            "signal_name",
            "sender_pid",
            "sender_uid",
            "sender_place",
            "sender_cmd",
        ),
        event(
            "interrupt_escalated",
            "the whole process tree was killed: second interrupt, end of the grace period, or "
            "SIGKILL, the agent signal",
            "reason",
            "processes",
        ),
        event(
            "agent_signal",
            "a signal to the session as a whole (agent-signals.md), and what has become of it by "
            "then: one that waits has another event when it takes effect. `cause`: the `sequence` "
            "of the signal that it follows",
            "signal",
            "number",
            "source",
            "reason",
            "cause",
            "outcome",
            "state_before",
            "state_after",
            "sequence",
            "error",
        ),
        event(
            "tree_frozen",
            "by SIGSTOP, an agent signal: no new exec starts, and every process of the tree stands "
            "still. How many processes, and how many execs wait. `again` where somebody from "
            "outside had continued them",
            "processes",
            "held",
            "again",
        ),
        event(
            "tree_thawed",
            "what SIGSTOP, the agent signal, had stopped goes on: how many processes, and how many "
            "execs waited. After SIGCONT, or since the run ends",
            "processes",
            "released",
        ),
        event(
            "killswitch_activated",
            "the kill switch was turned on, by whom and when: nothing more was granted, and the "
            "whole process tree was killed at once",
            "reason",
            "by",
            "since_ns",
            "processes",
        ),
        event(
            "killswitch_invented",
            "the kill switch's file came into a store, but nobody outside of all sessions told "
            "this one to end, as `sigwrap killswitch on` does: the file was taken away. `count`: "
            "how many so far",
            "path",
            "reason",
            "count",
        ),
        event(
            "diagnostic",
            "SIGUSR1: how the session stood. Each process with the words of its last exec, where "
            "that is known, and each limit with what was used of it. `stopped`: since SIGSTOP, by "
            "whom and for how long, and how many execs wait",
            "stopped",
            "processes",
            "processes_left_out",
            "approvals",
            "approvals_left_out",
            "limits",
            "counts",
            "unrecorded",
            "log_bytes",
            "head",
        ),
        event(
            "checkpoint",
            "SIGUSR2: a copy of the log as it was, at `path`; or, where there could be none, "
            "`error` says why. `seq` and `head` are of the last event in it",
            "path",
            "error",
            "head",
            "seq",
            "processes",
            "processes_left_out",
        ),
        event(
            "process_exited",
            "a process of the tree ended. Of a SIGKILL that isn't sigwrap's: `oom_kills`, how many "
            "processes of the machine the kernel's OOM killer has killed since the session began, "
            "and `cpu_limit_s`, its hard RLIMIT_CPU in seconds where it had used that up, else 0; "
            "absent where its parent had reaped it already",
            "ppid",
            "comm",
            "depth",
            "exit_code",
            "signal",
            "signal_name",
            "oom_kills",
            "cpu_limit_s",
        ),
        event(
            "session_ended",
            "the run is over; always the last event of a clean session",
            "exit_status",
            "reason",
            "duration_ns",
            "counts",
            "head",
            "unrecorded",
            "repeated",
        ),
    )


EVENT_TYPES: dict[str, EventType] = {kind.name: kind for kind in _types()}

EXEC_TYPES = frozenset(kind.name for kind in EVENT_TYPES.values() if "argv" in kind.fields)
SIGNAL_TYPES = frozenset(kind.name for kind in EVENT_TYPES.values() if "target_pid" in kind.fields)
CONNECTION_TYPES = frozenset(
    kind.name for kind in EVENT_TYPES.values() if "destination" in kind.fields
)


def kind_of(type_name: str) -> str:
    """Of one of the types below."""
    if type_name in EXEC_TYPES:
        return "exec"
    return "signal" if type_name in SIGNAL_TYPES else "connection"


DECISION_TYPES = EXEC_TYPES | SIGNAL_TYPES | CONNECTION_TYPES
DENIED_TYPES = frozenset({"exec_denied", "signal_blocked", "connection_denied"})


_CAPABILITIES_THEN = {"births": "forks", "landlock_signal_scope": "signal_wall"}
_CAME_WITH_INTERCEPTION = ["verification", "replacement", "recording", "delivery"]


def _capabilities_of_any_platform(payload: Payload) -> Payload:
    """They were named after how Linux has them, and what always came together had one name."""
    then = texts(payload.get("capabilities"))
    now = [_CAPABILITIES_THEN.get(each, each) for each in then]
    more = _CAME_WITH_INTERCEPTION if "interception" in then else []
    return {**payload, "capabilities": [*now, *more]}


def _request_id_to_approval_id(payload: Payload) -> Payload:
    return {
        "approval_id" if name == "request_id" else name: value for name, value in payload.items()
    }


# (type, version) -> the step to version + 1. A step is pure, and takes any payload: a log from
# elsewhere may hold anything.
UPCASTERS: dict[tuple[str, int], Upcaster] = {
    ("session_started", 1): _capabilities_of_any_platform,
    ("approval_requested", 1): _request_id_to_approval_id,
    ("approval_granted", 1): _request_id_to_approval_id,
    ("approval_denied", 1): _request_id_to_approval_id,
    ("approval_expired", 1): _request_id_to_approval_id,
}


# A field of a payload, as the type that a reader needs: a log from elsewhere may hold anything.


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def number(value: object) -> int:
    """Of 64 bits: a larger one is none of sigwrap's, and could be too long to be shown."""
    return value if isinstance(value, int) and -_INT64 <= value < _INT64 else 0


def times(payload: Payload) -> int:
    """How often it happened: what a process does to itself over and over is one event a second."""
    count = number(payload.get("count"))
    return count if count > 0 else 1


class Base64(str):
    """Text without a character that JSON escapes, so that none has to be searched for."""

    __slots__ = ()


def io_payload(stream: str, offset: int, data: bytes) -> Payload:
    payload: Payload = {"stream": stream, "offset": offset, "size": len(data)}
    if b"\0" not in data:
        try:
            return {**payload, "text": data.decode()}
        except UnicodeDecodeError:
            pass
    return {**payload, "base64": Base64(b2a_base64(data, newline=False), "ascii")}


def recorded_bytes(payload: Payload) -> bytes:
    """ValueError where the payload is no io_payload."""
    if isinstance(text := payload.get("text"), str):
        return text.encode("utf-8", "surrogateescape")
    return a2b_base64(str(payload.get("base64", "")), strict_mode=True)
