"""Old keys mean what they meant, are named by `policy check`, and are replaced by `--write`."""

from __future__ import annotations

import pytest

from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.tools.renamed import with_new_keys
from tests.policy.conftest import Parse, Problems

HEAD = "# A comment.\nversion: 1\nname: x   # another\n"
OLD_AND_NEW = [
    ("unenforced: warn # why\n", "fallback: warn # why\n"),
    (
        "watch: {loop: {same_exec: 3, within: 5s}}\n",
        "on: {loop: {same_exec: 3, within: 5s}}\n",
    ),
    ("watch:\n  drift: stop\n", "on:\n  drift: stop\n"),
    ("trust: {boundary: kill}\n", "on: {boundary: kill}\n"),
    (
        "trust: {path_shadow: deny, boundary: kill}  # here\n",
        "trust: {path_shadow: deny}  # here\n\non: {boundary: kill}\n",
    ),
    (
        "trust: {boundary: kill, path_shadow: deny}\nwatch: {drift: stop}\n",
        "trust: {path_shadow: deny}\non: {boundary: kill, drift: stop}\n",
    ),
    (
        "trust:\n  boundary: kill # here\n  path_shadow: deny\nwatch:\n  # Drift.\n  drift: stop\n",
        "trust:\n  path_shadow: deny\non:\n  # Drift.\n  boundary: kill # here\n  drift: stop\n",
    ),
    (
        "trust:\n  path_shadow: deny\n  boundary: kill  # here",
        "trust:\n  path_shadow: deny\n\n\non:\n  boundary: kill  # here\n",
    ),
    (
        "trust:\n  boundary: kill\n\nwatch: {drift: log}\n",
        "on: {boundary: kill, drift: log}\n",
    ),
    (
        "trust: {boundary: stop}\non:\n  drift: stop\n",
        "on:\n  boundary: stop\n  drift: stop\n",
    ),
    (
        "command_rules:\n"
        "  - {name: a, commands: [b], decision: deny, escalate: SIGPOLICY} # é\n"
        "  - {name: c, commands: [escalate], decision: redirect, redirect_to: {command: d}}\n"
        "signal_rules:\n"
        "  - name: s\n    signals: [9]\n    decision: redirect\n    redirect_to: TERM  # softer\n"
        '    escalate: "SIGPOLICY"\n',
        "command_rules:\n"
        "  - {name: a, commands: [b], decision: deny, on: kill} # é\n"
        "  - {name: c, commands: [escalate], decision: redirect, redirect_to: {command: d}}\n"
        "signal_rules:\n"
        "  - name: s\n    signals: [9]\n    decision: redirect\n"
        "    redirect_to: {signal: TERM}  # softer\n"
        "    on: kill\n",
    ),
]


def effect(policy: Policy) -> object:
    """Return a policy without the places of its rules."""
    plain = policy._replace(warnings=(), env_policy=policy.env_policy._replace(place=None))
    return plain._replace(
        command_rules=tuple(each._replace(place=None) for each in plain.command_rules),  # type: ignore[arg-type]
        signal_rules=tuple(each._replace(place=None) for each in plain.signal_rules),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(("old", "new"), OLD_AND_NEW)
def test_old_keys_are_replaced_and_mean_the_same(parse: Parse, old: str, new: str) -> None:
    assert with_new_keys(HEAD + old) == HEAD + new
    before, after = parse(HEAD + old), parse(HEAD + new)
    assert effect(before) == effect(after)
    assert before.warnings and not after.warnings
    assert with_new_keys(HEAD + new) == HEAD + new


def test_a_warning_names_the_new_key_and_the_place(parse: Parse) -> None:
    (warning,) = parse(HEAD + "trust: {boundary: kill}\n").warnings
    assert str(warning) == (
        "policy.yaml:4:9: warning: boundary is now on: {boundary: …} "
        "(sigwrap policy check --write updates the file)"
    )


def test_keys_that_are_gone_have_no_new_name(parse: Parse) -> None:
    rule = "{name: r, commands: [mv], sources: [/x], depth: {min: 1}, truncated: false, "
    rule += "traced: false, decision: deny}"
    assert parse(f"{HEAD}command_rules: [{rule}]\n").warnings == ()


def test_one_of_both_names_is_enough(problems: Problems) -> None:
    (problem,) = problems("unenforced: warn\nfallback: warn\n")
    assert "unenforced is an old name of fallback; use only one" in str(problem)
