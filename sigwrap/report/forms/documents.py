"""Reports for programs. A change that breaks a reader gets a new number in "schema"."""

from __future__ import annotations

import json
from typing import Any

from sigwrap.events import Event, Payload
from sigwrap.report.check.reproduce import Reproduction
from sigwrap.report.check.verify import Verification
from sigwrap.report.folds.handed import Handed
from sigwrap.report.folds.incidents import Incident
from sigwrap.report.folds.steps import Step
from sigwrap.report.folds.summary import Listed, Summary
from sigwrap.report.folds.tree import TreeLine, words
from sigwrap.report.forms.findings import Finding, Findings
from sigwrap.report.forms.handed import handed_line
from sigwrap.report.forms.incidents import sentence
from sigwrap.report.forms.steps import MAY_HAVE_DISCARDED, discarding, steps_title
from sigwrap.report.forms.times import iso_time
from sigwrap.store.catalog import SessionFile

REPORT_SCHEMA = "sigwrap.report/2"
SESSIONS_SCHEMA = "sigwrap.sessions/2"
VERIFY_SCHEMA = "sigwrap.verify/2"


def report_json(
    summary: Summary, verification: Verification | None = None, *, size: int = 0
) -> str:
    return _document(report_document(summary, verification, size=size))


def report_document(
    summary: Summary, verification: Verification | None = None, *, size: int = 0
) -> dict[str, Any]:
    started_ns = summary.started_ns
    findings = map(Findings(summary.started).of, summary.attention.groups)
    return {
        "schema": REPORT_SCHEMA,
        "ending": summary.ending.value,
        "exit_status": summary.ended.get("exit_status"),
        "reason": summary.ended.get("reason"),
        "why": summary.explained.command,
        "stopped": _stopped(summary),
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
            "found": [_handed(each, started_ns) for each in summary.handed],
            "more": summary.handed_more,
        },
        "attention": {
            "groups": [_finding(each, started_ns) for each in findings],
            "more": summary.attention.more,
        },
        "discards": {
            "found": [
                {
                    "text": f"{discarding(each)} {MAY_HAVE_DISCARDED}",
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
            "title": steps_title(summary.steps),
            "found": [_step(each, started_ns) for each in summary.steps.found],
            "more": summary.steps.more,
            "own": summary.steps.own,
        },
        "incidents": {
            "found": [_incident(each, started_ns) for each in summary.incidents],
            "more": sum(summary.incidents_more.values()),
            "more_by_kind": summary.incidents_more,
        },
        "waiting": [_event(each) for each in summary.waiting],
        "interrupts": _listed(summary.interrupts),
        "died_of_signal": {
            "found": [_death(each, summary) for each in summary.deaths.events],
            "more": summary.deaths.more,
        },
        "failures": {
            "top": [
                {"argv": words(command), "exit_code": code, "count": count}
                for (command, code), count in summary.failures.counts
            ],
            "rest": summary.failures.rest,
            "exact": summary.failures.exact,
        },
        "recordings": _listed(summary.recordings),
        "programs": {
            "top": [{"path": path, "count": count} for path, count in summary.programs.counts],
            "rest": summary.programs.rest,
            "exact": summary.programs.exact,
        },
        "shadowing": {
            "top": [
                {"path": path, "shadows": shadows, "count": count}
                for (path, shadows), count in summary.shadowing.counts
            ],
            "rest": summary.shadowing.rest,
            "exact": summary.shadowing.exact,
        },
        "signals": {
            "top": [{**edge._asdict(), "count": count} for edge, count in summary.edges.counts],
            "rest": summary.edges.rest,
            "exact": summary.edges.exact,
        },
        "connections": {
            "top": [{**talk._asdict(), "count": count} for talk, count in summary.talks.counts],
            "rest": summary.talks.rest,
            "exact": summary.talks.exact,
        },
        "files": {
            "changes": summary.changes,
            "folders": [
                {
                    "folder": each.folder,
                    "beneath": each.is_beneath,
                    "counts": each.counts,
                    "total": each.total,
                }
                for each in summary.written
            ],
        },
        "processes": {
            "count": summary.ran_processes,
            "known": summary.processes,
            "in_tree": sum(line.processes for line in summary.tree),
            "running": summary.running_processes,
            "lines_not_shown": summary.tree_not_shown,
            "tree": [_tree_line(line) for line in summary.tree],
        },
    }


def _finding(found: Finding, started_ns: int) -> dict[str, Any]:
    suggestion = found.suggestion
    return {
        "kind": found.kind,
        "outcome": found.outcome,
        "label": found.label,
        "answer": found.answer or None,
        "what": found.what,
        "examples": [line for line, _ in found.lines[1:]],
        "command": found.command,
        "command_lines": [{"what": line, "count": n} for line, n in found.lines],
        "other_command_lines": found.other_lines,
        "rule": found.rule,
        "reason": found.reason,
        "count": found.count,
        "by": [{"pid": pid, "command": command, "count": n} for pid, command, n in found.by],
        "by_more": found.by_more,
        "first_seq": found.first_seq,
        "last_seq": found.last_seq,
        "first_at": iso_time(found.first_ns),
        "first_offset_ns": found.first_ns - started_ns,
        "suggestion": None if suggestion is None else suggestion._asdict(),
    }


def _step(step: Step, started_ns: int) -> dict[str, Any]:
    return {
        "tool": step.tool,
        "what": step.what,
        "outcome": step.outcome,
        "exit_code": step.exit_code,
        "signal_name": step.signal_name or None,
        "hook": {"answer": step.answer, "reason": step.reason} if step.answer else None,
        "is_bad": step.is_bad,
        "pid": step.pid,
        "commands": step.ran,
        "below": step.below,
        "denied": step.denied,
        "denials": step.denials,
        "first_seq": step.seq,
        "offset_ns": step.time_ns - started_ns,
        "ended_offset_ns": step.ended_ns - started_ns if step.ended_ns else None,
    }


def _handed(each: Handed, started_ns: int) -> dict[str, Any]:
    return {
        "text": handed_line(each),
        "pid": each.pid,
        "argv": words(each.command),
        "socket": each.socket,
        "by": each.by,
        "by_pid": each.first.pid,
        "count": each.often,
        "first_seq": each.first.seq,
        "first_at": iso_time(each.first.time_ns),
        "first_offset_ns": each.first.time_ns - started_ns,
    }


def _incident(each: Incident, started_ns: int) -> dict[str, Any]:
    return {
        "type": each.first.type,
        "text": sentence(each),
        "count": each.count,
        "first_seq": each.first.seq,
        "last_seq": each.last_seq,
        "first_at": iso_time(each.first.time_ns),
        "first_offset_ns": each.first.time_ns - started_ns,
    }


def _death(event: Event, summary: Summary) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "pid": event.pid,
        "comm": event.payload.get("comm"),
        "signal_name": event.payload.get("signal_name"),
        "why": summary.explained.killed.get(event.seq),
        "at": iso_time(event.time_ns),
        "offset_ns": event.time_ns - summary.started_ns,
    }


