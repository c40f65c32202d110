"""A peer that was refused, told on standard error, and, where it is inside a session, to the
sessions: the one that has it records an event. On threads, one at a time, and of a flood a part."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from sigwrap.errors import SigwrapError
from sigwrap.linux.peer import Peer
from sigwrap.protocols.control_client import ask_everybody
from sigwrap.run.loop import Loop
from sigwrap.watch.page.helpers import Helpers

_WHERE = "the page of sigwrap serve"
_EQUAL_ONES_S = 1.0
_PAUSE_S = 0.25
_MOST_WAITING = 16


class Refusals:
    def __init__(
        self, store: str, loop: Loop, helpers: Helpers, tell: Callable[[str], None]
    ) -> None:
        """`tell`: a line to whoever started this; it may wait."""
        self._loop = loop
        self._store = store
        self._helpers = helpers
        self._tell = tell
        self._waiting: deque[Peer] = deque()
        self._told: dict[tuple[str, str], float] = {}
        self._left_out = 0
        self._is_busy = False

    def add(self, peer: Peer) -> None:
        now_s = time.monotonic()
        self._told = {key: at for key, at in self._told.items() if now_s - at < _EQUAL_ONES_S}
        key = peer.command, peer.objection
        if key in self._told or len(self._waiting) >= _MOST_WAITING:
            self._left_out += 1
            return
        self._told[key] = now_s
        self._waiting.append(peer)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_busy or not self._waiting:
            return
        self._is_busy = True
        peer, left_out = self._waiting.popleft(), self._left_out
        self._left_out = 0
        self._helpers.run(lambda: self._report(peer, left_out), self._on_reported)

    def _on_reported(self, _outcome: object) -> None:
        self._loop.call_at(time.monotonic() + _PAUSE_S, self._after_pause)

    def _after_pause(self) -> None:
        self._is_busy = False
        self._go_on()

    def _report(self, peer: Peer, left_out: int) -> None:
        who = f"process {peer.pid} ({peer.command})" if peer.pid else "a process"
        others = f" (and {left_out} more since the last line)" if left_out else ""
        self._tell(f"the page refused {who}: {peer.objection}{others}")
        if peer.inside_session:
            try:
                with ask_everybody(
                    self._store, {"do": "refused", "pid": peer.pid, "where": _WHERE}
                ):
                    pass
            except (SigwrapError, OSError) as failure:
                self._tell(f"cannot log this refusal in its session: {failure}")
