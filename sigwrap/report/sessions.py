"""The list of sessions, one line each."""

from __future__ import annotations

from sigwrap.escape import printable, shell_words
from sigwrap.report.times import local_time, span
from sigwrap.store.catalog import SessionFile

_COMMAND_CHARACTERS_SHOWN = 100


def render_sessions(sessions: list[SessionFile]) -> str:
    if not sessions:
        return "no sessions yet"
    return "\n".join(map(_line, sessions))


def _line(file: SessionFile) -> str:
    session_id = printable(file.id)
    if file.problem:
        return f"{session_id}  {'starting' if file.running else printable(file.problem)}"
    command = shell_words(file.command)
    if len(command) > _COMMAND_CHARACTERS_SHOWN:
        command = command[:_COMMAND_CHARACTERS_SHOWN] + "..."
    name = f"  ({printable(file.name)})" if file.name else ""
    inside = f"  inside {printable(file.inside)}" if file.inside else ""
    duration = span(file.last_event_ns - file.started_ns)
    return (
        f"{session_id}  {local_time(file.started_ns)}  {_ending(file):<21}  {duration:>12}  "
        f"{file.events:>8} events  {command}{name}{inside}"
    )


def _ending(file: SessionFile) -> str:
    if file.ended_cleanly:
        return f"exit status {file.exit_status}"
    if not file.running:
        return "did not end cleanly"
    return "running, stopped" if file.is_stopped else "running"
