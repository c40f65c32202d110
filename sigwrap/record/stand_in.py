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
from sigwrap.record.frames import (
    MAX_PAYLOAD_BYTES,
    WINDOW_BYTES,
    BrokenProtocol,
    Decoder,
    Frame,
    Kind,
    count_frame,
    count_of,
    frame,
    receive,
    send,
    status_of,
)
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
_RECEIVED_AT_ONCE = 256 * 1024
_NO_OFFSET = -1
_WRITTEN_BLINDLY = select.PIPE_BUF  # a writable file takes this much
_LOOK_AT_TERMINAL_MS = 200
_END_COMES_WITHIN_MS = 1000
_NO_READER = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)
_NO_NOWAIT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ESPIPE, errno.ENOSYS)


class Lost(Exception):
    """The supervisor is gone, or sends what cannot be decoded."""


def stand_in_for(path: str, argv: list[str], ignored_signals: frozenset[int]) -> int:
    reserve_standard_streams()
    signals, mask = take_signals()
    ours, theirs = socket.socketpair()
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
        self._decoder = Decoder()
        self._to_send = bytearray()
        self._input = _Input()
        self._outputs = {Kind.STDOUT: _Output(1), Kind.STDERR: _Output(2)}
        self._heard = False
        self._exit: int | None = None

    def run(self) -> int:
        """Return the command's exit status, -N for signal N. Raises Lost."""
        if not self._input.is_open:
            self._to_send += frame(Kind.STDIN)
        while self._exit is None or any(each.waiting for each in self._outputs.values()):
            self._turn()
        self._input.give_back()
        return self._reap(self._exit)

    def _turn(self) -> None:
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        if self._exit is None:
            sends = select.POLLOUT if self._to_send else 0
            poll.register(self._supervisor, select.POLLIN | sends)
        for output in self._outputs.values():
            if output.waiting:
                poll.register(output.fd, select.POLLOUT)
        timeout_ms = None
        if self._exit is None and self._input.wants_more:
            if self._input.may_read():
                poll.register(0, select.POLLIN)
            else:
                timeout_ms = _LOOK_AT_TERMINAL_MS
        ready = dict(poll.poll(timeout_ms))
        if self._signals.fd in ready:
            for info in self._signals.read():
                self._on_signal(info)
        if self._supervisor.fileno() in ready:
            self._receive()
        for kind, output in self._outputs.items():
            if output.waiting and output.fd in ready:
                self._pass_on(kind, output)
        if 0 in ready and self._exit is None:
            self._take_input()
        if self._to_send:
            send(self._supervisor, self._to_send)
        self._let_go_of_the_done()

    # Frames

    def _receive(self) -> None:
        data = receive(self._supervisor, _RECEIVED_AT_ONCE)
        if data is None:
            return
        if not data:
            self._on_silence()
            return
        self._heard = True
        try:
            for each in self._decoder.feed(data):
                self._on_frame(each)
        except BrokenProtocol as broken:
            raise Lost(f"invalid data from the supervisor: {broken}") from None

    def _on_frame(self, received: Frame) -> None:
        kind, payload = received
        match kind:
            case Kind.READY:
                pass
            case Kind.STDOUT | Kind.STDERR:
                self._outputs[kind].add(payload)
            case Kind.STDIN:
                self._input.taken(payload)
            case Kind.EXIT:
                self._exit = status_of(payload)
            case Kind.ERROR:
                raise Lost(payload.decode("utf-8", "backslashreplace"))

    def _on_silence(self) -> None:
        """The supervisor closed the connection. If it never sent a frame, it refused the command's
        exec, and the command ends by itself."""
        if not self._heard:
            pidfd = os.pidfd_open(self._command)
            end = select.poll()
            end.register(pidfd, select.POLLIN)
            if end.poll(_END_COMES_WITHIN_MS):
                self._exit = NOT_EXECUTABLE
                return
        raise Lost("the supervisor is gone")

    # Streams

    def _pass_on(self, kind: Kind, output: _Output) -> None:
        before = output.written
        if not output.write():
            self._to_send += frame(kind)
        elif output.written != before:
            self._to_send += count_frame(kind, output.written)

    def _let_go_of_the_done(self) -> None:
        """Close what the command has closed, standard error last: it may need an error message."""
        out, err = self._outputs[Kind.STDOUT], self._outputs[Kind.STDERR]
        if out.is_done:
            out.let_go()
        if err.is_done and out.is_over:
            err.let_go()

    def _take_input(self) -> None:
        data = self._input.read()
        if data is not None:
            self._to_send += frame(Kind.STDIN, data)

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
    def __init__(self) -> None:
        self.is_open = _is_open_for(0, os.O_RDONLY)
        self._is_file = _is_file(0)
        self._is_terminal = os.isatty(0)
        self._read = 0
        self._taken = 0
        self._nowait = not self._is_file

    @property
    def wants_more(self) -> bool:
        return self.is_open and self._read - self._taken < WINDOW_BYTES

    def may_read(self) -> bool:
        """Return False in the terminal's background: reading would stop the stub, and the command
        may never want to read."""
        if not self._is_terminal:
            return True
        try:
            return os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return True

    def read(self) -> bytes | None:
        """Return nothing at the end, None if another reader was faster."""
        room = min(MAX_PAYLOAD_BYTES, WINDOW_BYTES - (self._read - self._taken))
        try:
            data = self._read_now(room)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self._read += len(data)
        if not data:
            self.is_open = False
        return data

    def _read_now(self, room: int) -> bytes:
        if self._nowait:
            data = bytearray(room)
            try:
                size = os.preadv(0, [data], _NO_OFFSET, os.RWF_NOWAIT)
                return bytes(memoryview(data)[:size])
            except OSError as refusal:
                if refusal.errno not in _NO_NOWAIT:
                    raise
                self._nowait = False
        return os.read(0, room)

    def taken(self, payload: bytes) -> None:
        if payload:
            self._taken = count_of(payload, at_least=0, at_most=self._read)
        else:
            self.give_back()
            self.is_open = False
            _let_go(0)  # its writer meets a closed pipe

    def give_back(self) -> None:
        """Seek back in a file over what the command did not read, for the next reader."""
        if self._is_file and self._read > self._taken:
            try:
                os.lseek(0, self._taken - self._read, os.SEEK_CUR)
            except OSError:
                pass
            self._read = self._taken


