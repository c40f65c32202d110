"""The frames between the supervisor and a stub.

A frame is 1 byte type, 4 bytes length (big-endian), and the payload:

    READY            to the stub: its command runs
    STDOUT, STDERR   to the stub: data, or nothing at the end; back: the bytes written so far
                     (8 bytes), or nothing once no process reads them
    STDIN            the same in the other direction
    EXIT             to the stub, last: the command's exit status, -N for signal N
    ERROR            to the stub, last: why the recording is over

At most WINDOW_BYTES of a stream are unacknowledged: the sender waits for the count to catch up. So
no stream delays another, and neither side has to keep more.
"""

from __future__ import annotations

import struct

from sigwrap.bare import IntEnum, NamedTuple, socket

MAX_PAYLOAD_BYTES = 128 * 1024  # with half as much, each byte takes a tenth more time
WINDOW_BYTES = 4 * MAX_PAYLOAD_BYTES

STUB_VARIABLE = "SIGWRAP_STUB"
"""The signals that a stub's caller ignored; the supervisor sets it for stubs only."""

_HEADER = struct.Struct(">BI")
_COUNT = struct.Struct(">Q")
_STATUS = struct.Struct(">i")


class Kind(IntEnum):
    READY = 1
    STDOUT = 2
    STDERR = 3
    STDIN = 4
    EXIT = 5
    ERROR = 6


_KINDS = {int(kind): kind for kind in Kind}


class Frame(NamedTuple):
    kind: Kind
    payload: bytes


class BrokenProtocol(Exception):
    """The rest of the stream cannot be decoded."""


def receive(end: socket.socket, most: int) -> bytes | None:
    """Return received bytes; None if there are none yet, b"" if the other side has hung up."""
    try:
        return end.recv(most, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def send(end: socket.socket, data: bytearray) -> None:
    """Send as much as there is room for, and remove it. All is removed if the other side is gone:
    its last frames are still to be read."""
    try:
        sent = end.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except BlockingIOError:
        return
    except OSError:
        sent = len(data)
    del data[:sent]


class Decoder:
    """Decodes frames, and keeps at most one unfinished frame."""

    __slots__ = ("_data", "missing")

    def __init__(self) -> None:
        self._data = bytearray()
        self.missing = 0  # bytes of the unfinished frame, as far as known

    def feed(self, data: bytes) -> list[Frame]:
        held = self._data
        held += data
        frames: list[Frame] = []
        position = self.missing = 0
        while len(held) - position >= _HEADER.size:
            number, length = _HEADER.unpack_from(held, position)
            kind = _KINDS.get(number)
            if kind is None:
                raise BrokenProtocol(f"unknown frame type {number}")
            if length > MAX_PAYLOAD_BYTES:
                raise BrokenProtocol(f"a frame of {length} bytes is too long")
            start, end = position + _HEADER.size, position + _HEADER.size + length
            if len(held) < end:
                self.missing = end - len(held)
                break
            frames.append(Frame(kind, bytes(held[start:end])))
            position = end
        del held[:position]
        return frames


def frame(kind: Kind, payload: bytes = b"") -> bytes:
    return _HEADER.pack(kind, len(payload)) + payload


def count_frame(kind: Kind, count: int) -> bytes:
    return frame(kind, _COUNT.pack(count))


def exit_frame(status: int) -> bytes:
    return frame(Kind.EXIT, _STATUS.pack(status))


def count_of(payload: bytes, *, at_least: int, at_most: int) -> int:
    if len(payload) != _COUNT.size:
        raise BrokenProtocol("a count has 8 bytes")
    count: int = _COUNT.unpack(payload)[0]
    if not at_least <= count <= at_most:
        raise BrokenProtocol(f"invalid count: {count}")
    return count


def status_of(payload: bytes) -> int:
    if len(payload) != _STATUS.size:
        raise BrokenProtocol("a status has 4 bytes")
    status: int = _STATUS.unpack(payload)[0]
    return status
