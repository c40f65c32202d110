"""The stubs of a run: how one is started, what the child of each may exec, and what passes between
that command and its stub.

The caller of a recorded command becomes a stub, and the stub's child executes the command. The
supervisor lets that exec through once, exactly as it was decided, with three of its own pipes as
streams. The exec stop checks them: a stub that was tampered with cannot run the command unrecorded.

The supervisor reads a piece of a stream, records it, and passes it on. Nothing here blocks, and at
most one piece of each stream waits.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
import struct
import sys
import termios
from collections.abc import Iterable, Sequence

import sigwrap
from sigwrap.bare import TYPE_CHECKING, NamedTuple, signal, socket
from sigwrap.events import io_payload
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import duplicate, let_go, refuse_descriptors, widen_pipe
from sigwrap.kernel.file_state import Inode, inode_of, kind_of
from sigwrap.kernel.restage import Variables
from sigwrap.kernel.seccomp import Listener
from sigwrap.record import ERROR, EXIT, EXIT_STATUS, PIECE_BYTES, READY, STUB_VARIABLE
from sigwrap.session.lineage import Process
from sigwrap.start import onefile

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_OUTPUT_BYTES = 2 * PIECE_BYTES  # the command writes one frame while another is recorded
# From a package or a zipapp: Python's own modules first, then those of this one, and no others.
_OPTIONS = ("-I", "-S", "-B", "-X", "utf8", "-c")
_START = "import sys; sys.path.append(sys.argv.pop(1)); from sigwrap.__main__ import main; main()"


def stub_line(path: bytes, argv: Sequence[bytes]) -> tuple[str, list[bytes]]:
    """Return the program and the arguments of a stub for the command `path` with `argv`."""
    if onefile.unpacked_folder():
        return sys.executable, [b"sigwrap-stub", path, *argv]
    above_the_package = os.path.dirname(os.path.dirname(os.path.abspath(sigwrap.__file__)))
    words = (sys.executable, *_OPTIONS, _START, above_the_package, "--as", "stub")
    return sys.executable, [*map(os.fsencode, words), path, *argv]


def stub_variables(ignored_signals: Iterable[int]) -> Variables:
    """Return the environment of a stub, without the caller's variables and without secrets."""
    ignored = ",".join(map(str, sorted(ignored_signals)))
    mark = (STUB_VARIABLE.encode(), ignored.encode())
    return (mark, *onefile.variables_of_the_unpacked(os.environb).items())


class Expected(NamedTuple):
    """The one exec that a stub's child may make."""

    path: bytes
    argv: list[bytes]
    inodes: list[Inode]
    variables: Variables
    is_secret: bool  # whether a variable is
    rule: str


class Recordings:
    def __init__(self, session: Session, listener: Listener) -> None:
        self._session = session
        self._listener = listener
        self.expected: dict[Process, Expected] = {}  # by the stubs whose children have yet to exec
        self.running: dict[Process, Recording] = {}  # by their stubs

    def begin(self, notification_id: int, command: Process) -> Recording:
        """Give the child of a stub its pipes, at its exec. Raises OSError if that fails; the child
        may try again then."""
        stub = command.parent
        if stub is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        opened: list[int] = []
        its_ends, stub_ends, streams = list[int](), list[int](), list[_Stream]()
        try:
            opened.append(duplicate(command.pid, 0))
            _demand_message_socket(opened[0])
            for fd, name in enumerate(("stdin", "stdout", "stderr")):
                source, writing = os.pipe()
                opened += (source, writing)
                reading, sink = os.pipe()
                opened += (reading, sink)
                streams.append(_Stream(name, source, sink))
                its_ends.append(writing if fd else reading)
                stub_ends.append(reading if fd else writing)
                if name == "stdin":
                    widen_pipe(source, PIECE_BYTES)
                elif name == "stdout":
                    widen_pipe(source, _OUTPUT_BYTES)
                    widen_pipe(sink, _OUTPUT_BYTES)
            for fd, end in enumerate(its_ends):
                self._listener.put_descriptor(notification_id, end, fd)
            for process in (command, stub):
                opened.append(os.pidfd_open(process.pid))
            unread = -1
            if _is_file(b"/proc/%d/fd/0" % stub.pid):
                unread = os.dup(its_ends[0])
                opened.append(unread)
            recording = Recording(
                self._session,
                self.running,
                stub,
                command,
                opened[0],
                streams,
                opened[13:15],
                [inode_of(b"/proc/self/fd/%d" % end) for end in its_ends],
                stub_ends,
                unread,
            )
        except BaseException:
            for fd in opened:
                let_go(fd)
            raise
        for end in its_ends:
            os.close(end)
        self.expected.pop(stub, None)
        return recording

    def close(self) -> None:
        for recording in list(self.running.values()):
            recording.end("the session ended")


