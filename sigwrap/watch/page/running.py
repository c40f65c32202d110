"""All of it together, until a signal."""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from sigwrap.run.loop import Loop
from sigwrap.watch.orders import Order
from sigwrap.watch.page.bounds import Bounds
from sigwrap.watch.page.gate import Gate
from sigwrap.watch.page.helpers import Helpers
from sigwrap.watch.page.peers import Peers
from sigwrap.watch.page.refusals import Refusals
from sigwrap.watch.page.reports import Reports
from sigwrap.watch.page.server import Server
from sigwrap.watch.page.site import Site
from sigwrap.watch.page.streams import Seen, Streams

_LOOKS_EVERY_S = 0.5
_ENDS_BY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(
    listener: socket.socket,
    store: str,
    source: Seen,
    carry_out: Callable[[Order], str],
    *,
    report_line: Sequence[str],
    tell: Callable[[str], None],
    ready: Callable[[str], None],
    bounds: Bounds | None = None,
    is_in_place: Callable[[], bool] = lambda: True,
) -> bool:
    """`ready` gets the path that lets the first browser in, once it would be. False where it ended
    because nobody comes to `listener` any more."""
    bounds = bounds or Bounds()
    loop = Loop()
    signals = _Signals(loop)
    port = listener.getsockname()[1] if listener.family == socket.AF_INET else None
    helpers = Helpers(loop)
    gate = Gate(port, os.urandom)
    streams = Streams(loop, source, bounds)
    site = Site(gate, carry_out, helpers, streams, Reports(helpers, report_line))
    server = Server(
        loop,
        listener,
        bounds,
        Peers(loop, helpers),
        on_asked=site.serve,
        on_refused=Refusals(store, loop, helpers, tell).add,
    )
    is_reached = True

    def look() -> None:
        nonlocal is_reached
        is_reached = is_in_place()
        loop.call_at(time.monotonic() + _LOOKS_EVERY_S, look)

    try:
        ready(gate.entry)
        look()
        # Half of what was asked for would be worse than late: sessions told, others not.
        while (is_reached and not signals.have_come) or site.is_acting:
            loop.turn(None)
        return is_reached
    finally:
        server.close()
        streams.close()
        helpers.close()
        signals.close()


class _Signals:
    """Those that end it wake the loop."""

    def __init__(self, loop: Loop) -> None:
        self.have_come = False
        self._loop = loop
        self._woken, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = {number: signal.signal(number, self._on_signal) for number in _ENDS_BY}
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        loop.watch(self._woken, self._on_wake, select.EPOLLIN)

    def close(self) -> None:
        self._loop.unwatch(self._woken)
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._woken)
        os.close(self._wake)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self.have_come = True

    def _on_wake(self, _happened: int) -> None:
        with suppress(BlockingIOError):
            os.read(self._woken, 1 << 10)
