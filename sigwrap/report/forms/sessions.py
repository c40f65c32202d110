"""The list of sessions, one line each."""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.log.catalog import SessionFile
from sigwrap.report.forms.layout import PLAIN, Style, columns_of, cut, cut_to
from sigwrap.report.forms.times import ago, byte_size, local_time, rough_span
from sigwrap.text import printable, shell_words, shortened

_WIDE = 110
_NAME_COLUMNS = 20
_ID_COLUMNS = 40  # a session id has 22, but a file in the store can have any name
_LONGEST = 10_000
_GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The time, terminal and machine of the user who reads the list; no `columns` in a pipe."""

    now_ns: int
    columns: int | None = None
    user: str = ""
    host: str = ""
    utc: bool = False
    style: Style = PLAIN


def render_sessions(sessions: list[SessionFile], reader: Reader) -> str:
    """Return a table that is no wider than the reader's terminal."""
    if not sessions:
        return "no sessions yet"
    is_wide = reader.columns is None or reader.columns >= _WIDE
    hidden = {"NAME"} if not is_wide or not any(file.name for file in sessions) else set()
    if not is_wide:
        hidden |= {"STARTED", "DENIED"}
    rows = [_row(file, reader, hidden) for file in sessions]
    heads = [head for head in rows[0] if head not in hidden]
    heading = dict(zip(heads, heads, strict=True))
    widths = {head: max(columns_of(row[head]) for row in (heading, *rows)) for head in heads}
    widths["COMMAND"] = 0
    lines = [reader.style.heading(cut(_GAP.join(_padded(heading, widths)), reader.columns or 0))]
    for file, row in zip(sessions, rows, strict=True):
        cells = _padded(row, widths)
        line = cut(_GAP.join(cells).rstrip(), reader.columns or 0)
        start, end = len(_GAP.join([*cells[: heads.index("ENDED")], ""])), row["ENDED"]
        is_bad = not file.running and file.exit_status != 0
        if is_bad and line.startswith(end, start):  # else it was cut there
            line = line[:start] + reader.style.bad(end) + line[start + len(end) :]
        lines.append(line)
    return "\n".join(lines)


def _row(file: SessionFile, reader: Reader, hidden: set[str]) -> dict[str, str]:
    session_id, name = printable(file.id), printable(file.name)
    if reader.columns is not None:
        session_id, name = cut_to(session_id, _ID_COLUMNS), cut_to(name, _NAME_COLUMNS)
    began_ns = file.started_ns if file.events else file.changed_ns
    end = _ending(file, reader.now_ns)
    if "DENIED" in hidden and file.denied:
        end += f", {file.denied} denied"
    return {
        "SESSION": session_id,
        "NAME": name,
        "STARTED": local_time(began_ns, utc=reader.utc),
        "AGE": ago(reader.now_ns - began_ns) or "now",
        "ENDED": end,
        "DENIED": "?" if file.denied is None else str(file.denied),
        "SIZE": byte_size(file.size),
        "COMMAND": f"({name}) " * bool(name and "NAME" in hidden) + _what(file, reader),
    }


def _padded(row: dict[str, str], widths: dict[str, int]) -> list[str]:
    return [row[head] + " " * (width - columns_of(row[head])) for head, width in widths.items()]


def _what(file: SessionFile, reader: Reader) -> str:
    if file.problem:
        return "" if file.running else printable(file.problem)
    command = shortened(shell_words(file.command), _LONGEST)
    inside = f"  inside {printable(file.inside)}" if file.inside else ""
    return command + inside + _by(file, reader)


def _by(file: SessionFile, reader: Reader) -> str:
    """Return the user and host where they are not the reader's."""
    user = file.user if file.user != reader.user else ""
    host = file.host if file.host != reader.host else ""
    if not user and not host:
        return ""
    return f"  by {printable(f'{file.user}@{file.host}')}"


def _ending(file: SessionFile, now_ns: int) -> str:
    if file.problem:
        return "starting" if file.running else "unreadable"
    if file.is_of_hooks:
        return "hook log"
    if file.ended_cleanly:
        return f"exit {file.exit_status}"
    if not file.running:
        return "did not end cleanly"
    if file.is_stopped:
        return "stopped"
    return f"running for {rough_span(now_ns - file.started_ns)}"
