"""Build typed rules from checked values, and check what concerns several keys together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.policy.judge.globs import BadPattern
from sigwrap.policy.judge.match import check_regexes
from sigwrap.policy.judge.network import (
    BadDestination,
    Destination,
    Direction,
    Protocol,
    endpoint_of,
)
from sigwrap.policy.judge.request import (
    HOST_VALUE,
    LENIENT,
    Action,
    Operation,
    SignalRequest,
    TargetType,
    Via,
    with_implied,
)
from sigwrap.policy.judge.rules import (
    Case,
    CommandCase,
    FileCase,
    NetworkCase,
    NetworkRule,
    Policy,
    SignalCase,
)
from sigwrap.policy.judge.signals import signal_number
from sigwrap.policy.language.document import IMPLIED, NetworkDefault, Parts
from sigwrap.policy.language.schema import (
    ANY,
    COMMAND_DECISIONS,
    DEFAULTS,
    FILE_DECISIONS,
    ON,
    PLAIN_DECISIONS,
    RULES,
    SECTIONS,
    SIGNAL_DECISIONS,
    TEST_CASE,
    VALUES,
)
from sigwrap.policy.language.shapes import Checked, fields, listed, made
from sigwrap.policy.problems import Place, Problem
from sigwrap.text import nearest_word

_QUOTING = frozenset("'\"\\")

_CANNOT_ALLOW = {
    "flags": "other words may undo them: use args",
    "outside": "other arguments may be inside: deny with it, before a rule that allows",
}
_AUDITED = (Operation.WRITE, Operation.CREATE, Operation.DELETE)
_AUDITED_WORDS = "write, create and delete"
_NOT_AUDITED = (
    "read and execute cannot be audited, because each program opens hundreds of files at its start"
)

_READABLE_SECRET = "env has a secret, which the caller's LD_PRELOAD could read: add via: stub"
_RELATIVE_REPLACEMENT = (
    "the caller could choose the program by its directory: use an absolute path, or a name on PATH"
)

_DNS = 53


def inconsistencies(
    policy: Checked, base: Policy | None, *, shipped: bool = False
) -> Iterator[Problem]:
    for section in RULES:
        # A name in the log must lead to one rule, whichever file it came from.
        names = {rule.name for rule in getattr(base, section)} if base else set()
        for rule in policy.get(section, ()):
            name = rule.get("name")
            if name in names:
                yield _problem(rule, "name", "rule name already used, here or in a base", name)
            elif name is not None:
                names.add(name)
        if base is not None or "extends" not in policy.places:
            yield from _override_problems(policy.get(section, ()), names)
    defaults = policy.get("defaults")
    if (
        "network" in policy.places
        and isinstance(defaults, Checked)
        and "network" in defaults.places
    ):
        yield _problem(policy, "network", "network is already set in defaults")
    trust, on = policy.get("trust"), policy.get("on")
    if trust and on and "boundary" in trust.places and "boundary" in on.places:
        yield _problem(trust, "boundary", "boundary is set in on too; use only one")
    for rule in policy.get("command_rules", ()):
        yield from _redirect_problems(rule)
        yield from _any_problems(rule)
    for rule in _alternatives(policy.get("command_rules", ())):
        if depth := rule.get("depth"):
            yield from _range_problems(depth)
        for key, why in _CANNOT_ALLOW.items():
            if key in rule.values and rule.get("decision") in LENIENT:
                yield _problem(rule, key, f"{key} cannot allow, since {why}")
        if not shipped and (patterns := rule.get("args_patterns")):
            try:
                check_regexes(patterns)
            except BadPattern as error:
                yield _problem(rule, "args_patterns", f"args_patterns together: {error}")
    for rule in policy.get("signal_rules", ()):
        yield from _redirect_problems(rule)
        if rule.get("log") is False and rule.get("decision") is not Action.ALLOW:
            yield _problem(rule, "log", "log: false needs decision: allow")
        for key in ("on", "escalate"):
            if rule.get("log") is False and rule.get(key):
                yield _problem(rule, "log", f"log: false cannot be combined with {key}")
        for target in listed(rule.get("target")):
            if isinstance(target, Checked):
                yield from _target_problems(target)
    if isinstance(defaults, Checked) and defaults.get("file") is Action.AUDIT:
        yield _problem(defaults, "file", f"{_NOT_AUDITED}; audit {_AUDITED_WORDS} in a rule")
    for rule in policy.get("file_rules", ()):
        yield from _file_problems(rule)
    for rule in policy.get("network_rules", ()):
        yield from _network_problems(rule)
    for case in policy.get("tests", ()):
        yield from _case_problems(case)


def parts(policy: Checked) -> Parts:
    defaults = policy.get("defaults")
    values = fields(policy, VALUES) | (fields(defaults, DEFAULTS) if defaults else {})
    values.pop("default_network", None)
    sections = {
        name: fields(policy.get(name), group)
        for name, group in SECTIONS.items()
        if name in policy.values
    }
    on = policy.get("on")
    for field, value in (fields(on, ON) if on else {}).items():
        sections.setdefault("trust" if field == "boundary" else "watch", {})[field] = value
    if "env_policy" in sections:
        sections["env_policy"]["place"] = policy.place_of("env_policy")
    rules = {
        name: tuple(made(each, group) for each in _alternatives(policy.get(name, ())))
        for name, group in RULES.items()
    }
    return Parts(values, sections, _network_default(policy), **rules)


def _alternatives(rules: Sequence[Checked]) -> Iterator[Checked]:
    """Yield each rule, or a rule of its name for each of its alternatives."""
    for rule in rules:
        given = rule.get(ANY.title)
        if not given:
            yield rule
        for each in given or ():
            alternative = Checked(each.place)
            alternative.values = rule.values | each.values
            alternative.places = rule.places | each.places
            del alternative.values[ANY.title], alternative.places[ANY.title]
            yield alternative


def _network_default(policy: Checked) -> NetworkDefault | None:
    """Return None if the policy leaves it to its base."""
    given, place = policy.get("network"), policy.place_of("network")
    if isinstance(given, Checked):
        action = Action(given.get("default"))
        is_open = action in LENIENT or given.get("strict", False)
        return NetworkDefault(place, action, () if is_open else _implied(place))
    defaults = policy.get("defaults")
    if given is None and defaults is not None and "network" in defaults.values:
        given, place = defaults.get("network"), defaults.place_of("network")
    return None if given is None else NetworkDefault(place, Action(given))


def _implied(place: Place) -> tuple[NetworkRule, ...]:
    names, server, client = IMPLIED
    allow = Action.ALLOW
    return (
        NetworkRule(place, names, allow, ("*",), ports=(_DNS,)),
        NetworkRule(place, client, allow, ("loopback",)),
        NetworkRule(place, server, allow, ("loopback",), direction=Direction.BIND.value),
    )


def case(checked: Checked, folder: str) -> Case:
    given = fields(checked, TEST_CASE)
    decision, rule = given.pop("decision"), given.pop("rule", "")
    if "file" in given:
        return FileCase(checked.place, given["file"], given["operation"], decision, rule)
    for kind, direction in (("connect", Direction.CONNECT), ("listen", Direction.BIND)):
        if kind in given:
            protocol = given.get("protocol", Protocol.TCP.value)
            return NetworkCase(
                checked.place, given[kind], direction.value, protocol, decision, rule
            )
    if "command" in given:
        argv = tuple(_words(given.pop("command")))
        return CommandCase(checked.place, argv, decision, rule, **{"cwd": folder, **given})
    request = SignalRequest(
        signal=signal_number(given.pop("signal")) or 0,
        target_types=with_implied(map(TargetType, listed(given.pop("target")))),
        **given,
    )
    return SignalCase(checked.place, request, decision, rule)


def _override_problems(rules: Sequence[Checked], names: set[str]) -> Iterator[Problem]:
    for rule in rules:
        for name in rule.get("overrides", ()):
            if name not in names:
                problem = _problem(rule, "overrides", "no rule of a base has this name", name)
                longer = (each for each in names if name.startswith(f"{each}-"))
                nearest = max(longer, key=len, default="") or nearest_word(name, names)
                yield problem._replace(nearest=nearest)


def _any_problems(rule: Checked) -> Iterator[Problem]:
    for alternative in rule.get(ANY.title, ()):
        if "commands" not in rule.places | alternative.places:
            yield _problem(alternative, "", 'missing key "commands", here or beside any')
        for key in rule.places.keys() & alternative.places.keys():
            yield _problem(alternative, key, f"{key} is given beside any too; use only one")


def _redirect_problems(rule: Checked) -> Iterator[Problem]:
    redirects = rule.get("decision") is Action.REDIRECT
    if redirects and "redirect_to" not in rule.places:
        yield _problem(rule, "decision", "decision: redirect needs redirect_to")
    if not redirects and "redirect_to" in rule.places and "decision" in rule.values:
        yield _problem(rule, "redirect_to", "redirect_to needs decision: redirect")
    redirect = rule.get("redirect_to")
    if not isinstance(redirect, Checked):
        return
    if redirect.get("via") is not Via.STUB:
        if redirect.get("record"):
            yield _problem(redirect, "record", "record: true needs via: stub")
        if any(HOST_VALUE in value for value in redirect.get("env", {}).values()):
            yield _problem(redirect, "env", _READABLE_SECRET)
    command = redirect.get("command", "/")
    if "/" in command and not command.startswith("/"):
        yield _problem(redirect, "command", _RELATIVE_REPLACEMENT, command)


def _range_problems(bounds: Checked) -> Iterator[Problem]:
    minimum, maximum = bounds.get("min"), bounds.get("max")
    if minimum is not None and maximum is not None and minimum > maximum:
        yield _problem(bounds, "min", "min is above max", f"{minimum} to {maximum}")


def _target_problems(target: Checked) -> Iterator[Problem]:
    kind = target.get("type")
    if kind is None:
        return
    needed = {"process": ("pattern",), "pid_range": ("min", "max")}.get(kind, ())
    for key in ("pattern", "min", "max"):
        if key in needed and key not in target.places:
            yield _problem(target, "type", f"a {kind} target needs {key}")
        may_have = key == "pattern" and kind != "pid_range"
        if key not in needed and key in target.places and not may_have:
            yield _problem(target, key, f"a {kind} target takes no {key}")
    yield from _range_problems(target)


def _file_problems(rule: Checked) -> Iterator[Problem]:
    if rule.get("make_missing") and rule.get("decision") is Action.DENY:
        yield _problem(rule, "make_missing", "make_missing cannot be combined with decision: deny")
    others = [each.value for each in rule.get("operations", ()) if each not in _AUDITED]
    if others and rule.get("decision") is Action.AUDIT:
        message = f"{_NOT_AUDITED}; use only {_AUDITED_WORDS} here"
        yield _problem(rule, "operations", message, ", ".join(others))


def _network_problems(rule: Checked) -> Iterator[Problem]:
    if rule.get("direction") != Direction.BIND.value:
        return
    if rule.get("protocol") in (Protocol.UDP.value, Protocol.OTHER.value):
        why = "direction: bind is for tcp and unix, because datagram servers do not listen"
        yield _problem(rule, "protocol", why, rule.get("protocol"))
    for destination in rule.get("destinations", ()):
        if Destination(destination).name:
            why = "direction: bind needs an address, not a host name"
            yield _problem(rule, "destinations", why, destination)


# For each key that makes a test: its other keys, and the decisions that it may expect.
_CASES = {
    "command": (
        ("depth", "truncated", "traced", "system_file", "loads_code", "cwd"),
        COMMAND_DECISIONS,
    ),
    "signal": (("target", "target_command", "target_pid", "handled"), SIGNAL_DECISIONS),
    "file": (("operation",), FILE_DECISIONS),
    "connect": (("protocol",), PLAIN_DECISIONS),
    "listen": ((), PLAIN_DECISIONS),
}
_NEEDED_IN_CASES = {"signal": "target", "file": "operation"}


def _case_problems(case: Checked) -> Iterator[Problem]:
    kinds = [each for each in _CASES if each in case.places]
    if len(kinds) != 1:
        message = "a test needs exactly one of command, signal, file, connect and listen"
        yield Problem(place=case.place, message=message)
        return
    (kind,) = kinds
    for other, (keys, _) in _CASES.items():
        for key in keys if other != kind else ():
            if key in case.places:
                yield _problem(case, key, f"{key} is only for tests with {other}")
    needed = _NEEDED_IN_CASES.get(kind)
    if needed and needed not in case.places:
        yield _problem(case, kind, f"a test with {kind} needs {needed}")
    decision = case.get("decision")
    if decision is not None and decision.value not in _CASES[kind][1]:
        message = f"a test with {kind} cannot expect this decision"
        yield _problem(case, "decision", message, decision.value)
    if kind in ("connect", "listen") and kind in case.values:
        try:
            endpoint_of(case.get(kind), Direction.CONNECT)
        except BadDestination as bad:
            yield _problem(case, kind, str(bad), case.get(kind))
    if kind == "command" and "command" in case.values and not _words(case.get("command")):
        yield _problem(case, "command", "the command is empty, or has an unclosed quote")


def _words(command: str | tuple[str, ...]) -> list[str]:
    if not isinstance(command, str):
        return list(command)
    if not _QUOTING.intersection(command):
        return command.split()  # in a tenth of the time
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return []


def _problem(checked: Checked, key: str, message: str, offending: str = "") -> Problem:
    return Problem(place=checked.place_of(key), message=message, offending=offending)
