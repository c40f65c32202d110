"""What the front process and the supervisor tell each other, one datagram a message."""

from __future__ import annotations

import mmap
import os

from sigwrap.bare import socket
from sigwrap.bare.enum import Enum
from sigwrap.tuples import NamedTuple


class Place(Enum):
    """Where the sender of a signal is, as seen from the session."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    OUTER_PROCESS = "outer-process"  # the bootloader, which passes on what it gets
    ELSEWHERE = "elsewhere"  # in another pid namespace, where it can't be looked at
    ENDED = "ended"  # before it could be looked at
    TIMER = "timer"  # that sigwrap's caller set
    AGENT_SIGNAL = "agent-signal"  # no process: `command` says who sent it
    CALLER_ENDED = "caller-ended"  # no signal: sigwrap's caller, with which the run is to end
    NOBODY = "nobody"  # the terminal, or sigwrap's own idea


class Sender(NamedTuple):
    pid: int
    uid: int
    place: Place
    command: str


NOBODY = Sender(0, 0, Place.NOBODY, "")


class InterruptArrived(NamedTuple):
    number: int
    from_terminal: bool
    ends_run: bool
    sender: Sender


class InterruptWithdrawn(NamedTuple):
    """The one that was to end the run was COMMAND's own affair."""


class SignalForCommand(NamedTuple):
    number: int
    sender: Sender


class KillTree(NamedTuple):
    reason: str


class CommandStarted(NamedTuple):
    pid: int


class Forget(NamedTuple):
    """These variables are not for COMMAND, which waits until they are gone from where it could read
    them (none: all are). Answered by Forgotten."""

    names: tuple[bytes, ...]


class Forgotten(NamedTuple):
    pass


class CommandEnded(NamedTuple):
    """Is there a signal that the supervisor has not heard of? Answered by NothingMore."""


class NothingMore(NamedTuple):
    """All that reached the front process so far has been told."""


class DiedOf(NamedTuple):
    """The front process is to end by this signal, once the supervisor has ended."""

    number: int


class InterruptDemanded(NamedTuple):
    """By an agent signal: it ends the run, as one from outside does."""

    source: str


class Notice(NamedTuple):
    """A question waits for an answer, and somebody wants to be told."""

    id: str
    question: str  # printable, as are all
    rule: str
    store: str

    @property
    def variables(self) -> dict[bytes, bytes]:
        """As the program finds them that tells."""
        return {
            b"SIGWRAP_APPROVAL_ID": self.id.encode(),
            b"SIGWRAP_QUESTION": os.fsencode(self.question),
            b"SIGWRAP_RULE": os.fsencode(self.rule),
            b"SIGWRAP_STORE": os.fsencode(self.store),
        }


class NotifyFailed(NamedTuple):
    """What was to tell has failed."""


class HeldUp(NamedTuple):
    """The run is over, and its log sealed; but the supervisor's process can't end, since the kernel
    holds a thread of it in what somebody else doesn't finish."""

    status: int


Message = (
    InterruptArrived
    | InterruptWithdrawn
    | SignalForCommand
    | KillTree
    | CommandStarted
    | Forget
    | Forgotten
    | CommandEnded
    | NothingMore
    | DiedOf
    | InterruptDemanded
    | HeldUp
    | Notice
    | NotifyFailed
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
        case InterruptArrived(number, from_terminal, ends_run, sender):
            words = f"interrupt {number} {from_terminal:d} {ends_run:d} "
            return words.encode() + _encode_sender(sender)
        case InterruptWithdrawn():
            return b"withdrawn"
        case SignalForCommand(number, sender):
            return f"signal {number} ".encode() + _encode_sender(sender)
        case KillTree():
            return f"kill {message.reason}".encode()
        case CommandStarted():
            return f"started {message.pid}".encode()
        case Forget(names):
            joined = b"\0".join(names)
            return b"forget " + (joined if len(joined) <= _MAX_TEXT else b"")
        case Forgotten():
            return b"forgotten"
        case CommandEnded():
            return b"ended"
        case NothingMore():
            return b"nothing"
        case DiedOf():
            return f"died {message.number}".encode()
        case InterruptDemanded(source=source):
            return b"demand " + os.fsencode(source[:_MAX_TEXT])
        case HeldUp():
            return f"held {message.status}".encode()
        case NotifyFailed():
            return b"untold"
        case Notice():
            return b"notice " + b"\0".join(os.fsencode(each) for each in message)


def _decode(data: bytes) -> Message:
    kind, _, rest = data.partition(b" ")
    match kind:
        case b"interrupt":
            number, terminal, ends_run, sender = rest.split(b" ", 3)
            return InterruptArrived(
                number=int(number),
                from_terminal=terminal == b"1",
                ends_run=ends_run == b"1",
                sender=_decode_sender(sender),
            )
        case b"signal":
            number, sender = rest.split(b" ", 1)
            return SignalForCommand(number=int(number), sender=_decode_sender(sender))
        case b"withdrawn":
            return InterruptWithdrawn()
        case b"kill":
            return KillTree(reason=rest.decode())
        case b"started":
            return CommandStarted(pid=int(rest))
        case b"forget":
            return Forget(names=tuple(rest.split(b"\0")) if rest else ())
        case b"forgotten":
            return Forgotten()
        case b"ended":
            return CommandEnded()
        case b"nothing":
            return NothingMore()
        case b"died":
            return DiedOf(number=int(rest))
        case b"demand":
            return InterruptDemanded(source=os.fsdecode(rest))
        case b"held":
            return HeldUp(status=int(rest))
        case b"untold":
            return NotifyFailed()
        case b"notice":
            return Notice(*(os.fsdecode(each) for each in rest.split(b"\0")))
        case _:
            raise ValueError(f"unknown message {data!r}")


def _encode_sender(sender: Sender) -> bytes:
    words = f"{sender.pid} {sender.uid} {sender.place.value} "
    return words.encode() + os.fsencode(sender.command[:_MAX_TEXT])


def _decode_sender(data: bytes) -> Sender:
    pid, uid, place, command = data.split(b" ", 3)
    return Sender(int(pid), int(uid), Place(place.decode()), os.fsdecode(command))
