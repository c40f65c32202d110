"""What the supervisor and a stub tell each other.

A frame is 1 byte type, 4 bytes length (big-endian), and the payload:

    READY            to the stub: its command runs
    STDOUT, STDERR   to the stub: data, and empty at its end; back: how much has been written in all
                     (8 bytes), and empty once nobody reads it any more
    STDIN            the same with the sides exchanged
    EXIT             to the stub: the last of it; the command's exit status, -N for signal N
    ERROR            to the stub: it is over, and why

Of a stream, no more than WINDOW_BYTES are on their way: whoever sends waits for the count to catch
up. So one stream never holds up another, and neither side has to keep more than that.
"""

from __future__ import annotations

import struct

from sigwrap.bare import socket
from sigwrap.bare.enum import IntEnum
from sigwrap.tuples import NamedTuple

MAX_PAYLOAD_BYTES = 128 * 1024  # of half as much, each byte takes a tenth more time
WINDOW_BYTES = 4 * MAX_PAYLOAD_BYTES

STUB_VARIABLE = "SIGWRAP_STUB"
"""Set by the supervisor for a stub alone: the signals that its caller ignored."""

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
    """Nothing that follows can be understood."""


def receive(end: socket.socket, most: int) -> bytes | None:
    """None where nothing has come yet, and empty where the other side has hung up."""
    try:
        return end.recv(most, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Decoder:
    """Holds at most one unfinished frame, and what was fed along with it."""

    __slots__ = ("_data", "missing")

    def __init__(self) -> None:
        self._data = bytearray()
        self.missing = 0
        """Of the unfinished frame, as far as that is known."""

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
