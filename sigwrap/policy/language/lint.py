"""Warnings: rules that never match or allow more than they seem to, and missing variables.

Only rules of the policy's own file get a warning; that they come before a base's rules is the
purpose of `extends`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from sigwrap.policy.judge.environment import ALWAYS_REMOVED, judge_names
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.globs import Glob, is_glob
from sigwrap.policy.judge.match import Regex
from sigwrap.policy.judge.network import (
    LOOPBACK_ADDRESS,
    UNIX,
    Destination,
    Direction,
    Endpoint,
    Protocol,
)
from sigwrap.policy.judge.request import LENIENT, Action, TargetType, with_implied
from sigwrap.policy.judge.rules import (
    CommandRule,
    FileRule,
    NetworkRule,
    PidRange,
    Policy,
    ProcessPattern,
    Rule,
    SignalRule,
    Target,
    default_of,
)
from sigwrap.policy.language.schema import COMMAND_RULE
from sigwrap.policy.language.shapes import any_of
from sigwrap.policy.problems import Place, Problem, Severity

_MOST_COMPARISONS = 1_000_000
_UNLIKELY_TEXT = b"\x01 sigwrap \x02"
_UNLIKELY_NAME = _UNLIKELY_TEXT.decode()
_WHOLE_LINE = re.compile(r"\^(?:[^\\+*?()|\[\]{}^$]|\\[^A-Za-z0-9]|\[\^ \]\+)+\$")
_LINE = re.compile(r"[\w.-]+( [\w.-]+)+")
_EVERYTHING = frozenset({"/", "/**"})
_DNS = 53
_NO_SERVERS = "no server will start: no rule allows listening (direction: bind)"
_NO_NAMES = "host names cannot be looked up: no rule allows DNS (port 53)"
_NO_LOOPBACK = "programs cannot connect to this machine: no rule allows loopback"
_CONDITIONS = [(key.field, key.covers) for key in COMMAND_RULE.keys if key.covers is not None]
AnyRule = TypeVar("AnyRule", CommandRule, SignalRule, FileRule, NetworkRule)
_NEEDED = ("PATH", "HOME", _UNLIKELY_NAME)


def lint(policy: Policy) -> tuple[Problem, ...]:
    def own(rules: Sequence[AnyRule]) -> list[AnyRule]:
        return [each for each in rules if each.place.file == policy.file]

    command_rules, signal_rules = own(policy.command_rules), own(policy.signal_rules)
    file_rules, network_rules = own(policy.file_rules), own(policy.network_rules)
    return (
        *_shadowed(command_rules, lambda rule: rule.commands, _RulesAbove(command_rules).first),
        *_names_with_words(command_rules),
        *_loose_allow_rules(command_rules),
        *_shadowed(signal_rules, lambda rule: rule.targets or (None,), _signal_rule_above),
        *_rules_on_sigwrap(signal_rules),
        *_rules_on_oneself(signal_rules),
        *_shadowed(file_rules, lambda rule: rule.paths, _FileRulesAbove(policy, file_rules).first),
        *_idle_file_rules(policy, file_rules),
        *_shadowed(network_rules, lambda rule: rule.destinations, _network_rule_above),
        *_doubtful_network_rules(network_rules),
        *_closed_network(policy),
        *_doubtful_env_policy(policy),
    )


def _shadowed(
    rules: list[AnyRule],
    parts_of: Callable[[AnyRule], Sequence[Any]],
    first_above: Callable[[list[AnyRule], int, Any], AnyRule | None],
) -> Iterator[Problem]:
    """Warn of rules with parts that a rule above decides."""
    for position, rule in enumerate(rules):
        shadowing: dict[str, list[str]] = {}
        parts = parts_of(rule)
        for part in parts:
            above = first_above(rules, position, part)
            if above is not None:
                shown = part if isinstance(part, str) else target_name(part)
                name = f"rule {above.name} (line {above.place.line})"
                shadowing.setdefault(name, []).append(shown)
        shadowed = sum(map(len, shadowing.values()))
        for name, words in shadowing.items():
            is_all = shadowed == len(parts)
            scope = "can never match" if is_all else f"cannot match {', '.join(words)}"
            yield _warning(rule, f"rule {rule.name} {scope}: {name} decides first")


class _RulesAbove:
    """Command rules by the words that name a command.

    A policy may have ten thousand words, and to compare all pairs would take minutes.
    """

    def __init__(self, rules: Sequence[CommandRule]) -> None:
        self._by_word: dict[str, list[int]] = {}
        # The key says whether a glob has a slash, and has its literal prefix.
        self._globs: dict[tuple[bool, str], list[tuple[int, Glob]]] = {}
        self._comparisons = 0
        for position, rule in enumerate(rules):
            for word in dict.fromkeys(rule.commands):
                self._by_word.setdefault(word, []).append(position)
                if is_glob(word):
                    glob = Glob(word)
                    self._globs.setdefault(("/" in word, glob.prefix), []).append((position, glob))

    def first(self, rules: list[CommandRule], at: int, word: str) -> CommandRule | None:
        # A name without a slash matches /usr/bin/npm too.
        texts = () if is_glob(word) else dict.fromkeys((word, word.rpartition("/")[2]))
        found = {
            position for name in ("*", word, *texts) for position in self._by_word.get(name, ())
        }
        for text in texts:
            found.update(self._matching(text))
        for position in sorted(each for each in found if each < at):
            self._comparisons += 1
            if self._comparisons > _MOST_COMPARISONS:
                return None
            if _conditions_cover(rules[position], rules[at]):
                return rules[position]
        return None

    def _matching(self, text: str) -> Iterator[int]:
        for length in range(len(text) + 1):
            for position, glob in self._globs.get(("/" in text, text[:length]), ()):
                self._comparisons += 1
                if self._comparisons > _MOST_COMPARISONS:
                    return
                if glob.matches(text):
                    yield position


def _conditions_cover(above: CommandRule, rule: CommandRule) -> bool:
    """Return whether `above` matches all that meets the conditions of `rule`."""
    return all(covers(getattr(above, field), getattr(rule, field)) for field, covers in _CONDITIONS)


def _names_with_words(rules: Sequence[CommandRule]) -> Iterator[Problem]:
    """Warn of `commands: ['git push']`: a name is that of a program."""
    for rule in rules:
        for word in rule.commands:
            if _LINE.fullmatch(word):
                name, _, rest = word.partition(" ")
                said = (
                    f"no program is called {word!r}; use commands: [{name}], subcommands: [{rest}]"
                )
                yield _warning(rule, f"rule {rule.name}: {said}", word)


def _loose_allow_rules(rules: Sequence[CommandRule]) -> Iterator[Problem]:
    for rule in rules:
        if rule.decision is not Action.ALLOW:
            continue
        anything = next((p for p in rule.args_patterns if _matches_anything(p)), None)
        loose = next((p for p in rule.args_patterns if not _is_of_a_whole_line(p)), None)
        if anything is not None:
            message = f"rule {rule.name} allows any arguments: one of its args_patterns matches all"
            yield _warning(rule, message, anything)
        elif loose is not None and not rule.subcommands:
            message = (
                f"rule {rule.name} allows any arguments if one of them matches this pattern; use "
                "subcommands, or deny the others in an earlier rule"
            )
            yield _warning(rule, message, loose)
        elif rule.paths and rule.args is None and not rule.args_patterns:
            message = (
                f"rule {rule.name} allows any arguments if one of them is one of these paths; use "
                "args, or deny other paths in an earlier rule with outside"
            )
            yield _warning(rule, message, rule.paths[0])


def _matches_anything(pattern: str) -> bool:
    regex = Regex([pattern])
    return regex.found_in(b"") and regex.found_in(_UNLIKELY_TEXT)


def _is_of_a_whole_line(pattern: str) -> bool:
    """Return whether a pattern matches certain words in a row, and nothing else.

    It also matches one argument that contains the same spaces, which no usual program has.
    """
    return bool(_WHOLE_LINE.fullmatch(pattern)) and " " in pattern.replace("[^ ]", "")


def _signal_rule_above(
    rules: list[SignalRule], at: int, target: Target | None
) -> SignalRule | None:
    rule = rules[at]
    above = [
        each
        for each in rules[:at]
        if each.handled in (None, rule.handled) and _covers_target(each, target)
    ]
    if not rule.signals <= frozenset[int]().union(*(each.signals for each in above)):
        return None
    return next(each for each in above if each.signals & rule.signals)


class _FileRulesAbove:
    """Compares the paths that are no globs."""

    def __init__(self, policy: Policy, rules: Sequence[FileRule]) -> None:
        self._by_name = {rule.name: rule for rule in rules}
        self._files = FileRules(rules, default_of(policy, "file", policy.default_file))

    def first(self, rules: list[FileRule], at: int, path: str) -> FileRule | None:
        rule = rules[at]
        deciding = {self._files.by_rules(each, path).rule for each in rule.operations}
        if is_glob(path.removesuffix("/**")) or rule.name in deciding:
            return None
        return self._by_name[deciding.pop()]


def _idle_file_rules(policy: Policy, rules: Sequence[FileRule]) -> Iterator[Problem]:
    files = FileRules.of(policy)
    distinguished = files.restricted | files.audited
    for rule in rules:
        idle = [each.value for each in rule.operations if each not in distinguished]
        if rule.decision is Action.ALLOW and idle and not _EVERYTHING.intersection(rule.paths):
            message = f"rule {rule.name} has no effect: no rule or default denies or audits these"
            yield _warning(rule, message, ", ".join(idle))


def _network_rule_above(rules: list[NetworkRule], at: int, destination: str) -> NetworkRule | None:
    return next((r for r in rules[:at] if _covers_connection(r, rules[at], destination)), None)


def _covers_connection(above: NetworkRule, rule: NetworkRule, destination: str) -> bool:
    return (
        above.direction == rule.direction
        and above.protocol in ("", rule.protocol)
        and any_of(above.ports, rule.ports)
        and any(Destination(each).covers(Destination(destination)) for each in above.destinations)
    )


def _doubtful_network_rules(rules: Sequence[NetworkRule]) -> Iterator[Problem]:
    for rule in rules:
        of_sockets = list(filter(_is_socket, rule.destinations))
        if rule.ports and of_sockets:
            message = f"rule {rule.name} cannot match unix sockets, which have no ports"
            yield _warning(rule, message, ", ".join(of_sockets))
        if rule.protocol:
            is_unix = rule.protocol == Protocol.UNIX.value
            others = [each for each in rule.destinations if _is_socket(each) is not is_unix]
            if others:
                message = f"rule {rule.name} cannot match these with protocol {rule.protocol}"
                yield _warning(rule, message, ", ".join(others))
        by_a_link = [each for each in of_sockets if each.startswith(f"{UNIX}/var/run/")]
        if by_a_link and rule.decision is not Action.DENY:
            message = (
                f"rule {rule.name} matches resolved paths: write /run if /var/run is a link to it"
            )
            yield _warning(rule, message, ", ".join(by_a_link))
        names = [each for each in rule.destinations if Destination(each).name]
        if rule.decision is Action.DENY and names:
            message = (
                f"rule {rule.name} denies the known addresses of this host: other names with these "
                "addresses are denied too, and unknown addresses are not"
            )
            yield _warning(rule, message, ", ".join(names))


def _closed_network(policy: Policy) -> Iterator[Problem]:
    place = policy.network_place
    if place is None or place.file != policy.file or policy.default_network is not Action.DENY:
        return
    rules = [each for each in policy.network_rules if each.decision is not Action.DENY]
    connects = [each for each in rules if each.direction == Direction.CONNECT.value]
    hosts = [each for each in connects if not all(map(_is_socket, each.destinations))]
    if len(connects) == len(rules):
        yield _warning_at(place, _NO_SERVERS)
    if not any(_DNS in each.ports or (not each.ports and _has_addresses(each)) for each in hosts):
        yield _warning_at(place, _NO_NAMES)
    if not any(map(_has_loopback, hosts)):
        yield _warning_at(place, _NO_LOOPBACK)


def _is_socket(destination: str) -> bool:
    return destination.startswith(UNIX)


def _has_addresses(rule: NetworkRule) -> bool:
    return not all(_is_socket(each) or Destination(each).name for each in rule.destinations)


def _has_loopback(rule: NetworkRule) -> bool:
    here = [Endpoint(Direction.CONNECT, Protocol.TCP, each) for each in LOOPBACK_ADDRESS.values()]
    wanted = map(Destination, rule.destinations)
    return "localhost" in rule.destinations or any(
        each.matches(address) for each in wanted for address in here
    )


def _covers_target(above: SignalRule, target: Target | None) -> bool:
    if not above.targets:
        return True
    match target:
        case None:
            return False
        case TargetType():
            return not with_implied([target]).isdisjoint(
                each for each in above.targets if isinstance(each, TargetType)
            )
        case ProcessPattern(glob=glob, kind=kind):
            if kind is not None and _covers_target(above, kind):
                return True
            return target in above.targets or ProcessPattern(glob) in above.targets
        case PidRange():
            return any(
                isinstance(each, PidRange)
                and each.minimum <= target.minimum
                and target.maximum <= each.maximum
                for each in above.targets
            )


def target_name(target: Target | None) -> str:
    match target:
        case None:
            return "any target"
        case TargetType():
            return target.value
        case ProcessPattern(glob=glob, kind=kind):
            return f"{'process' if kind is None else kind.value} {glob}"
        case PidRange():
            return f"pids {target.minimum} to {target.maximum}"


def _rules_on_sigwrap(rules: Sequence[SignalRule]) -> Iterator[Problem]:
    for rule in rules:
        if rule.decision is not Action.DENY and TargetType.SIGWRAP in rule.targets:
            message = (
                f"rule {rule.name} has no effect on target parent: signals to sigwrap itself are "
                "always denied"
            )
            yield _warning(rule, message)


def _rules_on_oneself(rules: Sequence[SignalRule]) -> Iterator[Problem]:
    """Warn of rules that hit self-signals: runtimes, abort() and pthread_cancel() send them."""
    decided: set[int] = set()
    for rule in rules:
        is_lenient = rule.decision in LENIENT
        if not is_lenient and _may_be_oneself(rule) and not rule.signals <= decided:
            message = (
                f"rule {rule.name} also matches signals of a process to itself; allow these in an "
                "earlier rule (target: self)"
            )
            yield _warning(rule, message)
        if rule.handled is None and _covers_target(rule, TargetType.SELF):
            decided |= rule.signals


def _may_be_oneself(rule: SignalRule) -> bool:
    """Return whether a rule covers `self` without naming it."""
    if TargetType.SELF in rule.targets:
        return False
    return not rule.targets or any(map(_takes_in_oneself, rule.targets))


def _takes_in_oneself(target: Target) -> bool:
    kind = target.kind if isinstance(target, ProcessPattern) else target
    return kind is TargetType.SESSION or not isinstance(kind, TargetType)


def _doubtful_env_policy(policy: Policy) -> Iterator[Problem]:
    remove, keep, place = policy.env_policy
    if place is None or place.file != policy.file:
        return
    needed = {each.name: each.pattern for each in judge_names(policy.env_policy, _NEEDED).removed}
    if _UNLIKELY_NAME in needed and not keep:
        message = "remove drops every variable, and keep restores none: programs need PATH and HOME"
        yield _warning_at(place, message, needed[_UNLIKELY_NAME])
    else:
        for name in ("PATH", "HOME"):
            if name in needed:
                yield _warning_at(place, f"remove drops {name}, which programs need", needed[name])
    for pattern in keep:
        if not is_glob(pattern) and pattern in ALWAYS_REMOVED:
            yield _warning_at(place, f"keep has no effect on {pattern}, which is always removed")
        elif not any(_may_share_a_name(pattern, each) for each in remove):
            message = "keep has no effect: no pattern of remove matches this name"
            yield _warning_at(place, message, pattern)


def _may_share_a_name(first: str, second: str) -> bool:
    """Return whether two globs may match one name; of two globs it compares the prefixes."""
    one, other = Glob(first), Glob(second)
    if not is_glob(first) or not is_glob(second):
        return one.matches(second) or other.matches(first)
    return one.prefix.startswith(other.prefix) or other.prefix.startswith(one.prefix)


def _warning(rule: Rule, message: str, offending: str = "") -> Problem:
    return _warning_at(rule.place, message, offending)


def _warning_at(place: Place, message: str, offending: str = "") -> Problem:
    return Problem(place=place, message=message, offending=offending, severity=Severity.WARNING)