class _Output:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.written = 0
        self._data = bytearray()
        self._ends = False
        self._can_be_written = _is_open_for(fd, os.O_WRONLY)
        self._is_broken = False
        self._has_let_go = False
        self._is_file = _is_file(fd)
        self._is_terminal = os.isatty(fd)
        self._nowait = not self._is_file

    @property
    def waiting(self) -> bool:
        return bool(self._data)

    @property
    def is_done(self) -> bool:
        """Return whether its reader has to see the end now."""
        return self._ends and not self._data and not self._has_let_go

    @property
    def is_over(self) -> bool:
        return self._is_broken or self._has_let_go

    def let_go(self) -> None:
        self._has_let_go = True
        _let_go(self.fd)

    def add(self, data: bytes) -> None:
        if self._is_broken:
            return
        if self._ends or len(self._data) + len(data) > WINDOW_BYTES:
            raise BrokenProtocol("more data than the window allows")
        self._ends = not data
        self._data += data
        if data and not self._can_be_written:
            raise self._lost(errno.EBADF)

    def write(self) -> bool:
        """Return False if no process reads it. Raises Lost if writing fails: the command writes to
        a pipe, and would not notice."""
        try:
            with memoryview(self._data) as data:
                size = self._write_now(data)
        except BlockingIOError:
            return True
        except OSError as failure:
            if failure.errno not in _NO_READER and not self._is_terminal:
                raise self._lost(failure.errno or errno.EIO) from None
            self._is_broken = True
            self._data.clear()
            return False
        self.written += size
        del self._data[:size]
        return True

    def _lost(self, error: int) -> Lost:
        name = "output" if self.fd == 1 else "error"
        return Lost(f"can't write to standard {name}: {os.strerror(error)}")

    def _write_now(self, data: memoryview) -> int:
        if self._is_file:
            return os.write(self.fd, data)
        if self._nowait:
            try:
                return os.pwritev(self.fd, [data], _NO_OFFSET, os.RWF_NOWAIT)
            except OSError as refusal:
                if refusal.errno not in _NO_NOWAIT:
                    raise
                self._nowait = False
                raise BlockingIOError from refusal  # write again when there is room
        return os.write(self.fd, data[:_WRITTEN_BLINDLY])


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
