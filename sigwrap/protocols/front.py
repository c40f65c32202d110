"""The messages between the front process and the supervisor, one datagram each."""

from __future__ import annotations

import marshal
import mmap
import os

from sigwrap.bare import socket
from sigwrap.bare.enum import Enum
from sigwrap.hints import Any
from sigwrap.tuples import NamedTuple

_MAX_BYTES = 1 << 17
_MAX_TEXT = 4096
_MAX_NAMES = 4096  # bytes


class Place(Enum):
    """Where the sender of a signal is, as seen from the session."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    OUTER_PROCESS = "outer-process"  # the bootloader, which passes on what it gets
    ELSEWHERE = "elsewhere"  # in another pid namespace
    ENDED = "ended"  # before it was looked up
    TIMER = "timer"  # a timer that sigwrap's caller set
    AGENT_SIGNAL = "agent-signal"  # no process: `command` names the sender
    CALLER_ENDED = "caller-ended"  # no signal: the run ends with sigwrap's caller
    NONE = "nobody"  # the terminal, or sigwrap itself


class Sender(NamedTuple):
    pid: int
    uid: int
    place: Place
    command: str


NO_SENDER = Sender(0, 0, Place.NONE, "")


class InterruptArrived(NamedTuple):
    number: int
    from_terminal: bool
    ends_run: bool
    sender: Sender


class InterruptWithdrawn(NamedTuple):
    """The interrupt was for the command alone; the run goes on."""


class SignalForCommand(NamedTuple):
    number: int
    sender: Sender


class KillTree(NamedTuple):
    reason: str


class CommandStarted(NamedTuple):
    pid: int


class Forget(NamedTuple):
    """Remove these variables, or all if there is none, from where the command could read them. It
    starts after the answer, Forgotten."""

    names: tuple[bytes, ...]


class Forgotten(NamedTuple):
    pass


class CommandEnded(NamedTuple):
    """Report the signals that arrived until now; NothingMore follows them."""


class NothingMore(NamedTuple):
    """All signals that arrived until CommandEnded have been reported."""


class DiedOf(NamedTuple):
    """End by this signal once the supervisor has ended."""

    number: int


class InterruptDemanded(NamedTuple):
    """An agent signal interrupts the run."""

    source: str


class Notice(NamedTuple):
    """An approval request for --notify; all texts are printable."""

    id: str
    question: str
    rule: str
    store: str

    @property
    def variables(self) -> dict[bytes, bytes]:
        """The variables of the --notify command."""
        return {
            b"SIGWRAP_APPROVAL_ID": self.id.encode(),
            b"SIGWRAP_QUESTION": os.fsencode(self.question),
            b"SIGWRAP_RULE": os.fsencode(self.rule),
            b"SIGWRAP_STORE": os.fsencode(self.store),
        }


class NotifyFailed(NamedTuple):
    """The --notify command has failed."""


class HeldUp(NamedTuple):
    """The run is over and its log sealed, but the supervisor cannot end: a thread of it is blocked
    in the kernel."""

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

_KINDS: tuple[Any, ...] = Message.__args__


class Channel:
    def __init__(self, end: socket.socket, beats: mmap.mmap) -> None:
        self._end = end
        self._beats = beats  # one shared byte
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
        """A number that each heartbeat changes; 0 while none is due."""
        return self._beats[0]

    def send(self, message: Message) -> None:
        """Send a message; drop it if the other process is gone, which is noticed elsewhere."""
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
    """Encode with marshal, which needs no import: both ends are forks of one program."""
    fields: list[Any] = [each[:_MAX_TEXT] if isinstance(each, str) else each for each in message]
    match message:
        case InterruptArrived(sender=sender) | SignalForCommand(sender=sender):
            place = sender.place.value
            fields[-1] = (sender.pid, sender.uid, place, sender.command[:_MAX_TEXT])
        case Forget(names) if sum(map(len, names)) > _MAX_NAMES:
            fields = [()]
    return marshal.dumps((_KINDS.index(type(message)), *fields))


def _decode(data: bytes) -> Message:
    number, *fields = marshal.loads(data)
    kind = _KINDS[number]
    if kind in (InterruptArrived, SignalForCommand):
        pid, uid, place, command = fields.pop()
        fields.append(Sender(pid, uid, Place(place), command))
    message: Message = kind(*fields)
    return message
