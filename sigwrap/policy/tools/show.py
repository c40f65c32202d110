"""A policy as it takes effect, as text that loads again with the same meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import yaml

from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import Policy, Rule
from sigwrap.policy.language.schema import ANY, BOUNDARY, RULES, SECTIONS
from sigwrap.policy.language.shapes import entries
from sigwrap.text import printable

_CONDITIONS = frozenset(key.name for key in ANY.keys)
_GROUPS = {group.type: group for group in RULES.values()}


def rule_entries(rule: Rule) -> dict[str, Any]:
    """Return a rule's keys and values, as a policy has them."""
    return entries(rule, _GROUPS[type(rule)])


def policy_text(policy: Policy) -> str:
    header = f"# {' extends '.join([policy.name, *policy.bases])}\n" if policy.bases else ""
    text = yaml.dump(
        _entries(policy), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
    )
    # _Dumper puts unprintable text between double quotes, where YAML has these escapes too.
    return "\n".join(map(printable, (header + text.rstrip()).split("\n")))


def _entries(policy: Policy) -> dict[str, Any]:
    """Return all but what is left at its default."""
    sections: dict[str, Any] = {
        "version": 1,
        "name": policy.name,
        "description": policy.description,
        "sequence": policy.sequence,
        "expires": policy.expires,
        "fallback": "warn" if policy.tolerates_old_kernels else "",
        "approvals": "" if policy.asks else "deny",
        "defaults": {
            name: action.value
            for name, action, usual in (
                ("command", policy.default_command, None),
                ("signal", policy.default_signal, None),
                ("network", policy.default_network, Action.ALLOW),
                ("file", policy.default_file, Action.ALLOW),
            )
            if action is not usual
        },
        **{name: list(_rules(getattr(policy, name))) for name in RULES},
        **{name: entries(getattr(policy, name), group) for name, group in SECTIONS.items()},
    }
    sections["on"] = sections.pop("watch") | entries(policy.trust, BOUNDARY)
    return {name: value for name, value in sections.items() if value}


def _rules(rules: Iterable[Rule]) -> Iterator[dict[str, Any]]:
    """Yield the entries of each rule; those of one name are alternatives of one rule."""
    for _, alternatives in groupby(rules, key=lambda rule: rule.name):
        shown = list(map(rule_entries, alternatives))
        if len(shown) == 1:
            yield shown[0]
            continue
        conditions = [{key: each[key] for key in each if key in _CONDITIONS} for each in shown]
        rule: dict[str, Any] = {}
        for key, value in shown[0].items():
            rule |= {ANY.title: conditions} if key in _CONDITIONS else {key: value}
        yield rule


class _Dumper(yaml.SafeDumper):
    """Write lists of words on one line, texts of several lines as blocks, and what cannot be
    printed between double quotes."""

    def represent_scalar(self, tag: str, value: Any, style: str | None = None) -> Any:
        if isinstance(value, str):
            lines = value.split("\n")
            if list(map(printable, lines)) != lines:
                style = '"'
            elif len(lines) > 1:
                style = "|"
        return super().represent_scalar(tag, value, style=style)

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> Any:
        words = not any(isinstance(item, dict | list) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=words)


# `on` is a key and no boolean, as in the policies that sigwrap reads.
_Dumper.yaml_implicit_resolvers = {
    first: [] if first in "oO" else resolvers
    for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
}
