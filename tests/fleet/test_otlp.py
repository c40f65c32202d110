"""OTLP: names of attributes, severity, and the tree of spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.fleet.otlp import LOGS, RECORDS_AT_ONCE, TRACES, requests
from sigwrap.log import trace_context

SECOND = 1_000_000_000
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def log(*events: tuple[str, int, dict[str, Any]], traceparent: str = "") -> list[Event]:
    start = {
        "session_id": "s1",
        "host": "box",
        "sigwrap": "0.1",
        "policy": "ci",
        "traceparent": traceparent,
        "command": ["/bin/npm", "test"],
        "policy_sources": [["p", "text"]],
        "labels": {"repo": "shop", "team": "a"},
    }
    return [
        Event(seq, seq * SECOND, kind, pid, payload, f"hash{seq}")
        for seq, (kind, pid, payload) in enumerate([("session_started", 1, start), *events], 1)
    ]


def items(signal: str, events: list[Event], after_seq: int = 0) -> list[dict[str, Any]]:
    """Return the records or spans, with plain attributes, after a look at their form."""
    found = []
    for request in requests(signal, "s1", events, after_seq):
        text = json.dumps(request.body, ensure_ascii=False)
        text.encode()  # no lone surrogates
        ((outer,),) = request.body.values()
        ((inner,),) = (value for name, value in outer.items() if name != "resource")
        ((_, records),) = (pair for pair in inner.items() if pair[0] != "scope")
        assert len(records) == request.records <= RECORDS_AT_ONCE
        found += [{**each, "attributes": plain(each)} for each in records]
    return found


def plain(holder: dict[str, Any]) -> dict[str, Any]:
    names = [each["key"] for each in holder["attributes"]]
    assert len(set(names)) == len(names)
    return {each["key"]: value_of(each["value"]) for each in holder["attributes"]}


def value_of(value: dict[str, Any]) -> Any:
    ((form, inner),) = value.items()
    if form == "arrayValue":
        return [each["stringValue"] for each in inner["values"]]
    if form == "intValue":
        assert isinstance(inner, str) and -(1 << 63) <= int(inner) < 1 << 63
        return int(inner)
    assert type(inner) is {"stringValue": str, "boolValue": bool, "doubleValue": float}[form]
    return inner


DENIED = {"path": "/bin/git", "argv": ["git", "push"], "cwd": "/p", "ppid": 5, "rule_name": "no"}
TO_HOST = {"direction": "connect", "protocol": "tcp", "port": 443, "address": "1.2.3.4"}


@pytest.mark.parametrize(
    ("kind", "payload", "severity", "body", "expected"),
    [
        (
            "exec_denied",
            {**DENIED, "decision": "deny", "message": "", "programs": [{"path": "x"}]},
            "WARN",
            "exec denied: git push  (rule no)",
            {
                "process.executable.path": "/bin/git",
                "process.command_args": ["git", "push"],
                "process.working_directory": "/p",
                "process.parent_pid": 5,
                "security_rule.name": "no",
                "sigwrap.decision": "deny",
                "sigwrap.programs": '[{"path":"x"}]',
                "sigwrap.outcome": "denied",
            },
        ),
        (
            "signal_sent",
            {"signal": 15, "signal_name": "SIGTERM", "target_pid": 9, "target_cmd": "sshd"},
            "INFO",
            "signal sent: SIGTERM to sshd (9)  from ?",
            {
                "sigwrap.signal.number": 15,
                "sigwrap.signal.name": "SIGTERM",
                "sigwrap.target.pid": 9,
                "sigwrap.target.command": "sshd",
                "sigwrap.outcome": "allowed",
            },
        ),
        (
            "connection_allowed",
            {**TO_HOST, "destination": "example.org:443"},
            "INFO",
            "connection allowed: connection to example.org:443  by ?",
            {
                "server.address": "example.org",
                "server.port": 443,
                "network.transport": "tcp",
                "network.peer.address": "1.2.3.4",
                "network.peer.port": 443,
                "sigwrap.direction": "connect",
                "sigwrap.destination": "example.org:443",
                "sigwrap.outcome": "allowed",
            },
        ),
        (
            "file_audited",
            {"path": "/p/a\udcff", "operation": "write", "count": 1 << 80},
            "INFO",
            "file audited: write /p/a\\xff  by ?",
            {
                "file.path": "/p/a\\udcff",
                "sigwrap.operation": "write",
                "sigwrap.count": str(1 << 80),
            },
        ),
        ("store_tampered", {"seq": 99, "hash": "no", "process.pid": 3}, "ERROR",
         "store tampered: the files of the log were tampered with (?): ?",
         {"sigwrap.checkpoint.seq": 99, "sigwrap.payload.hash": "no", "sigwrap.process.pid": 3}),
    ],
)  # fmt: skip
def test_an_event_is_a_record_with_the_names_of_the_conventions(
    kind: str, payload: dict[str, Any], severity: str, body: str, expected: dict[str, Any]
) -> None:
    started, record = items(LOGS, log((kind, 7, payload)))
    own = {"process.pid": 7, "sigwrap.seq": 2, "sigwrap.hash": "hash2"}
    assert record["attributes"] == {**expected, **own}
    assert (record["severityText"], record["body"]["stringValue"]) == (severity, body)
    assert (record["eventName"], record["timeUnixNano"]) == (f"sigwrap.{kind}", str(2 * SECOND))
    assert "sigwrap.policy_sources" not in started["attributes"]
    resource = next(requests(LOGS, "s1", log())).body["resourceLogs"][0]["resource"]
    assert plain(resource) == {
        "service.name": "sigwrap",
        "session.id": "s1",
        "service.version": "0.1",
        "host.name": "box",
        "security_rule.ruleset.name": "ci",
        "vcs.repository.name": "shop",
        "sigwrap.label.team": "a",
    }


def test_recorded_bytes_are_left_out() -> None:
    _, record = items(LOGS, log(("io_recorded", 7, {"stream": "stdout", "text": "hidden"})))
    assert "hidden" not in str(record) and record["body"] == {"stringValue": "io recorded"}


def test_requests_are_small_and_go_on_after_a_seq() -> None:
    events = log(*[("process_exited", 7, {})] * 600)
    assert [each.records for each in requests(LOGS, "s1", events)] == [256, 256, 89]
    assert [each.last_seq for each in requests(LOGS, "s1", events, 300)] == [556, 601]
    assert items(LOGS, events)[300:] == items(LOGS, events, 300)
    assert items(LOGS, events, 601) == items(LOGS, []) == items(TRACES, []) == []


RUN = {"path": "/bin/sh", "argv": ["sh"]}


def test_spans_are_a_tree_of_session_tool_calls_and_processes() -> None:
    """Pid 11 is used twice, and 12 runs below a process that never ran a program."""
    events = log(
        ("exec_allowed", 10, {**RUN, "ppid": 1}),
        ("tool_call_judged", 10, {"tool": "Bash", "agent": "claude-code"}),
        ("exec_allowed", 11, {**RUN, "ppid": 10}),
        ("exec_allowed", 11, {"path": "/bin/ls", "argv": ["ls"], "ppid": 10}),
        ("process_exited", 11, {"exit_code": 2}),
        ("exec_denied", 11, {"path": "/bin/rm", "ppid": 99, "below": 10}),
        ("process_exited", 11, {"exit_code": None, "signal_name": "SIGKILL"}),
        ("process_exited", 55, {"exit_code": 0}),
        ("exec_allowed", 12, {**RUN, "ppid": 999}),
        ("session_ended", 1, {"exit_status": 3}),
        traceparent=PARENT,
    )
    spans = items(TRACES, events)
    by_id = {span["spanId"]: span for span in spans}
    last = SECOND * len(events)
    assert [
        (
            span["name"],
            by_id.get(span["parentSpanId"], {}).get("name"),
            span["startTimeUnixNano"],
            span["endTimeUnixNano"],
            span["attributes"].get("process.exit.code"),
            span.get("status", {}).get("message"),
        )
        for span in spans
    ] == [
        ("tool_call Bash", "sigwrap npm", f"{3 * SECOND}", f"{3 * SECOND}", None, None),
        ("ls", "sh", f"{4 * SECOND}", f"{6 * SECOND}", 2, "exit status 2"),
        ("rm", "sh", f"{7 * SECOND}", f"{8 * SECOND}", None, "SIGKILL"),
        ("sh", "sigwrap npm", f"{2 * SECOND}", f"{last}", None, None),
        ("sh", "sigwrap npm", f"{10 * SECOND}", f"{last}", None, None),
        ("sigwrap npm", None, f"{SECOND}", f"{last}", 3, "exit status 3"),
    ]
    assert len(by_id) == len(spans) and spans == items(TRACES, events)
    assert spans[-1]["parentSpanId"] == PARENT.split("-")[2]
    assert {each["traceId"] for each in (*spans, *items(LOGS, events))} == {PARENT.split("-")[1]}
    begun_by = {span["attributes"]["sigwrap.seq"]: span["spanId"] for span in spans}
    spans_of_logs = [record["spanId"] for record in items(LOGS, events)]
    seqs = [1, 2, 3, 5, 5, 5, 7, 7, 1, 10, 1]
    assert spans_of_logs == [begun_by[seq] for seq in seqs]


def test_a_session_without_a_caller_s_trace_has_a_trace_of_its_own() -> None:
    (root,) = items(TRACES, log(traceparent="00-nonsense"))
    assert "parentSpanId" not in root and root["traceId"] == trace_context.trace_id("s1")


ZEROS = "0" * 32


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        (PARENT, True),
        (PARENT.replace("00-", "cc-", 1) + "-more", True),
        (PARENT + "-more", False),
        (PARENT.replace("00-", "ff-", 1), False),
        (PARENT.upper(), False),
        (PARENT[:-1], False),
        (f"00-{ZEROS}-b7ad6b7169203331-01", False),
        (f"00-0af7651916cd43dd8448eb211c80319c-{ZEROS[:16]}-01", False),
        ("", False),
        ("\udcff" * 55, False),
    ],
)
def test_only_a_valid_traceparent_is_a_parent(text: str, is_valid: bool) -> None:
    assert (trace_context.parse(text) is not None) == is_valid
