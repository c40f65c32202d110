"""Where the command is that a wrapper is about to run."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable

from sigwrap.linux.file_state import State
from sigwrap.linux.paths import Caller, MayWait

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_LOOK_UPS_AT_ONCE = 48  # three nested wrappers, a PATH of sixteen folders
_LOOK_UPS = 4096
_SECONDS = 1.0
_TOO_LONG = "too many paths to search for the program that it wraps"


class Search:
    """Of one exec: all that it looks up counts."""

    __slots__ = ("_caller", "_folders", "_left", "_search_path", "_until_s")

    def __init__(self, caller: Caller, search_path: Callable[[], bytes]) -> None:
        self._caller = caller
        self._search_path = search_path
        self._folders: list[bytes] | None = None
        self._left = _LOOK_UPS if caller.may_wait else _LOOK_UPS_AT_ONCE
        self._until_s = time.monotonic() + _SECONDS

    def find(self, word: bytes) -> tuple[int, State, bytes] | None:
        """An O_PATH descriptor, and by which path. Raises MayWait where that takes too long."""
        for folder in [b""] if b"/" in word else self._path():
            self._left -= 1
            if self._left < 0 or time.monotonic() > self._until_s:
                raise MayWait(_TOO_LONG)
            path = os.path.join(folder, word)
            try:
                fd = self._caller.open(path)
            except OSError:
                continue
            state = self._caller.state_of(fd)
            if stat.S_ISREG(state.mode) and state.mode & 0o111:
                return fd, state, path
            os.close(fd)
        return None

    def _path(self) -> list[bytes]:
        if self._folders is None:
            self._folders = self._search_path().split(b":")
        return self._folders
