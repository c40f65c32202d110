"""Reports for programs. A change that breaks a reader gets a new number in "schema"."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from sigwrap.events import Event
from sigwrap.log.catalog import SessionFile
from sigwrap.report.check.decisions import Reproduction
from sigwrap.report.check.verify import Verification
from sigwrap.report.folds.attention import Group, Handed, discard_text
from sigwrap.report.folds.bounded import Listed, Tally
from sigwrap.report.folds.incidents import Incident
from sigwrap.report.folds.steps import Step
from sigwrap.report.folds.summary import Summary
from sigwrap.report.folds.tree import FORKED, IN_PLACE, REFUSED, Node, words
from sigwrap.report.forms.rules import Suggestions
from sigwrap.report.forms.times import iso_time
from sigwrap.text import printable

REPORT_SCHEMA = "sigwrap.report/2"
SESSIONS_SCHEMA = "sigwrap.sessions/2"
VERIFY_SCHEMA = "sigwrap.verify/2"
LAKE_SCHEMA = "sigwrap.lake/1"


def report_json(
    summary: Summary, verification: Verification | None = None, *, size: int = 0
) -> str:
    return _document(report_document(summary, verification, size=size))


def report_document(
    summary: Summary, verification: Verification | None = None, *, size: int = 0
) -> dict[str, Any]:
    started_ns, suggestions = summary.started_ns, Suggestions(summary)
    stopped, processes = summary.explained.stopped, summary.processes
    return {
        "schema": REPORT_SCHEMA,
        "ending": summary.ending.value,
        "exit_status": summary.ended.get("exit_status"),
        "reason": summary.ended.get("reason"),
        "why": summary.explained.command,
        "stopped": stopped and {"since": iso_time(stopped.since_ns), "by": stopped.by},
        "unrecorded": summary.ended.get("unrecorded"),
        "duration_ns": summary.duration_ns,
        "started_at": iso_time(started_ns),
        "last_event_at": iso_time(summary.last_event_ns),
        "head": summary.head,
        "verification": None if verification is None else _verification(verification),
        "session": summary.started,
        "size_bytes": size or None,
        "events": summary.events,
        "selected_events": None if summary.selection is None else summary.selection.taken,
        "by_type": summary.by_type,
        "outcomes": {
            "exec": summary.counts.execs,
            "signal": summary.counts.signals,
            "connection": summary.counts.connections,
        },
        "denied": summary.counts.denied,
        "approvals": summary.counts.answers,
        "handed_outside": {
            "found": [_handed(each, started_ns) for each in summary.handed.found],
            "more": summary.handed.more,
        },
        "attention": {
            "groups": [_group(each, suggestions, started_ns) for each in summary.attention.groups],
            "more": summary.attention.more,
        },
        "discards": {
            "found": [
                {
                    "text": discard_text(each),
                    "pid": each.pid,
                    "first_seq": each.seq,
                    "first_offset_ns": each.time_ns - started_ns,
                }
                for each in summary.discards.events
            ],
            "more": summary.discards.more,
        },
        "steps": {
            "by_agent": summary.steps.by_agent,
            "title": summary.steps.title,
            "found": [_step(each, started_ns) for each in summary.steps.found],
            "more": summary.steps.more,
            "own": summary.steps.own,
        },
        "incidents": {
            "found": [_incident(each, started_ns) for each in summary.incidents.found],
            "more": sum(summary.incidents.more.values()),
            "more_by_kind": summary.incidents.more,
        },
        "waiting": [_event(each) for each in summary.waiting],
        "interrupts": _listed(summary.interrupts),
        "died_of_signal": {
            "found": [_death(each, summary) for each in summary.deaths.events],
            "more": summary.deaths.more,
        },
        "failures": _tally(
            summary.failures, lambda key: {"argv": words(key.command), "exit_code": key.exit_code}
        ),
        "recordings": _listed(summary.recordings),
        "programs": _tally(summary.programs, lambda path: {"path": path}),
        "shadowing": _tally(summary.shadowing, lambda key: {"path": key[0], "shadows": key[1]}),
        "signals": _tally(summary.edges, lambda edge: edge._asdict()),
        "connections": _tally(summary.talks, lambda talk: talk._asdict()),
        "files": {
            "changes": summary.files.changes,
            "folders": [
                _fields(each, "folder", "beneath", "counts", "total")
                for each in summary.files.result()
            ],
        },
        "processes": {
            "count": processes.ran,
            "known": processes.processes,
            "in_tree": sum(node.processes for node in summary.tree),
            "running": processes.running,
            "lines_not_shown": processes.not_shown,
            "tree": [_node(node) for node in summary.tree],
        },
    }


def _tally(tally: Tally[Any], fields: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    top = [{**fields(key), "count": count} for key, count in tally.counts]
    return {"top": top, "rest": tally.rest, "exact": tally.exact}


# Promised by sigwrap.report/2.
_LABELS = {"denied": "not approved", "expired": "approval expired"}


def _first(event: Event, started_ns: int) -> dict[str, Any]:
    return {"first_at": iso_time(event.time_ns), "first_offset_ns": event.time_ns - started_ns}


def _group(group: Group, suggestions: Suggestions, started_ns: int) -> dict[str, Any]:
    suggestion = suggestions.of(group)
    lines = group.whats
    return {
        "kind": group.kind,
        "outcome": group.outcome,
        "label": _LABELS.get(group.answer, group.label),
        "answer": group.answer or None,
        "what": lines[0][0],
        "examples": [line for line, _ in lines[1:]],
        "command": group.program,
        "command_lines": [{"what": line, "count": n} for line, n in lines],
        "other_command_lines": group.other_lines,
        "rule": printable(group.rule),
        "reason": group.reason,
        "count": group.count,
        "by": [{"pid": pid, "command": command, "count": n} for pid, command, n in group.callers],
        "by_more": group.by_more,
        "first_seq": group.first.seq,
        "last_seq": group.last_seq,
        **_first(group.first, started_ns),
        "suggestion": None if suggestion is None else suggestion._asdict(),
    }


def _fields(found: object, *names: str) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names}


def _step(step: Step, started_ns: int) -> dict[str, Any]:
    return {
        **_fields(step, "tool", "what", "outcome", "exit_code"),
        "signal_name": step.signal_name or None,
        "hook": {"answer": step.answer, "reason": step.reason} if step.answer else None,
        **_fields(step, "is_bad", "pid"),
        "commands": step.ran,
        **_fields(step, "below", "denied", "denials"),
        "first_seq": step.seq,
        "offset_ns": step.time_ns - started_ns,
        "ended_offset_ns": step.ended_ns - started_ns if step.ended_ns else None,
    }


def _handed(each: Handed, started_ns: int) -> dict[str, Any]:
    return {
        "text": each.line,
        "pid": each.pid,
        "argv": words(each.command),
        "socket": each.socket,
        "by": each.by,
        "by_pid": each.first.pid,
        "count": each.often,
        "first_seq": each.first.seq,
        **_first(each.first, started_ns),
    }


def _incident(each: Incident, started_ns: int) -> dict[str, Any]:
    return {
        "type": each.first.type,
        "text": each.sentence,
        "count": each.count,
        "first_seq": each.first.seq,
        "last_seq": each.last_seq,
        **_first(each.first, started_ns),
    }


def _death(event: Event, summary: Summary) -> dict[str, Any]:
    return {
        **_fields(event, "seq", "pid"),
        "comm": event.payload.get("comm"),
        "signal_name": event.payload.get("signal_name"),
        "why": summary.explained.killed.get(event.seq),
        "at": iso_time(event.time_ns),
        "offset_ns": event.time_ns - summary.started_ns,
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "depth": node.depth,
        "argv": words(node.command),
        "exec_in_place": node.kind == IN_PLACE,
        "refused": node.kind == REFUSED,
        "forked": node.kind == FORKED,
        **_fields(node, "first_pid", "first_seq", "count", "processes", "running", "failed"),
        **_fields(node, "not_started", "killed", "outcomes"),
    }


def verification_json(
    session_id: str, path: str, verification: Verification, reproduction: Reproduction
) -> str:
    return _document(
        {
            "schema": VERIFY_SCHEMA,
            "session_id": session_id,
            "path": path,
            **_verification(verification),
            "decisions": {
                "count": reproduction.decisions,
                **_fields(reproduction, "reproduced", "not_judged", "not_judged_rows"),
            },
        }
    )


def lake_json(audit: dict[str, Any]) -> str:
    return _document({"schema": LAKE_SCHEMA, **audit})


def sessions_json(sessions: list[SessionFile]) -> str:
    return _document({"schema": SESSIONS_SCHEMA, "sessions": list(map(_session, sessions))})


def _session(file: SessionFile) -> dict[str, Any]:
    is_known = bool(file.events)
    return {
        "session_id": file.id,
        **_fields(file, "path", "name", "inside"),
        "command": list(file.command),
        "running": file.running,
        "stopped": file.is_stopped,
        **_fields(file, "ended_cleanly", "exit_status", "denied", "reason", "events"),
        "started_at": iso_time(file.started_ns) if is_known else None,
        "last_event_at": iso_time(file.last_event_ns) if is_known else None,
        **_fields(file, "problem", "size"),
        "files": len(file.files),
        **_fields(file, "user", "host"),
        "recoverable": file.is_in_several_files and not file.ended_cleanly,
    }


def event_json(event: Event) -> str:
    """Return the event as one line."""
    return json.dumps(_event(event), separators=(",", ":"))


def _verification(verification: Verification) -> dict[str, Any]:
    found = asdict(verification)
    return found | {"outcome": verification.outcome.value, "row": verification.row or None}


def _listed(listed: Listed) -> dict[str, Any]:
    return {"events": [_event(event) for event in listed.events], "more": listed.more}


def _event(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "time": iso_time(event.time_ns),
        **_fields(event, "time_ns", "type", "pid", "payload", "hash"),
    }


def _document(content: dict[str, Any]) -> str:
    # ASCII: a byte that is not UTF-8 stays visible as \udcXX and breaks no reader's decoding.
    return json.dumps(content, indent=2)
