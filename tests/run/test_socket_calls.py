"""Which calls on sockets the loop makes itself, and which a worker makes."""

from __future__ import annotations

import pytest

from sigwrap.calls import (
    AF_INET,
    AF_UNIX,
    IPPROTO_TCP,
    IPPROTO_UDP,
    SOCK_DGRAM,
    SOCK_STREAM,
)
from sigwrap.kernel import memory
from sigwrap.network.call import SocketCall, SocketKind
from sigwrap.network.handler import _Held
from sigwrap.network.look import SocketFacts
from sigwrap.policy.judge.network import Direction, Endpoint, Protocol

TCP = SocketKind(AF_INET, SOCK_STREAM, IPPROTO_TCP)
SCTP = SocketKind(AF_INET, SOCK_STREAM, 132)
UDP = SocketKind(AF_INET, SOCK_DGRAM, IPPROTO_UDP)
UNIX = SocketKind(AF_UNIX, SOCK_STREAM, 0)
NEAR = Endpoint(Direction.CONNECT, Protocol.TCP, b"\x7f\0\0\1", 80)
FAR = Endpoint(Direction.CONNECT, Protocol.TCP, b"\xc0\0\2\1", 80)
FILE = Endpoint(Direction.CONNECT, Protocol.UNIX, socket="/run/x")
CONNECT, SEND = SocketCall("connect"), SocketCall("sendto")
ON_A_LOCAL_DISK = SocketFacts(CONNECT, FILE, UNIX, place=9, is_local=True)
SERVED = SocketFacts(CONNECT, FILE, UNIX, place=9)


def _held(looked: SocketFacts, *, waits: bool = True, attempt: int = 1) -> _Held:
    held = _Held.__new__(_Held)
    held.looked, held.waits, held.turn = looked, waits, attempt
    return held


@pytest.mark.parametrize(
    "held",
    [
        _held(SocketFacts(CONNECT, NEAR, TCP)),
        _held(SocketFacts(CONNECT, FAR, TCP), waits=False),
        _held(ON_A_LOCAL_DISK),
        _held(SocketFacts(CONNECT, FILE, UNIX)),
    ],
)
def test_the_loop_makes_a_connection_that_mostly_ends_at_once(
    held: _Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not held.may_wait(waited_lately=False)
    assert held.may_wait(waited_lately=True)
    monkeypatch.setattr(memory, "_may_be_served", True)
    assert held.may_wait(waited_lately=False)


@pytest.mark.parametrize(
    "held",
    [
        _held(SocketFacts(CONNECT, FAR, TCP)),
        _held(SocketFacts(CONNECT, NEAR, SCTP), waits=False),
        _held(SERVED),
        _held(SERVED._replace(asked=SEND)),
        _held(ON_A_LOCAL_DISK, attempt=2),
    ],
)
def test_a_worker_makes_a_call_that_may_wait_for_another_program(held: _Held) -> None:
    assert held.may_wait(waited_lately=False)


def test_the_loop_sends_a_datagram_whatever_waited() -> None:
    assert not _held(SocketFacts(SEND, NEAR, UDP)).may_wait(waited_lately=True)
