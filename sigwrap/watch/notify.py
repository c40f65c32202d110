"""Notifications of new approval requests: a command of the user, or the terminal's bell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence

from sigwrap.approve.wording import notice_of
from sigwrap.kernel import procfs
from sigwrap.session.settings import BELL
from sigwrap.start import onefile
from sigwrap.watch.board import Board, ListedRequest


class Notifier:
    """Runs `command` once for all requests that are new since it last ran: one at a time."""

    def __init__(self, command: str, store: str, ring: Callable[[], None]) -> None:
        self._command = command
        self._store = store
        self._ring = ring
        self._known: set[tuple[str, str]] = set()
        self._running: subprocess.Popen[bytes] | None = None
        self.failed = ""

    def look(self, board: Board) -> None:
        keys = {(each.session_id, each.id): each for each in board.waiting}
        new = [each for key, each in keys.items() if key not in self._known]
        if not self._command or not new or not self._is_free():
            return
        self._known = set(keys)
        if self._command == BELL:
            self._ring()
        else:
            self._run(new[0])

    def _is_free(self) -> bool:
        if self._running is None:
            return True
        status = self._running.poll()
        if status is None:
            return False
        self._running = None
        if status:
            self.failed = f"the --notify command failed with status {status}"
        return True

    def _run(self, request: ListedRequest) -> None:
        variables = notice_of(request.id, request, self._store)
        try:
            self._running = start_apart(["/bin/sh", "-c", self._command], variables)
        except OSError as error:
            self.failed = f"cannot run the --notify command: {error.strerror}"


def start_apart(line: Sequence[str], more: Mapping[bytes, bytes]) -> subprocess.Popen[bytes]:
    """Start a program of the user, away from this terminal and directory."""
    environment = {**onefile.original_environment(procfs.environment()), **more}
    null = subprocess.DEVNULL
    return subprocess.Popen(
        line, env=environment, cwd="/", stdin=null, stdout=null, stderr=null, start_new_session=True
    )
