"""The stub: it passes bytes between its streams and the supervisor, passes signals to the command,
and ends like the command.

It never waits for one thing only: another process may use the same terminal, pipe or file. It
reads and writes without blocking where the kernel can do that (pipes, sockets), and elsewhere only
as much as there is room for.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import time

from sigwrap.bare import signal, socket
from sigwrap.linux import procfs
from sigwrap.linux.death import die_of
from sigwrap.linux.sigfd import SignalFd, SignalInfo
from sigwrap.protocols.stub import (
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
    status_of,
)
from sigwrap.status import NOT_EXECUTABLE, from_signal

_TAKEN = signal.valid_signals() - {
    signal.SIGKILL,
    signal.SIGSTOP,
    # faults of its own
    signal.SIGSEGV,
    signal.SIGBUS,
    signal.SIGFPE,
    signal.SIGILL,
    signal.SIGTRAP,
    signal.SIGSYS,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    # for its own use of the terminal
    signal.SIGTTIN,
    signal.SIGTTOU,
}
_RECEIVED_AT_ONCE = 256 * 1024
_NO_OFFSET = -1
_WRITTEN_BLINDLY = select.PIPE_BUF  # what is writable at all takes this much
_LOOK_AT_TERMINAL_MS = 200
_END_COMES_WITHIN_MS = 1000
_STDERR_STAYS_MS = 50  # for a line of ours: the command's other stream may just come to its end
_NOBODY_READS = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN)
_CANT_SAY = (errno.EOPNOTSUPP, errno.EINVAL, errno.ESPIPE, errno.ENOSYS)


class Lost(Exception):
    """The supervisor is gone, or sent invalid data."""


def take_signals() -> tuple[SignalFd, set[int]]:
    """Return a descriptor of signals, and the mask from before, which is the command's.

    Ignored signals stay ignored: a blocked one would still reach the descriptor.
    """
    ignored = procfs.ignored_signals(os.getpid())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return SignalFd(_TAKEN - ignored), {*before}


class StandIn:
    def __init__(self, supervisor: socket.socket, command: int, signals: SignalFd) -> None:
        """`command`: the pid of our child."""
        self._supervisor = supervisor
        self._command = command
        self._signals = signals
        self._decoder = Decoder()
        self._to_send = bytearray()
        self._input = _Input()
        self._outputs = {Kind.STDOUT: _Output(1), Kind.STDERR: _Output(2)}
        self._stderr_goes_s: float | None = None  # when to close it, after its end
        self._heard = False
        self._exit: int | None = None

    def run(self) -> int:
        """Return the command's status, -N for signal N; or raise Lost."""
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
        if self._outputs[Kind.STDERR].is_done:
            timeout_ms = _STDERR_STAYS_MS
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
            self._send()
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
        """If the supervisor never sent a frame, it denied the command's exec: the command ends."""
        if not self._heard:
            pidfd = os.pidfd_open(self._command)
            end = select.poll()
            end.register(pidfd, select.POLLIN)
            if end.poll(_END_COMES_WITHIN_MS):
                self._exit = NOT_EXECUTABLE
                return
        raise Lost("the supervisor is gone")

    def _send(self) -> None:
        try:
            sent = self._supervisor.send(self._to_send, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        except OSError:
            self._to_send.clear()  # its last frames can still be read
            return
        del self._to_send[:sent]

    # Streams

    def _pass_on(self, kind: Kind, output: _Output) -> None:
        before = output.written
        if not output.write():
            self._to_send += frame(kind)
        elif output.written != before:
            self._to_send += count_frame(kind, output.written)

    def _let_go_of_the_done(self) -> None:
        out, err = self._outputs[Kind.STDOUT], self._outputs[Kind.STDERR]
        if out.is_done:
            out.let_go()
        if err.is_done and self._stderr_goes_s is None:
            self._stderr_goes_s = time.monotonic() + _STDERR_STAYS_MS / 1000
        if err.is_done and (out.is_over or time.monotonic() >= (self._stderr_goes_s or 0)):
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
            if procfs.is_stopped(self._command):  # a shell's `fg` continues it as well
                self._signal_command(info.number)
        elif not (info.is_from_terminal and self._shares_our_group()):
            self._signal_command(info.number)

    def _on_child(self) -> None:
        """Stop as the command did. Its end comes from the supervisor, after all of its output."""
        try:
            found = os.waitid(os.P_PID, self._command, os.WSTOPPED | os.WNOHANG)
        except ChildProcessError:
            return
        if found is not None and procfs.is_stopped(self._command):
            _stop_like(found.si_status)  # for the shell that waits for us

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

    def _reap(self, told: int) -> int:
        try:
            pid, wait_status = os.waitpid(self._command, os.WNOHANG)
        except ChildProcessError:
            return told
        return os.waitstatus_to_exitcode(wait_status) if pid else told


class _Input:
    def __init__(self) -> None:
        try:
            mode = os.fstat(0).st_mode
        except OSError:
            mode = 0
        self.is_open = _is_open_for(0, os.O_RDONLY)
        self._is_file = stat.S_ISREG(mode)
        self._is_terminal = os.isatty(0)
        self._read = 0
        self._taken = 0
        self._nowait = not self._is_file

    @property
    def wants_more(self) -> bool:
        return self.is_open and self._read - self._taken < WINDOW_BYTES

    def may_read(self) -> bool:
        """Return False in the background: a read would stop us, and the command may never read."""
        if not self._is_terminal:
            return True
        try:
            return os.tcgetpgrp(0) == os.getpgrp()
        except OSError:
            return True

    def read(self) -> bytes | None:
        """Return data, nothing at the end, or None if another reader took it."""
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
                if refusal.errno not in _CANT_SAY:
                    raise
                self._nowait = False
        return os.read(0, room)

    def taken(self, payload: bytes) -> None:
        if payload:
            self._taken = count_of(payload, at_least=0, at_most=self._read)
        else:
            self.give_back()
            self.is_open = False
            _let_go(0)  # its writer sees that

    def give_back(self) -> None:
        """Set a file's offset back: the next reader gets what the command did not read."""
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
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            mode = 0
        self._is_file = stat.S_ISREG(mode)
        self._is_terminal = os.isatty(fd)
        self._nowait = not self._is_file

    @property
    def waiting(self) -> bool:
        return bool(self._data)

    @property
    def is_done(self) -> bool:
        """Return whether it must be closed, so that its reader sees the end."""
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
        """Return False if it has no reader any more.

        Raise Lost if it cannot be written: the command writes into a pipe, and would not notice.
        """
        try:
            with memoryview(self._data) as data:
                size = self._write_now(data)
        except BlockingIOError:
            return True
        except OSError as failure:
            if failure.errno not in _NOBODY_READS and not self._is_terminal:
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
                if refusal.errno not in _CANT_SAY:
                    raise
                self._nowait = False
                raise BlockingIOError from refusal  # try again when there is room
        return os.write(self.fd, data[:_WRITTEN_BLINDLY])


def _is_open_for(fd: int, way: int) -> bool:
    """Return whether it is open for this: the wrong end of a pipe is never ready."""
    try:
        mode = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE
    except OSError:
        return False
    return mode in (way, os.O_RDWR)


def _let_go(fd: int) -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, fd, inheritable=False)
    os.close(null)


def _stop_like(number: int) -> None:
    """Stop until a SIGCONT."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_like(status: int) -> int:
    """Die of the signal, or return the exit status."""
    if status >= 0:
        return status
    die_of(-status)
    return from_signal(-status)
