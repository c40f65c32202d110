"""Handle what wait(2) reports to the supervisor, the subreaper of its tree: tracing stops, job
control stops, and ends. JobControl stops and continues the front process with the command."""

from __future__ import annotations

import _thread
import os
import time

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.front.messages import LOOKED_AT_EVERY_S, Heartbeat
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs, ptrace, signals
from sigwrap.kernel.ptrace import WALL

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_ENDS_AND_STOPS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED | WALL
_CHILDREN_A_TURN = 64
_EXEC_STOP_COMES_WITHIN_NS = 300_000


class Children:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._command_pid = session.command_pid
        self._mediation = session.mediation
        self._ending = session.ending
        self._loop = session.loop
        self._signals = session.child_signals
        self._loop.watch(self._signals.fd, self._on_signal)

    def await_exec_stop(self) -> None:
        """Wait a moment for an exec stop. It usually comes sooner than the supervisor could sleep
        and wake up, and sched_yield lets other processes run meanwhile."""
        until_ns = time.perf_counter_ns() + _EXEC_STOP_COMES_WITHIN_NS
        while time.perf_counter_ns() < until_ns:
            os.sched_yield()
            if self._signals.read():
                self.take()
                return

    def _on_signal(self, _happened: int) -> None:
        self._signals.read()
        self.take()

    def take(self) -> None:
        for _ in range(_CHILDREN_A_TURN):
            try:
                pid, wait_status = os.waitpid(-1, _ENDS_AND_STOPS)
            except ChildProcessError:
                self._ending.no_child_is_left()
                return
            if pid == 0:
                return
            self.on_status(pid, wait_status)
        # Fast ends of children must not keep other requests waiting.
        self._loop.call_in(0, self.take)

    def on_status(self, pid: int, wait_status: int) -> None:
        if os.WIFSTOPPED(wait_status) or os.WIFCONTINUED(wait_status):
            self._on_stop(pid, wait_status)
        else:
            self._on_end(pid, wait_status)

    def _on_stop(self, pid: int, wait_status: int) -> None:
        if self._mediation is not None and self._mediation.on_stop(pid, wait_status):
            return
        if os.WIFSTOPPED(wait_status) and ptrace.let_go_unasked(pid, os.WSTOPSIG(wait_status)):
            return
        if pid == self._command_pid:
            self._session.job_control.mirror(wait_status)
            if os.WIFCONTINUED(wait_status):
                self._session.freezing.freeze_continued()

    def _on_end(self, pid: int, wait_status: int) -> None:
        if self._mediation is not None:
            self._mediation.on_end(pid)
        self._ending.reaped(pid, wait_status)


# Stop and continue the front process with the command, for Ctrl+Z and fg: the shell waits for it.
# While it is stopped, a thread here checks the heartbeat instead.

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
    return signals.caught_or_ignored(pid)
