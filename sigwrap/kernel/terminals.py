"""Sigwrap's terminals, the processes that wait for their input, and the lines written to them.

Sigwrap opens its terminals before the command runs: by TIOCEXCL or a chmod, the command could
prevent a later open. Sigwrap never waits long to write.

/proc/TID/syscall shows a thread that waits for input: in a read, or in a poll that watches the
terminal. A thread that sigwrap may not inspect counts as not waiting. While sigwrap asks on the
terminal, the kernel then keeps that thread from reading (approve/terminal_prompt.py).
"""

from __future__ import annotations

import _thread
import fcntl
import os
import select
import stat
import struct
import termios
import time
from collections.abc import Callable, Iterator

from sigwrap.bare import deque, signal
from sigwrap.errors import KernelError
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import duplicate, let_go
from sigwrap.kernel.file_state import Inode, inode_of, kind_of
from sigwrap.kernel.libc import let_calls_be_broken_off, run_bounded, syscall
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.paths import WouldBlock
from sigwrap.machine import IS_X86_64, NUMBERS, numbers_of

_SYS_WRITE = NUMBERS["write"]
_LOWEST_HELD = 10
_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NULL_DEVICE = os.makedev(1, 3)
_DEV_TTY = os.makedev(5, 0)
_POLLIN = 0x001
_POLLED = struct.Struct("=ihh")
_MOST_DESCRIPTORS = 4_096

_TERMINAL_MAJORS = frozenset({4, 5, *range(136, 144)})
_MOST_WAITING = 1000  # then the oldest lines are dropped
_WRITTEN_WITHIN_S = 0.005
_FLUSHED_WITHIN_S = 1.0

_READ = numbers_of("read", "readv") | ({3} if IS_X86_64 else set())  # 3: of an i386 program
_POLL = numbers_of("poll", "ppoll")
_SELECT = numbers_of("select", "pselect6")
_EPOLL = numbers_of("epoll_wait", "epoll_pwait", "epoll_pwait2")

controlling = -1  # the controlling terminal, open for reading too; -1 if there is none
_held: dict[Inode, int] = {}  # by the inode that they were opened from


def hold() -> None:
    """Open the controlling terminal and the one on standard error, before the command runs."""
    global controlling
    try:
        controlling = _moved_up(os.open("/dev/tty", os.O_RDWR | _FLAGS))
        _held[inode_of(controlling)] = controlling
    except OSError:
        pass  # there is no controlling terminal
    if os.isatty(2):
        try:
            held = procfs.open_file("/proc/self/fd/2", os.O_WRONLY | _FLAGS)
            _held[inode_of(2)] = _moved_up(held)
        except OSError:  # another user's terminal, as under sudo
            if os.fstat(2).st_rdev == procfs.controlling_terminal(os.getpid()):
                _held[inode_of(2)] = controlling


def same_as(fd: int) -> int | None:
    """Return the held descriptor of the same terminal."""
    return _held.get(inode_of(fd))


def write(held: int, data: bytes) -> int:
    """Write, even if the command has stopped the output (TCOOFF).

    Raises BlockingIOError if the user has stopped it (Ctrl+S).
    """
    try:
        return os.write(held, data)
    except BlockingIOError:
        let_output_go_on(held)
        return os.write(held, data)


def write_all(held: int, data: bytes, *, within_s: float) -> bool:
    """Write everything, and return whether that worked in time.

    A terminal takes some kilobytes at once, and nothing while another process writes.
    """
    until_s = time.monotonic() + within_s
    poll = select.poll()
    poll.register(held, select.POLLOUT)
    while True:
        try:
            data = data[write(held, data) :]
        except BlockingIOError:
            pass
        except OSError:
            return False
        left_s = until_s - time.monotonic()
        if not data or left_s <= 0 or not poll.poll(left_s * 1000):
            return not data


def let_output_go_on(held: int) -> None:
    """Undo TCOOFF. The calling thread must block SIGTTOU."""
    try:
        termios.tcflow(held, termios.TCOON)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None


def _moved_up(fd: int) -> int:
    """Move a descriptor to the numbers that shells use, because programs use the lower ones."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_HELD)
    except OSError:  # the limit of open files is too low
        return fd
    os.close(fd)
    return moved


def waits_for_input(pid: int) -> bool:
    """Return whether any of its threads waits for a terminal's input."""
    return any(_terminal_at(tid, fd) for tid in procfs.threads(pid) for fd in _awaited_by(pid, tid))


