"""Network rules of a policy.

An endpoint is an address with a port and its known host names, or a unix socket. The first rule of
its direction and protocol that names it decides, or the default. Nothing here resolves a name or
looks at a file.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import Enum, NamedTuple
from sigwrap.bare.socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from sigwrap.policy.judge.globs import Glob, is_glob
from sigwrap.policy.judge.layers import deciding, in_the_way
from sigwrap.policy.judge.request import Action, Decision, strictest
from sigwrap.policy.judge.rules import NetworkRule, Policy, decision_of, default_of

UNIX = "unix:"
OUT_OF_RULES = "builtin:network"  # decides what no rule can name
_LAST_PORT = 65535
_MOST_DECIDED = 1000
LOOPBACK_ADDRESS = {4: b"\x7f\0\0\1", 16: bytes(15) + b"\1"}
_MAPPED = bytes(10) + b"\xff\xff"  # an IPv4 address, as an IPv6 one


class Direction(Enum):
    CONNECT = "connect"
    BIND = "bind"


def reaching(direction: str, destination: str) -> str:
    """Describe a connection for approval requests, messages and reports."""
    word = "listening at" if direction == Direction.BIND.value else "connection to"
    return f"{word} {destination}"


class Protocol(Enum):
    TCP = "tcp"
    UDP = "udp"
    OTHER = "other"
    UNIX = "unix"


class Endpoint(NamedTuple):
    direction: Direction
    protocol: Protocol
    address: bytes = b""  # 4 or 16 bytes; IPv4 in IPv6 has 4
    port: int = 0
    socket: str = ""  # a path, or @ and a name; empty if it has neither
    names: frozenset[str] = frozenset()  # of the host; other names of a socket, also old ones
    is_own: bool = False  # a server of the session listens there

    def __str__(self) -> str:
        if self.protocol is Protocol.UNIX:
            return f"{UNIX}{self.socket or 'unnamed'}"
        name = min(self.names, default="") or address_text(self.address)
        shown = f"[{name}]" if ":" in name else name
        return f"{shown}:{self.port}"


class Network(NamedTuple):
    """A range of addresses."""

    address: bytes
    bits: int

    def has(self, address: bytes) -> bool:
        if len(address) != len(self.address):
            return False
        left = 8 * len(address) - self.bits
        return int.from_bytes(address, "big") >> left == int.from_bytes(self.address, "big") >> left

    def covers(self, other: Network) -> bool:
        return self.bits <= other.bits and self.has(other.address)


class BadDestination(Exception):
    pass


def endpoint_of(text: str, direction: Direction, protocol: Protocol = Protocol.TCP) -> Endpoint:
    """Parse `host:port`, `[2001:db8::1]:443` or `unix:/path`, or raise BadDestination.

    Host names are not resolved.
    """
    if text.startswith(UNIX):
        socket = text.removeprefix(UNIX)
        if not socket.startswith(("/", "@")):
            raise BadDestination("a socket must be a path or @name, such as unix:/run/docker.sock")
        return Endpoint(direction, Protocol.UNIX, socket=socket)
    host, _, port_text = text.rpartition(":")
    if not (host and port_text.isascii() and port_text.isdecimal()):
        raise BadDestination("a host and a port are needed, such as example.com:443")
    port = int(port_text)
    if port > _LAST_PORT:
        raise BadDestination(f"a port must be at most {_LAST_PORT}")
    address = packed_address(host.removeprefix("[").removesuffix("]"))
    if address is not None:
        if direction is Direction.CONNECT and not any(address):  # as the kernel takes it
            address = LOOPBACK_ADDRESS[len(address)]
        return Endpoint(direction, protocol, address, port)
    if not _is_host(host):
        raise BadDestination("not a host or an address")
    return Endpoint(direction, protocol, port=port, names=frozenset({host.lower().rstrip(".")}))


def network_of(text: str) -> Network | None:
    """Parse `192.0.2.0/24` or an address; None for other text, BadDestination for a near miss."""
    address, slash, bits_text = text.partition("/")
    packed = _packed(address)
    if packed is None:
        return None
    most = 8 * len(packed)
    bits_text = bits_text if slash else str(most)
    if not (bits_text.isascii() and bits_text.isdecimal()) or int(bits_text) > most:
        raise BadDestination(f"a network has 0 to {most} bits after its slash")
    bits = int(bits_text)
    within = int.from_bytes(packed, "big") & ((1 << (most - bits)) - 1)
    if within:
        first = (int.from_bytes(packed, "big") - within).to_bytes(most // 8, "big")
        raise BadDestination(f"the network starts at {address_text(first)}/{bits}")
    if len(packed) == 16 and bits >= 8 * len(_MAPPED) and plain(packed) != packed:
        return Network(plain(packed), bits - 8 * len(_MAPPED))
    return Network(packed, bits)


def packed_address(text: str) -> bytes | None:
    packed = _packed(text)
    return None if packed is None else plain(packed)


def _packed(text: str) -> bytes | None:
    for family in (AF_INET, AF_INET6):
        try:
            return inet_pton(family, text)
        except OSError:
            continue
    return None


def plain(address: bytes) -> bytes:
    return address[12:] if address.startswith(_MAPPED) and len(address) == 16 else address


def address_text(address: bytes) -> str:
    return inet_ntop(AF_INET if len(address) == 4 else AF_INET6, address)


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(each for each in map(network_of, texts) if each is not None)


LOOPBACK = _networks("127.0.0.0/8", "::1")
PRIVATE = _networks(
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fc00::/7",
    "fe80::/10",
)

WORDS: dict[str, tuple[Network, ...]] = {
    "loopback": LOOPBACK,
    "private": PRIVATE,
}
EVERY_HOST = "*"

# Services behind these sockets act outside the session: they run programs, type, or sign.
SOCKETS: dict[str, tuple[str, ...]] = {
    "*": ("**",),
    "docker": (
        "/run/docker.sock",
        "/run/user/*/docker.sock",
        "/home/*/.docker/*/docker.sock",
        "/root/.docker/*/docker.sock",
    ),
    "podman": ("/run/podman/podman.sock", "/run/user/*/podman/podman.sock"),
    "containerd": (
        "/run/containerd/*.sock",
        "/run/k3s/containerd/*.sock",
        "/run/crio/crio.sock",
        "/run/buildkit/*.sock",
    ),
    "dbus": ("/run/dbus/*", "/run/user/*/bus", "/run/user/*/dbus-*", "/tmp/dbus-*", "@/tmp/dbus-*"),
    "systemd": ("/run/systemd/**", "/run/user/*/systemd/**"),
    "tmux": ("/tmp/tmux-*/*", "/run/user/*/tmux-*/*"),
    "screen": ("/run/screen/**", "/tmp/screens/**", "/home/*/.screen/*", "/root/.screen/*"),
    "zellij": ("/run/user/*/zellij/**", "/tmp/zellij-*/**"),
    "x11": ("/tmp/.X11-unix/*", "@/tmp/.X11-unix/*"),
    "wayland": ("/run/user/*/wayland-*",),
    "ssh-agent": (
        "/tmp/ssh-*/agent.*",
        "/run/user/*/ssh-agent*",
        "/run/user/*/keyring/ssh",
        "/run/user/*/gcr/ssh",
        "/run/user/*/gnupg/S.gpg-agent.ssh",
        "/home/*/.ssh/agent/*",
        "/root/.ssh/agent/*",
    ),
    "gpg-agent": (
        "/run/user/*/gnupg/S.*",
        "/home/*/.gnupg/S.*",
        "/root/.gnupg/S.*",
    ),
    "libvirt": ("/run/libvirt/*", "/run/user/*/libvirt/*"),
    "lxd": ("/var/lib/lxd/unix.socket", "/var/lib/incus/unix.socket", "/var/snap/lxd/**"),
}


class Destination:
    """A destination in a rule."""

    __slots__ = (
        "_globs",
        "_is_every_host",
        "_is_of_machine",
        "_networks",
        "gets_datagrams",
        "name",
        "sockets",
    )

    def __init__(self, text: str) -> None:
        self.name = ""  # of a host
        self.sockets: tuple[str, ...] = ()  # globs
        self.gets_datagrams = True
        self._is_every_host = False
        self._is_of_machine = False  # a service outside the session listens there
        self._networks: tuple[Network, ...] = ()
        self._globs: tuple[Glob, ...] = ()
        if text.startswith(UNIX):
            word = text.removeprefix(UNIX)
            self.sockets = SOCKETS.get(word, (word,))
            self._globs = tuple(map(Glob, self.sockets))
            self._is_of_machine = word in SOCKETS and word != "*"
            self.gets_datagrams = word == "*" or word not in SOCKETS
            if word not in SOCKETS and not word.startswith(("/", "@", "**")):
                raise BadDestination("a socket must be a path, @name or a known word")
        elif text == EVERY_HOST:
            self._is_every_host = True
        elif text in WORDS:
            self._networks = WORDS[text]
        elif (network := network_of(text)) is not None:
            self._networks = (network,)
        elif problem := _no_host(text):
            raise BadDestination(problem)
        else:
            self.name = text.lower().rstrip(".")

    def can_match(self, protocol: Protocol) -> bool:
        return bool(self._globs) == (protocol is Protocol.UNIX)

    def covers(self, other: Destination) -> bool:
        """Return whether this surely includes all of the other."""
        if other.sockets:
            # A word such as unix:docker does not mean servers of the session.
            is_wide_enough = other._is_of_machine or not self._is_of_machine
            return is_wide_enough and all(
                each in self.sockets
                or "**" in self.sockets
                or (not is_glob(each) and any(glob.matches(each) for glob in self._globs))
                for each in other.sockets
            )
        if self._is_every_host:
            return True
        if self.name or other.name or other._is_every_host:
            return bool(self.name) and self.name == other.name
        return bool(other._networks) and all(
            any(each.covers(theirs) for each in self._networks) for theirs in other._networks
        )

    def matches(self, endpoint: Endpoint) -> bool:
        if endpoint.protocol is Protocol.UNIX:
            if endpoint.is_own and self._is_of_machine:
                return False
            return any(glob.matches(endpoint.socket) for glob in self._globs)
        if self._is_every_host:
            return True
        if self.name:
            return self.name in endpoint.names
        return any(each.has(endpoint.address) for each in self._networks)


def _no_host(text: str) -> str:
    """Return why this is not a host, or ""."""
    bare = text.strip("[]")
    if text.lower() in WORDS:
        return f"write this word in lower case: {text.lower()}"
    if bare != text and packed_address(bare) is not None:
        return f"write the address without brackets: {bare}"
    if "://" in text:
        return "write only the host, without a scheme and a path"
    host, colon, port = text.rpartition(":")
    if colon and port.isdecimal() and (_is_host(host) or packed_address(host.strip("[]"))):
        return f"write the port in ports: [{port}]"
    if is_glob(text):
        if not text.strip("0123456789.*?"):
            return "write a network as an address with a slash, such as 192.0.2.0/24"
        return "globs of host names are not supported; name each host"
    if text and not text.strip("0123456789./"):
        return "not an IPv4 address, which has four numbers up to 255"
    return "" if _is_host(text) else "not a host, an address, a network or a socket"


def _is_host(text: str) -> bool:
    labels = text.rstrip(".").split(".")
    return len(text) <= 253 and all(
        0 < len(each) <= 63
        and each.isascii()
        and each.replace("-", "").replace("_", "").isalnum()
        and not each.startswith("-")
        for each in labels
    )


class CompiledNetworkRule(NamedTuple):
    rule: NetworkRule
    destinations: tuple[Destination, ...]
    decision: Decision

    def matches(self, endpoint: Endpoint) -> bool:
        return (not self.rule.ports or endpoint.port in self.rule.ports) and any(
            each.matches(endpoint) for each in self.destinations
        )


class NetworkRules:
    @classmethod
    def of(cls, policy: Policy) -> NetworkRules:
        default = default_of(policy, "network", policy.default_network)
        return cls(policy.network_rules, default, asks=policy.asks)

    def __init__(
        self, rules: Sequence[NetworkRule], default: Decision, *, asks: bool = True
    ) -> None:
        self._default = default
        self._decided: dict[Endpoint, Decision] = {}
        self._rules = [
            CompiledNetworkRule(
                rule, tuple(map(Destination, rule.destinations)), decision_of(rule, asks=asks)
            )
            for rule in rules
        ]
        self.names = frozenset(
            each.name for _, wanted, _ in self._rules for each in wanted if each.name
        )
        """Host names in the rules, whose addresses have to be resolved."""
        self._rules_about = {
            (direction.value, protocol.value): [
                each
                for each in self._rules
                if each.rule.direction == direction.value
                and each.rule.protocol in ("", protocol.value)
                and any(wanted.can_match(protocol) for wanted in each.destinations)
            ]
            for direction in Direction
            for protocol in Protocol
        }

    @property
    def kept_sockets(self) -> frozenset[str]:
        """Globs of the sockets that some rule does not simply allow."""
        return frozenset(
            glob
            for rule, wanted, _ in self._rules
            if rule.decision is not Action.ALLOW and rule.direction == Direction.CONNECT.value
            for each in wanted
            for glob in each.sockets
        )

    @property
    def must_mediate(self) -> bool:
        """Return whether connections must be mediated at all."""
        return bool(self._rules) or self._default.action is not Action.ALLOW

    @property
    def must_mediate_servers(self) -> bool:
        return self._default.action is not Action.ALLOW or any(
            rule.decision is not Action.ALLOW and rule.direction == Direction.BIND.value
            for rule, _, _ in self._rules
        )

    @property
    def must_mediate_datagrams(self) -> bool:
        """Return whether datagrams must be mediated whose destination is in the caller's memory."""
        return self._default.action is not Action.ALLOW or any(
            rule.decision is not Action.ALLOW
            and rule.direction == Direction.CONNECT.value
            and rule.protocol != Protocol.TCP.value
            and any(each.gets_datagrams for each in destinations)
            for rule, destinations, _ in self._rules
        )

    def depend_on_names(self, endpoint: Endpoint) -> bool:
        """Return whether a host name could change the decision."""
        for rule, destinations, _ in self.rules_about(endpoint):
            if rule.ports and endpoint.port not in rule.ports:
                continue
            if not rule.layer and any(each.matches(endpoint) for each in destinations):
                return False
            if any(each.name for each in destinations):
                return True
        return False

    def decide(self, endpoint: Endpoint) -> Decision:
        """Decide; for a socket with several names, return the strictest decision."""
        decision = self._decided.get(endpoint)
        if decision is None:
            if len(self._decided) >= _MOST_DECIDED:
                self._decided.clear()
            decision = strictest(map(self._decide, _by_each_name(endpoint)))
            self._decided[endpoint] = decision
        return decision

    def rules_about(self, endpoint: Endpoint) -> list[CompiledNetworkRule]:
        return self._rules_about[endpoint.direction.value, endpoint.protocol.value]

    def in_the_way(self, endpoint: Endpoint, action: Action) -> list[str]:
        rules, meant = self.rules_about(endpoint), _by_each_name(endpoint)
        return in_the_way(rules, lambda rule: any(map(rule.matches, meant)), action)

    def _decide(self, endpoint: Endpoint) -> Decision:
        rule = deciding(self.rules_about(endpoint), lambda each: each.matches(endpoint))
        return self._default if rule is None else rule.decision


def _by_each_name(endpoint: Endpoint) -> list[Endpoint]:
    """Return the endpoint, and for a socket also each of its other names."""
    sockets = sorted(endpoint.names) if endpoint.protocol is Protocol.UNIX else ()
    return [endpoint, *(endpoint._replace(socket=each) for each in sockets)]
