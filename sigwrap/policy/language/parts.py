"""The contents of a policy's file, before they are put on its base."""

from __future__ import annotations

from sigwrap.hints import Any
from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import CommandRule, FileRule, NetworkRule, SignalRule
from sigwrap.policy.problems import Place
from sigwrap.tuples import NamedTuple

# The rules by which `network: {default: deny}` still allows DNS and loopback.
IMPLIED = ("implied-name-service", "implied-loopback-server", "implied-loopback")


class NetworkDefault(NamedTuple):
    """The decision on connections that no rule matches."""

    place: Place
    action: Action
    implied: tuple[NetworkRule, ...] = ()


class Parts(NamedTuple):
    values: dict[str, Any]  # fields of Policy
    sections: dict[str, dict[str, Any]]  # fields of Policy, each with the fields that are given
    network: NetworkDefault | None
    command_rules: tuple[CommandRule, ...] = ()
    signal_rules: tuple[SignalRule, ...] = ()
    file_rules: tuple[FileRule, ...] = ()
    network_rules: tuple[NetworkRule, ...] = ()
