"""Check that a recorded session is consistent, beyond what `sigwrap verify` checks."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator

from sigwrap.errors import COMMAND_ENDED, from_signal
from sigwrap.events import Event, Payload
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.report.check.decisions import is_built_in

SENDS = frozenset("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal".split())
JOB_STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}


def types(payload: Payload) -> list[str]:
    return list(payload.get("target_types") or [])


def has_no_target(payload: Payload) -> bool:
    return not types(payload) and not payload.get("target_pid")


def is_unread(payload: Payload) -> bool:
    return not any(map(payload.get, ("path", "argv", "programs")))


# Built-in rule -> the event type that it gives, and what its event must show.
BUILT_IN: dict[str, tuple[str, Callable[[Payload], bool]]] = {
    "unreadable": ("exec_denied", is_unread),
    "stalled": ("exec_denied", is_unread),
    "traced": ("exec_denied", lambda each: each.get("traced") is True),
    "network": ("connection_denied", lambda each: "direction" not in each),
    "sigwrap": ("signal_blocked", lambda each: has_no_target(each) or "parent" in types(each)),
    "ptrace": (
        "signal_blocked",
        lambda each: "session" not in types(each) or each["syscall"] == "ptrace",
    ),
    **dict.fromkeys(
        ("everybody", "unresolved", "group", "terminal"), ("signal_blocked", has_no_target)
    ),
    "stub": ("signal_sent", lambda each: "external" not in types(each)),
    "parent": (
        "signal_sent",
        lambda each: "ancestors" in types(each) and each["syscall"] not in SENDS,
    ),
    "job": ("signal_sent", lambda each: "correlation" in each and each["signal"] in JOB_STOPS),
}


def contradictions(events: Iterable[Event]) -> list[str]:
    """Return what is inconsistent, each with its row."""
    session = _Session()
    return [f"{event.seq}: {found}" for event in events for found in session.wrong(event)]


class _Session:
    def __init__(self) -> None:
        self.command_pid = 0
        self.status: int | None = None
        self.requests: dict[str, tuple[object, ...]] = {}
        self.stubs: dict[int, str] = {}
        self.let_through: set[tuple[int, object]] = set()

    def wrong(self, event: Event) -> Iterator[str]:
        payload, rule = event.payload, str(event.payload.get("rule_name", ""))
        match event.type:
            case "session_started":
                self.command_pid = payload.get("command_pid", 0)
            case "approval_requested":
                self.requests[payload["approval_id"]] = _about(event)
            case "approval_granted" | "approval_denied" | "approval_expired":
                if self.requests.pop(payload["approval_id"], None) != _about(event):
                    yield "it answers no earlier approval request"
            case "exec_allowed" | "exec_audited" | "exec_redirected" | "exec_waiting":
                self.let_through.add((event.pid, rule))
                if payload.get("via") == "stub":
                    self.stubs[event.pid] = rule
            case "exec_failed" | "exec_verification_failed":
                asked = {(pid, rule) for _, pid, _, rule in self.requests.values()}
                if (event.pid, rule) not in self.let_through | asked:
                    yield "no earlier exec of its process was allowed by this rule"
            case "process_exited":
                died_of = payload.get("signal")
                name = signal_name(died_of) if died_of in ALL else str(died_of or "")
                if (payload.get("signal_name") or "") != name:
                    yield "its signal_name does not match its signal"
                if event.pid == self.command_pid:
                    self.status = from_signal(died_of) if died_of else payload.get("exit_code")
            case "session_ended" if payload.get("reason") == COMMAND_ENDED:
                if self.status not in (None, payload["exit_status"]):
                    yield "the command's own status was another one"
        if payload.get("stub") is True and self.stubs.get(payload["ppid"]) != rule:
            yield "its parent is not a stub of its rule"
        elif is_built_in(payload) and payload.get("stub") is not True and "decision" in payload:
            of_type, is_so = BUILT_IN[rule.removeprefix("builtin:")]
            if event.type != of_type or not is_so(payload):
                yield f"{rule} never gives this decision"


def _about(event: Event) -> tuple[object, ...]:
    get = event.payload.get
    return get("approval_id"), event.pid, get("kind"), get("rule_name")
