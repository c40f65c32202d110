"""Checked values to typed rules, and the checks that concern several keys together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.hints import Any
from sigwrap.policy.judge.match import BadPattern, check_regexes
from sigwrap.policy.judge.network import (
    BadDestination,
    Destination,
    Direction,
    Protocol,
    endpoint_of,
)
from sigwrap.policy.judge.request import (
    Action,
    CommandRedirect,
    Operation,
    SignalRequest,
    TargetType,
    Via,
    with_implied,
)
from sigwrap.policy.judge.rules import (
    Case,
    CommandCase,
    CommandRule,
    FileCase,
    FileRule,
    NetworkCase,
    NetworkRule,
    PidRange,
    Policy,
    ProcessPattern,
    SignalCase,
    SignalRule,
    Target,
)
from sigwrap.policy.judge.signals import signal_number, signal_numbers
from sigwrap.policy.language.parts import Checked, Parts
from sigwrap.policy.language.schema import (
    COMMAND_DECISIONS,
    FILE_DECISIONS,
    PLAIN_DECISIONS,
    SIGNAL_DECISIONS,
)
from sigwrap.policy.problems import Problem, nearest_word

_QUOTING = frozenset("'\"\\")

_AUDITED = ("write", "create", "delete")
_AUDITED_WORDS = "write, create and delete"
_NOT_AUDITED = (
    "read and execute cannot be audited, because each program opens hundreds of files at its start"
)

RULE_SECTIONS = ("command_rules", "signal_rules", "file_rules", "network_rules")


def inconsistencies(
    policy: Checked, base: Policy | None, *, shipped: bool = False
) -> Iterator[Problem]:
    for section in RULE_SECTIONS:
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
    for rule in policy.get("command_rules", ()):
        yield from _redirect_problems(rule)
        if depth := rule.get("depth"):
            yield from _range_problems(depth)
        if not shipped and (patterns := rule.get("args_patterns")):
            try:
                check_regexes(patterns)
            except BadPattern as error:
                yield _problem(rule, "args_patterns", f"args_patterns together: {error}")
    for rule in policy.get("signal_rules", ()):
        yield from _redirect_problems(rule)
        if rule.get("log") is False and rule.get("decision") != Action.ALLOW.value:
            yield _problem(rule, "log", "log: false needs decision: allow")
        if rule.get("log") is False and rule.get("escalate"):
            yield _problem(rule, "log", "log: false cannot be combined with escalate")
        for target in _listed(rule.get("target")):
            if isinstance(target, Checked):
                yield from _target_problems(target)
    if isinstance(defaults, Checked) and defaults.get("file") == Action.AUDIT.value:
        yield _problem(defaults, "file", f"{_NOT_AUDITED}; audit {_AUDITED_WORDS} in a rule")
    for rule in policy.get("file_rules", ()):
        yield from _file_problems(rule)
    for rule in policy.get("network_rules", ()):
        yield from _network_problems(rule)
    for case in policy.get("tests", ()):
        yield from _case_problems(case)


def parts(policy: Checked) -> Parts:
    return Parts(
        policy,
        tuple(map(command_rule, policy.get("command_rules", ()))),
        tuple(map(signal_rule, policy.get("signal_rules", ()))),
        tuple(map(file_rule, policy.get("file_rules", ()))),
        tuple(map(network_rule, policy.get("network_rules", ()))),
    )


def command_rule(rule: Checked) -> CommandRule:
    depth = rule.get("depth") or Checked(place=rule.place)
    redirect = rule.get("redirect_to")
    return CommandRule(
        **_of_every_rule(rule),
        commands=rule.get("commands"),
        args=rule.get("args"),
        flags=rule.get("flags", ()),
        args_patterns=rule.get("args_patterns", ()),
        subcommands=rule.get("subcommands", ()),
        paths=rule.get("paths", ()),
        sources=rule.get("sources", ()),
        min_depth=depth.get("min"),
        max_depth=depth.get("max"),
        sha256=frozenset(rule.get("sha256", ())),
        not_sha256=frozenset(rule.get("not_sha256", ())),
        truncated=rule.get("truncated"),
        traced=rule.get("traced"),
        system_file=rule.get("system_file"),
        loads_code=rule.get("loads_code"),
        redirect_to=_command_redirect(redirect) if redirect else None,
        escalate=rule.get("escalate", ""),
        **_layering(rule),
    )


def signal_rule(rule: Checked) -> SignalRule:
    words = rule.get("signals")
    redirect = rule.get("redirect_to")
    return SignalRule(
        **_of_every_rule(rule),
        signals=frozenset().union(*(signal_numbers(word) or () for word in words)),
        targets=tuple(map(_target, _listed(rule.get("target")))),
        handled=rule.get("handled"),
        redirect_signal=(signal_number(redirect) or 0) if redirect else 0,
        fallback=Action(rule.get("fallback")) if rule.get("fallback") else None,
        log=rule.get("log", True),
        escalate=rule.get("escalate", ""),
        **_layering(rule),
    )


def file_rule(rule: Checked) -> FileRule:
    return FileRule(
        place=rule.place,
        name=rule.get("name"),
        description=rule.get("description", ""),
        paths=rule.get("paths"),
        operations=tuple(map(Operation, rule.get("operations"))),
        decision=Action(rule.get("decision")),
        make_missing=rule.get("make_missing", False),
        **_layering(rule),
    )


def network_rule(rule: Checked) -> NetworkRule:
    return NetworkRule(
        **_of_every_rule(rule),
        destinations=rule.get("destinations"),
        ports=rule.get("ports", ()),
        protocol=rule.get("protocol", ""),
        direction=rule.get("direction", "connect"),
        **_layering(rule),
    )


def case(checked: Checked, folder: str) -> Case:
    decision = Action(checked.get("decision"))
    rule = checked.get("rule", "")
    if checked.get("file") is not None:
        return FileCase(
            place=checked.place,
            path=checked.get("file"),
            operation=Operation(checked.get("operation")),
            decision=decision,
            rule=rule,
        )
    for kind, direction in (("connect", Direction.CONNECT), ("listen", Direction.BIND)):
        if checked.get(kind) is not None:
            return NetworkCase(
                place=checked.place,
                destination=checked.get(kind),
                direction=direction.value,
                protocol=checked.get("protocol", Protocol.TCP.value),
                decision=decision,
                rule=rule,
            )
    if checked.get("signal") is None:
        return CommandCase(
            place=checked.place,
            argv=tuple(_words(checked.get("command"))),
            depth=checked.get("depth", 1),
            truncated=checked.get("truncated", False),
            traced=checked.get("traced", False),
            system_file=checked.get("system_file"),
            loads_code=checked.get("loads_code"),
            cwd=checked.get("cwd", folder),
            decision=decision,
            rule=rule,
        )
    request = SignalRequest(
        signal=signal_number(checked.get("signal")) or 0,
        target_types=with_implied(map(TargetType, _listed(checked.get("target")))),
        target_command=checked.get("target_command", ""),
        target_pid=checked.get("target_pid", 0),
        handled=checked.get("handled", False),
    )
    return SignalCase(place=checked.place, request=request, decision=decision, rule=rule)


def _of_every_rule(rule: Checked) -> dict[str, Any]:
    return {
        "place": rule.place,
        "name": rule.get("name"),
        "description": rule.get("description", ""),
        "decision": Action(rule.get("decision")),
        "message": rule.get("message", ""),
    }


def _layering(rule: Checked) -> dict[str, Any]:
    return {"overrides": rule.get("overrides"), "layer": rule.get("layer", 0)}


def _command_redirect(redirect: Checked) -> CommandRedirect:
    return CommandRedirect(
        command=redirect.get("command"),
        args=redirect.get("args", ()),
        append_args=redirect.get("append_args", False),
        env=tuple(redirect.get("env", {}).items()),
        via=Via(redirect.get("via", "exec")),
        record=redirect.get("record", False),
    )


def _target(target: str | Checked) -> Target:
    if isinstance(target, str):
        return TargetType(target)
    match target.get("type"):
        case "process":
            return ProcessPattern(glob=target.get("pattern"))
        case "pid_range":
            return PidRange(minimum=target.get("min"), maximum=target.get("max"))
        case word if "pattern" in target.places:
            return ProcessPattern(glob=target.get("pattern"), kind=TargetType(word))
        case word:
            return TargetType(word)


def _override_problems(rules: Sequence[Checked], names: set[str]) -> Iterator[Problem]:
    for rule in rules:
        for name in rule.get("overrides", ()):
            if name not in names:
                problem = _problem(rule, "overrides", "no rule of a base has this name", name)
                yield problem._replace(nearest=nearest_word(name, names))


def _redirect_problems(rule: Checked) -> Iterator[Problem]:
    redirects = rule.get("decision") == Action.REDIRECT.value
    if redirects and "redirect_to" not in rule.places:
        yield _problem(rule, "decision", "decision: redirect needs redirect_to")
    if not redirects and "redirect_to" in rule.places and "decision" in rule.values:
        yield _problem(rule, "redirect_to", "redirect_to needs decision: redirect")
    redirect = rule.get("redirect_to")
    if isinstance(redirect, Checked) and redirect.get("record") and redirect.get("via") != "stub":
        yield _problem(redirect, "record", "record: true needs via: stub")


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
    if rule.get("make_missing") and rule.get("decision") == Action.DENY.value:
        yield _problem(rule, "make_missing", "make_missing cannot be combined with decision: deny")
    others = [each for each in rule.get("operations", ()) if each not in _AUDITED]
    if others and rule.get("decision") == Action.AUDIT.value:
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


_KEYS_OF_CASES = {
    "command": ("depth", "truncated", "traced", "system_file", "loads_code", "cwd"),
    "signal": ("target", "target_command", "target_pid", "handled"),
    "file": ("operation",),
    "connect": ("protocol",),
    "listen": (),
}
_DECISIONS_OF_CASES = {
    "command": COMMAND_DECISIONS,
    "signal": SIGNAL_DECISIONS,
    "file": FILE_DECISIONS,
    "connect": PLAIN_DECISIONS,
    "listen": PLAIN_DECISIONS,
}
_NEEDED_IN_CASES = {"signal": "target", "file": "operation"}


def _case_problems(case: Checked) -> Iterator[Problem]:
    kinds = [each for each in _KEYS_OF_CASES if each in case.places]
    if len(kinds) != 1:
        message = "a test needs exactly one of command, signal, file, connect and listen"
        yield Problem(place=case.place, message=message)
        return
    (kind,) = kinds
    for other, keys in _KEYS_OF_CASES.items():
        for key in keys if other != kind else ():
            if key in case.places:
                yield _problem(case, key, f"{key} is only for tests with {other}")
    needed = _NEEDED_IN_CASES.get(kind)
    if needed and needed not in case.places:
        yield _problem(case, kind, f"a test with {kind} needs {needed}")
    if case.get("decision") not in (*_DECISIONS_OF_CASES[kind], None):
        message = f"a test with {kind} cannot expect this decision"
        yield _problem(case, "decision", message, case.get("decision"))
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


def _listed(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)


def _problem(checked: Checked, key: str, message: str, offending: str = "") -> Problem:
    return Problem(place=checked.place_of(key), message=message, offending=offending)
