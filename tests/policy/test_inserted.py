"""Rules are put first into a policy's text, and all else of it stays as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given

from sigwrap.policy.tools.inserted import CannotInsert, with_rules_first
from sigwrap.policy.tools.show import policy_text
from tests.policy.test_properties import command_rules, policy, signal_rules
from tests.policy.test_properties import parse as parse_text

NEW = {
    "command_rules": ["# once, by sh", "- {name: new, commands: [ship], decision: allow}"],
    "signal_rules": ["- {name: new-too, signals: [SIGHUP], target: user, decision: allow}"],
}


def test_all_else_stays_as_it_was_written() -> None:
    text = (
        "# Ours.\nversion: 1\nname: 'old'  # as ever\ncommand_rules:\n\n    # First of all:\n"
        "    - name: r\n      commands: [x]   # and no other\n      decision: deny\nlimits: {}\n"
    )
    assert with_rules_first(text, "new", NEW) == (
        "# Ours.\nversion: 1\nname: new  # as ever\ncommand_rules:\n\n    # First of all:\n"
        "    # once, by sh\n    - {name: new, commands: [ship], decision: allow}\n"
        "    - name: r\n      commands: [x]   # and no other\n      decision: deny\nlimits: {}\n"
        "\nsignal_rules:\n"
        "  - {name: new-too, signals: [SIGHUP], target: user, decision: allow}\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "{version: 1, name: x}\n",
        "version: 1\nname: x\ncommand_rules: []\n",
        "version: 1\nname: x\ncommand_rules:\n",
        "version: 1\nname: &n x\n",
        "version: 1\nname: >-\n  x\n",
        "--- {version: 1, name: x}\n",
        "version: 1\nname: x\n...\n",
        "version: 1\rname: x\n",
        "version: 1\nx: &r [{a: b}]\nname: x\ncommand_rules: *r\n",
        "[version, name]\n",
    ],
)
def test_a_text_without_a_place_for_lines_is_refused(text: str) -> None:
    with pytest.raises(CannotInsert):
        with_rules_first(text, "new", NEW)


@given(command_rules(), signal_rules())
def test_they_come_first_and_the_others_stay(commands: list[str], signals: list[str]) -> None:
    before = parse_text(policy(commands, signals))
    after = parse_text(with_rules_first(policy_text(before), "mine", NEW))
    assert after.name == "mine"
    new, *kept = after.command_rules
    new_too, *kept_too = after.signal_rules
    assert (new.name, new_too.name) == ("new", "new-too")
    without = after._replace(command_rules=tuple(kept), signal_rules=tuple(kept_too))
    assert policy_text(without) == policy_text(before._replace(name="mine"))
