"""One line on a standard error, by a thread that may wait for the lock of its pipe or file.

It waits for nothing else, such as room. RWF_NOWAIT through a duplicate of the caller's descriptor
serves where the kernel has it (pipes since Linux 6.4). Else a pipe or a terminal is opened anew, so
that O_NONBLOCK is ours alone, unless it is one that is held open for that (held_terminals.py), and
a socket is asked not to wait. A pipe that another user has made can't be opened: the line is moved
into it from a pipe of our own, where the kernel can be told not to wait. That takes one of its
sixteen places, however short the line is. A regular file is written through the duplicate, for its
offset counts. One on a file system that a process serves (FUSE, NFS) isn't taken: to close the
duplicate could stall us. A line that can't be written is in the log.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import termios

from sigwrap.bare import signal, socket
from sigwrap.linux import held_terminals, proc_files
from sigwrap.linux.file_state import kind_of
from sigwrap.linux.foreign_fds import let_go
from sigwrap.linux.ptrace import take_descriptor

_NO_OFFSET = -1
_TERMINAL_MAJORS = frozenset({4, 5, *range(136, 144)})


def allow_writing_to_terminals() -> None:
    """From the background of a terminal with `stty tostop`, a write would stop us otherwise."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})


class Line:
    """A line for a process, whose standard error is taken at once: it may end now."""

    def __init__(
        self,
        pid: int,
        text: str,
        *,
        off_terminals: str = "",
        spares_screens: bool = False,
        spares_ours: bool = False,
    ) -> None:
        """`off_terminals`: appended where standard error is no terminal.
        `spares_screens`: not where a program has taken the terminal for its screen.
        `spares_ours`: not on sigwrap's own terminal."""
        self.say(text)
        self._off_terminals = off_terminals.encode()
        self._spares_screens = spares_screens
        self._spares_ours = spares_ours
        self._fd, self._is_ours = -1, False
        try:
            self._fd = take_descriptor(pid, 2)
        except PermissionError:
            self._is_ours = True
        except OSError:
            pass

    def say(self, text: str) -> None:
        """This instead, where it was not known at first."""
        self._text = text.encode("utf-8", "backslashreplace")

    def write(self) -> None:
        if self._is_ours:
            _tell_who_started_us(self._line_for(2))
        elif self._fd >= 0:
            try:
                if not (
                    (self._spares_screens and _is_screen(self._fd))
                    or (self._spares_ours and held_terminals.same_as(self._fd) is not None)
                ):
                    _write(self._fd, self._line_for(self._fd))
            except OSError:
                pass

    def _line_for(self, fd: int) -> bytes:
        return self._text + (b"" if _is_terminal(fd) else self._off_terminals) + b"\n"

    def close(self) -> None:
        if self._fd >= 0:
            let_go(self._fd)


def _is_terminal(fd: int) -> bool:
    kind, major = kind_of(b"/proc/self/fd/%d" % fd)
    return kind == stat.S_IFCHR and major in _TERMINAL_MAJORS


def _is_screen(fd: int) -> bool:
    if not _is_terminal(fd):
        return False
    try:
        local: int = termios.tcgetattr(fd)[3]
    except termios.error:
        return False
    return not local & termios.ICANON


def _tell_who_started_us(line: bytes) -> None:
    """The caller may not be looked into, and mostly has the same standard error."""
    try:
        if not stat.S_ISREG(os.fstat(2).st_mode):
            _write(2, line)
    except OSError:
        pass


def write_in_time(fd: int, line: bytes, within_s: float) -> None:
    """On one of our own. Dropped where nobody makes room for it in time."""
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            os.write(fd, line)
            return
        try:
            _write(fd, line)
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll(within_s * 1000)
            _write(fd, line)
    except OSError:
        pass


def _write(fd: int, line: bytes) -> None:
    try:
        os.pwritev(fd, [line], _NO_OFFSET, os.RWF_NOWAIT)
    except OSError as refusal:
        if refusal.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ESPIPE):
            raise
        _write_by_kind(fd, line)


def _write_by_kind(fd: int, line: bytes) -> None:
    kind, major = kind_of(b"/proc/self/fd/%d" % fd)
    if kind == stat.S_IFSOCK:
        with socket.socket(fileno=os.dup(fd)) as end:
            end.send(line, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    elif kind == stat.S_IFCHR and major in _TERMINAL_MAJORS:
        held = held_terminals.same_as(fd)
        line = _with_returns(fd, line)
        if held is None:
            _write_anew(fd, line)
        else:
            held_terminals.write(held, line)
    elif kind == stat.S_IFIFO:
        try:
            _write_anew(fd, line)
        except PermissionError:
            _move_into(fd, line)
    elif kind == stat.S_IFREG:
        os.write(fd, line)


def _with_returns(fd: int, line: bytes) -> bytes:
    """As a terminal in raw mode needs them, which adds none."""
    try:
        output = termios.tcgetattr(fd)[1]
    except termios.error:
        return line
    adds_them = output & termios.OPOST and output & termios.ONLCR
    return line if adds_them else line.replace(b"\n", b"\r\n")


def _write_anew(fd: int, line: bytes) -> None:
    again = proc_files.open_file(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        os.write(again, line)
    finally:
        os.close(again)


def _move_into(pipe: int, line: bytes) -> None:
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        os.splice(reading, pipe, os.write(writing, line), flags=os.SPLICE_F_NONBLOCK)
    finally:
        os.close(reading)
        os.close(writing)
