from __future__ import annotations

from sigwrap.policy.tools.draft import COMMAND_RULES, SIGNAL_RULES
from sigwrap.policy.tools.suggest import Suggestion
from sigwrap.report.forms.rules import grouped_lines, policy_lines

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


def test_a_comment_stands_before_the_rules_of_its_group() -> None:
    other = GIT._replace(name="git-2", line="- {name: git-2}")
    assert list(
        grouped_lines([([TERM], ""), ([GIT, other], "# for 2 of 3"), ([], "# nothing")])
    ) == [
        "command_rules:",
        "  # for 2 of 3",
        "  - {name: git}",
        "  - {name: git-2}",
        "signal_rules:",
        "  - {name: term}",
    ]
