"""The list of sessions, one line each."""

from __future__ import annotations

from dataclasses import dataclass

from sigwrap.escape import columns_of, cut_to, printable, shell_words
from sigwrap.report.forms.layout import cut
from sigwrap.report.forms.sizes import byte_size
from sigwrap.report.forms.style import PLAIN, Style
from sigwrap.report.forms.times import ago, local_time, rough_span
from sigwrap.store.catalog import SessionFile

_WIDE = 110
_NAME_COLUMNS = 20
_ID_COLUMNS = 40  # an id of sigwrap's has 22; a file in the store may be called anything
_LONGEST = 10_000
_GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads the list: now, and on a machine. `columns` is None where there is no terminal."""

    now_ns: int
    columns: int | None = None
    user: str = ""
    host: str = ""
    utc: bool = False
    style: Style = PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    file: SessionFile
    cells: tuple[str, ...]
    what: str


def render_sessions(sessions: list[SessionFile], reader: Reader) -> str:
    """On a terminal a line is no longer than that is wide."""
    if not sessions:
        return "no sessions yet"
    is_wide = reader.columns is None or reader.columns >= _WIDE
    is_named = is_wide and any(file.name for file in sessions)
    heading = _cells(
        "SESSION", "NAME", "STARTED", "AGE", "ENDED", "DENIED", "SIZE", is_wide, is_named
    )
    lines = [_line(file, reader, is_wide=is_wide, is_named=is_named) for file in sessions]
    table = [line.cells for line in lines]
    table.append(heading)
    widths = [max(map(columns_of, column)) for column in zip(*table, strict=True)]
    shown = [_shown(line.cells, line.what, widths, reader.columns) for line in lines]
    ended_at = len(heading) - (3 if is_wide else 2)
    shown = [
        _coloured(text, line, ended_at, widths, reader.style)
        for text, line in zip(shown, lines, strict=True)
    ]
    title = _shown(heading, "COMMAND", widths, reader.columns)
    return "\n".join([reader.style.heading(title), *shown])


def _cells(
    session: str,
    name: str,
    started: str,
    age: str,
    ended: str,
    denied: str,
    size: str,
    is_wide: bool,
    is_named: bool,
) -> tuple[str, ...]:
    names = (name,) if is_named else ()
    if is_wide:
        return (session, *names, started, age, ended, denied, size)
    if denied.isdecimal() and int(denied):
        ended += f", {denied} denied"
    return (session, *names, age, ended, size)


def _line(file: SessionFile, reader: Reader, *, is_wide: bool, is_named: bool) -> _Line:
    session_id, name = printable(file.id), printable(file.name)
    if reader.columns is not None:
        session_id, name = cut_to(session_id, _ID_COLUMNS), cut_to(name, _NAME_COLUMNS)
    began_ns = file.started_ns if file.events else file.changed_ns
    started = local_time(began_ns, utc=reader.utc)
    age = ago(reader.now_ns - began_ns) or "now"
    cells = _cells(
        session_id,
        name,
        started,
        age,
        _ending(file, reader.now_ns),
        "" if file.denied is None else str(file.denied),
        byte_size(file.size),
        is_wide,
        is_named,
    )
    what = _what(file, reader)
    if name and not is_named:
        what = f"({name}) {what}"
    return _Line(file=file, cells=cells, what=what)


def _what(file: SessionFile, reader: Reader) -> str:
    if file.problem:
        return "" if file.running else printable(file.problem)
    command = shell_words(file.command)
    if len(command) > _LONGEST:
        command = command[:_LONGEST] + "…"
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


def _shown(cells: tuple[str, ...], what: str, widths: list[int], columns: int | None) -> str:
    return cut(_GAP.join([*map(_padded, cells, widths), what]).rstrip(), columns or 0)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns_of(text))


def _coloured(text: str, line: _Line, at: int, widths: list[int], style: Style) -> str:
    """How it ended, where that asks for a look."""
    if line.file.running or line.file.exit_status == 0:
        return text
    ending = line.cells[at]
    start = len(_GAP.join([*map(_padded, line.cells[:at], widths), ""]))
    if text[start : start + len(ending)] != ending:
        return text  # it was cut
    return text[:start] + style.bad(ending) + text[start + len(ending) :]
