"""Messages between the front process and the supervisor, one in a datagram; and the heartbeat.

Both run the same program, and no other process has an end, so marshal can encode them.
"""

from __future__ import annotations

import marshal
import mmap

from sigwrap.bare import NamedTuple, socket
from sigwrap.events import Payload

BEATS_EVERY_S = 2.0
LOOKED_AT_EVERY_S = 5.0
_SAME_COUNTS = 3
_MAX_TEXT = 4096
_MAX_BYTES = 1 << 17  # no message needs more


class Place:
    """The place of a signal's sender, seen from the session."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    OUTER_PROCESS = "outer-process"  # the bootloader, which passes signals on
    ELSEWHERE = "elsewhere"  # in another pid namespace, where it cannot be examined
    ENDED = "ended"  # before it could be examined
    TIMER = "timer"  # a timer that sigwrap's caller set
    AGENT_SIGNAL = "agent-signal"  # no process: `command` names the sender
    CALLER_ENDED = "caller-ended"  # no signal: the run ends with sigwrap's caller
    NONE = "nobody"  # the terminal, or sigwrap itself


class Sender(NamedTuple):
    pid: int
    uid: int
    place: str  # one of Place
    command: str

    @property
    def payload(self) -> Payload:
        """Return the sender's fields of an event."""
        return {
            "sender_pid": self.pid,
            "sender_uid": self.uid,
            "sender_place": self.place,
            "sender_cmd": self.command,
        }


NO_SENDER = Sender(0, 0, Place.NONE, "")


class Channel:
    """One end. A message calls a method of the object at the other end: `on_` and the name."""

    def __init__(self, end: socket.socket, beats: mmap.mmap) -> None:
        self._end = end
        self._beats = beats  # one byte, shared by both ends
        self.fd = end.fileno()
        self.is_closed = False  # the other end was closed

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
        """Return a number that changes with each beat; 0 if none is due."""
        return self._beats[0]

    def send(self, name: str, *words: object) -> None:
        """Send it. Ignores errors, because the death of the other end is noticed elsewhere."""
        cut = [each[:_MAX_TEXT] if isinstance(each, str) else each for each in words]
        try:
            self._end.send(marshal.dumps((name, cut)), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            pass

    def receive(self, receiver: object) -> None:
        """Call the receiver's methods for the messages that have come."""
        while True:
            try:
                data = self._end.recv(_MAX_BYTES, socket.MSG_DONTWAIT)
            except OSError:
                return
            if not data:
                self.is_closed = True
                return
            name, words = marshal.loads(data)
            getattr(receiver, f"on_{name}")(*words)

    def close(self) -> None:
        self._end.close()


class Heartbeat:
    """Detects a stuck supervisor: it raises a count, and another process or thread watches it."""

    def __init__(self) -> None:
        self._last = 0
        self._same = 0

    def is_missing(self, count: int) -> bool:
        """Return whether the count has stood still too long; 0 means that no beat is due."""
        if count == 0 or count != self._last:
            self._last = count
            self._same = 0
            return False
        self._same += 1
        return self._same >= _SAME_COUNTS
