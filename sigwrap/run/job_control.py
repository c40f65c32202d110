"""Ctrl+Z and fg: a shell waits for the front process, so that one stops and goes on as COMMAND
does. While it is stopped it can't look whether the loop goes on: then a thread here does."""

from __future__ import annotations

import _thread
import os
import time

from sigwrap.bare import signal
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import process as linux_process
from sigwrap.linux import procfs
from sigwrap.mediate.heartbeat import LOOKED_AT_EVERY_S, Heartbeat

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_STOP_KEY = (signal.SIGTSTP,)


class JobControl:
    def __init__(self, session: Session) -> None:
        facts = session.facts
        self._session = session
        self._command_pid = facts.command_pid
        self._waited_for_pid = facts.waited_for_pid
        self._bootloader_pid = facts.bootloader_pid
        self._is_looked_after = False
        self._front_is_stopped = False

    def mirror(self, wait_status: int) -> None:
        """Both from here: a SIGSTOP by the front process itself could come after the supervisor's
        SIGCONT, and would last."""
        if os.WIFCONTINUED(wait_status):
            # A stop key after the shell's SIGCONT has stopped the bootloader: it stays stopped.
            if self._bootloader_stops_at(signal.SIGTSTP):
                self._front_is_stopped = False
            else:
                self.continue_front()
            return
        if self._session.freezing.is_frozen:  # no job was stopped
            return
        if self._session.plan.joins is not None:  # no job of a shell, and others wait for it
            linux_process.send(self._command_pid, signal.SIGCONT)
            return
        if self._session.approvals.holds_terminal or self._bootloader_stops_at(
            os.WSTOPSIG(wait_status)
        ):
            return
        # Else a shell has continued it by now: a stop that comes late would look like another. In
        # this order a SIGCONT between the two can't make a running job a stopped one.
        if not procfs.is_stopped(self._waited_for_pid) and procfs.is_stopped(self._command_pid):
            self._stop_front()

    def stop_front(self) -> None:
        """At a Ctrl+Z that COMMAND may not notice yet: the parent of a vfork whose child waits for
        an answer can't stop."""
        number = signal.SIGTSTP
        if number not in _heeded_by(self._command_pid) and not self._bootloader_stops_at(number):
            self._stop_front()

    def forget_stop_key(self) -> None:
        """One that came before a stop of the whole session was COMMAND's."""
        signal.sigtimedwait(_STOP_KEY, 0)

    def stop_front_at_key(self) -> None:
        """COMMAND stands still and can't: so that whoever pressed it has the shell back."""
        if signal.SIGTSTP not in signal.sigpending() or self._session.approvals.holds_terminal:
            return
        if not self._bootloader_stops_at(signal.SIGTSTP):
            self._stop_front()
        self.forget_stop_key()

    def _stop_front(self) -> None:
        if not self._is_looked_after:
            try:
                _thread.start_new_thread(self._look_after_loop, ())
            except RuntimeError:
                return  # rather a job that seems to run than one that nobody looks after
            self._is_looked_after = True
        self._front_is_stopped = linux_process.send(self._waited_for_pid, signal.SIGSTOP)

    def _look_after_loop(self) -> None:
        """Once the front process goes on, it does what is to be done."""
        heartbeat = Heartbeat()
        while True:
            time.sleep(LOOKED_AT_EVERY_S)
            if heartbeat.is_missing(self._session.channel.beats if self._front_is_stopped else 0):
                self.continue_front()

    def continue_front(self) -> None:
        if self._front_is_stopped:
            self.wake_front()

    def wake_front(self) -> None:
        """Whoever has stopped it."""
        self._front_is_stopped = False
        linux_process.send(self._waited_for_pid, signal.SIGCONT)

    def _bootloader_stops_at(self, number: int) -> bool:
        """Where the whole group got the signal, which is blocked here, the bootloader stops by
        itself; a stop by the supervisor on top could come after the shell's SIGCONT."""
        return (
            self._bootloader_pid != 0
            and number in signal.sigpending()
            and number not in _heeded_by(self._bootloader_pid)
        )


def _heeded_by(pid: int) -> frozenset[int]:
    """Not left to the kernel, which would stop it."""
    return procfs.caught_signals(pid) | procfs.ignored_signals(pid)
