"""W3C trace context: a caller's TRACEPARENT, and the ids of a session's spans.

The ids are digests of the session's id, so a second export of a log has the same ones.
"""

from __future__ import annotations

from sigwrap.bare import NamedTuple, blake2b

_LENGTHS = [2, 32, 16, 2]
_HEX = frozenset("0123456789abcdef")
_ROOT_SEQ = 1


class TraceParent(NamedTuple):
    trace_id: str
    span_id: str
    flags: str

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


def parse(text: str) -> TraceParent | None:
    """Return the parent that a TRACEPARENT names; None if it is not valid."""
    parts = text.split("-")
    version, trace_id, span_id, flags = known = (parts + [""] * 4)[:4]
    is_well_formed = [*map(len, known)] == _LENGTHS and _HEX.issuperset("".join(known))
    # A later version may have more parts.
    if not is_well_formed or version == "ff" or (version == "00" and len(parts) > 4):
        return None
    if not (trace_id.strip("0") and span_id.strip("0")):
        return None
    return TraceParent(trace_id, span_id, flags)


def trace_id(session_id: str) -> str:
    """Return the trace of a session whose caller had none."""
    return _digest(session_id, "trace", 16)


def span_id(session_id: str, seq: int = _ROOT_SEQ) -> str:
    """Return the id of the span that begins with event `seq`; the first event begins the root."""
    return _digest(session_id, f"span {seq}", 8)


def _digest(session_id: str, what: str, size: int) -> str:
    whole = f"{session_id}\t{what}".encode("utf-8", "surrogatepass")
    return blake2b(whole, digest_size=size, person=b"sigwrap otlp").hexdigest()
