"""Rows for a terminal of some size. Pure, and without colour: signs mark what is selected."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sigwrap.bare import NamedTuple
from sigwrap.events import counted
from sigwrap.report.forms.layout import columns_of, cut_to
from sigwrap.report.forms.times import rough_span
from sigwrap.text import printable, rows, shell_words
from sigwrap.watch.board import ENDED, Board, EventLine, ListedRequest, SessionView
from sigwrap.watch.requests import lines_of, origin_of
from sigwrap.watch.terminal.state import Mode, ScreenState

FEWEST_COLUMNS, FEWEST_ROWS = 40, 10
_OTHERS_SHOWN = 3
_SMALL = 16  # rows: a request comes first there
_COMMAND_COLUMNS = 12
_KEYS = """
y    approve once
a    approve for this session, identical requests too
n    deny
m    deny, with a message for the caller
j k  next and previous request (or arrows)
v    show the whole request

Tab  show the events of the next session
f    choose which events to show
s    stop the session, as Ctrl+C does there
K    kill switch on: ends all your sessions now and blocks new ones
q    quit; sessions go on
"""


class Row(NamedTuple):
    text: str
    is_strong: bool = False
    is_chosen: bool = False


class Size(NamedTuple):
    columns: int
    rows: int


def drawn(
    state: ScreenState, lines: Iterable[EventLine], size: Size, now_ns: int, whole: str
) -> list[Row]:
    """Return as many rows as fit. `lines`: of the selected session. `whole`: the command that shows
    a request in full."""
    if size.columns < FEWEST_COLUMNS or size.rows < FEWEST_ROWS:
        state.does_not_fit, state.is_end_shown = True, False
        return _fitted([Row(f"needs {FEWEST_COLUMNS}x{FEWEST_ROWS}")], size)
    bottom = _bottom(state, size)
    room = size.rows - len(bottom)
    request = state.request
    broken = [] if request is None else _request_rows(request, size, now_ns, whole)
    if state.mode is Mode.HELP:
        above = [Row("sigwrap watch: keys", True), *map(Row, _KEYS.splitlines())]
    elif state.mode is Mode.WHOLE and broken:
        above = _whole(state, broken, room)
    else:
        above = _board(state, lines, broken, size, room, now_ns)
    if len(above) > room:
        state.does_not_fit = True
    return _fitted([*above[:room], *[Row("")] * (room - len(above)), *bottom], size)


def _board(
    state: ScreenState,
    lines: Iterable[EventLine],
    broken: list[Row],
    size: Size,
    room: int,
    now_ns: int,
) -> list[Row]:
    top = _heading(state.board)
    is_small = room < _SMALL and bool(broken)
    events = [] if is_small else _events(state, lines, max(3, room // 4))
    for_sessions = 2 if is_small else max(3, room // 4)
    left = room - len(top) - for_sessions - len(events)
    requests = _requests(state, broken, left)
    spare = max(0, left - len(requests))
    above = [*top, *_sessions(state, size, for_sessions + spare, now_ns), *requests]
    return above if is_small else above + _events(state, lines, room - len(above))


def _heading(board: Board) -> list[Row]:
    running = sum(each.state != ENDED for each in board.sessions)
    waiting = len(board.waiting)
    parts = [counted(running, "session")] if running else ["no running sessions"]
    parts.append(counted(waiting, "approval request") if waiting else "no approval requests")
    switch = "kill switch off" if board.killswitch is None else "KILL SWITCH ON"
    found = [Row(f"sigwrap watch   {', '.join(parts)}   {switch}", is_strong=True)]
    if board.killswitch is not None:
        found.append(
            Row(f"{board.killswitch}; to turn it off: sigwrap killswitch off", is_strong=True)
        )
    found += [Row(f"incomplete: {each}") for each in board.problems[:2]]
    return found


def _sessions(state: ScreenState, size: Size, room: int, now_ns: int) -> list[Row]:
    board, selected = state.board, state.session
    if not board.sessions:
        return [Row("  no sessions yet; start one: sigwrap -- COMMAND")]
    at = board.sessions.index(selected) if selected in board.sessions else 0
    start = max(0, min(at - room + 2, len(board.sessions) - room + 1))
    shown = board.sessions[start : start + room - 1]
    asking = {each.session_id for each in board.waiting}
    cells = [_cells(each, asking, now_ns) for each in shown]
    heading = ("SESSION", "STATE", "AGE", "PROCS", "DENIED")
    widths = [max(map(columns_of, column)) for column in zip(heading, *cells, strict=True)]
    widths[1] = max(widths[1], len("running"))  # so that nothing moves when a session asks
    widths[0] = min(widths[0], max(size.columns - 34 - _COMMAND_COLUMNS, 12))
    left_out = len(board.sessions) - len(shown) + board.more
    more = f"   ({left_out} more)" if left_out else ""
    found = [Row(f"  {_padded(heading, widths)}  COMMAND{more}", is_strong=True)]
    for seen, each in zip(shown, cells, strict=True):
        mark = ">" if seen is selected else " "
        command = shell_words(seen.command)
        found.append(Row(f"{mark} {_padded(each, widths)}  {command}", is_chosen=seen is selected))
    return found


def _cells(seen: SessionView, asking: set[str], now_ns: int) -> tuple[str, ...]:
    age = rough_span(now_ns - seen.started_ns) if seen.started_ns else ""
    state = "waiting" if seen.id in asking else seen.state
    if state == ENDED:
        state = "ended" if seen.exit_status is None else f"exit {seen.exit_status}"
    processes = "" if seen.processes is None else str(seen.processes)
    denied = "" if seen.denied is None else str(seen.denied)
    return printable(seen.name or seen.id), state, age, processes, denied


def _padded(cells: Iterable[str], widths: list[int]) -> str:
    found = []
    for cell, width in zip(cells, widths, strict=True):
        shown = cut_to(cell, width)
        found.append(shown + " " * (width - columns_of(shown)))
    return "  ".join(found)


def _requests(state: ScreenState, broken: list[Row], room: int) -> list[Row]:
    """Return the selected request as far as it fits, and the beginnings of some others."""
    if not broken:
        return []
    waiting = state.board.waiting
    others = [each for each in waiting if each is not state.request]
    at = next(at for at, each in enumerate(waiting, 1) if each is state.request)
    for_others = min(len(others), _OTHERS_SHOWN, max(0, room - len(broken) - 1))
    fits = max(2, room - 1 - for_others)
    state.does_not_fit = len(broken) > fits
    if state.does_not_fit:
        left_out = len(broken) - fits + 1
        broken = [*broken[: fits - 1], Row(f"  ... {counted(left_out, 'more row')}: press v")]
    found = [Row(f"-- approval request {at} of {len(waiting)}", is_strong=True), *broken]
    for each in others[:for_others]:
        name = printable(each.session_name or each.session_id)
        line = f"{printable(each.process)}: {printable(each.what)}"
        found.append(Row(f"  {printable(each.id)}  {name}  {line}"))
    return found


def _request_rows(request: ListedRequest, size: Size, now_ns: int, whole: str) -> list[Row]:
    first, *rest = lines_of(request, whole)
    rest.append(f"{origin_of(request, now_ns)}, at {_clock(request.deadline_ns)}")
    lines = [first, *(f"  {line}" for line in rest)]
    broken = [row for line in lines for row in rows(line, size.columns)]
    return [Row(row, is_chosen=not at) for at, row in enumerate(broken)]


def _whole(state: ScreenState, broken: list[Row], room: int) -> list[Row]:
    state.scrolled = min(state.scrolled, max(0, len(broken) - room + 1))
    end = state.scrolled + room - 1
    left = max(0, len(broken) - end)
    state.is_end_shown |= not left
    more = f", {counted(left, 'more row')} below (press space)" if left else ""
    heading = f"-- whole request{more}; q goes back"
    return [Row(heading, is_strong=True), *broken[state.scrolled : end]]


def _events(state: ScreenState, lines: Iterable[EventLine], room: int) -> list[Row]:
    seen = state.session
    if room < 2 or seen is None:
        return []
    heading = f"-- events of {printable(seen.name or seen.id)}: {state.shows.value}"
    shown = [each for each in lines if state.is_shown(each)][-(room - 1) :]
    found = [Row(heading, is_strong=True)]
    found += [Row(_event(each)) for each in shown]
    if not shown:
        ended = f"; {printable(seen.ended)}: sigwrap report {seen.id}" if seen.ended else ""
        found.append(Row(f"  none{ended}"))
    return found


def _event(line: EventLine) -> str:
    return f"{_clock(line.time_ns)} {line.outcome or line.type:<8}  {line.text}"


def _clock(time_ns: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(time_ns // 1_000_000_000))


def _bottom(state: ScreenState, size: Size) -> list[Row]:
    match state.mode:
        case Mode.MESSAGE if state.is_closed:
            return [Row("this request is closed: Enter or Esc goes back", True)]
        case Mode.MESSAGE:
            return [
                Row(f"deny {printable(state.message_for.id)}: Enter sends, Esc goes back", True),
                Row(f"message: {_end_of(state.typed, size)}_"),
            ]
        case Mode.REASON:
            return [
                Row("KILL SWITCH: Enter ends all your sessions now, Esc cancels", is_strong=True),
                Row(f"reason (optional): {_end_of(state.typed, size)}_"),
            ]
        case Mode.STOP:
            return [Row(f"stop session {printable(state.stopping)}, as Ctrl+C does? Press y", True)]
        case Mode.HELP:
            return [Row("any key goes back")]
        case _:
            others = "s stop  K kill  ? help  q quit"
            keys = "y approve  a session  n deny  m message  v view  "
            if size.columns < len(keys + others):
                keys, others = "y a n m  v view  ", "? help  q quit"
            if state.request is None:
                keys = ""
            said = [Row(row, is_strong=True) for row in rows(state.status, size.columns)[:2]]
            return [*(said if state.status else []), Row(keys + others)]


def _end_of(typed: str, size: Size) -> str:
    return printable(typed)[-max(size.columns - 36, 8) :]


def _fitted(found: list[Row], size: Size) -> list[Row]:
    return [row._replace(text=cut_to(row.text, size.columns)) for row in found[: size.rows]]
