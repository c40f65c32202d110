"""Stop and continue the front process with the command, for Ctrl+Z and fg: the shell waits for it.
While it is stopped, a thread here checks the heartbeat instead."""

from __future__ import annotations

import _thread
import os
import time

from sigwrap.bare import TYPE_CHECKING, signal
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
        self._has_watchdog = False
        self._front_is_stopped = False

    def mirror(self, wait_status: int) -> None:
        """Stop or continue the front process. The supervisor sends both signals: a SIGSTOP from the
        front process itself could come after the supervisor's SIGCONT, and would last."""
        if os.WIFCONTINUED(wait_status):
            # A stop key after the shell's SIGCONT stopped the bootloader: it stays stopped.
            if self._bootloader_stops_at(signal.SIGTSTP):
                self._front_is_stopped = False
            else:
                self.continue_front()
            return
        if self._session.freezing.is_frozen:  # the freeze stopped it, not job control
            return
        if self._session.plan.joins is not None:  # not a job, and other commands wait for it
            linux_process.send(self._command_pid, signal.SIGCONT)
            return
        if self._session.approvals.holds_terminal or self._bootloader_stops_at(
            os.WSTOPSIG(wait_status)
        ):
            return
        # Otherwise a shell has continued it by now, and a late stop would look like a new one. This
        # order of checks makes sure that a SIGCONT in between cannot stop a running job.
        if not procfs.is_stopped(self._waited_for_pid) and procfs.is_stopped(self._command_pid):
            self._stop_front()

    def stop_front(self) -> None:
        """Stop the front process at a Ctrl+Z that the command may not notice yet: a vfork parent
        cannot stop while its child waits for an answer."""
        number = signal.SIGTSTP
        if number not in _handled_by(self._command_pid) and not self._bootloader_stops_at(number):
            self._stop_front()

    def forget_stop_key(self) -> None:
        """Drop a stop key from before a freeze: it was meant for the command."""
        signal.sigtimedwait(_STOP_KEY, 0)

    def stop_front_at_key(self) -> None:
        """Stop the front process at a stop key during a freeze: the user gets the shell back."""
        if signal.SIGTSTP not in signal.sigpending() or self._session.approvals.holds_terminal:
            return
        if not self._bootloader_stops_at(signal.SIGTSTP):
            self._stop_front()
        self.forget_stop_key()

    def _stop_front(self) -> None:
        if not self._has_watchdog:
            try:
                _thread.start_new_thread(self._watch_loop, ())
            except RuntimeError:
                return  # a job that looks running is better than one without a heartbeat check
            self._has_watchdog = True
        self._front_is_stopped = linux_process.send(self._waited_for_pid, signal.SIGSTOP)

    def _watch_loop(self) -> None:
        """Continue the front process if the loop stalls: it then handles the stall."""
        heartbeat = Heartbeat()
        while True:
            time.sleep(LOOKED_AT_EVERY_S)
            if heartbeat.is_missing(self._session.channel.beats if self._front_is_stopped else 0):
                self.continue_front()

    def continue_front(self) -> None:
        if self._front_is_stopped:
            self.wake_front()

    def wake_front(self) -> None:
        """Continue the front process, whatever has stopped it."""
        self._front_is_stopped = False
        linux_process.send(self._waited_for_pid, signal.SIGCONT)

    def _bootloader_stops_at(self, number: int) -> bool:
        """Return whether the bootloader stops itself, as the whole group got the signal. A second
        stop by the supervisor could come after the shell's SIGCONT."""
        return (
            self._bootloader_pid != 0
            and number in signal.sigpending()
            and number not in _handled_by(self._bootloader_pid)
        )


def _handled_by(pid: int) -> frozenset[int]:
    """Return the signals that do not stop the process: it catches or ignores them."""
    return procfs.caught_signals(pid) | procfs.ignored_signals(pid)
