"""Runs the --notify command for approval requests.

It is a child of the front process, so it is outside the session. Of the requests that come while it
runs, the last is reported after its end: one popup lets the user see all of them.
"""

from __future__ import annotations

import os

from sigwrap.bare import signal
from sigwrap.errors import NOT_EXECUTABLE
from sigwrap.front.messages import Channel, Notice, NotifyFailed
from sigwrap.start.command import Inherited, exec_command

_SHELL = b"/bin/sh"


class Notifier:
    def __init__(self, command: str, inherited: Inherited, supervisor: Channel) -> None:
        self._command = command
        self._supervisor = supervisor
        self._inherited = inherited
        self._pid = 0
        self._next: Notice | None = None
        self.failed_with = 0  # the status of the last failure

    def forget(self, names: tuple[bytes, ...]) -> None:
        """Remove variables that the command must not see: it could read them in the notifier."""
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
        except OSError:  # the process limit is reached
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
        self._supervisor.send(NotifyFailed())

    def _run(self, notice: Notice) -> None:
        """Execute the command away from the terminal and the current directory."""
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        try:
            os.chdir("/")  # a relative name must not lead into the workspace
        except OSError:
            pass
        calm = self._inherited._replace(
            signal_mask=frozenset(), ignored_signals=frozenset({signal.SIGINT, signal.SIGQUIT})
        )
        words = ("sh", "-c", self._command)
        exec_command(_SHELL, words, calm, notice.variables)
