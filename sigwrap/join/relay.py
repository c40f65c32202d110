"""A terminal of its own for a command that joins a session.

The caller's terminal belongs to the caller's session of processes, and the kernel gives it to no
other. So the command gets a pseudo-terminal with the same size and modes, and this process passes
keys and output on.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios

from sigwrap.bare import Any
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import inherited

_CHUNK = 1 << 16
_MOST_LEFT = 1 << 17  # more than the kernel keeps of a terminal's output
_STREAMS = (0, 1, 2)
_DEV_TTY = os.makedev(5, 0)  # the controlling terminal of the process that opens it


class Relay:
    def __init__(self, outer: int, replaced: tuple[int, ...]) -> None:
        """`outer`: the caller's terminal. `replaced`: our descriptors of it."""
        self.first = replaced[0]
        self._replaced = replaced
        self._outer = outer
        self._before: list[Any] = termios.tcgetattr(outer)
        self._master, self._slave = os.openpty()
        self._to_command = b""
        self._to_caller = b""
        self._has_hung_up = False
        self._is_drained = False
        self._passes_keys = False
        termios.tcsetattr(self._slave, termios.TCSANOW, self._before)
        self.resize()
        os.set_blocking(self._master, False)
        os.set_blocking(outer, False)  # we opened it: no other process shares the flag

    @classmethod
    def of_our_terminal(cls) -> Relay | None:
        """Return None if no standard stream is our terminal, or we are in its background."""
        try:
            outer = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            replaced = _all_on_it() if _is_in_foreground(outer) else ()
            if any(fd in _STREAMS for fd in replaced):
                return cls(outer, replaced)
        except (OSError, termios.error):
            pass  # it hung up
        os.close(outer)
        return None

    def instead_of(self, fd: int) -> int:
        return self._slave if fd in self._replaced else fd

    def begin(self, poll: select.epoll) -> None:
        """Pass keys and output on, once the command has its end of the terminal."""
        os.close(self._slave)
        self._poll = poll
        poll.register(self._outer, 0)
        poll.register(self._master, select.EPOLLIN)
        self.take()

    def take(self) -> None:
        """Take the keys one by one, unless another job has them."""
        if self._has_hung_up or not _is_in_foreground(self._outer):
            return
        self._set_modes(_raw(self._before, passes_output=1 in self._replaced))
        self._passes_keys = True
        self._await_more()

    def give_back(self) -> None:
        if self._passes_keys:
            self._set_modes(self._before)
        self._passes_keys = False
        self._await_more()

    @property
    def has_output(self) -> bool:
        return bool(self._to_caller)

    def drain(self) -> None:
        """Read the command's last output; other processes on its terminal may write for ever."""
        if self._is_drained:
            return
        while len(self._to_caller) < _MOST_LEFT and self._take_output():
            continue
        self._pass_no_more_output()
        self._write_output()
        self._await_more()

    def drop_output(self) -> None:
        self._to_caller = b""

    def end(self) -> None:
        self.drain()
        self.give_back()
        os.close(self._master)
        os.close(self._outer)

    def resize(self) -> None:
        if self._has_hung_up:
            return
        try:
            size = fcntl.ioctl(self._outer, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)
        except OSError:
            pass  # it hung up

    def pump(self, fd: int, happened: int) -> None:
        if fd == self._outer:
            self._write_output()
            if not self._has_hung_up and happened & (select.EPOLLIN | select.EPOLLHUP):
                self._take_keys(happened)
        elif not self._is_drained and not self._to_caller:
            if self._take_output() is None:
                self._pass_no_more_output()  # no process has it open
            self._write_output()
        self._pass_keys()
        self._await_more()

    def _take_keys(self, happened: int) -> None:
        try:
            keys = os.read(self._outer, _CHUNK) if self._passes_keys else b""
        except BlockingIOError:
            return
        except OSError:
            keys = b""
            self._passes_keys = False  # another job has them, until we are continued
        self._to_command += keys
        if not keys and happened & select.EPOLLHUP:
            self._hang_up()

    def _pass_no_more_output(self) -> None:
        self._is_drained = True
        self._poll.unregister(self._master)

    def _hang_up(self) -> None:
        """Pass nothing on: the kernel tells the caller, and the command may go on."""
        self._has_hung_up, self._passes_keys, self._to_caller = True, False, b""
        self._poll.unregister(self._outer)

    def _pass_keys(self) -> None:
        try:
            self._to_command = self._to_command[os.write(self._master, self._to_command) :]
        except BlockingIOError:
            pass  # the command doesn't read
        except OSError:
            self._to_command = b""

    def _take_output(self) -> int | None:
        """Return how many bytes came, or None at the end."""
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            return None
        self._to_caller += data
        return len(data)

    def _write_output(self) -> None:
        if self._has_hung_up:
            self._to_caller = b""
        try:
            while self._to_caller:
                self._to_caller = self._to_caller[os.write(self._outer, self._to_caller) :]
        except BlockingIOError:
            pass  # it takes no more for now
        except OSError:
            self._hang_up()

    def _await_more(self) -> None:
        if not self._has_hung_up:
            keys = select.EPOLLIN if self._passes_keys else 0
            self._poll.modify(self._outer, keys | (select.EPOLLOUT if self._to_caller else 0))
        output = 0 if self._to_caller else select.EPOLLIN
        if not self._is_drained:
            self._poll.modify(self._master, output | (select.EPOLLOUT if self._to_command else 0))

    def _set_modes(self, modes: list[Any]) -> None:
        try:
            termios.tcsetattr(self._outer, termios.TCSADRAIN, modes)
        except termios.error:
            pass  # it hung up


def without_keys(fd: int) -> int:
    """Return /dev/null for a standard input that is our terminal, if we are in its background: the
    kernel would stop us at a read, but lets another session have the keys."""
    is_ours = fd == 0 and 0 in _all_on_it()
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if is_ours else fd


def _all_on_it() -> tuple[int, ...]:
    """Return the descriptors from our caller that are our terminal."""
    numbers = procfs.controlling_terminal(os.getpid()), _DEV_TTY
    return tuple(fd for fd in inherited() if os.isatty(fd) and os.fstat(fd).st_rdev in numbers)


def _is_in_foreground(terminal: int) -> bool:
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False


def _raw(modes: list[Any], *, passes_output: bool) -> list[Any]:
    """Return raw modes; output stays processed unless the command's output passes through here."""
    raw = [*modes[:6], list(modes[6])]
    raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
    if passes_output:
        raw[1] &= ~termios.OPOST
    raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    return raw