def reads_a_line(pid: int) -> bool:
    """Return whether its first thread reads from a terminal, and waits for nothing else.

    A server that is about to end may still poll its input.
    """
    known = procfs.call_and_arguments(pid, pid)
    return known is not None and known[0] in _READ and _terminal_at(pid, known[1][0]) != 0


def opened_terminals(pid: int) -> frozenset[int]:
    """Return the descriptors of our controlling terminal that the program has opened itself.

    Not the standard streams, and not the higher ones that shells and sigwrap hold.
    """
    ours = (_DEV_TTY, procfs.controlling_terminal(os.getpid()))
    return frozenset(fd for fd in range(3, _LOWEST_HELD) if _terminal_at(pid, fd) in ours)


def _terminal_at(tid: int, fd: int) -> int:
    """Return the number of a device that may be a terminal; 0 for other files and /dev/null."""
    try:
        found = procfs.file_status(f"/proc/{tid}/fd/{fd}")
    except OSError:
        return 0
    is_device = stat.S_ISCHR(found.st_mode) and found.st_rdev != _NULL_DEVICE
    return found.st_rdev if is_device else 0


def _awaited_by(pid: int, tid: int) -> Iterator[int]:
    """Yield the descriptors from which the thread waits to read."""
    number, arguments = procfs.call_and_arguments(pid, tid) or (-1, ())
    if number in _READ:
        yield arguments[0]
    elif number in _EPOLL:
        for line in (procfs.contents(f"/proc/{tid}/fdinfo/{arguments[0]}") or b"").split(b"\n"):
            words = line.split()  # tfd: 0 events: 1f ...
            if words[:1] == [b"tfd:"] and len(words) > 3 and int(words[3], 16) & _POLLIN:
                yield int(words[1])
    elif number in _POLL:
        address, count, *_ = arguments
        data = _block(tid, address, _POLLED.size * min(count, _MOST_DESCRIPTORS))
        yield from (fd for fd, events, _ in _POLLED.iter_unpack(data) if events & _POLLIN)
    elif number in _SELECT:
        count, address, *_ = arguments
        count = min(count, _MOST_DESCRIPTORS)
        bits = int.from_bytes(_block(tid, address, (count + 7) // 8), "little")
        yield from (fd for fd in range(count) if bits >> fd & 1)


def _block(tid: int, address: int, size: int) -> bytes:
    """Return memory of a thread; nothing if there is none, or it cannot be read at once."""
    if not address or not size:
        return b""
    try:
        with Memory(tid) as memory:
            return memory.block(address, size)
    except (Unreadable, WouldBlock):
        return b""


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


def prepare_to_write() -> None:
    """Let this thread, the main one, and threads started later write lines without waiting."""
    # Under `stty tostop`, a write from the background would stop sigwrap.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    let_calls_be_broken_off()


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
        self._fd = -1
        try:
            self._fd = duplicate(pid, 2)
        except PermissionError:  # ours is mostly the same
            if kind_of(b"/proc/self/fd/2")[0] != stat.S_IFREG:
                self._fd = os.dup(2)
        except OSError:
            pass

    def say(self, text: str) -> None:
        """Replace the text."""
        self._text = text.encode("utf-8", "backslashreplace")

    def write(self) -> None:
        """Write what fits within 5 ms."""
        if self._fd < 0:
            return
        try:
            kind, major, _minor = kind_of(b"/proc/self/fd/%d" % self._fd)
            is_terminal = kind == stat.S_IFCHR and major in _TERMINAL_MAJORS
            if not is_terminal and kind not in (stat.S_IFSOCK, stat.S_IFIFO, stat.S_IFREG):
                return
            held = same_as(self._fd)
            if (self._spares_ours and held is not None) or (
                self._spares_screens and is_terminal and _is_screen(self._fd)
            ):
                return
            line = self._text + (b"" if is_terminal else self._off_terminals) + b"\n"
            line = with_returns(self._fd, line)
            if held is None:  # os.write would go on after the signal that bounds it
                run_bounded(lambda: syscall("write", _SYS_WRITE, self._fd, line, len(line)))
            else:
                write(held, line)
        except (OSError, KernelError):
            pass

    def close(self) -> None:
        if self._fd >= 0:
            let_go(self._fd)


def _is_screen(fd: int) -> bool:
    try:
        local: int = termios.tcgetattr(fd)[3]
    except termios.error:
        return False
    return not local & termios.ICANON


def with_returns(fd: int, line: bytes) -> bytes:
    """Add the carriage returns that a terminal in raw mode does not add."""
    try:
        output = termios.tcgetattr(fd)[1]
    except termios.error:
        return line
    adds_them = output & termios.OPOST and output & termios.ONLCR
    return line if adds_them else line.replace(b"\n", b"\r\n")
