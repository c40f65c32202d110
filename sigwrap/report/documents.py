"""Reports for programs. A change that breaks a reader gets a new number in "schema"."""

from __future__ import annotations

import json
from typing import Any

from sigwrap.events import Event, Payload
from sigwrap.report.summary import Listed, Summary
from sigwrap.report.times import iso_time
from sigwrap.report.tree import words
from sigwrap.report.verify import Verification
from sigwrap.store.catalog import SessionFile

REPORT_SCHEMA = "sigwrap.report/1"
SESSIONS_SCHEMA = "sigwrap.sessions/1"
VERIFY_SCHEMA = "sigwrap.verify/1"


def report_json(summary: Summary, verification: Verification | None = None) -> str:
    return _document(
        {
            "schema": REPORT_SCHEMA,
            "ending": summary.ending.value,
            "exit_status": summary.ended.get("exit_status"),
            "reason": summary.ended.get("reason"),
            "unrecorded": summary.ended.get("unrecorded"),
            "duration_ns": summary.duration_ns,
            "started_at": iso_time(summary.started_ns),
            "last_event_at": iso_time(summary.last_event_ns),
            "head": summary.head,
            "verification": None if verification is None else _verification(verification),
            "session": summary.started,
            "events": summary.events,
            "by_type": summary.by_type,
            "by_decision": summary.by_decision,
            "programs": {
                "top": [{"path": path, "count": count} for path, count in summary.programs.counts],
                "rest": summary.programs.rest,
                "exact": summary.programs.exact,
            },
            "signals": {
                "top": [
                    {
                        "signal_name": edge.signal_name,
                        "source": edge.source,
                        "target": edge.target,
                        "target_type": edge.target_type,
                        "decision": edge.decision,
                        "count": count,
                    }
                    for edge, count in summary.signals.counts
                ],
                "rest": summary.signals.rest,
                "exact": summary.signals.exact,
            },
            "interrupts": _listed(summary.interrupts),
            "died_of_signal": _listed(summary.deaths),
            "why": summary.why,
            "stopped": _stopped(summary),
            "why_killed": {str(seq): why for seq, why in summary.why_killed.items()},
            "recordings": _listed(summary.recordings),
            "not_plainly_let_through": _listed(summary.not_plainly_let_through),
            "processes": {
                "count": summary.processes,
                "running": summary.running_processes,
                "lines_not_shown": summary.tree_not_shown,
                "tree": [
                    {
                        "depth": line.depth,
                        "argv": words(line.command),
                        "exec_in_place": line.in_place,
                        "first_pid": line.first_pid,
                        "count": line.count,
                        "running": line.running,
                        "failed": line.failed,
                        "killed": dict(line.killed),
                    }
                    for line in summary.tree
                ],
            },
        }
    )


def _stopped(summary: Summary) -> Payload | None:
    stopped = summary.stopped
    return stopped and {"since": iso_time(stopped.since_ns), "by": stopped.by}


def verification_json(session_id: str, path: str, verification: Verification) -> str:
    return _document(
        {
            "schema": VERIFY_SCHEMA,
            "session_id": session_id,
            "path": path,
            **_verification(verification),
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
                    "reason": file.reason,
                    "events": file.events,
                    "started_at": iso_time(file.started_ns) if file.events else None,
                    "last_event_at": iso_time(file.last_event_ns) if file.events else None,
                    "problem": file.problem,
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
