"""Which names of the policy an address has: resolved by the supervisor itself, for what the session
resolves is its own affair. Who is at an address of no known name waits for one more look."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from sigwrap.bare import socket
from sigwrap.policy.judge.network import packed_address
from sigwrap.run.aside import Aside, Done, Outcome
from sigwrap.run.loop import Loop

_LOOKS_EVERY_S = 1.0
_WAITED_FOR_S = 5.0
_KEPT_S = 600.0
_NONE: frozenset[str] = frozenset()


class HostNames:
    def __init__(self, names: Iterable[str], loop: Loop) -> None:
        self._names = sorted(names)
        self._loop = loop
        self._aside = Aside(loop)
        self._seen_s: dict[bytes, dict[str, float]] = {}  # an address -> its names, and when
        self._under_way: set[str] = set()
        self._looked_s = -_LOOKS_EVERY_S
        self._waiting: list[Callable[[], None]] = []

    def of(self, address: bytes) -> frozenset[str]:
        seen = self._seen_s.get(address)
        if not seen:
            return _NONE
        oldest_s = time.monotonic() - _KEPT_S
        return frozenset(name for name, at_s in seen.items() if at_s > oldest_s)

    def look_again(self, then: Callable[[], None]) -> None:
        """`then` is called once all of them have been looked for, or had their time; at once where
        that has just been so."""
        now_s = time.monotonic()
        if not self._under_way and now_s - self._looked_s >= _LOOKS_EVERY_S:
            self._looked_s = now_s
            self._forget_before(now_s - _KEPT_S)
            self._begin()
        given_up_s = self._looked_s + _WAITED_FOR_S
        if not self._under_way or now_s >= given_up_s:
            then()
            return
        self._waiting.append(then)
        self._loop.call_at(given_up_s, lambda: self._give_up(then))

    def _forget_before(self, oldest_s: float) -> None:
        """A name can have another address each time."""
        for address, names in tuple(self._seen_s.items()):
            for name in [name for name, at_s in names.items() if at_s <= oldest_s]:
                del names[name]
            if not names:
                del self._seen_s[address]

    def _begin(self) -> None:
        for name in self._names:
            try:
                self._aside.do_anyway(_resolver(name), self._keeper(name))
            except (OSError, RuntimeError):
                return  # no thread is to be had: it has no known address
            self._under_way.add(name)

    def _keeper(self, name: str) -> Callable[[Outcome], None]:
        def keep(outcome: Outcome) -> None:
            self._under_way.discard(name)
            if isinstance(outcome, Done):
                now_s = time.monotonic()
                for address in outcome.value:
                    self._seen_s.setdefault(address, {})[name] = now_s
            if not self._under_way:
                waiting, self._waiting = self._waiting, []
                for then in waiting:
                    then()

        return keep

    def _give_up(self, then: Callable[[], None]) -> None:
        if then in self._waiting:
            self._waiting.remove(then)
            then()


def _resolver(name: str) -> Callable[[], set[bytes]]:
    def resolve() -> set[bytes]:
        # Bytes: the codec for names of other alphabets takes long to import.
        found = socket.getaddrinfo(name.encode(), None, 0, socket.SOCK_STREAM)
        texts = (str(address[0]).partition("%")[0] for *_, address in found)
        return {packed for text in texts if (packed := packed_address(text)) is not None}

    return resolve
