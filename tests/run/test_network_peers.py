"""The supervisor looks up the addresses of the policy's names, and keeps them for a while."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.network import peers
from sigwrap.network.peers import HostNames
from sigwrap.policy.judge.network import packed_address
from sigwrap.session.effects import LookUpNames
from sigwrap.session.loop import Loop, WorkerPool
from sigwrap.session.perform import PAUSED
from tests.support.stand_in import session_of

LOOPBACK = packed_address("127.0.0.1") or b""
NOBODYS = packed_address("192.0.2.1") or b""


class Names(HostNames):
    """Those of a session whose policy has these, and who has been told."""

    def __init__(self, names: set[str], pool: WorkerPool) -> None:
        network = SimpleNamespace(names=names)
        session = session_of(engine=SimpleNamespace(network=network), pool=pool)
        super().__init__(session, self)  # type: ignore[arg-type]
        self.told: list[str] = []

    def looks_up(self, name: str) -> None:
        request: Any = SimpleNamespace(name=name)
        if self.look_up(request, LookUpNames(LOOPBACK)) is not PAUSED:
            self.wake(request, None)

    def wake(self, request: Any, _names: object) -> None:
        self.told.append(request.name)


Look = Callable[[Names], None]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def pool(loop: Loop) -> WorkerPool:
    return WorkerPool(loop)


@pytest.fixture
def look(loop: Loop) -> Look:
    def look(names: Names) -> None:
        names.looks_up("request")
        while "request" not in names.told:
            loop.turn(None)
        names.told.remove("request")

    return look


def test_an_address_has_the_names_that_lead_to_it(pool: WorkerPool, look: Look) -> None:
    names = Names({"localhost", "no-such-host.invalid"}, pool)
    assert names.of(LOOPBACK) == frozenset()
    look(names)
    assert names.of(LOOPBACK) == {"localhost"}
    assert names.of(NOBODYS) == frozenset()


def test_all_who_ask_meanwhile_wait_for_one_look(
    pool: WorkerPool, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def resolver(name: str) -> Callable[[], set[bytes]]:
        def resolve() -> set[bytes]:
            looked.append(name)
            return {LOOPBACK}

        return resolve

    monkeypatch.setattr(peers, "_resolver", resolver)
    monkeypatch.setattr(peers, "_LOOKUP_EVERY_S", 3600.0)
    names = Names({"localhost"}, pool)
    for each in ("first", "second", "third"):
        names.looks_up(each)
    look(names)
    look(names)  # what was found is of just now
    assert (names.told, looked) == (["first", "second", "third"], ["localhost"])


def test_who_is_slow_is_not_waited_for(
    pool: WorkerPool, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = _thread.allocate_lock()
    monkeypatch.setattr(peers, "_resolver", lambda _name: lambda: never.acquire() and set())
    monkeypatch.setattr(peers, "_LOOKUP_WITHIN_S", 0.05)
    never.acquire()
    names = Names({"localhost"}, pool)
    look(names)
    assert names.of(LOOPBACK) == frozenset()
    names.looks_up("later")
    assert names.told == ["later"], "it doesn't wait all over again"
    never.release()


def test_a_name_that_leads_there_no_more_is_forgotten(
    pool: WorkerPool, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names({"localhost"}, pool)
    look(names)
    seen_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: seen_s + peers._KEPT_S + 1)
    assert names.of(LOOPBACK) == frozenset()
