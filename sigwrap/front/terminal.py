"""The terminal of a run: restored after the command, and its modes during an approval request; and
which process sent a signal to sigwrap.

Restored are the modes, whether output goes on, and whether others may open it. The emulator alone
knows the screen and the cursor.
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
_INPUT, _OUTPUT, _LOCAL, _KEYS_AT = 0, 1, 3, 6  # in termios's list

_IUTF8 = 0o40000
_KEYS = {  # during an approval request
    termios.VINTR: b"\x03",
    termios.VQUIT: b"\x1c",
    termios.VERASE: b"\x7f",
    termios.VKILL: b"\x15",
    termios.VEOF: b"\x04",
    termios.VMIN: b"\x01",
    termios.VSTART: b"\x11",
    termios.VSTOP: b"\x13",
    termios.VSUSP: b"\x1a",
}
_BACKSPACE = b"\x08"  # what some terminals send for the key that erases
_SHOWN = 1024


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
                self._modes = _modes(self._fd)
                self._are_of_another = not _is_a_shells(self._modes) and bool(_others_of_our_job())
        except OSError:
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
            modes = _modes(self._fd)
        except OSError:
            return False
        return bool(modes[_LOCAL] & termios.ISIG) and modes[_KEYS_AT][termios.VINTR] == _CTRL_C

    def is_edited(self) -> bool:
        """Return whether the command reads key by key, as a line editor does, and the caller had
        the terminal in line mode."""
        was_so_before = self._modes is not None and not self._modes[_LOCAL] & termios.ICANON
        try:
            is_so = self._fd >= 0 and not local_modes(self._fd) & termios.ICANON
        except OSError:
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
            are_changed = _modes(self._fd) != self._modes
            if not (are_changed or by_force) or any(map(self._is_used_by, _others_of_our_job())):
                return
            if are_changed:
                _set(self._fd, self._modes)
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
    return bool(modes[_LOCAL] & termios.ICANON and modes[_LOCAL] & termios.ECHO)


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


class PromptModes:
    """Modes for an approval request, whatever the modes before: line editing with the usual keys,
    text that can be seen, and no byte that the terminal sends by itself."""

    def __init__(self, fd: int) -> None:
        """Raises OSError if the terminal hung up."""
        self._fd = fd
        self._before = _modes(fd)
        self._ours = _for_prompt(self._before)
        _set(fd, self._ours)

    @property
    def are_set(self) -> bool:
        try:
            now = _modes(self._fd)
        except OSError:
            return False
        return all(now[each] == self._ours[each] for each in (_INPUT, _OUTPUT, _LOCAL, _KEYS_AT))

    def restore(self) -> None:
        """Restore the modes, unless another process has set others since."""
        if self.are_set:
            _set(self._fd, self._before)


def local_modes(fd: int) -> int:
    flags: int = _modes(fd)[_LOCAL]
    return flags


def is_drawn_on_by(pid: int) -> bool:
    """Return whether the process is in the terminal's foreground and reads keys instead of lines:
    an editor, a full-screen agent."""
    fd = terminals.controlling
    found = procfs.stat(pid) if fd >= 0 else None
    if found is None or found.session != os.getsid(0):
        return False
    try:
        return found.pgrp == os.tcgetpgrp(fd) and not local_modes(fd) & termios.ICANON
    except OSError:
        return False


def _for_prompt(before: list[Any]) -> list[Any]:
    """Keep the speed and the like."""
    modes = list(before)
    modes[_INPUT] = termios.ICRNL | termios.IXON | _IUTF8
    modes[_OUTPUT] = termios.OPOST | termios.ONLCR
    shown = termios.ECHO | termios.ECHOE | termios.ECHOK | termios.ECHOCTL | termios.ECHOKE
    flushes_not = before[_LOCAL] & termios.NOFLSH
    modes[_LOCAL] = termios.ISIG | termios.ICANON | shown | flushes_not
    keys = [_KEYS.get(position, b"\0") for position in range(len(before[_KEYS_AT]))]
    if before[_KEYS_AT][termios.VERASE] == _BACKSPACE:
        keys[termios.VERASE] = _BACKSPACE
    modes[_KEYS_AT] = keys
    return modes


def _modes(fd: int) -> list[Any]:
    try:
        return termios.tcgetattr(fd)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None


def _set(fd: int, modes: list[Any]) -> None:
    """Set them also from the background: the supervisor blocks SIGTTOU."""
    try:
        termios.tcsetattr(fd, termios.TCSANOW, modes)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None


class Caller(NamedTuple):
    """The process that started sigwrap."""

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
