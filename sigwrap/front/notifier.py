"""Runs what the user gave with --notify, where a question waits for an answer: below the front
process, and so outside of the session. What comes while it runs is told when it has ended: a popup
that shows one question shows all.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.protocols.front import Notice
from sigwrap.start.command import Inherited, exec_command
from sigwrap.status import NOT_EXECUTABLE

_SHELL = b"/bin/sh"


class Notifier:
    def __init__(self, command: str, inherited: Inherited) -> None:
        """`on_failure` is called each time."""
        self.on_failure: Callable[[], None] = lambda: None
        self._command = command
        self._inherited = inherited
        self._pid = 0
        self._next: Notice | None = None
        self.failed_with = 0  # the status of the last one that failed

    def forget(self, names: tuple[bytes, ...]) -> None:
        """What COMMAND is not to see is nobody's to tell: others can read a process's variables."""
        given = {
            name: value for name, value in self._inherited.environment.items() if name not in names
        }
        self._inherited = self._inherited._replace(environment=given)

    def tell(self, notice: Notice) -> None:
        if self._pid:
            self._next = notice
            return
        try:
            pid = os.fork()
        except OSError:  # no process is to be had
            self._fails(NOT_EXECUTABLE)
            return
        if pid == 0:
            try:
                self._run(notice)
            finally:
                os._exit(NOT_EXECUTABLE)
        self._pid = pid

    def reaped(self, pid: int, wait_status: int) -> None:
        if pid != self._pid:
            return
        self._pid = 0
        if status := os.waitstatus_to_exitcode(wait_status):
            self._fails(status)
        if self._next is not None:
            notice, self._next = self._next, None
            self.tell(notice)

    def _fails(self, status: int) -> None:
        self.failed_with = status
        self.on_failure()

    def _run(self, notice: Notice) -> None:
        """Away from the terminal, whose keys are not for it, and whose screen is somebody's."""
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        try:
            os.chdir("/")  # a relative name is not to lead into the workspace
        except OSError:
            pass
        calm = self._inherited._replace(
            signal_mask=frozenset(), ignored_signals=frozenset({signal.SIGINT, signal.SIGQUIT})
        )
        words = ("sh", "-c", self._command)
        exec_command(_SHELL, words, calm, notice.variables)
