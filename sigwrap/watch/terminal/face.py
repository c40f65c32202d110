"""What is chosen on the screen and being typed, and what a key asks for. Pure: the board and the
clock are handed in.

A key answers the question that its reader has read: one that has just been drawn takes no answer
for a moment, and one that doesn't fit on the screen takes a yes only where all of it is shown. What
is typed as a message stays a message to its end, whatever becomes of the question meanwhile.
"""

from __future__ import annotations

from enum import Enum

from sigwrap.escape import printable
from sigwrap.outcomes import ALLOWED
from sigwrap.report.folds.selection import ANSWERED, ASKED
from sigwrap.tuples import NamedTuple
from sigwrap.watch.board import ENDED, Board, Line, Seen, Waits
from sigwrap.watch.orders import Approve, Deny, Interrupt, KillAll, Lift, Order

READ_WITHIN_S = 0.7
_LONGEST_TYPED = 400


class Mode(Enum):
    BOARD = "board"
    MESSAGE = "message"  # of a no
    FILTER = "filter"
    REASON = "reason"  # of the kill switch
    STOP = "stop"  # a session: asked once
    LIFT = "lift"
    WHOLE = "whole"  # question, on all of the screen
    HELP = "help"
    TOLD = "told"  # why a key that asks first does nothing: the y that follows is for no question


class Suspend(NamedTuple):
    pass


class Redraw(NamedTuple):
    pass


class Quit(NamedTuple):
    pass


Wish = Order | Suspend | Redraw | Quit


class Shows(Enum):
    """Which events."""

    ALL = "all"
    NOTABLE = "all except allowed"
    REFUSED = "denials and approval requests"


_NEXT = {Shows.ALL: Shows.NOTABLE, Shows.NOTABLE: Shows.REFUSED, Shows.REFUSED: Shows.ALL}
_REFUSED = frozenset({"denied", "approved", ASKED, ANSWERED})


