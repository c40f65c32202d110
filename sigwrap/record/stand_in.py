"""Stands in for a command whose input and output are recorded.

The command is a fork of the stub, so it has what the caller set up for its children: directory,
limits, terminal, namespaces. Its standard input is a socket to the stub. At its exec, the
supervisor takes that socket, gives the command three pipes as streams, and lets that exec through.
From then on the stub passes bytes between its own streams and the supervisor, signals to the
command, and ends as the command did.

Nothing in it blocks on one thing: another process may do anything with a shared terminal, pipe or
file. It reads and writes without waiting where the kernel can (pipes, sockets), and elsewhere only
as much as there is room for.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat

from sigwrap.bare import signal, socket
from sigwrap.errors import NOT_EXECUTABLE, NOT_FOUND, from_signal
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import close_all_but, reserve_standard_streams
from sigwrap.kernel.process import die_of
from sigwrap.kernel.signals import SignalFd, SignalInfo, ignored_signals
from sigwrap.record import ERROR, EXIT, EXIT_STATUS, PIECE_BYTES, READY
from sigwrap.text import bounded, printable

# Python ignores these two from its start; the supervisor passes on whether the caller did.
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_TAKEN = signal.valid_signals() - {
    signal.SIGKILL,
    signal.SIGSTOP,
    # faults of the stub itself
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    # sent by the terminal at its own reads and writes
    signal.SIGTTIN,
    signal.SIGTTOU,
}
_LONGEST_MESSAGE = 1024
_NO_OFFSET = -1
_WRITTEN_BLINDLY = select.PIPE_BUF  # a writable file takes this much
_LOOK_AT_TERMINAL_MS = 200
_END_COMES_WITHIN_MS = 1000
_NO_READER = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)
_NO_NOWAIT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ESPIPE, errno.ENOSYS)


class Lost(Exception):
    """The supervisor is gone, or a stream cannot be written."""


def stand_in_for(path: str, argv: list[str], ignored_signals: frozenset[int]) -> int:
    reserve_standard_streams()
    signals, mask = take_signals()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = os.fork()
    if command == 0:
        try:
            _become(path, argv, theirs.fileno(), ignored_signals, mask)
        finally:
            os._exit(NOT_EXECUTABLE)
    theirs.close()
    # The other end of a pipe must see that it is closed as soon as the command closes it.
    close_all_but((0, 1, 2, ours.fileno(), signals.fd))
    return end_with(path, ours, command, signals)


def take_signals() -> tuple[SignalFd, set[int]]:
    """Return also the mask from before, which is the command's. Ignored signals stay ignored: a
    blocked signal would reach the descriptor."""
    ignored = ignored_signals(os.getpid())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return SignalFd(_TAKEN - ignored), {*before}


def end_with(path: str, supervisor: socket.socket, command: int, signals: SignalFd) -> int:
    try:
        status = StandIn(supervisor, command, signals).run()
    except Lost as lost:
        _say(path, str(lost))
        try:
            os.kill(command, signal.SIGKILL)
        except OSError:
            pass  # a kill needs the supervisor; without it the front process ends the tree
        return NOT_EXECUTABLE
    if status < 0:
        die_of(-status)
    return status if status >= 0 else from_signal(-status)


def _become(
    path: str,
    argv: list[str],
    supervisor: int,
    ignored_signals: frozenset[int],
    mask: set[int],
) -> None:
    for number in _IGNORED_BY_PYTHON:
        if number not in ignored_signals:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.dup2(supervisor, 0)
    try:
        os.execve(path, argv, {})
    except OSError as failure:
        _say(path, os.strerror(failure.errno or errno.EIO))
        os._exit(NOT_FOUND if failure.errno == errno.ENOENT else NOT_EXECUTABLE)


def _say(path: str, text: str) -> None:
    line = bounded(printable(f"{os.path.basename(path)}: {text}"))
    try:
        os.write(2, f"sigwrap-stub: {line}\n".encode())
    except OSError:
        pass


class StandIn:
    def __init__(self, supervisor: socket.socket, command: int, signals: SignalFd) -> None:
        """`command`: the forked child."""
        self._supervisor = supervisor
        self._command = command
        self._signals = signals
        self._input: _Input | None = None  # until the command runs
        self._outputs: list[_Output] = []
        self._exit: int | None = None
        self._input_read = 0  # by the command

    def run(self) -> int:
        """Return the command's exit status, -N for signal N. Raises Lost."""
        while self._exit is None or any(not output.is_over for output in self._outputs):
            self._turn()
        if self._input is not None:
            self._input.give_back(self._input_read)
        return self._reap(self._exit)

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        timeout_ms = None
        for output in self._outputs:
            output.await_in(poll)
        if self._exit is None:
            if self._input is not None:
                timeout_ms = self._input.await_in(poll)
            # Last: an error comes before the end of the outputs, and must be seen with it.
            poll.register(self._supervisor, select.POLLIN)
        ready = dict(poll.poll(timeout_ms))
        if self._signals.fd in ready:
            for info in self._signals.read():
                self._on_signal(info)
        if self._supervisor.fileno() in ready:
            self._receive()
        if self._input is not None:
            self._input.turn(ready)
        for output in self._outputs:
            output.turn(ready)
        for output in self._outputs:
            if not output.is_over:
                break  # standard error is let go last: it may need an error message
            output.let_go()

    def _receive(self) -> None:
        flags = socket.MSG_CMSG_CLOEXEC
        message, pipes, _, _ = socket.recv_fds(self._supervisor, _LONGEST_MESSAGE, 3, flags)
        kind, rest = message[:1], message[1:]
        if kind == READY and len(pipes) == 3:
            self._input = _Input(pipes[0])
            self._outputs = [_Output(1, pipes[1]), _Output(2, pipes[2])]
        elif kind == EXIT:
            self._exit, self._input_read = EXIT_STATUS.unpack(rest)
        elif kind == ERROR:
            raise Lost(rest.decode("utf-8", "backslashreplace"))
        elif self._input is None and self._has_ended():
            self._exit = NOT_EXECUTABLE  # the supervisor has refused its exec
        else:
            raise Lost("the supervisor is gone")

    def _has_ended(self) -> bool:
        pidfd = os.pidfd_open(self._command)
        end = select.poll()
        end.register(pidfd, select.POLLIN)
        return bool(end.poll(_END_COMES_WITHIN_MS))

    # Signals

    def _on_signal(self, info: SignalInfo) -> None:
        if info.number == signal.SIGCHLD:
            self._on_child()
        elif info.number == signal.SIGCONT:
            if procfs.is_stopped(self._command):  # else a shell's `fg` has continued it
                self._signal_command(info.number)
        elif not (info.is_from_terminal and self._shares_our_group()):
            self._signal_command(info.number)

    def _on_child(self) -> None:
        """Stop with the command. The supervisor reports its end, after its last output."""
        try:
            found = os.waitid(os.P_PID, self._command, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:
            return
        if found is not None and procfs.is_stopped(self._command):
            _stop_like(found.si_status)  # the shell that waits for the stub has to see it

    def _shares_our_group(self) -> bool:
        try:
            return os.getpgid(self._command) == os.getpgrp()
        except ProcessLookupError:
            return True

    def _signal_command(self, number: int) -> None:
        try:
            os.kill(self._command, number)
        except OSError:
            pass  # it has ended

    def _reap(self, reported: int) -> int:
        try:
            pid, wait_status = os.waitpid(self._command, os.WNOHANG)
        except ChildProcessError:
            return reported
        return os.waitstatus_to_exitcode(wait_status) if pid else reported


class _Input:
    """Reads standard input, and writes it to the supervisor's pipe, whose room limits it."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe
        self._data = b""
        self._is_file = _is_file(0)
        self._is_terminal = os.isatty(0)
        self._nowait = not self._is_file
        self._read = 0
        self._is_open = True
        os.set_blocking(pipe, False)
        if not _is_open_for(0, os.O_RDONLY):
            self._close()

    def await_in(self, poll: select.poll) -> int | None:
        """Return after how many milliseconds to look at the terminal again, or None."""
        if not self._is_open:
            return None
        poll.register(self._pipe, select.POLLOUT if self._data else 0)
        if self._data:
            return None
        if self._may_read():
            poll.register(0, select.POLLIN)
            return None
        return _LOOK_AT_TERMINAL_MS

    def turn(self, ready: dict[int, int]) -> None:
        if not self._is_open:
            return
        if ready.get(self._pipe, 0) & select.POLLERR:  # the command has closed its standard input
            self._close()
            if not self._is_file:
                _let_go(0)  # its writer meets a closed pipe
            return
        try:
            if 0 in ready:
                self._data = self._read_now()
                self._read += len(self._data)
                if not self._data:
                    self._close()
                    return
            if self._data:
                self._data = self._data[os.write(self._pipe, self._data) :]
        except BlockingIOError:
            pass  # another reader was faster, or the pipe is full
        except BrokenPipeError:
            pass  # the next turn closes it

    def _close(self) -> None:
        self._is_open = False
        os.close(self._pipe)

    def _may_read(self) -> bool:
        """Return False in the terminal's background: reading would stop the stub, and the command
        may never want to read."""
        if not self._is_terminal:
            return True
        try:
            return os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return True

    def _read_now(self) -> bytes:
        """Return nothing at the end, or if it cannot be read. Raises BlockingIOError."""
        try:
            if self._nowait:
                data = bytearray(PIECE_BYTES)
                try:
                    size = os.preadv(0, [data], _NO_OFFSET, os.RWF_NOWAIT)
                    return bytes(memoryview(data)[:size])
                except OSError as refusal:
                    if refusal.errno not in _NO_NOWAIT:
                        raise
                    self._nowait = False
            return os.read(0, PIECE_BYTES)
        except BlockingIOError:
            raise
        except OSError:
            return b""

    def give_back(self, read_by_command: int) -> None:
        """Seek back in a file over what the command did not read, for the next reader."""
        if self._is_file and self._read > read_by_command:
            try:
                os.lseek(0, read_by_command - self._read, os.SEEK_CUR)
            except OSError:
                pass


class _Output:
    """Reads the supervisor's pipe, and writes to a standard stream."""

    def __init__(self, fd: int, pipe: int) -> None:
        self._fd = fd
        self._pipe = pipe
        self.is_over = False
        self._has_let_go = False
        self._data = b""
        self._can_be_written = _is_open_for(fd, os.O_WRONLY)
        self._is_file = _is_file(fd)
        self._is_terminal = os.isatty(fd)
        self._nowait = not self._is_file

    def await_in(self, poll: select.poll) -> None:
        if self._data:
            poll.register(self._fd, select.POLLOUT)
        elif not self.is_over:
            poll.register(self._pipe, select.POLLIN)

    def turn(self, ready: dict[int, int]) -> None:
        """Raises Lost if writing fails: the command writes to a pipe, and would not notice."""
        if self._pipe in ready and not self._data and not self.is_over:
            self._data = os.read(self._pipe, PIECE_BYTES)
            if not self._data:
                self._end()
                return
            if not self._can_be_written:
                raise self._lost(errno.EBADF)
        if not self._data or not (self._fd in ready or self._is_file or self._nowait):
            return
        try:
            self._data = self._data[self._write_now() :]
        except BlockingIOError:
            pass
        except OSError as failure:
            if failure.errno not in _NO_READER and not self._is_terminal:
                raise self._lost(failure.errno or errno.EIO) from None
            self._data = b""
            self._end()  # the command meets a closed pipe

    def let_go(self) -> None:
        if not self._has_let_go:
            self._has_let_go = True
            _let_go(self._fd)

    def _end(self) -> None:
        self.is_over = True
        os.close(self._pipe)

    def _lost(self, error: int) -> Lost:
        name = "output" if self._fd == 1 else "error"
        return Lost(f"can't write to standard {name}: {os.strerror(error)}")

    def _write_now(self) -> int:
        if self._is_file:
            return os.write(self._fd, self._data)
        if self._nowait:
            try:
                return os.pwritev(self._fd, [self._data], _NO_OFFSET, os.RWF_NOWAIT)
            except OSError as refusal:
                if refusal.errno not in _NO_NOWAIT:
                    raise
                self._nowait = False
                raise BlockingIOError from refusal  # write again when there is room
        return os.write(self._fd, self._data[:_WRITTEN_BLINDLY])


def _is_open_for(fd: int, way: int) -> bool:
    """Return whether the descriptor is open this way. Waiting for the wrong end of a pipe would
    never end."""
    try:
        mode = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return mode in (way, os.O_RDWR)


def _is_file(fd: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False


def _let_go(fd: int) -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, fd, inheritable=False)
    os.close(null)


def _stop_like(number: int) -> None:
    """Stop until another process continues the stub."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
