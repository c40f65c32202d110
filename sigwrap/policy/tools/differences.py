"""What two policies do differently. Names, descriptions and places of policies don't count, but
rules are told apart by their names."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from sigwrap.escape import printable, shortened
from sigwrap.policy.judge.match import is_glob
from sigwrap.policy.judge.rules import CommandRule, Policy, Rule, SignalRule
from sigwrap.policy.tools.show import policy_entries, rule_entries

_SECTIONS = ("command_rules", "signal_rules", "file_rules", "network_rules")
_ONLY_TOLD = frozenset({"version", "name", "description", *_SECTIONS})
_MOST_COMPARISONS = 200_000
_SHOWN = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    what: str  # of a rule, or of a value outside of rules: added, removed, changed, moved
    where: str  # `command_rules: NAME`, `limits.max_depth`
    key: str = ""  # of a rule that is changed
    before: Any = None
    after: Any = None


def differences(first: Policy, second: Policy) -> list[Difference]:
    return [
        *_values("", _other(first), _other(second)),
        *(each for section in _SECTIONS for each in _rules(section, first, second)),
    ]


def differences_text(found: Sequence[Difference], first: str, second: str) -> str:
    if not found:
        return printable(f"{first} and {second} decide the same")
    lines = [f"{first} -> {second}", *map(_line, found)]
    return "\n".join(map(printable, lines))


def _line(each: Difference) -> str:
    match each.what:
        case "added":
            return f"+ {each.where}: {_value(each.after)}"
        case "removed":
            return f"- {each.where}: {_value(each.before)}"
        case "moved":
            return f"> {each.where}: now comes {each.after}"
        case _:
            key = f": {each.key}" if each.key else ""
            return f"~ {each.where}{key}: {_change(each.before, each.after)}"


def _change(before: Any, after: Any) -> str:
    """Of lists, what one of them has alone: long ones would be cut before they differ."""
    if not (isinstance(before, list) and isinstance(after, list)):
        return f"{_value(before)} -> {_value(after)}"
    was, now = ({json.dumps(each): each for each in items} for items in (before, after))
    changes = [f"- {_item(each)}" for text, each in was.items() if text not in now]
    changes += [f"+ {_item(each)}" for text, each in now.items() if text not in was]
    if not changes:  # one has a word twice
        return f"{_value(before)} -> {_value(after)}"
    return shortened(", ".join(changes), _SHOWN)


def _item(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _value(value: Any) -> str:
    if value is None:
        return "(left out)"
    return shortened(value if isinstance(value, str) else _item(value), _SHOWN)


def _other(policy: Policy) -> dict[str, Any]:
    return {key: value for key, value in policy_entries(policy).items() if key not in _ONLY_TOLD}


def _values(prefix: str, first: dict[str, Any], second: dict[str, Any]) -> Iterator[Difference]:
    """Of what stands beside rules: keys below keys."""
    for key in dict.fromkeys((*first, *second)):
        before, after, where = first.get(key), second.get(key), f"{prefix}{key}"
        if isinstance(before, dict) or isinstance(after, dict):
            yield from _values(f"{where}.", before or {}, after or {})
        elif where.startswith("env_policy."):
            yield from _names(where, before or [], after or [])
        elif before != after:
            yield Difference(what="changed", where=where, before=before, after=after)


def _names(where: str, before: list[str], after: list[str]) -> Iterator[Difference]:
    for name in dict.fromkeys(before):
        if name not in after:
            yield Difference(what="removed", where=where, before=name)
    for name in dict.fromkeys(after):
        if name not in before:
            yield Difference(what="added", where=where, after=name)


def _rules(section: str, first: Policy, second: Policy) -> Iterator[Difference]:
    before: dict[str, Rule] = {rule.name: rule for rule in getattr(first, section)}
    after: dict[str, Rule] = {rule.name: rule for rule in getattr(second, section)}
    for name, rule in before.items():
        where = f"{section}: {name}"
        if name not in after:
            yield Difference(what="removed", where=where, before=_entries(rule))
            continue
        old, new = _entries(rule), _entries(after[name])
        for key in dict.fromkeys((*old, *new)):
            if _unordered(old.get(key)) != _unordered(new.get(key)):
                yield Difference(
                    what="changed", where=where, key=key, before=old.get(key), after=new.get(key)
                )
    for name, rule in after.items():
        if name not in before:
            yield Difference(what="added", where=f"{section}: {name}", after=_entries(rule))
    yield from _moves(section, before, after)


def _entries(rule: Rule) -> dict[str, Any]:
    entries = rule_entries(rule)
    return {key: value for key, value in entries.items() if key not in ("name", "description")}


def _unordered(value: Any) -> Any:
    """Of conditions, one has to hold: their order says nothing. That of a replacement's words, in
    a mapping, does."""
    if isinstance(value, list):
        return sorted(json.dumps(each, sort_keys=True) for each in value)
    return value


def _moves(section: str, before: dict[str, Rule], after: dict[str, Rule]) -> Iterator[Difference]:
    """Of rules that both have, those that another one now comes before, where one request may
    match both and they decide otherwise."""
    old = [name for name in before if name in after]
    new = [name for name in after if name in before]
    position = {name: at for at, name in enumerate(old)}
    compared = 0
    for moved in _out_of_line(old, new):
        earlier, later = list[str](), list[str]()
        at = new.index(moved)
        for other_at, other in enumerate(new):
            compared += 1
            was_before, is_before = position[other] < position[moved], other_at < at
            if was_before is is_before or other == moved:
                continue
            if compared > _MOST_COMPARISONS or _may_disagree(after[moved], after[other]):
                (later if is_before else earlier).append(other)
        told = [
            f"{word} {', '.join(names)}"
            for word, names in (("before", earlier), ("after", later))
            if names
        ]
        if told:
            yield Difference(what="moved", where=f"{section}: {moved}", after="; ".join(told))


def _out_of_line(old: list[str], new: list[str]) -> list[str]:
    if old == new:
        return []
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    kept = {name for block in blocks for name in new[block.b : block.b + block.size]}
    return [name for name in new if name not in kept]


def _may_disagree(one: Rule, other: Rule) -> bool:
    return _consequences(one) != _consequences(other) and _may_overlap(one, other)


def _consequences(rule: Rule) -> dict[str, Any]:
    keys = ("decision", "message", "redirect_to", "fallback", "on", "log")
    return {key: value for key, value in _entries(rule).items() if key in keys}


def _may_overlap(one: Rule, other: Rule) -> bool:
    """Only what surely has nothing in common counts as such."""
    if isinstance(one, SignalRule) and isinstance(other, SignalRule):
        return not one.signals.isdisjoint(other.signals)
    if not (isinstance(one, CommandRule) and isinstance(other, CommandRule)):
        return True
    words = (*one.commands, *other.commands)
    if any(is_glob(word) or "/" in word for word in words):
        return True
    return not set(one.commands).isdisjoint(other.commands)