class Face:
    def __init__(self, *, only_questions: bool) -> None:
        self.only_questions = only_questions
        self.mode = Mode.BOARD
        self.typed = ""
        self.said = ""
        self.shows = Shows.NOTABLE
        self.words = ""  # that an event's line has to have
        self.scrolled = 0  # rows of what is shown whole
        self.does_not_fit = True  # the question, as far as it was drawn
        self.is_end_shown = False  # of the question that is shown whole
        self.told = ""
        self.stopping = ""  # the session that is asked about
        self.board: Board | None = None
        self._question = ("", "")
        self._drawn_s: float | None = None  # since when the question is on the screen
        self._session = ""
        self._about = ("", "")  # the question that a message is typed for

    @property
    def question(self) -> Waits | None:
        if self.board is None:
            return None
        return next((each for each in self.board.waiting if _key(each) == self._question), None)

    @property
    def session(self) -> Seen | None:
        if self.board is None:
            return None
        return next((each for each in self.board.sessions if each.id == self._session), None)

    @property
    def is_settled(self) -> bool:
        """What a message is being typed for."""
        waiting = () if self.board is None else self.board.waiting
        return self._about not in [_key(each) for each in waiting]

    @property
    def message_for(self) -> str:
        return self._about[1]

    def take(self, board: Board) -> None:
        self._say_who_ended(board)
        self.board = board
        if self.question is None:
            self._choose(board.waiting[0] if board.waiting else None)
            if self.mode is Mode.WHOLE:
                self._back("the request is closed")
        if self.session is None and board.sessions:
            self._session = board.sessions[0].id

    def note_drawn(self, now_s: float) -> None:
        """What was taken is on the screen."""
        if self._drawn_s is None:
            self._drawn_s = now_s

    def _say_who_ended(self, board: Board) -> None:
        before = (
            set()
            if self.board is None
            else {each.id for each in self.board.sessions if each.state != ENDED}
        )
        for each in board.sessions:
            if each.id in before and each.state == ENDED:
                self.said = printable(f"{each.name or each.id} ended: {each.ended}")

    def is_shown(self, line: Line) -> bool:
        if self.words and self.words.lower() not in line.text.lower():
            return False
        match self.shows:
            case Shows.ALL:
                return True
            case Shows.NOTABLE:
                return line.outcome != ALLOWED and line.type != "process_exited"
            case Shows.REFUSED:
                return line.outcome in _REFUSED

    def press(self, key: str, now_s: float) -> Wish | None:
        if key == "quit":
            return Quit()
        if key == "suspend":
            return Suspend()
        if key == "redraw":
            return Redraw()
        match self.mode:
            case Mode.BOARD | Mode.WHOLE:
                self.said = ""
                return self._on_board(key, now_s)
            case Mode.HELP | Mode.TOLD:
                self._back()
                return None
            case Mode.STOP | Mode.LIFT:
                return self._confirmed(key)
            case _:
                return self._on_typing(key)

    # Keys of the board

    def _on_board(self, key: str, now_s: float) -> Wish | None:
        match key:
            case "q" | "escape":
                if self.mode is Mode.WHOLE:
                    self._back()
                    return None
                return Quit() if key == "q" else None
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
            case "v":
                if self.question is not None:
                    self.mode, self.scrolled, self.is_end_shown = Mode.WHOLE, 0, False
            case "tab" | "backtab" | "right" | "left":
                self._next_session(1 if key in ("tab", "right") else -1)
            case "f":
                self.shows = _NEXT[self.shows]
            case "/":
                self._type(Mode.FILTER, self.words)
            case "s":
                if self.session is not None and self.session.state != ENDED:
                    self.mode, self.stopping = Mode.STOP, self.session.id
                else:
                    self._tell("this session has ended")
            case "K":
                self._type(Mode.REASON)
            case "U":
                if self.board is not None and self.board.killswitch is not None:
                    self.mode = Mode.LIFT
                else:
                    self._tell("the kill switch is off")
            case "?":
                self.mode = Mode.HELP
        return None

    def _answer(self, key: str, now_s: float) -> Wish | None:
        waits = self.question
        if key == "m":  # what is typed next is never taken for keys
            self._about = self._question
            self._type(Mode.MESSAGE)
        elif waits is None:
            self.said = "no approval requests"
        elif self._drawn_s is None or now_s - self._drawn_s < READ_WITHIN_S:
            self.said = "this request is new: read it, then press the key again"
            if self._drawn_s is not None:
                self._drawn_s = now_s  # keys that follow each other were meant for something else
        elif key == "n":
            self._back()
            return Deny(*_key(waits), "")
        elif self.mode is Mode.WHOLE and not self.is_end_shown:
            self.said = "there is more below: press space to read it, then y"
        elif self.mode is not Mode.WHOLE and self.does_not_fit:
            self.said = "the request is longer than shown: press v to read it, then y"
        elif key == "a" and not waits.may_always:
            self.said = "this request can be approved once only, not for the session"
        else:
            self._back()
            return Approve(*_key(waits), key == "a")
        return None

    def _move(self, step: int) -> None:
        waiting = () if self.board is None else self.board.waiting
        keys = [_key(each) for each in waiting]
        if self._question in keys:
            at = min(max(keys.index(self._question) + step, 0), len(keys) - 1)
            if keys[at] != self._question:
                self._choose(waiting[at])

    def _choose(self, waits: Waits | None) -> None:
        self._question = ("", "") if waits is None else _key(waits)
        if waits is not None:
            self._session = waits.session_id
        self._drawn_s = None
        self.does_not_fit, self.is_end_shown = True, False

    def _next_session(self, step: int) -> None:
        sessions = () if self.board is None else self.board.sessions
        ids = [each.id for each in sessions]
        if self._session in ids:
            self._session = ids[(ids.index(self._session) + step) % len(ids)]

    # Typing, and being asked once more

    def _type(self, mode: Mode, typed: str = "") -> None:
        self.mode, self.typed = mode, typed

    def _on_typing(self, key: str) -> Wish | None:
        match key:
            case "escape":
                self._leave_typing()
            case "backspace":
                self.typed = self.typed[:-1]
            case "erase":
                self.typed = ""
            case "enter":
                return self._typed()
            case _ if len(key) == 1 and len(self.typed) < _LONGEST_TYPED:
                self.typed += key
        return None

    def _leave_typing(self) -> None:
        """Where a message's question is settled, the next one is read from here on."""
        if self.mode is Mode.MESSAGE and self.is_settled:
            self._drawn_s = None
        self._back()

    def _typed(self) -> Wish | None:
        mode, typed, is_settled = self.mode, self.typed, self.is_settled
        self._leave_typing()
        match mode:
            case Mode.FILTER:
                self.words = typed
            case Mode.REASON:
                return KillAll(typed)
            case Mode.MESSAGE if not is_settled:
                return Deny(*self._about, typed)
            case Mode.MESSAGE:
                self.said = "nothing was sent: the request is closed"
        return None

    def _confirmed(self, key: str) -> Wish | None:
        mode = self.mode
        self._back()
        if key != "y":
            self.said = "nothing was done"
        elif mode is Mode.LIFT:
            return Lift()
        else:
            return Interrupt(self.stopping)
        return None

    def _tell(self, why: str) -> None:
        self.mode, self.told = Mode.TOLD, why

    def _back(self, said: str = "") -> None:
        self.mode, self.typed, self.scrolled = Mode.BOARD, "", 0
        self.said = printable(said)


def _key(waits: Waits) -> tuple[str, str]:
    return waits.session_id, waits.id
