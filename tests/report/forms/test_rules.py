from __future__ import annotations

from sigwrap.policy.tools.draft import COMMAND_RULES, SIGNAL_RULES
from sigwrap.policy.tools.suggest import Suggestion
from sigwrap.report.forms.rules import policy_lines

TERM = Suggestion(SIGNAL_RULES, "term", "- {name: term}", "")
GIT = Suggestion(COMMAND_RULES, "git", "- {name: git}", "")
NONE = Suggestion(COMMAND_RULES, "", "", "it is sigwrap's own decision")


def test_each_rule_is_there_once_in_its_section_and_commands_come_first() -> None:
    assert list(policy_lines([TERM, GIT, None, NONE, GIT])) == [
        "command_rules:",
        "  - {name: git}",
        "signal_rules:",
        "  - {name: term}",
    ]
    assert not list(policy_lines([None, NONE]))
