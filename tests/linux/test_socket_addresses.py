"""What an address means to a socket; each is tried with the kernel, too."""

from __future__ import annotations

import socket
import struct

import pytest

from sigwrap.calls import AF_INET, AF_INET6, AF_UNIX, SOCK_DGRAM, SOCK_STREAM
from sigwrap.network.call import SocketKind, concrete, endpoint
from sigwrap.policy.judge.network import Direction, Protocol

AF_UNSPEC = 0
TCP = SocketKind(AF_INET, SOCK_STREAM, socket.IPPROTO_TCP)
TCP6 = SocketKind(AF_INET6, SOCK_STREAM, socket.IPPROTO_TCP)
UDP = SocketKind(AF_INET, SOCK_DGRAM, socket.IPPROTO_UDP)
UNIX = SocketKind(AF_UNIX, SOCK_STREAM, 0)


def inet(text: str = "192.0.2.1", port: int = 80, family: int = AF_INET) -> bytes:
    return struct.pack("=H", family) + struct.pack("!H", port) + socket.inet_aton(text) + bytes(8)


def inet6(text: str, port: int = 80) -> bytes:
    head = struct.pack("=H", AF_INET6) + struct.pack("!HI", port, 0)
    return head + socket.inet_pton(socket.AF_INET6, text) + bytes(4)


def unix(path: bytes) -> bytes:
    return struct.pack("=H", AF_UNIX) + path


def test_it_stands_for() -> None:
    for address, kind, said in [
        (inet(), TCP, "192.0.2.1:80"),
        (inet(), UDP, "192.0.2.1:80"),
        (inet(), TCP6, "192.0.2.1:80"),
        (inet6("2001:db8::1"), TCP6, "[2001:db8::1]:80"),
        (inet6("::ffff:192.0.2.1"), TCP6, "192.0.2.1:80"),
        (inet() + bytes(100), TCP, "192.0.2.1:80"),
        (inet("0.0.0.0"), TCP, "127.0.0.1:80"),
        (inet6("::"), TCP6, "[::1]:80"),
        (inet6("::ffff:0.0.0.0"), TCP6, "127.0.0.1:80"),
        (unix(b"/run/x\0rest"), UNIX, "unix:/run/x"),
        (unix(b"relative"), UNIX, "unix:relative"),
        (unix(b"@name"), UNIX, "unix:./@name"),
        (unix(b"\0name\0more"), UNIX, "unix:@name\0more"),
        (unix(b""), UNIX, "unix:unnamed"),
    ]:
        found = endpoint(address, kind, Direction.CONNECT)
        assert found is not None and str(found) == said
        assert found.protocol is kind.transport, address


def test_nobodys_address_is_that_which_the_kernel_takes_it_for() -> None:
    """As the kernel itself says, of a socket without an address of its own."""
    for asked in ("0.0.0.0", "::", "::ffff:0.0.0.0"):
        family = AF_INET6 if ":" in asked else AF_INET
        make = inet6 if family == AF_INET6 else inet
        with socket.socket(family, SOCK_DGRAM) as one:
            one.connect((asked, 80))
            natively = make(one.getpeername()[0])
        assert concrete(make(asked), SocketKind(family, SOCK_DGRAM, socket.IPPROTO_UDP)) == natively


def test_other_addresses_stay_as_they_are() -> None:
    for address, kind in ((inet(), TCP), (inet6("::1"), TCP6), (b"", TCP), (unix(b""), UNIX)):
        assert concrete(address, kind) == address


def test_a_server_at_any_address_is_at_all_of_them() -> None:
    assert str(endpoint(inet("0.0.0.0"), TCP, Direction.BIND)) == "0.0.0.0:80"


def test_without_a_family_a_datagram_is_sent_and_a_connection_undone() -> None:
    address = inet(family=AF_UNSPEC)
    for kind in (UDP, SocketKind(AF_INET6, SOCK_DGRAM, socket.IPPROTO_UDP)):
        assert str(endpoint(address, kind, Direction.CONNECT, sends=True)) == "192.0.2.1:80"
        assert endpoint(address, kind, Direction.CONNECT) is None
    assert endpoint(address, TCP, Direction.CONNECT, sends=True) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        (b"", TCP),
        (b"\2", TCP),
        (inet()[:15], TCP),
        (inet6("::1"), TCP),
        (inet6("::1")[:23], TCP6),
        (inet(family=AF_UNSPEC), TCP),
        (inet(), UNIX),
        (unix(b"/x"), TCP),
        (unix(b"/x" + bytes(107)), UNIX),
    ],
)
def test_it_stands_for_nobody(address: bytes, kind: SocketKind) -> None:
    assert endpoint(address, kind, Direction.CONNECT) is None


def test_transports() -> None:
    assert SocketKind(AF_INET, SOCK_STREAM, 132).transport is Protocol.OTHER
    assert SocketKind(AF_INET, SOCK_STREAM, 262).transport is Protocol.TCP
    assert SocketKind(AF_INET, 3, 1).transport is Protocol.OTHER
