"""Restores the terminal to its state before the command: its modes, whether output goes on, and
whether others may open it. The emulator alone knows the screen and the cursor.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios

from sigwrap.bare import Any, NamedTuple
from sigwrap.front.messages import NO_SENDER, Place, Sender
from sigwrap.kernel import procfs, terminals
from sigwrap.kernel.signals import SignalInfo
from sigwrap.kernel.terminals import opened_terminals, waits_for_input
from sigwrap.text import masked

_CTRL_C = b"\x03"
_TIOCGEXCL = 0x80045440


class TerminalBefore:
    def __init__(self) -> None:
        self._modes: list[Any] | None = None
        self._are_of_another = False  # another program of our job had set the modes by then
        self._was_exclusive = False
        self._fd = terminals.controlling
        if self._fd < 0:
            return  # there is no terminal, and nothing to restore
        self._inherited = opened_terminals(os.getpid())
        try:
            self._was_exclusive = self._is_exclusive()
            if os.tcgetpgrp(self._fd) == os.getpgrp():  # else the modes are another job's
                self._modes = termios.tcgetattr(self._fd)
                self._are_of_another = not _is_a_shells(self._modes) and bool(_others_of_our_job())
        except (OSError, termios.error):
            pass  # it hung up

    @property
    def is_there(self) -> bool:
        """Whether there is a terminal, or was at the start."""
        return self._fd >= 0

    def has_hung_up(self) -> bool:
        if not self.is_there:
            return False
        poll = select.poll()
        poll.register(self._fd, 0)
        return any(happened & select.POLLHUP for _, happened in poll.poll(0))

    def is_in_our_foreground(self) -> bool:
        try:
            return self._fd >= 0 and os.tcgetpgrp(self._fd) == os.getpgrp()
        except OSError:
            return False

    def interrupts_us(self) -> bool:
        """Return whether Ctrl+C sends SIGINT to our process group."""
        if not self.is_in_our_foreground():
            return False
        try:
            modes = termios.tcgetattr(self._fd)
        except termios.error:
            return False
        return bool(modes[3] & termios.ISIG) and modes[6][termios.VINTR] == _CTRL_C

    def is_edited(self) -> bool:
        """Return whether the command reads key by key, as a line editor does, and the caller had
        the terminal in line mode."""
        was_so_before = self._modes is not None and not self._modes[3] & termios.ICANON
        try:
            is_so = self._fd >= 0 and not termios.tcgetattr(self._fd)[3] & termios.ICANON
        except termios.error:
            return False
        return is_so and not was_so_before

    def restore(self, *, by_force: bool) -> None:
        """Restore the terminal, without waiting.

        `by_force`: the command was killed. Unread input may then be answers of the terminal, which
        a shell would take for commands, so it is dropped. After the command's own end, the user
        typed it ahead. Modes and input stay if another program of our job uses the terminal, as the
        pager in `sigwrap -- COMMAND | less`.
        """
        if self._fd < 0:
            return
        try:
            if self._is_exclusive() and not self._was_exclusive:
                fcntl.ioctl(self._fd, termios.TIOCNXCL)
            terminals.let_output_go_on(self._fd)
            if self._modes is None:
                return
            self.take_back()
            if self._are_of_another or os.tcgetpgrp(self._fd) != os.getpgrp():
                return
            are_changed = termios.tcgetattr(self._fd) != self._modes
            if not (are_changed or by_force) or any(map(self._is_used_by, _others_of_our_job())):
                return
            if are_changed:
                termios.tcsetattr(self._fd, termios.TCSANOW, self._modes)
            termios.tcflush(self._fd, termios.TCIFLUSH)
        except (OSError, termios.error):
            pass  # it hung up

    def take_back(self) -> None:
        """Take the foreground back from a process group that has ended."""
        try:
            os.killpg(os.tcgetpgrp(self._fd), 0)
        except ProcessLookupError:
            os.tcsetpgrp(self._fd, os.getpgrp())  # SIGTTOU is blocked here
        except OSError:
            pass

    def _is_used_by(self, pid: int) -> bool:
        """Return whether the process reads the terminal or has opened it itself, as a pager does
        for its keys. All processes of the job have inherited it."""
        return waits_for_input(pid) or not opened_terminals(pid) <= self._inherited

    def _is_exclusive(self) -> bool:
        """Return whether only root can open it."""
        found = bytearray(4)  # an int
        fcntl.ioctl(self._fd, _TIOCGEXCL, found, True)
        return any(found)


def _is_a_shells(modes: list[Any]) -> bool:
    """Return whether these are the modes that a shell sets for a program."""
    return bool(modes[3] & termios.ICANON and modes[3] & termios.ECHO)


def _others_of_our_job() -> list[int]:
    """Return the processes in our group that are neither our ancestors nor our children."""
    group, us = os.getpgrp(), os.getpid()
    ours = {us, *procfs.ancestors(us)}
    found = (each for pid in procfs.all_pids() if (each := procfs.stat(pid)) is not None)
    return [
        each.pid
        for each in found
        if each.pgrp == group and not each.has_ended and each.pid not in ours and each.ppid != us
    ]


# Which processes sent a signal to sigwrap, and which one started it.

_SHOWN = 1024


class Caller(NamedTuple):
    pid: int
    pidfd: int  # readable once it has ended
    name: str


def callers_pid(bootloader_pid: int) -> int:
    """Return the pid of the process that started sigwrap, 0 if our pid namespace has none."""
    outermost = procfs.stat(bootloader_pid or os.getpid())
    return 0 if outermost is None else outermost.ppid


def held_caller(bootloader_pid: int) -> Caller | None:
    pid = callers_pid(bootloader_pid)
    if not pid:
        return None
    try:
        return Caller(pid, os.pidfd_open(pid), procfs.comm(pid))
    except ProcessLookupError:  # it ended just now, and we have another parent
        return held_caller(bootloader_pid)


def sender_of(info: SignalInfo, *, supervisor: int, bootloader: int) -> Sender:
    pid, uid = info.sender_pid, info.sender_uid
    if info.is_from_terminal or pid == supervisor:  # the supervisor passes keys on
        return NO_SENDER
    if info.is_from_timer:
        return Sender(pid, uid, Place.TIMER, "")
    if pid == 0:
        return Sender(pid, uid, Place.ELSEWHERE, "")
    if pid == bootloader:
        return Sender(pid, uid, Place.OUTER_PROCESS, procfs.comm(pid))
    found = procfs.stat(pid)
    if found is None:
        return Sender(pid, uid, Place.ENDED, "")
    if supervisor in procfs.ancestors(
        pid
    ):  # its command line could block a reader: it is its memory
        return Sender(pid, uid, Place.INSIDE, found.comm)
    words = procfs.command_line(pid)[:_SHOWN].split(" ")
    return Sender(pid, uid, Place.OUTSIDE, " ".join(masked(words)) or found.comm)
