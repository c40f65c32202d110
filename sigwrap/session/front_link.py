"""The supervisor's end of the messages between it and the front process."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.front.messages import (
    CommandEnded,
    Forget,
    Forgotten,
    InterruptArrived,
    InterruptDemanded,
    InterruptWithdrawn,
    KillTree,
    Message,
    NothingMore,
    NotifyFailed,
    Place,
    SignalForCommand,
)
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs
from sigwrap.policy.judge.signals import signal_name
from sigwrap.session.run_end import Interrupted, KillDemanded, Withdrawn

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LAST_WORDS_S = 0.5


class FrontLink:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._channel = session.channel
        self._command_pid = session.command_pid
        self._recorder = session.recorder
        self._ending = session.ending
        self._loop = session.loop
        self._is_drained = False
        self._go: Callable[[], None] | None = None
        self._is_watched = True
        self._pidfd = os.pidfd_open(session.facts.front_pid)
        self._loop.watch(self._channel.fd, self._on_message)
        self._loop.watch(self._pidfd, self._on_end)

    def start_after_scrub(self, names: tuple[bytes, ...], go: Callable[[], None]) -> None:
        """Run the command once it can't read these variables in the front process."""
        if not names:
            go()
            return
        self._go = go
        self._channel.send(Forget(names))

    def drain_front(self) -> None:
        """Read the front process's messages from before the command's end: an interrupt among them
        is why the command ended."""
        self._channel.send(CommandEnded())
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
        self._channel.send(InterruptDemanded(source))

    def _on_message(self, _happened: int) -> None:
        for message in self._channel.receive():
            self._obey(message)
        if self._channel.is_closed and self._is_watched:
            self._is_watched = False
            self._loop.unwatch(self._channel.fd)

    def _on_end(self, _happened: int) -> None:
        self._loop.unwatch(self._pidfd)
        self._ending.on(KillDemanded("sigwrap's front process died"))

    def _obey(self, message: Message) -> None:
        match message:
            case InterruptArrived():
                self._interrupted(message)
            case InterruptWithdrawn():
                self._withdrawn()
            case SignalForCommand():
                self._pass_on(message)
            case KillTree(reason=reason):
                self._ending.on(KillDemanded(reason))
            case Forgotten():
                if self._go is not None:
                    self._go()
                    self._go = None
            case NotifyFailed():
                self._session.approvals.notify_failed()
            case NothingMore():
                self._is_drained = True
            case _:
                raise ValueError(f"not for the supervisor: {message}")

    def _interrupted(self, message: InterruptArrived) -> None:
        if message.ends_run:
            self._ending.on(Interrupted(message.number))
        payload = {
            "signal": message.number,
            "signal_name": signal_name(message.number),
            "origin": "terminal" if message.from_terminal else "process",
            "taken_by": "sigwrap" if message.ends_run else "command",
            **message.sender.payload,
        }
        self._recorder.record("interrupt_received", message.sender.pid, payload)

    def _withdrawn(self) -> None:
        self._recorder.record("interrupt_withdrawn", self._command_pid, {})
        self._ending.on(Withdrawn())

    def _pass_on(self, message: SignalForCommand) -> None:
        command, number = self._command_pid, message.number
        found = procfs.stat(command)
        if self._ending.run.command_has_ended or found is None or found.has_ended:
            return
        if number == signal.SIGCONT and self._session.freezing.is_frozen:
            return  # only an agent SIGCONT thaws the session
        payload = {
            "signal": number,
            "signal_name": signal_name(number),
            **message.sender.payload,
        }
        self._recorder.record("interrupt_forwarded", command, payload)
        if number == signal.SIGINT and message.sender.place is Place.AGENT_SIGNAL:
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
