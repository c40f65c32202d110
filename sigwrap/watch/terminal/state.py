"""The state of the screen: what is selected and being typed, and what a key does. Pure: the board
and the clock are handed in.

A key answers the request that its user has read. A request that has just been drawn takes no answer
for a moment, and one that does not fit on the screen is approved only after all of it was shown. A
message that is being typed stays one to its end, even if the request closes meanwhile.
"""

from __future__ import annotations

from enum import Enum

from sigwrap.bare import NamedTuple
from sigwrap.events import ALLOWED
from sigwrap.report.folds.selection import ASKED
from sigwrap.text import printable
from sigwrap.watch.board import (
    Approve,
    Board,
    Deny,
    EventLine,
    Interrupt,
    KillAll,
    ListedRequest,
    Order,
    SessionView,
)

READ_WITHIN_S = 0.7
_LONGEST_TYPED = 400


class Mode(Enum):
    BOARD = "board"
    WHOLE = "whole"  # one request on all of the screen
    HELP = "help"
    MESSAGE = "message"  # typing the message of a denial
    REASON = "reason"  # typing the reason for the kill switch
    STOP = "stop"  # confirming the interrupt of a session


class Command(Enum):
    """An effect of a key on the screen itself."""

    SUSPEND = "suspend"
    QUIT = "quit"


class Shows(Enum):
    """A selection of events."""

    ALL = "all"
    NOTABLE = "all except allowed"
    REFUSED = "denials and approval requests"


class RequestKey(NamedTuple):
    session_id: str
    id: str


_NO_REQUEST = RequestKey("", "")
_NEXT = {Shows.ALL: Shows.NOTABLE, Shows.NOTABLE: Shows.REFUSED, Shows.REFUSED: Shows.ALL}
_REFUSED = frozenset({"denied", "approved", "expired", ASKED})
_NO_BOARD = Board(0, (), 0, (), None, ())