def _tree_line(line: TreeLine) -> dict[str, Any]:
    return {
        "depth": line.depth,
        "argv": words(line.command),
        "exec_in_place": line.in_place,
        "refused": line.refused,
        "forked": line.forked,
        "first_pid": line.first_pid,
        "first_seq": line.first_seq,
        "count": line.count,
        "processes": line.processes,
        "running": line.running,
        "failed": line.failed,
        "not_started": line.not_started,
        "killed": dict(line.killed),
        "outcomes": dict(line.outcomes),
    }


def _stopped(summary: Summary) -> Payload | None:
    stopped = summary.explained.stopped
    return stopped and {"since": iso_time(stopped.since_ns), "by": stopped.by}


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
                "reproduced": reproduction.reproduced,
                "not_judged": reproduction.not_judged,
                "not_judged_rows": {
                    why: list(rows) for why, rows in reproduction.not_judged_rows.items()
                },
            },
        }
    )


def sessions_json(sessions: list[SessionFile]) -> str:
    return _document(
        {
            "schema": SESSIONS_SCHEMA,
            "sessions": [
                {
                    "session_id": file.id,
                    "path": file.path,
                    "name": file.name,
                    "inside": file.inside,
                    "command": list(file.command),
                    "running": file.running,
                    "stopped": file.is_stopped,
                    "ended_cleanly": file.ended_cleanly,
                    "exit_status": file.exit_status,
                    "denied": file.denied,
                    "reason": file.reason,
                    "events": file.events,
                    "started_at": iso_time(file.started_ns) if file.events else None,
                    "last_event_at": iso_time(file.last_event_ns) if file.events else None,
                    "problem": file.problem,
                    "size": file.size,
                    "files": len(file.files),
                    "user": file.user,
                    "host": file.host,
                    "recoverable": file.is_in_several_files and not file.ended_cleanly,
                }
                for file in sessions
            ],
        }
    )


def event_json(event: Event) -> str:
    """One line."""
    return json.dumps(_event(event), separators=(",", ":"))


def _verification(verification: Verification) -> dict[str, Any]:
    return {
        "outcome": verification.outcome.value,
        "problem": verification.problem,
        "row": verification.row or None,
        "events": verification.events,
        "head": verification.head,
        "head_given": verification.head_given,
        "keyed": verification.keyed,
        "ended": verification.ended,
    }


def _listed(listed: Listed) -> dict[str, Any]:
    return {"events": [_event(event) for event in listed.events], "more": listed.more}


def _event(event: Event) -> dict[str, Any]:
    return {
        "seq": event.seq,
        "time": iso_time(event.time_ns),
        "time_ns": event.time_ns,
        "type": event.type,
        "pid": event.pid,
        "payload": event.payload,
        "hash": event.hash,
    }


def _document(content: dict[str, Any]) -> str:
    # ASCII: a byte that is no UTF-8 stays visible as \udcXX and breaks no reader's decoding.
    return json.dumps(content, indent=2)
