"""Lines on standard error: sigwrap's own, and those for a process in the session.

A process can hold the lock of a pipe or file that it shares with sigwrap, so threads write these
lines. A thread waits for that lock only, never for room. It uses a duplicate of the caller's
descriptor with RWF_NOWAIT, where the kernel has that (for pipes since Linux 6.4). Otherwise:

- a pipe or terminal is opened again, so that only sigwrap's own descriptor has O_NONBLOCK
- splice(2) moves the line into a pipe of another user, which sigwrap may not open
- a terminal that sigwrap holds (terminals.py) is written through that
- a socket is asked not to wait
- a regular file is written through the duplicate, which has the right offset

A file on FUSE or NFS gets no line: closing the duplicate could block. A line that cannot be written
is in the log.
"""

from __future__ import annotations

import _thread
import errno
import os
import select
import stat
import termios
from collections.abc import Callable

from sigwrap.bare import deque, signal, socket
from sigwrap.linux import proc_files, terminals
from sigwrap.linux.file_state import kind_of
from sigwrap.linux.foreign_fds import let_go
from sigwrap.linux.ptrace import take_descriptor

_MOST_WAITING = 1000  # then the oldest lines are dropped
_WRITTEN_WITHIN_S = 0.005
_FLUSHED_WITHIN_S = 1.0
_NO_OFFSET = -1
_TERMINAL_MAJORS = frozenset({4, 5, *range(136, 144)})


class OwnLines:
    """Sigwrap's own lines, written in order by a thread.

    sigwrap waits 5 ms for each, so that a line mostly comes before the command's next output.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._waiting: deque[str] = deque(maxlen=_MOST_WAITING)
        self._lock = _thread.allocate_lock()
        self._writing = _thread.allocate_lock()  # held while any line waits

    def tell(self, line: str) -> None:
        with self._lock:
            self._waiting.append(line)
            if not self._writing.acquire(blocking=False):
                return  # the running thread writes it
        try:
            _thread.start_new_thread(self._write_all, ())
        except RuntimeError:  # no thread can start
            self._write_all()
        self._wait(_WRITTEN_WITHIN_S)

    def flush(self) -> None:
        """Wait a second for the lines that are not written yet."""
        self._wait(_FLUSHED_WITHIN_S)

    def _wait(self, within_s: float) -> None:
        if self._writing.acquire(timeout=within_s):
            self._writing.release()

    def _write_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._writing.release()
                    return
                line = self._waiting.popleft()
            self._write(line)


def allow_writing_to_terminals() -> None:
    """Block SIGTTOU: under `stty tostop`, a write from the background would stop sigwrap."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})


class Line:
    """A line for a process. Its standard error is copied at once, because the process may end."""

    def __init__(
        self,
        pid: int,
        text: str,
        *,
        off_terminals: str = "",
        spares_screens: bool = False,
        spares_ours: bool = False,
    ) -> None:
        """Copy the descriptor. `off_terminals` is appended if standard error is no terminal.

        `spares_screens`: write nothing if a program uses the terminal as its screen. `spares_ours`:
        write nothing on sigwrap's own terminal.
        """
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
        """Replace the text."""
        self._text = text.encode("utf-8", "backslashreplace")

    def write(self) -> None:
        if self._is_ours:
            _write_on_our_own(self._line_for(2))
        elif self._fd >= 0:
            try:
                if not (
                    (self._spares_screens and _is_screen(self._fd))
                    or (self._spares_ours and terminals.same_as(self._fd) is not None)
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


def _write_on_our_own(line: bytes) -> None:
    """Write on sigwrap's standard error. It is mostly the same as the caller's unreadable one."""
    try:
        if not stat.S_ISREG(os.fstat(2).st_mode):
            _write(2, line)
    except OSError:
        pass


def write_in_time(fd: int, line: bytes, within_s: float) -> None:
    """Write on a descriptor of our own. The line is dropped if there is no room in time."""
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
        held = terminals.same_as(fd)
        line = _with_returns(fd, line)
        if held is None:
            _write_anew(fd, line)
        else:
            terminals.write(held, line)
    elif kind == stat.S_IFIFO:
        try:
            _write_anew(fd, line)
        except PermissionError:
            _move_into(fd, line)
    elif kind == stat.S_IFREG:
        os.write(fd, line)


def _with_returns(fd: int, line: bytes) -> bytes:
    """Add the carriage returns that a terminal in raw mode does not add."""
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
