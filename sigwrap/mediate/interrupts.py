"""When to ask COMMAND to end, and when to stop asking.

A terminal's Ctrl+C reaches COMMAND too, since it shares sigwrap's process group. A COMMAND that
handles SIGINT is then already cleaning up, and a SIGTERM on top would cut the cleanup short in
every program that has no handler for it (Python's KeyboardInterrupt, pytest, make). So it gets
half of the grace before the SIGTERM; any other COMMAND gets the SIGTERM at once.

One key press may arrive twice: the bootloader of a one-file binary gets the terminal's signal as
well and forwards a copy (BootloaderCopies); timeout(1) signals its child and then the group. Two
presses of a key always come from the terminal, so those always count.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from enum import Enum

from sigwrap.tuples import NamedTuple

INTERRUPTS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})

_ECHO_WINDOW_S = 0.3
_COPY_WINDOW_S = 2.0  # a loaded machine may run the bootloader late


class BootloaderCopies:
    """The bootloader was there before us, and the kernel signals a group's newest process first:
    a copy never comes before its original."""

    def __init__(self, bootloader_pid: int) -> None:
        self._bootloader_pid = bootloader_pid
        self._originals: dict[int, float] = {}  # number -> when

    def has_copy(self, number: int, sender_pid: int, now: float) -> bool:
        """Of a signal that went to the whole group, and has arrived before."""
        if sender_pid == self._bootloader_pid != 0:
            original = self._originals.pop(number, None)
            return original is not None and now - original <= _COPY_WINDOW_S
        self._originals[number] = now
        return False


class Arrived(NamedTuple):
    """A signal reached the front process."""

    number: int
    from_terminal: bool
    sender_pid: int
    command_handles_it: bool = False


class Announce(NamedTuple):
    """An interrupt began: record where it came from."""

    arrived: Arrived


class PassOn(NamedTuple):
    """Send this signal to COMMAND."""

    number: int


class Escalate(NamedTuple):
    """Kill the whole tree now."""

    reason: str


Command = Announce | PassOn | Escalate


class _State(Enum):
    RUNNING = "running"
    STOPPING = "stopping"
    KILLING = "killing"


class Interrupts:
    def __init__(self, *, grace_s: float, bootloader_pid: int = 0) -> None:
        self._grace_s = grace_s
        self._bootloader_pid = bootloader_pid
        self._copies = BootloaderCopies(bootloader_pid)
        self._state = _State.RUNNING
        self._terminate_at: float | None = None
        self._kill_at: float | None = None
        self._last: tuple[Arrived, float] | None = None

    @property
    def interrupted(self) -> bool:
        return self._state is not _State.RUNNING

    @property
    def next_deadline(self) -> float | None:
        if self._state is not _State.STOPPING:
            return None
        return self._terminate_at if self._terminate_at is not None else self._kill_at

    def signal(self, arrived: Arrived, now: float) -> Iterable[Command]:
        if self._is_echo(arrived, now):
            return ()
        self._last = (arrived, now)
        if arrived.number not in INTERRUPTS:
            # What the terminal sent (SIGWINCH, SIGTSTP) it sent to COMMAND as well.
            return () if arrived.from_terminal else (PassOn(number=arrived.number),)
        match self._state:
            case _State.RUNNING:
                return self._begin(arrived, now)
            case _State.STOPPING:
                return self._kill("second interrupt")
            case _State.KILLING:
                return ()

    def tick(self, now: float) -> Iterable[Command]:
        if self._state is not _State.STOPPING:
            return ()
        if self._kill_at is not None and now >= self._kill_at:
            return self._kill("the grace ran out")
        if self._terminate_at is not None and now >= self._terminate_at:
            self._terminate_at = None
            return (PassOn(number=signal.SIGTERM),)
        return ()

    def _begin(self, arrived: Arrived, now: float) -> Iterable[Command]:
        self._state = _State.STOPPING
        self._kill_at = now + self._grace_s
        if arrived.from_terminal and arrived.command_handles_it:
            self._terminate_at = now + self._grace_s / 2
            return (Announce(arrived=arrived),)
        return (Announce(arrived=arrived), PassOn(number=signal.SIGTERM))

    def _kill(self, reason: str) -> Iterable[Command]:
        self._state = _State.KILLING
        return (Escalate(reason=reason),)

    def _is_echo(self, arrived: Arrived, now: float) -> bool:
        if self._copies.has_copy(arrived.number, arrived.sender_pid, now):
            return True
        if self._last is None or arrived.from_terminal or arrived.number not in INTERRUPTS:
            return False  # a program that sends SIGUSR1 twice means two
        last, at = self._last
        return (
            last.number == arrived.number
            and not last.from_terminal
            and last.sender_pid in (arrived.sender_pid, self._bootloader_pid)
            and now - at <= _ECHO_WINDOW_S
        )
