"""The terminal as it was before COMMAND: whoever uses it next finds it so.

Only its modes. The screen, the cursor and what else an emulator remembers belong to the emulator,
and nobody can ask for all of it.
"""

from __future__ import annotations

import os
from typing import Any

_OPEN = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class TerminalBefore:
    def __init__(self) -> None:
        """Its descriptor is held: at the end there may be none left to open."""
        self._modes: list[Any] | None = None
        try:
            self._fd = os.open("/dev/tty", _OPEN)
        except OSError:
            self._fd = -1  # there is no terminal, and nothing to restore
            return
        import termios  # 0.2 ms that no run without a terminal needs

        try:
            if os.tcgetpgrp(self._fd) == os.getpgrp():  # in the background they are another job's
                self._modes = termios.tcgetattr(self._fd)
        except (OSError, termios.error):
            pass  # it hung up

    def restore(self, *, by_force: bool) -> None:
        """`by_force`: COMMAND had no chance to do it. Then input that is unread may be answers of
        the terminal to what COMMAND asked it, which a shell would take for commands. After an end
        of its own it was typed ahead, and stays. Never waits."""
        if self._modes is None:
            return
        import termios

        try:
            self.take_back()
            if os.tcgetpgrp(self._fd) != os.getpgrp():
                return
            termios.tcflow(self._fd, termios.TCOON)  # where a TCOOFF of theirs has stopped it
            if termios.tcgetattr(self._fd) != self._modes:
                termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)
                by_force = True
            if by_force:
                termios.tcflush(self._fd, termios.TCIFLUSH)
        except (OSError, termios.error):
            pass  # it hung up

    def take_back(self) -> None:
        """From a group that is gone: one of COMMAND's, or that of a supervisor that asked."""
        try:
            os.killpg(os.tcgetpgrp(self._fd), 0)
        except ProcessLookupError:
            os.tcsetpgrp(self._fd, os.getpgrp())  # SIGTTOU is blocked here
        except OSError:
            pass

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
