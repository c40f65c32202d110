"""The modes in which a question is asked, whatever those of before were: a line that is edited with
the usual keys, and with no byte that a terminal sends by itself; and shown as text that can be
seen."""

from __future__ import annotations

import os
import termios
from collections.abc import Mapping

from sigwrap.hints import Any
from sigwrap.linux import procfs, terminals

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
_SEEN = "\x1b[0m\x1b[?7h\x1b(B\x0f"


class OwnModes:
    def __init__(self, fd: int) -> None:
        """OSError where the terminal hung up."""
        self._fd = fd
        self._before = _modes(fd)
        self._ours = _ours(self._before)
        _set(fd, self._ours)

    @property
    def are_set(self) -> bool:
        try:
            now = _modes(self._fd)
        except OSError:
            return False
        return all(now[each] == self._ours[each] for each in (_INPUT, _OUTPUT, _LOCAL, _KEYS_AT))

    def restore(self) -> None:
        """What somebody else has set meanwhile stays."""
        if self.are_set:
            _set(self._fd, self._before)


def as_seen_text(env: Mapping[str, str]) -> str:
    """What to write before a text, where the terminal is known to understand it."""
    return "" if env.get("TERM") in (None, "", "dumb") else _SEEN


def local_modes(fd: int) -> int:
    flags: int = _modes(fd)[_LOCAL]
    return flags


def is_drawn_on_by(pid: int) -> bool:
    """Whether a process is in the terminal's foreground and reads keys, not lines: an editor, a
    full-screen agent."""
    fd = terminals.controlling
    found = procfs.stat(pid) if fd >= 0 else None
    if found is None or found.session != os.getsid(0):
        return False
    try:
        return found.pgrp == os.tcgetpgrp(fd) and not local_modes(fd) & termios.ICANON
    except OSError:
        return False


def _ours(before: list[Any]) -> list[Any]:
    """Its speed and the like stay."""
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
    """From the background too: SIGTTOU is blocked in a supervisor."""
    try:
        termios.tcsetattr(fd, termios.TCSANOW, modes)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None
