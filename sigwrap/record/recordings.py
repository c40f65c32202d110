"""The stubs of a run: how one is started, and what the child of each may exec.

The caller of a recorded command becomes a stub, and the stub's child executes the command. The
supervisor lets that exec through once, exactly as it was decided, with three of its own pipes as
streams. The exec stop checks them: a stub that was tampered with cannot run the command unrecorded.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Sequence

import sigwrap
from sigwrap.bare import TYPE_CHECKING, NamedTuple, socket
from sigwrap.kernel.descriptors import duplicate, let_go, refuse_descriptors, widen_pipe
from sigwrap.kernel.file_state import Inode, inode_of, kind_of
from sigwrap.kernel.restage import Variables
from sigwrap.kernel.seccomp import Listener
from sigwrap.record.frames import MAX_PAYLOAD_BYTES, STUB_VARIABLE
from sigwrap.record.recording import Recording
from sigwrap.session.lineage import Process
from sigwrap.start import onefile

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_OUTPUT_BYTES = 2 * MAX_PAYLOAD_BYTES  # the command writes one frame while another is recorded
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

    def is_of(self, path: bytes, argv: list[bytes], truncated: bool) -> bool:
        return (path, argv, truncated) == (self.path, self.argv, False)


class Recordings:
    def __init__(self, session: Session, listener: Listener) -> None:
        self._loop = session.loop
        self._recorder = session.recorder
        self._listener = listener
        # By stubs. A stub that has ended, or has executed another program, is none any more.
        self.expected: dict[Process | None, Expected] = {}  # children that have yet to exec
        self.running: dict[Process, Recording] = {}

    def commands(self) -> frozenset[int]:
        """Return the pids of the recorded commands, which get signals from their stubs."""
        return frozenset(recording.command.pid for recording in self.running.values())

    def begin(self, notification_id: int, command: Process) -> Recording:
        """Give the child of a stub its pipes, at its exec. Raises OSError if that fails; the child
        may try again then."""
        stub = command.parent
        if stub is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        opened: list[int] = []
        its_ends, our_ends = [], []
        try:
            opened.append(duplicate(command.pid, 0))
            _demand_stream_socket(opened[0])
            for fd in range(3):
                reading, writing = os.pipe()
                opened += (reading, writing)
                its_ends.append(writing if fd else reading)
                our_ends.append(reading if fd else writing)
                if fd == 1:
                    widen_pipe(writing, _OUTPUT_BYTES)
            for fd, end in enumerate(its_ends):
                self._listener.put_descriptor(notification_id, end, fd)
            streams = [inode_of(b"/proc/self/fd/%d" % end) for end in its_ends]
            for process in (command, stub):
                opened.append(os.pidfd_open(process.pid))
            if gives_back := _is_file(b"/proc/%d/fd/0" % stub.pid):
                opened.append(os.dup(its_ends[0]))
        except BaseException:
            for fd in opened:
                let_go(fd)
            raise
        to_stub, *_pipes, command_pidfd, stub_pidfd = opened[:9]
        for end in its_ends:
            os.close(end)
        recording = Recording(
            loop=self._loop,
            recorder=self._recorder,
            stub=stub,
            command=command,
            to_stub=socket.socket(fileno=to_stub),
            pipes=our_ends,
            pidfds=(command_pidfd, stub_pidfd),
            streams=streams,
            unread_input=opened[9] if gives_back else -1,
            over=lambda: self.running.pop(stub, None),
        )
        self.expected.pop(stub, None)
        self.running[stub] = recording
        return recording

    def close(self) -> None:
        for recording in list(self.running.values()):
            recording.end("the session ended")


def _demand_stream_socket(fd: int) -> None:
    """Raise OSError for any other file: reading or writing it could block."""
    end = socket.socket(fileno=fd)
    kind = (end.family, end.type)
    refuse_descriptors(end)
    end.detach()
    if kind != (socket.AF_UNIX, socket.SOCK_STREAM):
        raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))


def _is_file(path: bytes) -> bool:
    try:
        return kind_of(path)[0] == stat.S_IFREG
    except OSError:
        return False
