"""Connections, datagrams and servers as they were seen, to network rules that are about them.

A host is what the log calls it: by the name that a rule knew it by, else by its address. A socket
by which somebody outside does what he is told goes by the policy's word for it, since its path is
another one each time. A port that the kernel has chosen on this machine says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.policy.judge.match import MAX_PATTERN_CHARACTERS
from sigwrap.policy.judge.names import SocketNames
from sigwrap.policy.judge.network import (
    LOOPBACK,
    SOCKETS,
    UNIX,
    BadDestination,
    Destination,
    Direction,
    Endpoint,
    Protocol,
    address_text,
)
from sigwrap.policy.tools.draft import NETWORK_RULES, Draft, NoRule
from sigwrap.policy.tools.literal import glob_of, yaml_list, yaml_word

_FIRST_EPHEMERAL = 32768
_LAST_PORT = 65535
_LONGEST_SHOWN = 100
_PORTS_IN_A_NAME = 3
_WORDS = {Direction.CONNECT: "connect", Direction.BIND: "listen"}
_NAMES = {
    word: tuple(map(SocketNames, globs)) for word, globs in SOCKETS.items() if word != "*"
}  # of what somebody outside does


class Profile:
    """Rules for all that was added: a port for each, hosts with the same ports in one."""

    def __init__(self) -> None:
        self._ports: dict[tuple[Direction, Protocol, str], set[int] | None] = {}  # None: any
        self.left_out: set[str] = set()

    def add(self, endpoint: Endpoint) -> None:
        try:
            destinations, port = destinations_of(endpoint), port_of(endpoint)
        except NoRule:
            if endpoint.address or endpoint.names or endpoint.protocol is Protocol.UNIX:
                self.left_out.add(str(endpoint)[:_LONGEST_SHOWN])
            return
        for each in destinations:
            key = endpoint.direction, endpoint.protocol, each
            known = self._ports.setdefault(key, set())
            if not port:
                self._ports[key] = None
            elif known is not None:
                known.add(port)

    def rule_lines(self) -> Iterator[str]:
        taken = set[str]()
        for (direction, protocol, ports), destinations in sorted(self._together().items(), key=str):
            yield f"  - name: {_unused(_name(direction, protocol, ports), taken)}"
            if direction is Direction.BIND:
                yield "    direction: bind"
            yield f"    destinations: {yaml_list(sorted(destinations))}"
            if ports:
                yield f"    ports: {_listed(ports)}"
            if protocol is not Protocol.UNIX:
                yield f"    protocol: {protocol.value}"
            yield "    decision: allow"

    def _together(self) -> dict[tuple[Direction, Protocol, tuple[int, ...]], list[str]]:
        found: dict[tuple[Direction, Protocol, tuple[int, ...]], list[str]] = {}
        for (direction, protocol, destination), ports in self._ports.items():
            key = direction, protocol, tuple(sorted(ports or ()))
            found.setdefault(key, []).append(destination)
        return found


def draft_of(endpoint: Endpoint, decision: str) -> Draft:
    """NoRule says why there can be none."""
    destinations, port = destinations_of(endpoint), port_of(endpoint)
    keys = [("destinations", yaml_list(destinations))]
    if port:
        keys.append(("ports", _listed([port])))
    if endpoint.protocol is not Protocol.UNIX:
        keys.append(("protocol", endpoint.protocol.value))
    if endpoint.direction is Direction.BIND:
        keys.append(("direction", endpoint.direction.value))
    words = (_WORDS[endpoint.direction], destinations[0].removeprefix(UNIX), str(port or ""))
    is_any = endpoint.port and not port
    note = f"wide: any port of {destinations[0]}" if is_any else ""
    return Draft(NETWORK_RULES, tuple(filter(None, words)), tuple(keys), (), decision, note)


def destinations_of(endpoint: Endpoint) -> tuple[str, ...]:
    """All that have to be named: of a socket with several names the strictest answer holds."""
    if endpoint.protocol is Protocol.UNIX:
        names = (endpoint.socket, *sorted(endpoint.names))
        return tuple(dict.fromkeys(_socket(each, is_own=endpoint.is_own) for each in names))
    if endpoint.names and endpoint.direction is Direction.CONNECT:
        return (_host(min(endpoint.names)),)
    if not endpoint.address:
        raise NoRule("the log has no destination for it")
    return ("loopback",) if _is_here(endpoint) else (address_text(endpoint.address),)


def port_of(endpoint: Endpoint) -> int:
    """0: any."""
    if endpoint.protocol not in (Protocol.TCP, Protocol.UDP):
        return 0
    if not 0 < endpoint.port <= _LAST_PORT:
        raise NoRule(f"no rule can name port {endpoint.port}")
    is_chosen = endpoint.port >= _FIRST_EPHEMERAL and _is_here(endpoint)
    return 0 if is_chosen else endpoint.port


def _is_here(endpoint: Endpoint) -> bool:
    return any(each.has(endpoint.address) for each in LOOPBACK)


def _host(name: str) -> str:
    """A log from elsewhere may have any word in its place, and `*` would be everybody."""
    try:
        is_host = Destination(name).name == name
    except BadDestination:
        is_host = False
    if not is_host:
        raise NoRule("its name is not a valid host name")
    return name


def _socket(name: str, *, is_own: bool) -> str:
    if not name.startswith(("/", "@")):
        raise NoRule("the socket has no name")
    if not is_own:
        for word, globs in _NAMES.items():
            if any(glob.matches(name) for glob in globs):
                return UNIX + word
    glob = glob_of(name)
    if len(glob) > MAX_PATTERN_CHARACTERS:
        raise NoRule("its name is too long for a rule")
    return UNIX + glob


def _name(direction: Direction, protocol: Protocol, ports: tuple[int, ...]) -> str:
    words = [_WORDS[direction], protocol.value, *map(str, ports[:_PORTS_IN_A_NAME])]
    return "-".join(words)


def _unused(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    taken.add(found)
    return yaml_word(found)


def _listed(ports: Iterable[int]) -> str:
    return f"[{', '.join(map(str, ports))}]"
