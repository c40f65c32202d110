"""The terminal, and the loop of `sigwrap watch` over keys, news and finished orders. The loop never
waits for a session, and the terminal is left as it was found.
"""

from __future__ import annotations

import codecs
import os
import queue
import select
import signal
import termios
import threading
import time
import tty
from collections.abc import Iterator, Sequence

from sigwrap.approve.wording import SessionHints, store_option
from sigwrap.bare import re
from sigwrap.errors import SigwrapError
from sigwrap.watch import actions
from sigwrap.watch.board import KillAll, Order
from sigwrap.watch.notify import Notifier
from sigwrap.watch.source import Source
from sigwrap.watch.terminal.drawing import Row, Size, drawn
from sigwrap.watch.terminal.state import Command, ScreenState

_DRAWS_EVERY_S = 1.0  # ages and times that are left change
_LINES = 200
_ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_SIGNALS = (*_ENDS, signal.SIGWINCH, signal.SIGCONT, signal.SIGTSTP)
_OUR_GROUP = 0
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
_STRONG, _CHOSEN, _PLAIN = "\x1b[1m", "\x1b[7m", "\x1b[0m"
# A sequence, Alt with a key, or one character.
_KEY = re.compile(r"\x1b[\[O][0-?]*[ -/]*[@-~]?|\x1b[^\[O]|.", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b[\[O][ -?]{0,14}\Z")
# Printable characters are keys of their own.
_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "quit",
    "\x04": "quit",
    "\x15": "erase",
    "\x1a": "suspend",
    "\x1b": "escape",
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("\x1b[C", "\x1bOC"), "right"),
    **dict.fromkeys(("\x1b[D", "\x1bOD"), "left"),
    "\x1b[Z": "backtab",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
}


class Screen:
    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._before = termios.tcgetattr(read_fd)
        self._shown: list[Row] = []
        self._is_ours = False

    def enter(self) -> None:
        modes = termios.tcgetattr(self._read_fd)
        tty.setraw(self._read_fd, termios.TCSADRAIN)
        raw = termios.tcgetattr(self._read_fd)
        raw[1] = modes[1]  # output as it was: a line feed still returns
        termios.tcsetattr(self._read_fd, termios.TCSADRAIN, raw)
        self._is_ours = True
        self._write(_ENTER)
        self._shown = []

    def leave(self) -> None:
        if not self._is_ours:
            return
        self._is_ours = False
        try:
            self._write(_LEAVE)
            termios.tcsetattr(self._read_fd, termios.TCSADRAIN, self._before)
        except (OSError, termios.error):
            pass  # the terminal hung up

    @property
    def size(self) -> Size:
        found = os.get_terminal_size(self._write_fd)
        return Size(found.columns or 80, found.lines or 24)

    def clear(self) -> None:
        self._shown = []
        self._write("\x1b[2J")

    def show(self, rows: Sequence[Row]) -> None:
        """Write the rows that have changed."""
        written = []
        for at, row in enumerate(rows):
            if at < len(self._shown) and self._shown[at] == row:
                continue
            style = _CHOSEN if row.is_chosen else _STRONG if row.is_strong else ""
            end = _PLAIN if style else ""
            written.append(f"\x1b[{at + 1};1H{style}{row.text}{end}\x1b[K")
        self._shown = list(rows)
        if written:
            self._write("".join(written))

    def ring(self) -> None:
        self._write("\a")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._write_fd, data) :]


class Keys:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def of(self, data: bytes) -> Iterator[str]:
        """Yield keys; an Escape with nothing behind it is the key of that name."""
        text = self._rest + self._decoder.decode(data)
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished.group() if unfinished else ""
        for key in _KEY.findall(text.removesuffix(self._rest)):
            if name := _NAMES.get(key, key if key.isprintable() else ""):
                yield name


class Watching:
    def __init__(self, store: str, source: Source, screen: Screen, notify: str) -> None:
        self._store = store
        self._source = source
        self._screen = screen
        self._state = ScreenState()
        self._keys = Keys()
        self._notifier = Notifier(notify, store, screen.ring)
        self._session = SessionHints("", store_option(os.path.abspath(store), os.environ))
        self._wakes, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._got: set[int] = set()
        self._has_left = False

    def run(self) -> int:
        """Return the signal that ended it, or 0 if the user left."""
        for number in _SIGNALS:
            signal.signal(number, self._note)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._screen.enter()
        try:
            return self._loop()
        finally:
            self._screen.leave()

    def _loop(self) -> int:
        poll = select.poll()
        for fd in (0, self._source.wakes, self._wakes):
            poll.register(fd, select.POLLIN)
        while True:
            self._draw()
            ready = [fd for fd, _ in poll.poll(_DRAWS_EVERY_S * 1000)]
            if self._wakes in ready:
                os.read(self._wakes, 1 << 10)
            if ended := self._signalled():
                return ended
            if self._source.wakes in ready:
                self._source.calm()
            while not self._done.empty():
                self._state.status = self._done.get()
            if 0 in ready:
                data = os.read(0, 1 << 10)
                if not data:
                    return signal.SIGHUP
                for key in self._keys.of(data):
                    self._do(self._state.press(key, time.monotonic()))
                if self._has_left:
                    return 0

    def _draw(self) -> None:
        board = self._source.board()
        self._state.take(board)
        self._notifier.look(board)
        if self._notifier.failed:
            self._state.status, self._notifier.failed = self._notifier.failed, ""
        seen, request = self._state.session, self._state.request
        lines = [] if seen is None else self._source.lines(seen.id, 0, _LINES)[0]
        whole = self._session.command("watch", "--full", request.id) if request else ""
        now_ns = time.time_ns()
        self._screen.show(drawn(self._state, lines, self._screen.size, now_ns, whole))
        self._state.note_drawn(time.monotonic())

    def _signalled(self) -> int:
        got, self._got = self._got, set()
        if signal.SIGTSTP in got:
            self._stop(os.getpid())
        elif signal.SIGCONT in got:
            self._screen.enter()
        if signal.SIGWINCH in got:
            self._screen.clear()
        return next((each for each in _ENDS if each in got), 0)

    def _note(self, number: int, _frame: object) -> None:
        self._got.add(number)

    def _stop(self, pid: int) -> None:
        """Stop until a shell continues us; without one, nothing stops."""
        self._screen.leave()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(pid, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._note)
        self._screen.enter()

    def _do(self, wanted: Order | Command | None) -> None:
        match wanted:
            case None:
                pass
            case Command.SUSPEND:
                self._stop(_OUR_GROUP)
            case Command.QUIT:
                self._has_left = True
            case _:
                self._carry_out(wanted)

    def _carry_out(self, order: Order) -> None:
        def work() -> None:
            try:
                said = actions.carry_out(self._store, order)
            except SigwrapError as failure:
                said = str(failure)
            except Exception as bug:
                said = f"internal error: {type(bug).__name__}: {bug}"
            self._source.look_again()
            self._done.put(said)
            os.write(self._wake, b"\0")

        if isinstance(order, KillAll):
            self._state.status = "turning the kill switch on"
        threading.Thread(target=work, daemon=True).start()
