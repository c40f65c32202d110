"""How much of anything one client, and all together, may use."""

from __future__ import annotations

from sigwrap.tuples import NamedTuple

HEAD_BYTES = 8 << 10
BODY_BYTES = 16 << 10


class Bounds(NamedTuple):
    connections: int = 64
    streams: int = 24  # of those
    unknown: int = 400  # besides: connections whose peers are being looked for
    looked_for_s: float = 20.0  # from the arrival until it is known who that is
    request_s: float = 5.0  # from then to the end of the request
    sending_s: float = 10.0  # without a byte taken
    leaving_s: float = 1.0  # from the last byte to the other end's farewell
    stream_bytes: int = 1 << 20  # waiting for one client
    tick_s: float = 0.25  # between two messages of a kind
    beat_s: float = 10.0
    first_lines: int = 300
    lines: int = 250  # in a tick
