"""Show a session's events again, one line each, with the pauses between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sigwrap.errors import StoreError
from sigwrap.escape import printable
from sigwrap.events import Event, recorded_bytes
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import Summary
from sigwrap.report.forms.detail import detail

_LONGEST_PAUSE_S = 10.0  # a session can be idle for a night


def in_rhythm(
    events: Iterable[Event], speed: float, sleep: Callable[[float], None]
) -> Iterator[Event]:
    previous_ns: int | None = None
    for event in events:
        if previous_ns is not None and event.time_ns > previous_ns:
            sleep(min((event.time_ns - previous_ns) / 1e9 / speed, _LONGEST_PAUSE_S))
        previous_ns = event.time_ns
        yield event


def state_after(events: Iterable[Event], seq: int) -> Summary:
    summary = Summary()
    for event in events:
        if event.seq > seq:
            break
        summary.add(event)
    return summary.end(Ending.MOMENT)


def timeline_line(event: Event, started_ns: int) -> str:
    offset_s = (event.time_ns - started_ns) / 1e9
    kind = printable(event.type)
    return f"{event.seq:>6} {offset_s:>+11.6f} s  {kind:<20} {event.pid:>7}  {detail(event)}"


def recorded(events: Iterable[Event], stream: str, pid: int | None) -> Iterator[bytes]:
    """Yield the bytes of a recorded stream, only those of `pid` if it is given."""
    for event in events:
        if (
            event.type == "io_recorded"
            and event.payload.get("stream") == stream
            and pid in (None, event.pid)
        ):
            try:
                yield recorded_bytes(event.payload)
            except ValueError as problem:
                raise StoreError(
                    f"cannot read row {event.seq}", "check the log: sigwrap verify"
                ) from problem
