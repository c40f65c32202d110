"""The supervisor's end of what it and the front process tell each other."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.events import Payload
from sigwrap.linux import process as linux_process
from sigwrap.linux import procfs
from sigwrap.mediate.run_end import Interrupted, KillDemanded, Withdrawn
from sigwrap.policy.judge.signals import signal_name
from sigwrap.protocols.front import (
    Channel,
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
    Sender,
    SignalForCommand,
)
from sigwrap.run.ending import Ending
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder

_LAST_WORDS_S = 0.5


class FrontLink:
    def __init__(
        self,
        *,
        channel: Channel,
        front_pid: int,
        command_pid: int,
        recorder: Recorder,
        ending: Ending,
        loop: Loop,
        is_frozen: Callable[[], bool],
        on_notify_failed: Callable[[], None],
    ) -> None:
        self._is_frozen = is_frozen
        self._on_notify_failed = on_notify_failed
        self._channel = channel
        self._command_pid = command_pid
        self._recorder = recorder
        self._ending = ending
        self._loop = loop
        self._is_heard_out = False
        self._go: Callable[[], None] | None = None
        self._is_watched = True
        self._pidfd = os.pidfd_open(front_pid)
        loop.watch(channel.fd, self._on_message)
        loop.watch(self._pidfd, self._on_end)

    def go_without(self, names: tuple[bytes, ...], go: Callable[[], None]) -> None:
        """COMMAND runs once nobody can read these variables in the front process."""
        if not names:
            go()
            return
        self._go = go
        self._channel.send(Forget(names))

    def hear_out(self) -> None:
        """An interrupt that reached the front process before COMMAND ended is why COMMAND ended."""
        self._channel.send(CommandEnded())
        poll = select.poll()
        poll.register(self._channel.fd, select.POLLIN)
        deadline = time.monotonic() + _LAST_WORDS_S
        while (
            not (self._is_heard_out or self._channel.is_closed)
            and (left_s := deadline - time.monotonic()) > 0
        ):
            ready = poll.poll(left_s * 1000)
            if not ready or not ready[0][1] & select.POLLIN:
                return
            self._on_message(ready[0][1])

    def interrupt(self, source: str) -> None:
        """It decides what COMMAND gets, as for any interrupt."""
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
                self._on_notify_failed()
            case NothingMore():
                self._is_heard_out = True
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
            **_of_sender(message.sender),
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
        if number == signal.SIGCONT and self._is_frozen():
            return  # that is for the agent signal of this name
        payload = {
            "signal": number,
            "signal_name": signal_name(number),
            **_of_sender(message.sender),
        }
        self._recorder.record("interrupt_forwarded", command, payload)
        linux_process.send(command, number)
        if number == signal.SIGTERM:
            linux_process.send(command, signal.SIGCONT)  # a stopped job can't end


def _of_sender(sender: Sender) -> Payload:
    return {
        "sender_pid": sender.pid,
        "sender_uid": sender.uid,
        "sender_place": sender.place.value,
        "sender_cmd": sender.command,
    }
