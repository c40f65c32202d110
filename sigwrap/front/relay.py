"""A terminal of its own for a command that joins a session.

The caller's belongs to the caller's session of processes, and the kernel lets no other have it. So
the command gets a new one, with the same size and modes, and keys and output are passed on between
the two.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios

from sigwrap.hints import Any
from sigwrap.linux import procfs

_CHUNK = 1 << 16
_STREAMS = (0, 1, 2)


class Relay:
    def __init__(self, outer: int, replaced: tuple[int, ...]) -> None:
        """`outer`: a descriptor of the caller's terminal."""
        self.first = replaced[0]
        self._replaced = replaced
        self._outer = outer
        self._before: list[Any] = termios.tcgetattr(outer)
        self._master, self._slave = os.openpty()
        self._to_command = b""
        self._poll: select.epoll | None = None
        termios.tcsetattr(self._slave, termios.TCSANOW, self._before)
        self.resize()
        os.set_blocking(self._master, False)

    @classmethod
    def of_our_terminal(cls) -> Relay | None:
        """None where no standard stream is our terminal, or we are in its background."""
        try:
            outer = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if os.tcgetpgrp(outer) == os.getpgrp() and (replaced := _streams_on_it()):
                return cls(outer, replaced)
        except (OSError, termios.error):
            pass  # it hung up
        os.close(outer)
        return None

    def instead_of(self, fd: int) -> int:
        return self._slave if fd in self._replaced else fd

    def begin(self, poll: select.epoll) -> None:
        """Once the command has its end."""
        os.close(self._slave)
        self._poll = poll
        poll.register(self._outer, select.EPOLLIN)
        poll.register(self._master, select.EPOLLIN)
        self.take()

    def take(self) -> None:
        """The keys as they come."""
        termios.tcsetattr(self._outer, termios.TCSADRAIN, _raw(self._before))

    def give_back(self) -> None:
        termios.tcsetattr(self._outer, termios.TCSADRAIN, self._before)

    def end(self) -> None:
        while self._pass_output():
            continue  # what the command wrote last
        self.give_back()
        os.close(self._master)
        os.close(self._outer)

    def resize(self) -> None:
        size = fcntl.ioctl(self._outer, termios.TIOCGWINSZ, b"\0" * 8)
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, size)

    def pump(self, fd: int) -> None:
        if fd == self._outer:
            self._to_command += self._keys()
        elif self._pass_output() is None:
            self._pass_no_more(self._master)  # nobody has it open any more
        self._pass_keys()

    def _keys(self) -> bytes:
        try:
            keys = os.read(self._outer, _CHUNK)
        except OSError:
            keys = b""
        if not keys:  # it hung up
            self._pass_no_more(self._outer)
        return keys

    def _pass_keys(self) -> None:
        try:
            self._to_command = self._to_command[os.write(self._master, self._to_command) :]
        except BlockingIOError:
            pass  # the command doesn't read
        except OSError:
            self._to_command = b""
        if self._poll is not None:
            waits = select.EPOLLIN | (select.EPOLLOUT if self._to_command else 0)
            try:
                self._poll.modify(self._master, waits)
            except OSError:
                pass  # nothing comes from it any more

    def _pass_output(self) -> int | None:
        """How much; None where there will never be any more."""
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            return None
        size = len(data)
        while data:
            data = data[os.write(self._outer, data) :]
        return size

    def _pass_no_more(self, fd: int) -> None:
        if self._poll is not None:
            self._poll.unregister(fd)


def without_keys(fd: int) -> int:
    """Instead of our terminal to read from, where we are in its background: the kernel would stop a
    job that reads there, and lets a session of others have the keys."""
    is_ours = fd == 0 and 0 in _streams_on_it()
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if is_ours else fd


def _streams_on_it() -> tuple[int, ...]:
    number = procfs.controlling_terminal(os.getpid())
    return tuple(fd for fd in _STREAMS if os.isatty(fd) and os.fstat(fd).st_rdev == number)


def _raw(modes: list[Any]) -> list[Any]:
    raw = [*modes[:6], list(modes[6])]
    raw[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON)
    raw[1] &= ~termios.OPOST
    raw[2] = raw[2] & ~(termios.CSIZE | termios.PARENB) | termios.CS8
    raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
    raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
    return raw