class ScreenState:
    def __init__(self) -> None:
        self.mode = Mode.BOARD
        self.typed = ""
        self.status = ""  # the line above the keys
        self.shows = Shows.NOTABLE
        self.scrolled = 0  # rows of the whole request
        self.does_not_fit = True  # the request, as it was drawn last
        self.is_end_shown = False  # of the whole request
        self.stopping = ""  # the session to confirm for
        self.board = _NO_BOARD
        self.message_for = _NO_REQUEST
        self._selected = _NO_REQUEST
        self._session = ""
        self._drawn_s: float | None = None  # since when the request is on the screen

    @property
    def request(self) -> ListedRequest | None:
        return next((each for each in self.board.waiting if _key(each) == self._selected), None)

    @property
    def session(self) -> SessionView | None:
        return next((each for each in self.board.sessions if each.id == self._session), None)

    @property
    def is_closed(self) -> bool:
        """Return whether the request is closed that a message is being typed for."""
        return self.message_for not in map(_key, self.board.waiting)

    def take(self, board: Board) -> None:
        self.board = board
        if self.request is None:
            self._select(board.waiting[0] if board.waiting else None)
            if self.mode is Mode.WHOLE:
                self._back("the request is closed")
        if self.session is None and board.sessions:
            self._session = board.sessions[0].id

    def note_drawn(self, now_s: float) -> None:
        """Note that the board is on the screen."""
        if self._drawn_s is None:
            self._drawn_s = now_s

    def is_shown(self, line: EventLine) -> bool:
        match self.shows:
            case Shows.ALL:
                return True
            case Shows.NOTABLE:
                return line.outcome != ALLOWED and line.type != "process_exited"
            case Shows.REFUSED:
                return line.outcome in _REFUSED

    def press(self, key: str, now_s: float) -> Order | Command | None:
        if key in ("quit", "suspend"):
            return Command(key)
        match self.mode:
            case Mode.BOARD | Mode.WHOLE:
                self.status = ""
                return self._on_board(key, now_s)
            case Mode.HELP:
                self._back()
                return None
            case Mode.STOP:
                self._back("" if key == "y" else "nothing was done")
                return Interrupt(self.stopping) if key == "y" else None
            case _:
                return self._on_typing(key)

    # Keys of the board

    def _on_board(self, key: str, now_s: float) -> Order | Command | None:
        match key:
            case "q" | "escape" if self.mode is Mode.WHOLE:
                self._back()
            case "q":
                return Command.QUIT
            case "y" | "a" | "n" | "m":
                return self._answer(key, now_s)
            case "j" | "down" | "k" | "up":
                step = 1 if key in ("j", "down") else -1
                if self.mode is Mode.WHOLE:
                    self.scrolled = max(0, self.scrolled + step)
                else:
                    self._move(step)
            case "page-down" | "page-up" | " ":
                self.scrolled = max(0, self.scrolled + (-10 if key == "page-up" else 10))
            case "v" if self.request is not None:
                self.mode, self.scrolled, self.is_end_shown = Mode.WHOLE, 0, False
            case "tab" | "backtab" | "right" | "left":
                self._next_session(1 if key in ("tab", "right") else -1)
            case "f":
                self.shows = _NEXT[self.shows]
            case "s" if self.session is not None:
                self.mode, self.stopping = Mode.STOP, self.session.id
            case "K":
                self._type(Mode.REASON)
            case "?":
                self.mode = Mode.HELP
        return None

    def _answer(self, key: str, now_s: float) -> Order | None:
        request = self.request
        if key == "m":  # what is typed next is never taken for keys
            self.message_for = self._selected
            self._type(Mode.MESSAGE)
        elif request is None:
            self.status = "no approval requests"
        elif self._drawn_s is None or now_s - self._drawn_s < READ_WITHIN_S:
            self.status = "this request is new: read it, then press the key again"
            if self._drawn_s is not None:
                self._drawn_s = now_s  # keys in quick succession were meant for something else
        elif key == "n":
            self._back()
            return Deny(*_key(request), "")
        elif self.mode is Mode.WHOLE and not self.is_end_shown:
            self.status = "there is more below: press space to read it, then y"
        elif self.mode is not Mode.WHOLE and self.does_not_fit:
            self.status = "the request is longer than shown: press v to read it, then y"
        elif key == "a" and not request.may_always:
            self.status = "this request can be approved once only, not for the session"
        else:
            self._back()
            return Approve(*_key(request), key == "a")
        return None

    def _move(self, step: int) -> None:
        keys = [_key(each) for each in self.board.waiting]
        if self._selected in keys:
            at = min(max(keys.index(self._selected) + step, 0), len(keys) - 1)
            if keys[at] != self._selected:
                self._select(self.board.waiting[at])

    def _select(self, request: ListedRequest | None) -> None:
        self._selected = _NO_REQUEST if request is None else _key(request)
        if request is not None:
            self._session = request.session_id
        self._drawn_s = None
        self.does_not_fit, self.is_end_shown = True, False

    def _next_session(self, step: int) -> None:
        ids = [each.id for each in self.board.sessions]
        if self._session in ids:
            self._session = ids[(ids.index(self._session) + step) % len(ids)]

    # Typing and confirming

    def _type(self, mode: Mode) -> None:
        self.mode, self.typed = mode, ""

    def _on_typing(self, key: str) -> Order | None:
        match key:
            case "escape":
                self._leave_typing()
            case "backspace":
                self.typed = self.typed[:-1]
            case "erase":
                self.typed = ""
            case "enter":
                return self._enter()
            case _ if len(key) == 1 and len(self.typed) < _LONGEST_TYPED:
                self.typed += key
        return None

    def _leave_typing(self) -> None:
        """Go back; if the message's request is closed, the next one is to be read first."""
        if self.mode is Mode.MESSAGE and self.is_closed:
            self._drawn_s = None
        self._back()

    def _enter(self) -> Order | None:
        mode, typed, is_closed = self.mode, self.typed, self.is_closed
        self._leave_typing()
        if mode is Mode.REASON:
            return KillAll(typed)
        if not is_closed:
            return Deny(*self.message_for, typed)
        self.status = "nothing was sent: the request is closed"
        return None

    def _back(self, status: str = "") -> None:
        self.mode, self.typed, self.scrolled = Mode.BOARD, "", 0
        self.status = printable(status)


def _key(request: ListedRequest) -> RequestKey:
    return RequestKey(request.session_id, request.id)
