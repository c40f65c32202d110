"""One recorded command: passes bytes between its pipes and its stub, and records each first.

Nothing here blocks. The stub is not trusted: of each stream at most a window is kept, and a stub
that breaks the protocol loses its command.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios
from collections.abc import Iterator, Sequence

from sigwrap.bare import TYPE_CHECKING, signal, socket
from sigwrap.events import io_payload
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import let_go
from sigwrap.kernel.file_state import Inode, inode_of
from sigwrap.record.frames import (
    MAX_PAYLOAD_BYTES,
    WINDOW_BYTES,
    BrokenProtocol,
    Decoder,
    Frame,
    Kind,
    count_frame,
    count_of,
    exit_frame,
    frame,
    receive,
    send,
)
from sigwrap.session.lineage import Process

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_RECEIVED_BEYOND = 1024  # bytes after the unfinished frame: many small frames take long
_ERRORS_ONLY = 0
_STREAMS = {Kind.STDIN: "stdin", Kind.STDOUT: "stdout", Kind.STDERR: "stderr"}


class Recording:
    def __init__(
        self,
        session: Session,
        running: dict[Process, Recording],
        stub: Process,
        command: Process,
        to_stub: socket.socket,
        pipes: Sequence[int],
        pidfds: Sequence[int],
        streams: list[Inode],
        unread_input: int,
    ) -> None:
        """`pipes`: our ends of the standard streams. `pidfds`: the command's and the stub's.
        `streams`: the command's ends. `unread_input`: shows how much input the command has left
        unread, or -1 if the stub cannot give input back."""
        self._loop = loop = session.loop
        self._recorder = session.recorder
        self._running = running
        self._stub = stub
        self.command = command
        # The default takes a frame and a half, and has no room for a last message.
        to_stub.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WINDOW_BYTES)
        self._to_stub = to_stub
        self._streams = streams
        self._decoder = Decoder()
        self._to_send = bytearray()
        self._sends_later = False
        self._status: int | None = None  # the command's exit status; its pipes are drained then
        self._exit_is_sent = False
        self._is_over = False
        self._input = _Input(pipes[0], unread_input)
        self._outputs = {Kind.STDOUT: _Output(pipes[1]), Kind.STDERR: _Output(pipes[2])}
        self._pidfds = list(pidfds)
        for pipe in pipes:
            os.set_blocking(pipe, False)
        try:
            loop.watch(to_stub.fileno(), self._on_stub)
            loop.watch(pipes[0], self._on_input, _ERRORS_ONLY)
            for kind, output in self._outputs.items():
                self._watch_output(kind, output)
            loop.watch(pidfds[0], self._on_command_ended)
            loop.watch(pidfds[1], self._on_stub_ended)
        except OSError:
            for fd in (to_stub.fileno(), *pipes, *pidfds):
                loop.unwatch(fd)
            raise
        running[stub] = self

    def command_runs(self, pid: int) -> str:
        """Return at its exec stop why it must not run, or an empty string."""
        for fd, wanted in enumerate(self._streams):
            if _inode_of_path(f"/proc/{pid}/fd/{fd}") != wanted:
                return "its standard streams are not the recorded ones"
        self._queue(frame(Kind.READY))
        return ""

    def end(self, reason: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        for fd in (self._to_stub.fileno(), *self._pidfds):
            self._loop.unwatch(fd)
        self._close(self._input)
        for output in self._outputs.values():
            self._close(output)
        for fd in self._pidfds:
            os.close(fd)
        if self._input.unread >= 0:
            os.close(self._input.unread)
        let_go(self._to_stub.detach())
        self._recorder.record(
            "recording_ended",
            self.command.pid,
            {
                "stub_pid": self._stub.pid,
                "stdin": self._input.passed,
                **{_STREAMS[kind]: output.sent for kind, output in self._outputs.items()},
                "reason": reason,
            },
        )
        self._running.pop(self._stub, None)

    def drop(self, reason: str) -> None:
        """Kill the command: without its stub, its caller would not know how it ends."""
        if self._is_over:
            return
        if self._status is None:
            try:
                signal.pidfd_send_signal(self._pidfds[0], signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self._exit_is_sent and not self._to_send:
            reason = "the command ended"
        else:
            self._queue(frame(Kind.ERROR, reason.encode()))
        self.end(reason)

    def _on_stub_ended(self, _happened: int) -> None:
        self.drop("its stub ended")

    # The command's end

    def _on_command_ended(self, _happened: int) -> None:
        """Read the exit status, which is there until the stub reaps the command, and then what is
        in the pipes. What its descendants write later is lost."""
        fd = self._pidfds.pop(0)
        self._loop.unwatch(fd)
        os.close(fd)
        found = procfs.stat(self.command.pid)
        ended = found is not None and found.start_time == self.command.start_time
        self._status = os.waitstatus_to_exitcode(found.exit_status) if found and ended else 0
        self._finish_input()  # first: the stub has to know what to give back when it ends
        for kind, output in self._outputs.items():
            if output.is_open:
                output.left = _bytes_in(output.fd)
                self._read_on(kind, output)
        self._finish()

    def _finish(self) -> None:
        if self._status is None or self._exit_is_sent:
            return
        if not any(output.is_open for output in self._outputs.values()):
            self._exit_is_sent = True
            self._queue(exit_frame(self._status))

    # What the command writes

    def _watch_output(self, kind: Kind, output: _Output) -> None:
        self._loop.watch(output.fd, lambda _: self._read_some(kind, output))
        output.is_watched = True

    def _read_on(self, kind: Kind, output: _Output) -> None:
        """Read more if there is room, or end the stream."""
        if not output.is_open:
            return
        if output.left == 0:
            self._end_output(kind, output)
        elif output.room and not output.is_watched:
            try:
                self._watch_output(kind, output)
            except OSError as refusal:
                self.drop(f"cannot read its output: {refusal.strerror}")

    def _read_some(self, kind: Kind, output: _Output) -> None:
        if not output.is_open:
            return
        room = min(MAX_PAYLOAD_BYTES, output.room)
        if output.left is not None:
            room = min(room, output.left)
        try:
            data = os.read(output.fd, room) if room else b""
        except BlockingIOError:
            return
        if not data and room:
            self._end_output(kind, output)
            return
        if data:
            payload = io_payload(_STREAMS[kind], output.sent, data)
            if not self._recorder.record("io_recorded", self.command.pid, payload):
                self.drop("cannot write the event log")
                return
            output.sent += len(data)
            self._queue(frame(kind, data))
        if output.left is not None:
            output.left -= len(data)
            if output.left == 0:
                self._end_output(kind, output)
                return
        if not output.room and output.is_watched:
            output.is_watched = False
            self._loop.unwatch(output.fd)

    def _end_output(self, kind: Kind, output: _Output) -> None:
        self._close(output)
        self._queue(frame(kind))
        self._finish()

    # What it reads

    def _on_input(self, happened: int) -> None:
        if happened & select.EPOLLERR:  # no process reads it
            self._finish_input()
        else:
            self._write_input()

    def _write_input(self) -> None:
        given = self._input
        while given.data:
            try:
                size = os.write(given.fd, given.data)
            except BlockingIOError:
                break
            except BrokenPipeError:
                self._finish_input()
                return
            del given.data[:size]
            given.passed += size
            self._queue(count_frame(Kind.STDIN, given.passed))
        if given.ends and not given.data:
            self._close(given)
        elif given.waits_for_room != bool(given.data):
            given.waits_for_room = bool(given.data)
            self._loop.change(given.fd, select.EPOLLOUT if given.waits_for_room else _ERRORS_ONLY)

    def _finish_input(self) -> None:
        given = self._input
        if given.is_over:
            return
        given.is_over = True
        if given.unread >= 0:
            given.passed -= _bytes_in(given.unread)
        self._close(given)
        given.data.clear()
        self._queue(count_frame(Kind.STDIN, given.passed))
        self._queue(frame(Kind.STDIN))

    def _close(self, stream: _Output | _Input) -> None:
        if stream.is_open:
            stream.is_open = False
            if stream.is_watched:
                self._loop.unwatch(stream.fd)
            os.close(stream.fd)

    # The stub

    def _on_stub(self, happened: int) -> None:
        if happened & select.EPOLLOUT:
            self._send()
        if self._is_over or not happened & ~select.EPOLLOUT:
            return
        data = receive(self._to_stub, self._decoder.missing + _RECEIVED_BEYOND)
        if data is None:
            return
        if not data:
            self.drop("its stub closed the connection")
            return
        try:
            for kind, payload in _input_joined(self._decoder.feed(data)):
                self._on_frame(kind, payload)
        except BrokenProtocol as broken:
            self.drop(f"its stub broke the protocol: {broken}")

    def _on_frame(self, kind: Kind, payload: bytes) -> None:
        if self._is_over:
            return
        match kind:
            case Kind.STDOUT | Kind.STDERR:
                output = self._outputs[kind]
                if payload:
                    output.acknowledged = count_of(
                        payload, at_least=output.acknowledged, at_most=output.sent
                    )
                    self._read_on(kind, output)
                else:  # the command meets a closed pipe, as it would without us
                    self._close(output)
                    self._finish()
            case Kind.STDIN:
                self._take_input(payload)
            case _:
                raise BrokenProtocol(f"unexpected frame {kind.name}")

    def _take_input(self, payload: bytes) -> None:
        given = self._input
        if given.ends or given.received + len(payload) - given.passed > WINDOW_BYTES:
            raise BrokenProtocol("more input than requested")
        if not given.is_open:  # the stub sent it before the command closed its input
            given.received += len(payload)
            return
        if payload:
            recorded = io_payload("stdin", given.received, payload)
            if not self._recorder.record("io_recorded", self.command.pid, recorded):
                self.drop("cannot write the event log")
                return
            given.received += len(payload)
            given.data += payload
        else:
            given.ends = True
        self._write_input()

    def _queue(self, data: bytes) -> None:
        self._to_send += data
        if not self._sends_later:
            self._send()

    def _send(self) -> None:
        send(self._to_stub, self._to_send)
        if self._sends_later != bool(self._to_send):
            self._sends_later = bool(self._to_send)
            events = select.EPOLLIN | (select.EPOLLOUT if self._sends_later else 0)
            self._loop.change(self._to_stub.fileno(), events)


class _Output:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.is_open = True
        self.is_watched = False
        self.sent = 0
        self.acknowledged = 0
        self.left: int | None = None  # bytes to read, once the command has ended

    @property
    def room(self) -> int:
        return WINDOW_BYTES - (self.sent - self.acknowledged)


class _Input:
    def __init__(self, fd: int, unread: int) -> None:
        self.fd = fd
        self.unread = unread
        self.is_open = True
        self.is_over = False
        self.is_watched = True
        self.data = bytearray()
        self.ends = False
        self.waits_for_room = False
        self.received = 0
        self.passed = 0  # into the pipe; at the end of a file, read by the command


def _input_joined(frames: list[Frame]) -> Iterator[Frame]:
    """Join small pieces of input: each frame is an event."""
    given = bytearray()
    for each in frames:
        if each.kind is Kind.STDIN and each.payload:
            given += each.payload
            continue
        if each.kind is Kind.STDIN and given:
            yield Frame(Kind.STDIN, bytes(given))
            given.clear()
        yield each
    if given:
        yield Frame(Kind.STDIN, bytes(given))


def _bytes_in(pipe: int) -> int:
    buffer = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, buffer, True)
    count: int = struct.unpack("=i", buffer)[0]
    return count


def _inode_of_path(path: str) -> Inode | None:
    try:
        return inode_of(os.fsencode(path))
    except OSError:
        return None
