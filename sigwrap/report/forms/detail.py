"""One event in a few words."""

from __future__ import annotations

from typing import Any

from sigwrap.events import (
    ALLOWED,
    CONNECTION_TYPES,
    DECISION_TYPES,
    EXEC_TYPES,
    SIGNAL_TYPES,
    Event,
    Payload,
    counted,
    number,
    outcome,
    text,
    texts,
    times,
)
from sigwrap.report.folds.attention import Handed, what
from sigwrap.report.folds.cause import sent_to_sigwrap
from sigwrap.report.folds.incidents import INCIDENT_TYPES, Incident, with_new_keys
from sigwrap.text import printable, shell_words

_CHARACTERS_SHOWN = 400
# What --follow shows besides actions that were not simply allowed, requests and deaths.
_LIVE = ("interrupt_received", "tree_frozen", "tree_thawed", "tool_call_judged", *INCIDENT_TYPES)


def detail(event: Event) -> str:
    said = _said(event)
    return said if len(said) <= _CHARACTERS_SHOWN else f"{said[:_CHARACTERS_SHOWN]}..."


def live_line(event: Event, started_ns: int) -> str:
    """Return a line for a new event of a running session, or "" if it isn't worth one."""
    became = outcome(event)
    said = ""
    if became:
        said = "" if became == ALLOWED else f"{became}  {detail(event)}"
    elif event.type == "approval_requested":
        request = printable(text(event.payload.get("approval_id")))
        said = f"request {request}  {detail(event)}  (sigwrap approve {request})"
    elif event.type in _LIVE or is_death(event):
        said = detail(event)
    return f"{(event.time_ns - started_ns) / 1e9:>+10.3f} s  {said}" if said else ""


def is_death(event: Event) -> bool:
    return event.type == "process_exited" and bool(event.payload.get("signal_name"))


def _said(event: Event) -> str:
    payload = event.payload
    name = event.type
    if name in DECISION_TYPES:
        return _request(event)
    if name in INCIDENT_TYPES:
        return Incident(first=event, last_seq=event.seq).sentence
    match name:
        case "session_started":
            command = shell_words(texts(payload.get("command")) or ["?"])
            where = f"{command}  in {_text(payload, 'cwd')}"
            return f"{where}  under {_text(payload, 'policy')[:_CHARACTERS_SHOWN]}"
        case "session_ended":
            return f"exit status {_text(payload, 'exit_status')}: {_text(payload, 'reason')}"
        case "process_exited":
            end = f"exit {_text(payload, 'exit_code')}"
            if payload.get("signal_name"):
                end = f"died of {_text(payload, 'signal_name')}"
            return f"{_text(payload, 'comm')}  {end}"
        case "approval_requested":
            return f"{_text(payload, 'what')}  (rule {_text(payload, 'rule_name')})"
        case "approval_granted" | "approval_denied" | "approval_expired":
            answer = f"{_text(payload, 'what')}  by {_text(payload, 'by')}"
            return f"{answer}: {_text(payload, 'reason')}" if payload.get("reason") else answer
        case "file_audited":
            return _file(payload)
        case "file_refused_likely":
            rule = f"(rule {_text(payload, 'rule_name')})"
            return f"{what(event)}  by {_text(payload, 'comm')}  {rule}"
        case "work_handed_outside":
            return Handed(event, times(event.payload)).line
        case "io_recorded":
            size = f"{_text(payload, 'stream')}  {_text(payload, 'size')} B"
            return f"{size}  {_content(payload)}"
        case "tool_call_judged":
            call = "; ".join(text(payload.get("what")).split("\n"))
            return f"{_text(payload, 'tool')}: {printable(call)}  {_text(payload, 'answer')}"
        case "tree_frozen":
            return f"stopped {_processes(payload)}"
        case "tree_thawed":
            return f"continued {_processes(payload)}"
        case _ if name.startswith("interrupt_"):
            return interrupt_line(event)
        case _:
            return ", ".join(
                f"{printable(field)} {shown}"
                for field, value in payload.items()
                if value not in (None, "", [], {}) and (shown := _value(value))
            )


def interrupt_line(event: Event) -> str:
    payload = event.payload
    what = event.type.removeprefix("interrupt_")
    match what:
        case "received":
            left = ", left to the command" if payload.get("taken_by") == "command" else ""
            said = f"received {sent_to_sigwrap(payload)}{left}"
        case "escalated":
            reason = with_new_keys(str(payload.get("reason")))
            said = f"killed the tree ({_processes(payload)}): {reason}"
        case "withdrawn":
            said = "ignored: the command returned to its prompt"
        case _:
            said = f"{what} {payload.get('signal_name') or ''}"
    return printable(said)


def _processes(payload: Payload) -> str:
    return counted(number(payload.get("processes")), "process", "processes")


def _file(payload: Payload) -> str:
    to = f" -> {_text(payload, 'to')}" if payload.get("to") else ""
    where = f" {_text(payload, 'path')}{to}" if payload.get("path") else ""
    often = f"  {times(payload)} times" if times(payload) > 1 else ""
    return f"{_text(payload, 'operation')}{where}  by {_text(payload, 'comm')}{often}"


def _request(event: Event) -> str:
    payload = event.payload
    said = what(event)
    if event.type in SIGNAL_TYPES:
        said += f"  from {_text(payload, 'source_cmd')}"
    elif event.type in CONNECTION_TYPES:
        said += f"  by {_text(payload, 'comm')}"
    if event.type not in EXEC_TYPES and times(payload) > 1:
        said += f"  {times(payload)} times"
    if payload.get("shadows"):
        said += f"  shadows {_text(payload, 'shadows')}"
    if outcome(event) != ALLOWED:
        message = f": {printable(' '.join(text(payload.get('message')).split()))}"
        said += f"  (rule {_text(payload, 'rule_name')}{message if len(message) > 2 else ''})"
    return said


def _content(payload: Payload) -> str:
    recorded = payload.get("text")
    return "(binary)" if recorded is None else printable(str(recorded)[:_CHARACTERS_SHOWN])


def _text(payload: Payload, field: str) -> str:
    value = payload.get(field)
    return "?" if value is None else printable(str(value))


def _value(value: Any) -> str:
    """Return "" for a value with fields of its own, which `sigwrap export` shows."""
    if isinstance(value, list):
        return "" if any(isinstance(each, dict) for each in value) else shell_words(map(str, value))
    return "" if isinstance(value, dict) else printable(str(value))
