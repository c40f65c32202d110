"""Connections that no rule matches; `network: {default: deny}` still allows DNS and loopback."""

from __future__ import annotations

from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import NetworkRule
from sigwrap.policy.language.parts import Checked
from sigwrap.policy.problems import Place
from sigwrap.tuples import NamedTuple

_DNS = 53
# Name, destination, ports, direction.
_ALLOWED: tuple[tuple[str, str, tuple[int, ...], str], ...] = (
    ("implied-name-service", "*", (_DNS,), "connect"),
    ("implied-loopback", "loopback", (), "connect"),
    ("implied-loopback-server", "loopback", (), "bind"),
)
IMPLIED = frozenset(name for name, *_ in _ALLOWED)


class NetworkDefault(NamedTuple):
    place: Place
    action: Action
    implied: tuple[NetworkRule, ...] = ()


def network_default(policy: Checked) -> NetworkDefault | None:
    """Return None if the policy leaves it to its base."""
    given, place = policy.get("network"), policy.place_of("network")
    if isinstance(given, Checked):
        action = Action(given.get("default"))
        is_open = action in (Action.ALLOW, Action.AUDIT) or given.get("strict", False)
        return NetworkDefault(place, action, () if is_open else _implied(place))
    defaults = policy.get("defaults")
    if given is None and defaults is not None and "network" in defaults.values:
        given, place = defaults.get("network"), defaults.place_of("network")
    return None if given is None else NetworkDefault(place, Action(given))


def _implied(place: Place) -> tuple[NetworkRule, ...]:
    return tuple(
        NetworkRule(place, name, "", (destination,), ports, "", direction, Action.ALLOW, "")
        for name, destination, ports, direction in _ALLOWED
    )
