"""Rows for a terminal of some size. Pure, and without colour: what is chosen is marked by a sign as
well."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sigwrap.escape import columns_of, cut_to, printable, rows, shell_words
from sigwrap.outcomes import counted
from sigwrap.report.forms.times import rough_span
from sigwrap.tuples import NamedTuple
from sigwrap.watch.board import ENDED, Board, Line, Seen, Waits
from sigwrap.watch.question import lines_of, origin_of
from sigwrap.watch.terminal.face import Face, Mode

FEWEST_COLUMNS, FEWEST_ROWS = 40, 10
_OTHERS_SHOWN = 3
_SMALL = 16  # rows: a question comes first there
_COMMAND_COLUMNS = 12
_KEYS_OF_QUESTIONS = """
y    approve once
a    approve for this session, identical requests too
n    deny
m    deny, with a message for the caller
j k  next and previous request (or arrows)
v    show the whole request
"""
_KEYS_OF_SESSIONS = """
Tab  show the events of the next session
f    choose which events to show
/    show only events with these words
s    stop the session, as Ctrl+C does there
"""
_KEYS_OF_ALL = """
K    kill switch on: ends all your sessions now and blocks new ones
U    kill switch off

q    quit; sessions go on
"""


class Row(NamedTuple):
    text: str
    is_strong: bool = False
    is_chosen: bool = False


class Place(NamedTuple):
    columns: int
    rows: int


def drawn(face: Face, lines: Iterable[Line], place: Place, now_ns: int, whole: str) -> list[Row]:
    """As many as there is room for. `lines`: of the session that is chosen. `whole`: what shows all
    that is known of a question."""
    board = face.board
    if board is None or place.columns < FEWEST_COLUMNS or place.rows < FEWEST_ROWS:
        face.does_not_fit, face.is_end_shown = True, False
        small = f"needs {FEWEST_COLUMNS}x{FEWEST_ROWS}"
        return _fitted([Row(small)], place)
    bottom = _bottom(face, place)
    room = place.rows - len(bottom)
    match face.mode:
        case Mode.HELP:
            of_sessions = "" if face.only_questions else _KEYS_OF_SESSIONS
            keys = _KEYS_OF_QUESTIONS + of_sessions + _KEYS_OF_ALL
            above = [Row("sigwrap watch: keys", True), *map(Row, keys.splitlines())]
        case Mode.WHOLE if face.question is not None:
            above = _whole(face, face.question, place, room, now_ns, whole)
        case _:
            above = _board(face, board, lines, place, room, now_ns, whole)
    if len(above) > room:
        face.does_not_fit = True
    return _fitted([*above[:room], *[Row("")] * (room - len(above)), *bottom], place)


def _board(
    face: Face,
    board: Board,
    lines: Iterable[Line],
    place: Place,
    room: int,
    now_ns: int,
    whole: str,
) -> list[Row]:
    top = _heading(face, board)
    if face.only_questions:
        return top + _questions(face, board, place, room - len(top), now_ns, whole)
    is_small = room < _SMALL and face.question is not None
    events = _events(face, lines, 0 if is_small else max(3, room // 4))
    for_sessions = 2 if is_small else max(3, room // 4)
    left = room - len(top) - for_sessions - len(events)
    questions = _questions(face, board, place, left, now_ns, whole)
    spare = left - len(questions)
    sessions = _sessions(face, board, place, for_sessions + max(spare, 0), now_ns)
    above = [*top, *sessions, *questions]
    return above + (events if is_small else _events(face, lines, room - len(above)))


def _heading(face: Face, board: Board) -> list[Row]:
    running = sum(each.state != ENDED for each in board.sessions)
    waiting = len(board.waiting)
    parts = [counted(running, "session")] if running else ["no running sessions"]
    parts.append(counted(waiting, "approval request") if waiting else "no approval requests")
    switch = "kill switch off" if board.killswitch is None else "KILL SWITCH ON"
    found = [Row(f"sigwrap watch   {', '.join(parts)}   {switch}", is_strong=True)]
    if board.killswitch is not None:
        found.append(
            Row(f"{board.killswitch}; no session can start (U turns it off)", is_strong=True)
        )
    found += [Row(f"incomplete: {each}") for each in board.problems[:2]]
    return found


def _sessions(face: Face, board: Board, place: Place, room: int, now_ns: int) -> list[Row]:
    if not board.sessions:
        return [Row("  no sessions yet; start one: sigwrap -- COMMAND")]
    chosen = face.session
    at = board.sessions.index(chosen) if chosen in board.sessions else 0
    start = max(0, min(at - room + 2, len(board.sessions) - room + 1))
    shown = board.sessions[start : start + room - 1]
    asking = {each.session_id for each in board.waiting}
    cells = [_cells(each, asking, now_ns) for each in shown]
    heading = ("SESSION", "STATE", "AGE", "PROCS", "DENIED")
    widths = [max(map(columns_of, column)) for column in zip(heading, *cells, strict=True)]
    widths[1] = max(widths[1], len("running"))  # so that nothing moves where one asks
    widths[0] = min(widths[0], max(place.columns - 34 - _COMMAND_COLUMNS, 12))
    left_out = len(board.sessions) - len(shown) + board.more
    more = f"   ({left_out} more)" if left_out else ""
    found = [Row(f"  {_padded(heading, widths)}  COMMAND{more}", is_strong=True)]
    for seen, each in zip(shown, cells, strict=True):
        mark = ">" if seen is chosen else " "
        command = shell_words(seen.command)
        found.append(Row(f"{mark} {_padded(each, widths)}  {command}", is_chosen=seen is chosen))
    return found


def _cells(seen: Seen, asking: set[str], now_ns: int) -> tuple[str, ...]:
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


def _questions(
    face: Face, board: Board, place: Place, room: int, now_ns: int, whole: str
) -> list[Row]:
    waits = face.question
    if waits is None:
        return [Row("")] if face.only_questions else []
    others = [each for each in board.waiting if each is not waits]
    at = board.waiting.index(waits) + 1
    found = [Row(f"-- approval request {at} of {len(board.waiting)}", is_strong=True)]
    shown = _question_rows(waits, place, now_ns, whole)
    for_others = min(len(others), _OTHERS_SHOWN, max(0, room - len(shown) - 1))
    fits = max(2, room - 1 - for_others)
    face.does_not_fit = len(shown) > fits
    if face.does_not_fit:
        left_out = len(shown) - fits + 1
        shown = [*shown[: fits - 1], Row(f"  ... {counted(left_out, 'more row')}: press v")]
    found += shown
    for each in others[:for_others]:
        name = printable(each.session_name or each.session_id)
        line = f"{printable(each.process)}: {printable(each.what)}"
        found.append(Row(f"  {printable(each.id)}  {name}  {line}"))
    return found


def _question_rows(waits: Waits, place: Place, now_ns: int, whole: str) -> list[Row]:
    first, *rest = lines_of(waits, whole)
    end = time.strftime("%H:%M:%S", time.localtime(waits.deadline_ns // 1_000_000_000))
    rest.append(f"{origin_of(waits, now_ns)}, at {end}")
    lines = [first, *(f"  {line}" for line in rest)]
    broken = [row for line in lines for row in rows(line, place.columns)]
    return [Row(row, is_chosen=not at) for at, row in enumerate(broken)]


def _whole(face: Face, waits: Waits, place: Place, room: int, now_ns: int, whole: str) -> list[Row]:
    shown = _question_rows(waits, place, now_ns, whole)
    face.scrolled = min(face.scrolled, max(0, len(shown) - room + 1))
    end = face.scrolled + room - 1
    left = max(0, len(shown) - end)
    face.is_end_shown |= not left
    more = f", {counted(left, 'more row')} below (press space)" if left else ""
    heading = f"-- whole request{more}; q goes back"
    return [Row(heading, is_strong=True), *shown[face.scrolled : end]]


def _events(face: Face, lines: Iterable[Line], room: int) -> list[Row]:
    seen = face.session
    if room < 2 or seen is None:
        return []
    words = f", with {face.words!r}" if face.words else ""
    heading = f"-- events of {printable(seen.name or seen.id)}: {face.shows.value}{words}"
    shown = [each for each in lines if face.is_shown(each)][-(room - 1) :]
    found = [Row(heading, is_strong=True)]
    found += [Row(_event(each)) for each in shown]
    if not shown:
        ended = f"; {printable(seen.ended)}: sigwrap report {seen.id}" if seen.ended else ""
        found.append(Row(f"  none{ended}"))
    return found


def _event(line: Line) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(line.time_ns // 1_000_000_000))
    return f"{clock} {line.outcome or line.type:<8}  {line.text}"


def _bottom(face: Face, place: Place) -> list[Row]:
    match face.mode:
        case Mode.FILTER:
            return [Row(f"show only events with: {_end_of(face.typed, place)}_")]
        case Mode.MESSAGE if face.is_settled:
            return [Row("this request is closed: Enter or Esc goes back", True)]
        case Mode.MESSAGE:
            return [
                Row(f"deny {printable(face.message_for)}: Enter sends, Esc goes back", True),
                Row(f"message: {_end_of(face.typed, place)}_"),
            ]
        case Mode.REASON:
            return [
                Row("KILL SWITCH: Enter ends all your sessions now, Esc cancels", is_strong=True),
                Row(f"reason (optional): {_end_of(face.typed, place)}_"),
            ]
        case Mode.TOLD:
            return [Row(f"{face.told}; press any key", True)]
        case Mode.STOP:
            return [Row(f"stop session {printable(face.stopping)}, as Ctrl+C does? Press y", True)]
        case Mode.LIFT:
            return [Row("turn the kill switch off, so that sessions can start? Press y", True)]
        case Mode.HELP:
            return [Row("any key goes back")]
        case _:
            is_on = face.board is not None and face.board.killswitch is not None
            switch = "U kill switch off" if is_on else "K kill"
            others = (
                "? help  q quit" if face.only_questions else f"s stop  {switch}  ? help  q quit"
            )
            keys = "y approve  a session  n deny  m message  v view  "
            if place.columns < len(keys + others):
                keys, others = "y a n m  v view  ", "? help  q quit"
            if face.question is None:
                keys = ""
            said = [Row(row, is_strong=True) for row in rows(face.said, place.columns)[:2]]
            return [*(said if face.said else []), Row(keys + others)]


def _end_of(typed: str, place: Place) -> str:
    return printable(typed)[-max(place.columns - 36, 8) :]


def _fitted(found: list[Row], place: Place) -> list[Row]:
    return [row._replace(text=cut_to(row.text, place.columns)) for row in found[: place.rows]]
