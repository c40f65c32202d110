"""Commands whose input and output are recorded: which stubs there are, and what their children may
exec.

The caller has become a stub, and the stub's child execs the command. That exec is let through once,
as what was decided and nothing else, and with three of the supervisor's pipes as its streams, which
is checked at its exec stop: a stub that was tampered with can't run it unrecorded.
"""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.bare import socket
from sigwrap.linux.execs.environment import Variables
from sigwrap.linux.file_state import Inode, inode_of, kind_of
from sigwrap.linux.foreign_fds import let_go, refuse_descriptors
from sigwrap.linux.pipes import widen
from sigwrap.linux.ptrace import take_descriptor
from sigwrap.linux.seccomp import Listener
from sigwrap.mediate.lineage import Process
from sigwrap.protocols.stub import MAX_PAYLOAD_BYTES
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.run.recording.recording import Recording
from sigwrap.tuples import NamedTuple

_OUTPUT_BYTES = 2 * MAX_PAYLOAD_BYTES  # the command writes one frame while another is recorded


class Expected(NamedTuple):
    """What a stub's child may exec, once."""

    path: bytes
    argv: list[bytes]
    inodes: list[Inode]
    variables: Variables
    is_secret: bool  # a variable is
    rule: str

    def is_of(self, path: bytes, argv: list[bytes], truncated: bool) -> bool:
        return (path, argv, truncated) == (self.path, self.argv, False)


class Recordings:
    def __init__(self, *, loop: Loop, recorder: Recorder, listener: Listener) -> None:
        self._loop = loop
        self._recorder = recorder
        self._listener = listener
        self._expected: dict[Process, Expected] = {}
        self._running: dict[Process, Recording] = {}  # by their stubs

    def expect(self, stub: Process, expected: Expected) -> None:
        self._expected[stub] = expected

    @property
    def expects(self) -> bool:
        """Whether there is a stub whose child has yet to exec."""
        return bool(self._expected)

    def expected_of(self, process: Process) -> Expected | None:
        return self._expected.get(process.parent) if process.parent is not None else None

    def forget(self, stub: Process) -> None:
        """It has ended, or is something else now."""
        self._expected.pop(stub, None)

    def own_targets(self, sender: Process) -> tuple[int, ...]:
        """Whom a stub may signal: its command, to pass a signal on, and itself, to end as the
        command did."""
        recording = self._running.get(sender)
        return () if recording is None else (sender.pid, recording.command.pid)

    def begin(self, notification_id: int, command: Process) -> Recording:
        """At the exec of a stub's child. OSError where it can't be; then it can be tried again."""
        stub = command.parent
        if stub is None:
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        ends: list[int] = []
        try:
            ends.append(take_descriptor(command.pid, 0))
            _demand_stream_socket(ends[0])
            for fd in range(3):
                reading, writing = os.pipe()
                if fd == 1:
                    widen(writing, _OUTPUT_BYTES)
                ends += (reading, writing) if fd else (writing, reading)
            for fd in range(3):
                self._listener.put_descriptor(notification_id, ends[2 + 2 * fd], fd)
            streams = [inode_of(b"/proc/self/fd/%d" % end) for end in ends[2::2]]
            ends.append(os.pidfd_open(command.pid))
            ends.append(os.pidfd_open(stub.pid))
            given_back = _is_file(b"/proc/%d/fd/0" % stub.pid)
        except BaseException:
            for end in ends:
                let_go(end)
            raise
        if given_back:
            ends.append(os.dup(ends[2]))
        for end in ends[2:7:2]:
            os.close(end)
        recording = Recording(
            loop=self._loop,
            recorder=self._recorder,
            stub=stub,
            command=command,
            to_stub=socket.socket(fileno=ends[0]),
            pipes=(ends[1], ends[3], ends[5]),
            pidfds=(ends[7], ends[8]),
            streams=streams,
            input_left=ends[9] if given_back else -1,
            over=lambda: self._running.pop(stub, None),
        )
        self._expected.pop(stub, None)
        self._running[stub] = recording
        return recording

    def close(self) -> None:
        for recording in list(self._running.values()):
            recording.end("the session ended")


def _demand_stream_socket(fd: int) -> None:
    """OSError where it is none: of anything else, a read or a write could wait."""
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
