"""A policy as it takes effect, as text that loads again and means the same."""

from __future__ import annotations

from typing import Any

import yaml

from sigwrap.escape import printable
from sigwrap.policy.judge.request import Action, CommandRedirect, TargetType
from sigwrap.policy.judge.rules import (
    CommandRule,
    FileRule,
    Limits,
    NetworkRule,
    PidRange,
    Policy,
    ProcessPattern,
    Rule,
    SignalRule,
    Target,
    Trust,
    Watch,
)
from sigwrap.policy.judge.signals import ALL, signal_name


def rule_entries(rule: Rule) -> dict[str, Any]:
    """Its keys and values, as a policy has them."""
    match rule:
        case CommandRule():
            return _command_rule(rule)
        case SignalRule():
            return _signal_rule(rule)
        case FileRule():
            return _file_rule(rule)
        case NetworkRule():
            return _network_rule(rule)


def policy_text(policy: Policy) -> str:
    return _text(policy, policy_entries(policy))


def policy_entries(policy: Policy) -> dict[str, Any]:
    """All but what is left at its default."""
    watch = policy.watch
    loop = watch.loop
    sections: dict[str, Any] = {
        "version": 1,
        "name": policy.name,
        "description": policy.description,
        "unenforced": "warn" if policy.tolerates_old_kernels else "",
        "approvals": "" if policy.asks else "deny",
        "defaults": {
            "command": policy.default_command.value,
            "signal": policy.default_signal.value,
            **(
                {}
                if policy.default_network is Action.ALLOW
                else {"network": policy.default_network.value}
            ),
            **({} if policy.default_file is Action.ALLOW else {"file": policy.default_file.value}),
        },
        "command_rules": list(map(_command_rule, policy.command_rules)),
        "signal_rules": list(map(_signal_rule, policy.signal_rules)),
        "file_rules": list(map(_file_rule, policy.file_rules)),
        "network_rules": list(map(_network_rule, policy.network_rules)),
        "env_policy": _filled(
            remove=list(policy.env_policy.remove), keep=list(policy.env_policy.keep)
        ),
        "limits": _limits(policy.limits),
        "session": {} if policy.session.mounts is None else {"mounts": policy.session.mounts},
        "watch": _filled(
            loop={"same_exec": loop.same_exec, "within": loop.within_s, "action": loop.action}
            if loop
            else None,
            drift=watch.drift if watch.drift != Watch().drift else "",
        ),
        "trust": _trust(policy.trust),
    }
    return _filled(**sections)


def _text(policy: Policy, sections: dict[str, Any]) -> str:
    header = f"# {' extends '.join([policy.name, *policy.bases])}\n" if policy.bases else ""
    text = yaml.dump(sections, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    # What isn't printable stands between double quotes (_Dumper), where YAML has these escapes too.
    return "\n".join(map(printable, (header + text.rstrip()).split("\n")))


def _trust(trust: Trust) -> dict[str, Any]:
    usual = Trust()
    shadow, boundary = trust.path_shadow, trust.boundary
    return _filled(
        path_shadow=shadow.value if shadow is not usual.path_shadow else "",
        boundary=boundary if boundary != usual.boundary else "",
    )


def _rule(
    rule: CommandRule | SignalRule | NetworkRule,
    conditions: dict[str, Any],
    **consequences: Any,
) -> dict[str, Any]:
    return {
        **_filled(name=rule.name, description=rule.description),
        **conditions,
        **_filled(decision=rule.decision.value, message=rule.message, **consequences),
        **_layering(rule),
    }


def _layering(rule: Rule) -> dict[str, Any]:
    overrides = None if rule.overrides is None else list(rule.overrides)
    return {**_given(overrides=overrides), **_filled(layer=rule.layer)}


def _command_rule(rule: CommandRule) -> dict[str, Any]:
    conditions = {
        **_filled(
            commands=list(rule.commands),
            flags=list(rule.flags),
            args_patterns=list(rule.args_patterns),
            subcommands=list(rule.subcommands),
            paths=list(rule.paths),
            sources=list(rule.sources),
            depth=_given(min=rule.min_depth, max=rule.max_depth),
            sha256=sorted(rule.sha256),
            not_sha256=sorted(rule.not_sha256),
        ),
        **_given(
            args=None if rule.args is None else list(rule.args),
            truncated=rule.truncated,
            traced=rule.traced,
            system_file=rule.system_file,
            loads_code=rule.loads_code,
        ),
    }
    return _rule(
        rule,
        conditions,
        redirect_to=_redirect(rule.redirect_to) if rule.redirect_to else None,
        escalate=rule.escalate,
    )


def _redirect(redirect: CommandRedirect) -> dict[str, Any]:
    return _filled(
        command=redirect.command,
        args=list(redirect.args),
        append_args=redirect.append_args,
        env=dict(redirect.env),
        via=redirect.via.value,
        record=redirect.record,
    )


def _signal_rule(rule: SignalRule) -> dict[str, Any]:
    every_signal = rule.signals == ALL
    shown = _rule(
        rule,
        _filled(
            signals=["@all"] if every_signal else list(map(signal_name, sorted(rule.signals))),
            target=list(map(_target, rule.targets)),
        )
        | _given(handled=rule.handled),
        redirect_to=signal_name(rule.redirect_signal) if rule.decision is Action.REDIRECT else "",
        fallback=rule.fallback.value if rule.fallback else "",
        escalate=rule.escalate,
    )
    return shown if rule.log else {**shown, "log": False}


def _target(target: Target) -> Any:
    match target:
        case TargetType():
            return target.value
        case ProcessPattern(glob=glob, kind=kind):
            return {"type": "process" if kind is None else kind.value, "pattern": glob}
        case PidRange():
            return {"type": "pid_range", "min": target.minimum, "max": target.maximum}


def _file_rule(rule: FileRule) -> dict[str, Any]:
    return {
        **_filled(name=rule.name, description=rule.description),
        "paths": list(rule.paths),
        "operations": [each.value for each in rule.operations],
        "decision": rule.decision.value,
        **_filled(make_missing=rule.make_missing),
        **_layering(rule),
    }


def _network_rule(rule: NetworkRule) -> dict[str, Any]:
    return _rule(
        rule,
        _filled(
            destinations=list(rule.destinations),
            ports=list(rule.ports),
            protocol=rule.protocol,
            direction="" if rule.direction == "connect" else rule.direction,
        ),
    )


def _limits(limits: Limits) -> dict[str, int]:
    return _filled(**dict(zip(Limits.keys().values(), limits, strict=True)))


def _filled(**entries: Any) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value}


def _given(**entries: Any) -> dict[str, Any]:
    return {key: value for key, value in entries.items() if value is not None}


class _Dumper(yaml.SafeDumper):
    """Lists of words on one line, texts of several lines as blocks, and what can't be printed
    between double quotes."""

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
