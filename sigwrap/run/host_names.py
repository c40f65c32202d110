"""Which names of the policy an address has. The supervisor resolves them itself: what the session
resolves is no evidence. A connection to an address without a known name waits for one more lookup.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from sigwrap.bare import socket
from sigwrap.hints import TYPE_CHECKING
from sigwrap.policy.judge.network import packed_address
from sigwrap.run.perform import PAUSED, Scope
from sigwrap.run.workers import Done, Lane, Outcome

if TYPE_CHECKING:
    from sigwrap.run.mediation import Mediation
    from sigwrap.run.session import Session

_LOOKUP_EVERY_S = 1.0
_LOOKUP_WITHIN_S = 5.0
_KEPT_S = 600.0


class HostNames:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._names = sorted(session.engine.network.names)
        self._pool = session.pool
        self._performer = mediation.performer
        self._seen_s: dict[bytes, dict[str, float]] = {}  # address -> names, and when
        self._pending = 0  # names that a connection may wait for
        self._in_use: set[str] = set()  # names that a worker looks up, even if it is late
        self._looked_s = -_LOOKUP_EVERY_S
        self._waiting: list[tuple[Scope, bytes]] = []

    def of(self, address: bytes) -> frozenset[str]:
        oldest_s = time.monotonic() - _KEPT_S
        seen = self._seen_s.get(address, {})
        return frozenset(name for name, at_s in seen.items() if at_s > oldest_s)

    def look_up(self, scope: Scope, address: bytes) -> object:
        """Return the names of the address: when all have been looked up, or have taken too long; at
        once if that was less than a second ago."""
        now_s = time.monotonic()
        if not self._in_use and now_s - self._looked_s >= _LOOKUP_EVERY_S:
            self._looked_s = now_s
            self._forget_before(now_s - _KEPT_S)
            self._begin()
        if not self._pending:
            return self.of(address)
        self._waiting.append((scope, address))
        return PAUSED

    def _forget_before(self, oldest_s: float) -> None:
        """A name can have another address each time."""
        for address, names in tuple(self._seen_s.items()):
            for name in [name for name, at_s in names.items() if at_s <= oldest_s]:
                del names[name]
            if not names:
                del self._seen_s[address]

    def _begin(self) -> None:
        self._pending, self._in_use = len(self._names), set(self._names)
        for name in self._names:
            self._look_up(name)

    def _look_up(self, name: str) -> None:
        def keep(addresses: set[bytes]) -> None:
            now_s = time.monotonic()
            for address in addresses:
                self._seen_s.setdefault(address, {})[name] = now_s

        def then(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                keep(outcome.value)
            self._pending -= 1
            if not self._pending:
                waiting, self._waiting = self._waiting, []
                for scope, address in waiting:
                    self._performer.wake(scope, self.of(address))

        self._pool.run(
            _resolver(name),
            then,
            lane=Lane.NAMES,
            deadline_s=_LOOKUP_WITHIN_S,
            drop=keep,
            over=lambda: self._in_use.discard(name),
        )


def _resolver(name: str) -> Callable[[], set[bytes]]:
    def resolve() -> set[bytes]:
        # Bytes: the codec for names of other alphabets takes long to import.
        found = socket.getaddrinfo(name.encode(), None, 0, socket.SOCK_STREAM)
        texts = (str(address[0]).partition("%")[0] for *_, address in found)
        return {packed for text in texts if (packed := packed_address(text)) is not None}

    return resolve
