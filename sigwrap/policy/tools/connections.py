"""Network rules for recorded connections, datagrams and servers.

A rule names the host as the log does: by the name that a rule of the policy has, else by the
address. A socket of a service outside the session gets the policy's word for it, because its path
changes. A port that the kernel chose on this machine is left out.
"""

from __future__ import annotations

from sigwrap.policy.judge.globs import MAX_PATTERN_CHARACTERS, Glob
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
from sigwrap.policy.tools.literal import glob_of, yaml_list

_FIRST_EPHEMERAL = 32768
_LAST_PORT = 65535
_WORDS = {Direction.CONNECT: "connect", Direction.BIND: "listen"}
_NAMES = {word: tuple(map(Glob, globs)) for word, globs in SOCKETS.items() if word != "*"}


def draft_of(endpoint: Endpoint) -> Draft:
    """Return a rule for one endpoint; NoRule says why there is none."""
    destinations, port = _destinations(endpoint), _port(endpoint)
    keys = [("destinations", yaml_list(destinations))]
    if port:
        keys.append(("ports", f"[{port}]"))
    if endpoint.protocol is not Protocol.UNIX:
        keys.append(("protocol", endpoint.protocol.value))
    if endpoint.direction is Direction.BIND:
        keys.append(("direction", endpoint.direction.value))
    words = (_WORDS[endpoint.direction], destinations[0].removeprefix(UNIX), str(port or ""))
    is_any = endpoint.port and not port
    note = f"wide: any port of {destinations[0]}" if is_any else ""
    return Draft(NETWORK_RULES, tuple(filter(None, words)), tuple(keys), note)


def _destinations(endpoint: Endpoint) -> tuple[str, ...]:
    """Return all names of a socket, because the strictest decision applies, or the host."""
    if endpoint.protocol is Protocol.UNIX:
        names = (endpoint.socket, *sorted(endpoint.names))
        return tuple(dict.fromkeys(_socket(each, is_own=endpoint.is_own) for each in names))
    if endpoint.names and endpoint.direction is Direction.CONNECT:
        return (_host(min(endpoint.names)),)
    if not endpoint.address:
        raise NoRule("the log has no destination for it")
    return ("loopback",) if _is_here(endpoint) else (address_text(endpoint.address),)


def _port(endpoint: Endpoint) -> int:
    """Return the port of a rule; 0 for any."""
    if endpoint.protocol not in (Protocol.TCP, Protocol.UDP):
        return 0
    if not 0 < endpoint.port <= _LAST_PORT:
        raise NoRule(f"no rule can name port {endpoint.port}")
    is_chosen = endpoint.port >= _FIRST_EPHEMERAL and _is_here(endpoint)
    return 0 if is_chosen else endpoint.port


def _is_here(endpoint: Endpoint) -> bool:
    return any(each.has(endpoint.address) for each in LOOPBACK)


def _host(name: str) -> str:
    """Return a valid host name: a log can hold any word, and `*` would match every host."""
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
