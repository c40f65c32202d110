"""Tells of what has come to wait: by a command of the user's, or the terminal's bell."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from sigwrap.escape import printable
from sigwrap.linux import procfs
from sigwrap.mediate.questions import wants
from sigwrap.protocols.front import Notice
from sigwrap.run.settings import BELL
from sigwrap.start import onefile
from sigwrap.watch.board import Board, Waits

_REMEMBERED = 1_000


class Telling:
    """`command` runs once for all that have come since it ran last: one at a time."""

    def __init__(self, command: str, store: str, ring: Callable[[], None]) -> None:
        self._command = command
        self._store = store
        self._ring = ring
        self._told: dict[tuple[str, str], None] = {}
        self._running: subprocess.Popen[bytes] | None = None
        self.failed = ""

    def look(self, board: Board) -> None:
        new = [each for each in board.waiting if (each.session_id, each.id) not in self._told]
        if not self._command or not new or not self._is_free():
            return
        for each in new:
            self._told[each.session_id, each.id] = None
        while len(self._told) > _REMEMBERED:
            del self._told[next(iter(self._told))]
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

    def _run(self, waits: Waits) -> None:
        question = f"{waits.process} {wants(waits.kind)}: {waits.masked or waits.what}"
        notice = Notice(waits.id, printable(question), printable(waits.rule), self._store)
        environment = onefile.original_environment(procfs.environment())
        try:
            self._running = subprocess.Popen(
                ["/bin/sh", "-c", self._command],
                env={**environment, **notice.variables},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self.failed = f"cannot run the --notify command: {error.strerror}"
