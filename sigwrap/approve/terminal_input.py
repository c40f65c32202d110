"""What the terminal's input means during a request: the modes of the terminal, and the answers.

A session can have bytes typed: a terminal answers reports, and the line discipline edits those as
its modes say, which the session may change at any moment. It could make a `y` of them. So the
terminal gets modes in which it sends no byte by itself, and an approval needs a code. The code is
new each time a request is shown, and differs for once and for the session. The session cannot know
it: only the program that shows the terminal can read it, and sigwrap does not ask where that
program would tell (approve/approvers.py).
"""

from __future__ import annotations

import os
import termios
from collections.abc import Mapping

from sigwrap.approve.questions import Verdict
from sigwrap.bare import Any
from sigwrap.kernel import procfs, terminals

MOST_WRONG = 10  # lines in a row: a guess succeeds once in 6,500 times

_LETTERS = "bcdfghjkmnpqrstvwxz"  # they make no words, and none looks like another
_CODE_LENGTH = 4
_YES = frozenset({b"y", b"yes", b"a", b"always"})
_IUTF8 = 0o40000
_KEYS = {
    termios.VINTR: b"\x03",
    termios.VQUIT: b"\x1c",
    termios.VERASE: b"\x7f",
    termios.VKILL: b"\x15",
    termios.VEOF: b"\x04",
    termios.VMIN: b"\x01",
    termios.VSTART: b"\x11",
    termios.VSTOP: b"\x13",
    termios.VSUSP: b"\x1a",
}
_BACKSPACE = b"\x08"  # what some terminals send for the key that erases
_INPUT, _OUTPUT, _LOCAL, _KEYS_AT = 0, 1, 3, 6
# Neither concealed nor in colours, not cut at the terminal's edge, and no line drawings.
_VISIBLE = "\x1b[0m\x1b[?7h\x1b(B\x0f"


class Answers:
    """The lines that answer the request that is shown now."""

    def __init__(self, *, or_always: bool) -> None:
        once, always = _code(), _code()
        while always == once:
            always = _code()
        self._verdicts = {
            f"y{once}": Verdict.ONCE,
            f"yes{once}": Verdict.ONCE,
            "n": Verdict.NO,
            "no": Verdict.NO,
        }
        self.shown = f'Allow? Type "y {once}" (once) or "n": '
        if or_always:
            self._verdicts[f"a{always}"] = self._verdicts[f"always{always}"] = Verdict.ALWAYS
            self.shown = f'Allow? Type "y {once}" (once), "a {always}" (this session) or "n": '

    def verdict(self, line: bytes) -> Verdict | None:
        """Return the verdict of a whole line, where spaces and the shown quotes are ignored."""
        words = line.removesuffix(b"\n").replace(b" ", b"").replace(b'"', b"").lower()
        return self._verdicts.get(words.decode("latin-1")) if line.endswith(b"\n") else None


def is_without_code(line: bytes) -> bool:
    return line.strip().lower() in _YES


def _code() -> str:
    rest = int.from_bytes(os.urandom(8), "big")
    letters = []
    for _ in range(_CODE_LENGTH):
        rest, position = divmod(rest, len(_LETTERS))
        letters.append(_LETTERS[position])
    return "".join(letters)


class PromptModes:
    """Modes for a request, whatever the modes before: line editing with the usual keys, text that
    can be seen."""

    def __init__(self, fd: int) -> None:
        """Raises OSError if the terminal hung up."""
        self._fd = fd
        self._before = _modes(fd)
        self._ours = _for_prompt(self._before)
        _set(fd, self._ours)

    @property
    def are_set(self) -> bool:
        try:
            now = _modes(self._fd)
        except OSError:
            return False
        return all(now[each] == self._ours[each] for each in (_INPUT, _OUTPUT, _LOCAL, _KEYS_AT))

    def restore(self) -> None:
        """Restore the modes, unless another process has set others since."""
        if self.are_set:
            _set(self._fd, self._before)


def visible_text(env: Mapping[str, str]) -> str:
    """Return what to write before a text, if the terminal is known to understand it."""
    return "" if env.get("TERM") in (None, "", "dumb") else _VISIBLE


def local_modes(fd: int) -> int:
    flags: int = _modes(fd)[_LOCAL]
    return flags


def is_drawn_on_by(pid: int) -> bool:
    """Return whether the process is in the terminal's foreground and reads keys instead of lines:
    an editor, a full-screen agent."""
    fd = terminals.controlling
    found = procfs.stat(pid) if fd >= 0 else None
    if found is None or found.session != os.getsid(0):
        return False
    try:
        return found.pgrp == os.tcgetpgrp(fd) and not local_modes(fd) & termios.ICANON
    except OSError:
        return False


def _for_prompt(before: list[Any]) -> list[Any]:
    """Keep the speed and the like."""
    modes = list(before)
    modes[_INPUT] = termios.ICRNL | termios.IXON | _IUTF8
    modes[_OUTPUT] = termios.OPOST | termios.ONLCR
    shown = termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ECHOCTL | termios.ECHOKE
    flushes_not = before[_LOCAL] & termios.NOFLSH
    modes[_LOCAL] = termios.ISIG | termios.ICANON | shown | flushes_not
    keys = [_KEYS.get(position, b"\0") for position in range(len(before[_KEYS_AT]))]
    if before[_KEYS_AT][termios.VERASE] == _BACKSPACE:
        keys[termios.VERASE] = _BACKSPACE
    modes[_KEYS_AT] = keys
    return modes


def _modes(fd: int) -> list[Any]:
    try:
        return termios.tcgetattr(fd)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None


def _set(fd: int, modes: list[Any]) -> None:
    """Set them also from the background: the supervisor blocks SIGTTOU."""
    try:
        termios.tcsetattr(fd, termios.TCSANOW, modes)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None