class _Stream:
    """A standard stream. `source` and `sink` are sigwrap's ends of two pipes."""

    def __init__(self, name: str, source: int, sink: int) -> None:
        self.name = name
        self.source = source
        self.sink = sink
        self.is_open = True
        self.data = b""  # recorded, and not yet passed on
        self.recorded = 0
        self.passed = 0
        self.left: int | None = None  # bytes to read, once the command has ended


class Recording:
    def __init__(
        self,
        session: Session,
        running: dict[Process, Recording],
        stub: Process,
        command: Process,
        to_stub: int,
        streams: Sequence[_Stream],
        pidfds: Sequence[int],
        inodes: Sequence[Inode],
        stub_ends: Sequence[int],
        unread_input: int,
    ) -> None:
        """`pidfds`: the command's and the stub's. `inodes`: of the command's ends of its streams.
        `unread_input`: shows how much input the command has left unread, or -1 if the stub cannot
        give input back. Raises OSError, and leaves the descriptors open then."""
        self._loop = loop = session.loop
        self._recorder = session.recorder
        self._running = running
        self._stub = stub
        self.command = command
        self._stub_ends = stub_ends
        self._streams = streams
        self._pidfds = list(pidfds)
        self._inodes = inodes
        self._unread_input = unread_input
        self._status: int | None = None  # the command's exit status; its pipes are drained then
        self._exit_is_sent = False
        self._is_over = False
        try:
            for stream in streams:
                os.set_blocking(stream.source, False)
                os.set_blocking(stream.sink, False)
                self._watch(stream)
            loop.watch(pidfds[0], self._on_command_ended)
            loop.watch(pidfds[1], lambda _: self.drop("its stub ended"))
        except OSError:
            for fd in (*pidfds, *(fd for each in streams for fd in (each.source, each.sink))):
                loop.unwatch(fd)
            raise
        self._to_stub = socket.socket(fileno=to_stub)
        running[stub] = self

    def _watch(self, stream: _Stream) -> None:
        self._loop.watch(stream.source, lambda _: self._read(stream))
        self._loop.watch(stream.sink, lambda happened: self._on_sink(stream, happened), 0)

    def command_runs(self, pid: int) -> str:
        """Return at its exec stop why it must not run, or an empty string."""
        for fd, wanted in enumerate(self._inodes):
            if _inode_of_path(f"/proc/{pid}/fd/{fd}") != wanted:
                return "its standard streams are not the recorded ones"
        return self._give_stub_its_ends()

    def _give_stub_its_ends(self) -> str:
        """Return why that fails, or an empty string."""
        try:
            flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
            socket.send_fds(self._to_stub, [READY], self._stub_ends, flags)
        except OSError as failure:
            return f"its stub does not take its streams: {failure.strerror}"
        self._close_stub_ends()
        return ""

    def end(self, reason: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        for stream in self._streams:
            self._close(stream)
        for fd in self._pidfds:
            self._loop.unwatch(fd)
            os.close(fd)
        if self._unread_input >= 0:
            os.close(self._unread_input)
        self._close_stub_ends()
        let_go(self._to_stub.detach())
        given, *outputs = self._streams
        self._recorder.record(
            "recording_ended",
            self.command.pid,
            {
                "stub_pid": self._stub.pid,
                given.name: given.passed,
                **{output.name: output.recorded for output in outputs},
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
        if self._exit_is_sent:
            reason = "the command ended"
        else:
            self._tell(ERROR + reason.encode())
        self.end(reason)

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
        if self._stub_ends:  # the kernel has refused its exec, and it has said why
            self._give_stub_its_ends()
        given, *outputs = self._streams
        self._close(given)
        if self._unread_input >= 0:
            given.passed -= _bytes_in(self._unread_input)
        for output in outputs:
            if output.is_open:
                output.left = _bytes_in(output.source)
                self._end_if_read(output)
        self._finish()

    def _finish(self) -> None:
        given, *outputs = self._streams
        if self._status is None or any(output.is_open for output in outputs):
            return
        if not self._exit_is_sent:
            self._exit_is_sent = True
            self._tell(EXIT + EXIT_STATUS.pack(self._status, given.passed))

    # What it reads and writes

    def _read(self, stream: _Stream) -> None:
        if not stream.is_open or stream.data:
            return
        most = PIECE_BYTES if stream.left is None else min(PIECE_BYTES, stream.left)
        try:
            data = os.read(stream.source, most)
        except BlockingIOError:
            return
        if not data:
            self._end_stream(stream)
            return
        payload = io_payload(stream.name, stream.recorded, data)
        if not self._recorder.record("io_recorded", self.command.pid, payload):
            self.drop("cannot write the event log")
            return
        stream.recorded += len(data)
        if stream.left is not None:
            stream.left -= len(data)
        stream.data = data
        self._write(stream)
        if stream.is_open and stream.data:
            self._loop.change(stream.source, select.EPOLLET)  # else its end would be told endlessly
            self._loop.change(stream.sink, select.EPOLLOUT)

    def _on_sink(self, stream: _Stream, happened: int) -> None:
        if happened & select.EPOLLERR:  # no process reads it
            self._end_stream(stream)
            return
        self._write(stream)
        if stream.is_open and not stream.data:
            self._loop.change(stream.source, select.EPOLLIN)
            self._loop.change(stream.sink, 0)

    def _write(self, stream: _Stream) -> None:
        try:
            size = os.write(stream.sink, stream.data)
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._end_stream(stream)
            return
        stream.passed += size
        stream.data = stream.data[size:]
        self._end_if_read(stream)

    def _end_if_read(self, stream: _Stream) -> None:
        if stream.left == 0 and not stream.data:
            self._end_stream(stream)

    def _end_stream(self, stream: _Stream) -> None:
        """Close both pipes. The command and the stub see an end, or a closed pipe."""
        self._close(stream)
        self._finish()

    def _close(self, stream: _Stream) -> None:
        for fd in (stream.source, stream.sink) if stream.is_open else ():
            self._loop.unwatch(fd)
            os.close(fd)
        stream.is_open = False

    # The stub

    def _close_stub_ends(self) -> None:
        for fd in self._stub_ends:
            os.close(fd)
        self._stub_ends = ()

    def _tell(self, message: bytes) -> None:
        try:
            self._to_stub.send(message, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            pass  # it is gone, or hears of nothing


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


def _demand_message_socket(fd: int) -> None:
    """Raise OSError for any other file: reading or writing it could block."""
    end = socket.socket(fileno=fd)
    kind = (end.family, end.type)
    refuse_descriptors(end)
    end.detach()
    if kind != (socket.AF_UNIX, socket.SOCK_SEQPACKET):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))


def _is_file(path: bytes) -> bool:
    try:
        return kind_of(path)[0] == stat.S_IFREG
    except OSError:
        return False
