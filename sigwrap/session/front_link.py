"""The supervisor's link to the front process: messages, and Ctrl+Z and fg.

A shell waits for the front process, so JobControl stops and continues it with the command.
"""

from __future__ import annotations

import _thread
import os
import select
import time

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.events import Payload
from sigwrap.front.messages import LOOKED_AT_EVERY_S, Heartbeat, Place
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs, signals
from sigwrap.policy.judge.signals import signal_name

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LAST_WORDS_S = 0.5
_MOST_NAMES_BYTES = 4096


class FrontLink:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._channel = session.channel
        self._command_pid = session.command_pid
        self._recorder = session.recorder
        self._run = session.ending.run
        self._loop = session.loop
        self._is_drained = False
        self._pidfd = os.pidfd_open(session.facts.front_pid)
        self._loop.watch(self._channel.fd, self._on_message)
        self._loop.watch(self._pidfd, self._on_end)

    def start_after_scrub(self) -> None:
        """Run the command once it can't read removed variables in the front process."""
        if names := self._session.facts.environment.removed:
            # The answer is "forgotten". Without names, the front process erases all variables.
            fits = sum(map(len, names)) <= _MOST_NAMES_BYTES
            self._channel.send("forget", names if fits else ())
        else:
            self._session.facts.launched.go()

    def drain_front(self) -> None:
        """Read the front process's messages from before the command's end: an interrupt among them
        is why the command ended."""
        self._channel.send("command_ended")  # the answer is "nothing_more"
        poll = select.poll()
        poll.register(self._channel.fd, select.POLLIN)
        deadline = time.monotonic() + _LAST_WORDS_S
        while (
            not (self._is_drained or self._channel.is_closed)
            and (left_s := deadline - time.monotonic()) > 0
        ):
            ready = poll.poll(left_s * 1000)
            if not ready or not ready[0][1] & select.POLLIN:
                return
            self._on_message(ready[0][1])

    def interrupt(self, source: str) -> None:
        """Let the front process decide what the command gets, as for any interrupt."""
        self._channel.send("interrupt_demanded", source)

    def _on_message(self, _happened: int) -> None:
        self._channel.receive(self)
        if self._channel.is_closed:
            self._loop.unwatch(self._channel.fd)

    def _on_end(self, _happened: int) -> None:
        self._loop.unwatch(self._pidfd)
        self._run.kill("sigwrap's front process died")

    # Messages of the front process

    def on_forgotten(self) -> None:
        self._session.facts.launched.go()

    def on_kill_tree(self, reason: str) -> None:
        self._run.kill(reason)

    def on_notify_failed(self) -> None:
        self._session.approvals.notify_failed()

    def on_nothing_more(self) -> None:
        """It has passed on all signals that arrived."""
        self._is_drained = True

    def on_interrupt_withdrawn(self) -> None:
        self._recorder.record("interrupt_withdrawn", self._command_pid, {})
        self._run.interrupt_withdrawn()

    def on_interrupt_arrived(
        self, number: int, from_terminal: bool, ends_run: bool, sender: Payload
    ) -> None:
        if ends_run:
            self._run.interrupted(number)
        payload = {
            "signal": number,
            "signal_name": signal_name(number),
            "origin": "terminal" if from_terminal else "process",
            "taken_by": "sigwrap" if ends_run else "command",
            **sender,
        }
        self._recorder.record("interrupt_received", sender["sender_pid"], payload)

    def on_signal_for_command(self, number: int, sender: Payload) -> None:
        command = self._command_pid
        found = procfs.stat(command)
        if self._run.command_has_ended or found is None or found.has_ended:
            return
        if number == signal.SIGCONT and self._session.freezing.is_frozen:
            return  # only an agent SIGCONT thaws the session
        payload = {
            "signal": number,
            "signal_name": signal_name(number),
            **sender,
        }
        self._recorder.record("interrupt_forwarded", command, payload)
        if number == signal.SIGINT and sender["sender_place"] == Place.AGENT_SIGNAL:
            self._send_to_job(number)
        else:
            linux_process.send(command, number)
        if number == signal.SIGTERM:
            linux_process.send(command, signal.SIGCONT)  # a stopped job can't end

    def _send_to_job(self, number: int) -> None:
        """Send a signal to the command and the programs that it waits for: to the processes of the
        tree in its process group, and in the foreground of its terminal."""
        below = linux_process.below(os.getpid())
        alive = {found.pid: found for found in below if not found.has_ended}
        command, terminal = alive.get(self._command_pid), procfs.terminal(self._command_pid)
        job = {command and command.pgrp, terminal and terminal[1]}
        for pid in alive.keys() - self._session.recorded_commands():
            if alive[pid].pgrp in job:
                linux_process.send_to_same(alive[pid], number)


class JobControl:
    """Stops and continues the front process. While it is stopped, a thread here checks the
    heartbeat instead."""

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
        handled = signals.signals_in(self._command_pid, b"SigCgt", b"SigIgn")
        if number not in handled and not self._bootloader_stops_at(number):
            self._stop_front()

    def forget_stop_key(self) -> None:
        """Drop a stop key from before a freeze: it was meant for the command."""
        signal.sigtimedwait({signal.SIGTSTP}, 0)

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
            and number not in signals.signals_in(self._bootloader_pid, b"SigCgt", b"SigIgn")
        )
