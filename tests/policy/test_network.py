"""What network rules say of an endpoint."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.policy.judge.network import (
    SOCKETS,
    BadDestination,
    Destination,
    Direction,
    Endpoint,
    Network,
    NetworkRules,
    Protocol,
    endpoint_of,
    network_of,
    packed_address,
)
from sigwrap.policy.judge.request import Action, Decision
from sigwrap.policy.judge.rules import NetworkRule
from sigwrap.policy.problems import Place


def to(address: str, port: int = 443, *names: str, protocol: Protocol = Protocol.TCP) -> Endpoint:
    packed = packed_address(address)
    assert packed is not None
    return Endpoint(Direction.CONNECT, protocol, packed, port, names=frozenset(names))


def to_socket(path: str) -> Endpoint:
    return Endpoint(Direction.CONNECT, Protocol.UNIX, socket=path)


def rule(
    *destinations: str,
    ports: tuple[int, ...] = (),
    protocol: str = "",
    direction: str = "connect",
    action: Action = Action.DENY,
) -> NetworkRule:
    place = Place("p.yaml", 1, 1)
    return NetworkRule(place, "r", action, destinations, "", ports, protocol, direction)


def denies(endpoint: Endpoint, *rules: NetworkRule) -> bool:
    files = NetworkRules(rules, Decision(Action.ALLOW, "builtin:default", ""))
    return files.decide(endpoint).action is Action.DENY


@pytest.mark.parametrize(
    ("destination", "meant", "not_meant"),
    [
        ("192.0.2.1", ["192.0.2.1", "::ffff:192.0.2.1"], ["192.0.2.2", "::1"]),
        ("192.0.2.0/24", ["192.0.2.255"], ["192.0.3.0"]),
        ("2001:db8::/32", ["2001:db8::1"], ["2001:db9::1", "192.0.2.1"]),
        ("::ffff:192.0.2.1", ["192.0.2.1"], ["::1"]),
        (
            "loopback",
            ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"],
            ["10.0.0.1", "fe80::1"],
        ),
        (
            "private",
            ["10.1.1.1", "172.31.0.1", "192.168.0.1", "fd00::1"],
            ["172.32.0.1", "8.8.8.8"],
        ),
        ("*", ["8.8.8.8", "::1", "2001:db8::1"], []),
        ("0.0.0.0/0", ["8.8.8.8"], ["::1"]),
    ],
)
def test_an_address(destination: str, meant: list[str], not_meant: list[str]) -> None:
    for each in (*meant, *not_meant):
        assert denies(to(each), rule(destination)) == (each in meant), each


def test_a_name_is_what_is_known_to_have_it() -> None:
    for known in ("example.com", "EXAMPLE.com."):
        assert denies(to("192.0.2.1", 1, "example.com"), rule(known))
    assert not denies(to("192.0.2.1", 1, "www.example.com"), rule("example.com"))
    assert not denies(to("192.0.2.1"), rule("example.com"))
    rules = NetworkRules([rule("a.example", "*", "B.example.")], Decision(Action.ALLOW, "d", ""))
    assert rules.names == {"a.example", "b.example"}


def test_a_socket_of_the_machine() -> None:
    docker = to_socket("/run/docker.sock")
    assert denies(docker, rule("unix:/run/docker.sock"))
    assert denies(docker, rule("unix:docker"))
    assert denies(docker, rule("unix:*")) and denies(to_socket("@x"), rule("unix:*"))
    assert not denies(docker, rule("*", "unix:dbus", "unix:@/run/docker.sock"))
    assert denies(to_socket("@/tmp/dbus-x"), rule("unix:dbus"))
    assert not denies(to_socket("/tmp/dbus-x"), rule("unix:@/tmp/dbus-x"))
    assert not denies(to("127.0.0.1"), rule("unix:*"))


@pytest.mark.parametrize("word", SOCKETS)
def test_each_word_is_some_socket(word: str) -> None:
    path = SOCKETS[word][0].replace("**", "x").replace("*", "1")
    assert denies(to_socket(path), rule(f"unix:{word}"))


def test_ports_protocols_and_directions() -> None:
    assert denies(to("8.8.8.8", 25), rule("*", ports=(25, 465)))
    assert not denies(to("8.8.8.8", 26), rule("*", ports=(25, 465)))
    assert denies(to("8.8.8.8", 53, protocol=Protocol.UDP), rule("*", protocol="udp"))
    assert not denies(to("8.8.8.8", 53), rule("*", protocol="udp"))
    assert not denies(to("8.8.8.8"), rule("*", direction="bind"))
    bound = to("0.0.0.0", 80)._replace(direction=Direction.BIND)
    assert denies(bound, rule("*", direction="bind")) and not denies(bound, rule("*"))


def test_names_are_asked_for_only_where_they_could_decide() -> None:
    local = rule("loopback", action=Action.ALLOW)
    named = rule("example.com", ports=(443,), action=Action.ALLOW)
    rules = NetworkRules([local, named, rule("*")], Decision(Action.DENY, "default", ""))
    assert rules.depend_on_names(to("192.0.2.1"))
    assert not rules.depend_on_names(to("192.0.2.1", 80))
    assert not rules.depend_on_names(to("127.0.0.1"))
    assert not rules.depend_on_names(to("192.0.2.1")._replace(direction=Direction.BIND))


def test_nobodys_address_is_taken_for_this_machine_where_somebody_is_reached() -> None:
    assert str(endpoint_of("0.0.0.0:80", Direction.CONNECT)) == "127.0.0.1:80"
    assert str(endpoint_of("[::]:80", Direction.CONNECT)) == "[::1]:80"
    assert str(endpoint_of("0.0.0.0:80", Direction.BIND)) == "0.0.0.0:80"


@pytest.mark.parametrize("text", ["unix:docker", "unix:", ":80", "example.com", "192.0.2.1:65536"])
def test_what_is_no_endpoint(text: str) -> None:
    with pytest.raises(BadDestination):
        endpoint_of(text, Direction.CONNECT)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("192.0.2.1/24", "starts at 192.0.2.0/24"),
        ("2130706433", "four numbers"),
        ("10.0.0.*", "with a slash"),
        ("Loopback", "lower case: loopback"),
        ("[::1]", "without brackets: ::1"),
        ("example.com:443", r"ports: \[443\]"),
        ("192.0.2.0/33", "0 to 32 bits"),
        ("::/129", "0 to 128 bits"),
        ("192.0.2.0/", "0 to 32 bits"),
        ("*.example.com", "name each host"),
        ("-x.example", "not a host"),
        ("", "not a host"),
        ("a..b", "not a host"),
        ("http://example.com", "only the host"),
        ("unix:", "a socket must be a path"),
        ("unix:relative", "a socket must be a path"),
        (f"{'a' * 64}.example", "not a host"),
    ],
)
def test_what_is_no_destination(text: str, why: str) -> None:
    with pytest.raises(BadDestination, match=why):
        Destination(text)


@given(st.ip_addresses(), st.ip_addresses(), st.data())
def test_a_network_has_what_it_has(
    one: ipaddress.IPv4Address | ipaddress.IPv6Address,
    other: ipaddress.IPv4Address | ipaddress.IPv6Address,
    data: st.DataObject,
) -> None:
    """As the standard library says, which a run doesn't import."""
    bits = data.draw(st.integers(0, one.max_prefixlen))
    network = ipaddress.ip_network(f"{one}/{bits}", strict=False)
    ours = network_of(str(network))
    mapped = ipaddress.IPv6Network("::ffff:0:0/96")
    if isinstance(network, ipaddress.IPv6Network) and mapped.supernet_of(network):
        assert ours == Network(network.network_address.packed[12:], bits - 96)
        return
    assert ours == Network(network.network_address.packed, bits)
    assert ours.has(one.packed)
    assert ours.has(other.packed) == (other.version == one.version and other in network)
