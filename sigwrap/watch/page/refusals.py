"""Refused processes: a line on standard error, and an event in the session that the process belongs
to. Of a flood only a part is told."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from sigwrap.linux.peer import Peer
from sigwrap.protocols.control_client import ask_everybody

_WHERE = "the page of sigwrap serve"
_EQUAL_ONES_S = 1.0
_PAUSE_S = 0.25
_MOST_WAITING = 16


class Refusals:
    def __init__(self, store: str, tell: Callable[[str], None]) -> None:
        """`tell`: prints a line; it may wait."""
        self._store = store
        self._tell = tell
        self._waiting: queue.Queue[Peer] = queue.Queue(_MOST_WAITING)
        self._told: dict[tuple[str, str], float] = {}
        self._left_out = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._report_on, daemon=True).start()

    def add(self, peer: Peer) -> None:
        key, now_s = (peer.command, peer.objection), time.monotonic()
        with self._lock:
            self._told = {each: at for each, at in self._told.items() if now_s - at < _EQUAL_ONES_S}
            if key in self._told or self._waiting.full():
                self._left_out += 1
            else:
                self._told[key] = now_s
                self._waiting.put(peer)

    def _report_on(self) -> None:
        while True:
            peer = self._waiting.get()
            with self._lock:
                left_out, self._left_out = self._left_out, 0
            self._report(peer, left_out)
            time.sleep(_PAUSE_S)

    def _report(self, peer: Peer, left_out: int) -> None:
        process = f"process {peer.pid} ({peer.command})" if peer.pid else "a process"
        others = f" (and {left_out} more since the last line)" if left_out else ""
        self._tell(f"the page refused {process}: {peer.objection}{others}")
        if peer.inside_session:
            request = {"do": "refused", "pid": peer.pid, "where": _WHERE}
            try:
                with ask_everybody(self._store, request):
                    pass
            except Exception as failure:  # the thread goes on with the next refusal
                self._tell(f"cannot log this refusal in its session: {failure}")
