"""The supervisor looks up the addresses of the policy's names, and keeps them for a while."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable

import pytest

from sigwrap.policy.judge.network import packed_address
from sigwrap.run import network_peers
from sigwrap.run.loop import Loop
from sigwrap.run.network_peers import HostNames
from sigwrap.run.workers import WorkerPool

LOOPBACK = packed_address("127.0.0.1") or b""
NOBODYS = packed_address("192.0.2.1") or b""

Look = Callable[[HostNames], None]


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def pool(loop: Loop) -> WorkerPool:
    return WorkerPool(loop)


@pytest.fixture
def look(loop: Loop) -> Look:
    def look(names: HostNames) -> None:
        done: list[None] = []
        names.look_again(lambda: done.append(None))
        while not done:
            loop.turn(None)

    return look


def test_an_address_has_the_names_that_lead_to_it(pool: WorkerPool, look: Look) -> None:
    names = HostNames({"localhost", "no-such-host.invalid"}, pool)
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

    monkeypatch.setattr(network_peers, "_resolver", resolver)
    monkeypatch.setattr(network_peers, "_LOOKUP_EVERY_S", 3600.0)
    names, told = HostNames({"localhost"}, pool), list[int]()
    for each in range(3):
        names.look_again(lambda each=each: told.append(each))  # type: ignore[misc]
    look(names)
    look(names)  # what was found is of just now
    assert (told, looked) == ([0, 1, 2], ["localhost"])


def test_who_is_slow_is_not_waited_for(
    pool: WorkerPool, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = _thread.allocate_lock()
    monkeypatch.setattr(network_peers, "_resolver", lambda _name: lambda: never.acquire() and set())
    monkeypatch.setattr(network_peers, "_LOOKUP_WITHIN_S", 0.05)
    never.acquire()
    names = HostNames({"localhost"}, pool)
    look(names)
    assert names.of(LOOPBACK) == frozenset()
    later: list[None] = []
    names.look_again(lambda: later.append(None))
    assert later, "who comes later doesn't wait all over again"
    never.release()


def test_a_name_that_leads_there_no_more_is_forgotten(
    pool: WorkerPool, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = HostNames({"localhost"}, pool)
    look(names)
    seen_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: seen_s + network_peers._KEPT_S + 1)
    assert names.of(LOOPBACK) == frozenset()
