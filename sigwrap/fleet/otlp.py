"""OTLP/JSON: each event of a session as a log record, and its processes as spans.

Names are those of the OpenTelemetry semantic conventions (1.44) where one has the meaning, and
`sigwrap.*` for the rest. Delivery is at least once, so each record has its seq and hash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from math import isfinite

from sigwrap.bare import Any, NamedTuple
from sigwrap.events import (
    ABSORBED,
    DENIED,
    EXEC_TYPES,
    REDIRECTED,
    REFUSED,
    Event,
    Payload,
    outcome,
    text,
    texts,
)
from sigwrap.log import trace_context
from sigwrap.report.forms.detail import detail

Json = dict[str, Any]

LOGS, TRACES = "logs", "traces"
_PLACES = {
    LOGS: ("resourceLogs", "scopeLogs", "logRecords"),
    TRACES: ("resourceSpans", "scopeSpans", "spans"),
}
RECORDS_AT_ONCE = 256
_BODY_CHARACTERS = 200
_INT64 = 1 << 63
_INTERNAL = 1  # the kind of a span
_ERROR = 2  # the status of a span

_NAMES = {
    "argv": "process.command_args",
    "command": "process.command_args",
    "cwd": "process.working_directory",
    "ppid": "process.parent_pid",
    "exit_code": "process.exit.code",
    "exit_status": "process.exit.code",
    "user": "process.owner",
    "uid": "process.user.id",
    "path": "file.path",
    "rule_name": "security_rule.name",
    "protocol": "network.transport",
    "agent": "gen_ai.agent.name",
    "conversation": "gen_ai.conversation.id",
    "tool": "gen_ai.tool.name",
    "call_id": "gen_ai.tool.call.id",
    "signal": "sigwrap.signal.number",
    "signal_name": "sigwrap.signal.name",
    "source_pid": "sigwrap.source.pid",
    "source_cmd": "sigwrap.source.command",
    "target_pid": "sigwrap.target.pid",
    "target_cmd": "sigwrap.target.command",
    "target_type": "sigwrap.target.type",
    "seq": "sigwrap.checkpoint.seq",
    "hash": "sigwrap.payload.hash",
    "address": "network.peer.address",
    "port": "network.peer.port",
}
# By the first word of an event's type, or its direction.
_OTHER_NAMES = {
    "exec": {"path": "process.executable.path"},
    "bind": {"address": "network.local.address", "port": "network.local.port"},
    "agent": {"signal": "sigwrap.signal.name", "number": "sigwrap.signal.number"},
    "file": {"command": "process.command_line"},
}
# In the resource, or too long: policies, and recorded bytes.
_LEFT_OUT = frozenset("session_id host sigwrap policy labels policy_sources text base64".split())
_LABELS = {
    "repo": "vcs.repository.name",
    "revision": "vcs.ref.head.revision",
    "pipeline": "cicd.pipeline.name",
    "run": "cicd.pipeline.run.id",
    "job": "cicd.pipeline.task.name",
}

_INFO, _WARN, _ERRORS = (9, "INFO"), (13, "WARN"), (17, "ERROR")
_SEVERITY = dict.fromkeys((DENIED, REFUSED, REDIRECTED, ABSORBED), _WARN)
_SEVERE_TYPES = frozenset(
    "exec_verification_failed mediation_failed control_refused call_refused abi_refused "
    "own_files_changed store_tampered limit_exceeded killswitch_activated".split()
)


class Request(NamedTuple):
    """The body of one POST, or one line of an export."""

    body: Json
    records: int
    last_seq: int  # of its events


def requests(
    signal: str, session_id: str, session_events: Iterable[Event], after_seq: int = 0
) -> Iterator[Request]:
    """Yield all spans, or the logs after `after_seq`. Pass all events: earlier ones began spans."""
    rest = iter(session_events)
    if (first := next(rest, None)) is None:
        return
    trace, whole = _Trace(session_id, first), chain((first,), rest)
    found = trace.records(whole, after_seq) if signal == LOGS else trace.spans(whole)
    outer, inner, each = _PLACES[signal]
    resource = _resource(session_id, first.payload)
    while some := [*islice(found, RECORDS_AT_ONCE)]:
        scope = {"scope": {"name": "sigwrap"}, each: [record for record, _ in some]}
        body = {outer: [{"resource": {"attributes": resource}, inner: [scope]}]}
        yield Request(body, len(some), some[-1][1])


class _Trace:
    """The session's records and spans. An event belongs to the span of its process, which begins
    with its first exec."""

    def __init__(self, session_id: str, first: Event) -> None:
        parent = trace_context.parse(text(first.payload.get("traceparent")))
        self._id = parent.trace_id if parent else trace_context.trace_id(session_id)
        self._parent = parent.span_id if parent else ""
        self._root = trace_context.span_id(session_id)
        self._session_id, self._first = session_id, first
        self._of_pid: dict[int, str] = {}

    def records(self, events: Iterable[Event], after_seq: int) -> Iterator[tuple[Json, int]]:
        """Yield each event as a record, and its seq."""
        for event in events:
            span_id, _ = self._span_of(event)
            if event.seq <= after_seq:
                continue
            warned = _SEVERITY.get(outcome(event), _INFO)
            number, severity = _ERRORS if event.type in _SEVERE_TYPES else warned
            record = {
                "timeUnixNano": _time(event),
                "observedTimeUnixNano": _time(event),
                "severityNumber": number,
                "severityText": severity,
                "eventName": f"sigwrap.{_safe(event.type)}",
                "body": {"stringValue": _safe(_sentence(event))},
                "attributes": _attributes(event),
                "traceId": self._id,
                "spanId": span_id,
            }
            yield record, event.seq

    def spans(self, events: Iterable[Event]) -> Iterator[tuple[Json, int]]:
        """Yield each span when it has ended, the root last, and the seq of its last event."""
        running: dict[str, Json] = {}
        last = self._first
        for last in events:
            span_id, begins = self._span_of(last)
            payload = last.payload
            if begins:
                running[span_id] = self._span(span_id, self._above(last), last)
                if last.type not in EXEC_TYPES:
                    tool = _safe(f"tool_call {text(payload.get('tool'))}")
                    yield running.pop(span_id) | {"name": tool}, last.seq
            elif last.type == "process_exited" and span_id in running:
                span = running.pop(span_id)
                _end(span, last, payload.get("exit_code"), text(payload.get("signal_name")))
                yield span, last.seq
            elif last.type in EXEC_TYPES and outcome(last) != DENIED:
                running[span_id] |= {"name": _program(last), "attributes": _attributes(last)}
        for span in running.values():
            _end(span, last)
            yield span, last.seq
        root = self._span(self._root, self._parent, self._first)
        root["name"] = f"sigwrap {root['name']}".rstrip()
        _end(root, last, last.payload.get("exit_status") if last.type == "session_ended" else None)
        yield root, last.seq

    def _span_of(self, event: Event) -> tuple[str, bool]:
        """Return the span of the event, and whether the event begins it."""
        is_exec, found = event.type in EXEC_TYPES, self._of_pid.get(event.pid)
        if event.type == "tool_call_judged" or (is_exec and not found):
            made = trace_context.span_id(self._session_id, event.seq)
            if is_exec:
                self._of_pid[event.pid] = made
            return made, True
        if event.type == "process_exited":
            self._of_pid.pop(event.pid, None)
        return found or self._root, False

    def _above(self, event: Event) -> str:
        """Return the span of the nearest ancestor that ran a program, or the root."""
        pids = (event.payload.get(name) for name in ("ppid", "below"))
        found = (self._of_pid.get(pid) for pid in pids if isinstance(pid, int))
        return next(filter(None, found), self._root)

    def _span(self, span_id: str, parent: str, event: Event) -> Json:
        return {
            "traceId": self._id,
            "spanId": span_id,
            **({"parentSpanId": parent} if parent else {}),
            "name": _program(event),
            "kind": _INTERNAL,
            "startTimeUnixNano": _time(event),
            "endTimeUnixNano": _time(event),
            "attributes": _attributes(event),
        }


def _end(span: Json, event: Event, code: object = None, why: str = "") -> None:
    """`code`: the exit status, if it is known; `why`: the signal that killed the process."""
    span["endTimeUnixNano"] = max(span["startTimeUnixNano"], _time(event), key=int)
    if code is not None:
        span["attributes"] = [*span["attributes"], _attribute("process.exit.code", code)]
    if code != 0 and (how := why if code is None else f"exit status {code}"):
        span["status"] = {"code": _ERROR, "message": _safe(how)}


def _program(event: Event) -> str:
    words = texts(event.payload.get("argv") or event.payload.get("command"))
    path = text(event.payload.get("path")) or "".join(words[:1])
    return _safe(path.rpartition("/")[2])


def _sentence(event: Event) -> str:
    """Return what happened in a few words, without recorded bytes."""
    said = "" if event.type == "io_recorded" else detail(event)
    return f"{event.type.replace('_', ' ')}: {said}".removesuffix(": ")[:_BODY_CHARACTERS]


def _time(event: Event) -> str:
    return str(max(event.time_ns, 0))


def _resource(session_id: str, start: Payload) -> list[Json]:
    found: dict[str, object] = {"service.name": "sigwrap", "session.id": session_id}
    found["service.version"] = start.get("sigwrap")
    found["host.name"] = start.get("host")
    found["security_rule.ruleset.name"] = start.get("policy")
    labels = start.get("labels")
    for name, value in labels.items() if isinstance(labels, dict) else ():
        found.setdefault(_LABELS.get(name) or f"sigwrap.label.{name}", value)
    return [_attribute(name, value) for name, value in found.items() if value]


def _attributes(event: Event) -> list[Json]:
    payload, family = event.payload, event.type.partition("_")[0]
    if payload.get("direction") == "bind":
        family = "bind"
    names = _NAMES | _OTHER_NAMES.get(family, {})
    found: dict[str, object] = _server(payload) if family == "connection" else {}
    for name, value in payload.items():
        if value is not None and value != "" and name not in _LEFT_OUT:
            found[names.get(name) or f"sigwrap.{name}"] = value
    # After the payload, which cannot fake them.
    found["process.pid"] = event.pid
    found["sigwrap.seq"] = event.seq
    found["sigwrap.hash"] = event.hash
    if what := outcome(event):
        found["sigwrap.outcome"] = what
    return [_attribute(name, value) for name, value in found.items()]


def _server(payload: Payload) -> dict[str, object]:
    """Return the host, by its name if the rules know one, or the path of the socket."""
    destination = text(payload.get("destination"))
    if destination.startswith("unix:"):
        return {"network.peer.address": destination.removeprefix("unix:")}
    host = destination.rpartition(":")[0].strip("[]")
    return {"server.address": host, "server.port": payload.get("port")} if host else {}


def _attribute(name: str, value: object) -> Json:
    return {"key": name if name.isascii() else _safe(name), "value": _value(value)}


def _value(value: object) -> Json:
    if isinstance(value, str):
        return {"stringValue": value if value.isascii() else _safe(value)}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return {"intValue": str(value)}
    if isinstance(value, float) and isfinite(value):
        return {"doubleValue": value}
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return {"arrayValue": {"values": [{"stringValue": _safe(each)} for each in value]}}
    return {"stringValue": json.dumps(value, separators=(",", ":"))}


def _safe(value: str) -> str:
    """Return the text as UTF-8 can have it: bytes that were not UTF-8 as \\udc80 to \\udcff."""
    return value.encode("utf-8", "backslashreplace").decode()
