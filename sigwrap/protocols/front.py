"""What the front process and the supervisor tell each other, one datagram a message."""

from __future__ import annotations

import mmap
import os
import socket

from sigwrap.tuples import NamedTuple


class InterruptBegan(NamedTuple):
    number: int
    from_terminal: bool
    sender_pid: int
    sender_cmd: str


class SignalForCommand(NamedTuple):
    number: int


class KillTree(NamedTuple):
    reason: str


class CommandStarted(NamedTuple):
    pid: int


class CommandEnded(NamedTuple):
    """Is there a signal that the supervisor has not heard of? Answered by NothingMore."""


class NothingMore(NamedTuple):
    """All that reached the front process so far has been told."""


class HeldUp(NamedTuple):
    """The run is over, and its log sealed; but the supervisor's process can't end, since the kernel
    holds a thread of it in what somebody else doesn't finish."""

    status: int


Message = (
    InterruptBegan
    | SignalForCommand
    | KillTree
    | CommandStarted
    | CommandEnded
    | NothingMore
    | HeldUp
)

_MAX_BYTES = 8192
_MAX_TEXT = 4096


class Channel:
    def __init__(self, end: socket.socket, beats: mmap.mmap) -> None:
        self._end = end
        self._beats = beats  # one byte that both ends have
        self.fd = end.fileno()
        self.is_closed = False  # at the other end

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        beats = mmap.mmap(-1, 1)
        return cls(ours, beats), cls(theirs, beats)

    def beat(self) -> None:
        self._beats[0] = self._beats[0] % 255 + 1

    def beat_no_more(self) -> None:
        self._beats[0] = 0

    @property
    def beats(self) -> int:
        """0 where none is due."""
        return self._beats[0]

    def send(self, message: Message) -> None:
        """Nothing is done where the other end is gone: its death is noticed elsewhere."""
        try:
            self._end.send(_encode(message), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            pass

    def receive(self) -> list[Message]:
        messages: list[Message] = []
        while True:
            try:
                data = self._end.recv(_MAX_BYTES, socket.MSG_DONTWAIT)
            except OSError:
                return messages
            if not data:
                self.is_closed = True
                return messages
            messages.append(_decode(data))

    def close(self) -> None:
        self._end.close()


def _encode(message: Message) -> bytes:
    match message:
        case InterruptBegan():
            words = f"interrupt {message.number} {message.from_terminal:d} {message.sender_pid} "
            return words.encode() + os.fsencode(message.sender_cmd[:_MAX_TEXT])
        case SignalForCommand():
            return f"signal {message.number}".encode()
        case KillTree():
            return f"kill {message.reason}".encode()
        case CommandStarted():
            return f"started {message.pid}".encode()
        case CommandEnded():
            return b"ended"
        case NothingMore():
            return b"nothing"
        case HeldUp():
            return f"held {message.status}".encode()


def _decode(data: bytes) -> Message:
    kind, _, rest = data.partition(b" ")
    match kind:
        case b"interrupt":
            number, terminal, sender, command = rest.split(b" ", 3)
            return InterruptBegan(
                number=int(number),
                from_terminal=terminal == b"1",
                sender_pid=int(sender),
                sender_cmd=os.fsdecode(command),
            )
        case b"signal":
            return SignalForCommand(number=int(rest))
        case b"kill":
            return KillTree(reason=rest.decode())
        case b"started":
            return CommandStarted(pid=int(rest))
        case b"ended":
            return CommandEnded()
        case b"nothing":
            return NothingMore()
        case b"held":
            return HeldUp(status=int(rest))
        case _:
            raise ValueError(f"unknown message {data!r}")
