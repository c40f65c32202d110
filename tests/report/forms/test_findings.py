from __future__ import annotations

from typing import Any

import pytest

from sigwrap.policy.tools.suggest import Suggestion
from sigwrap.report.forms.documents import report_document
from sigwrap.report.forms.markdown import github_warnings, render_markdown
from sigwrap.report.forms.rules import Suggestions
from sigwrap.report.forms.text import render_text
from tests.report.conftest import Scenario, summarise

POLICY = """\
version: 1
name: mine
command_rules:
- {name: allow-rm-rf-a-etc, commands: [ls], decision: allow}
- {name: forced, commands: [git], subcommands: [push], args_patterns: ['^--?f'], decision: deny}
- {name: removal, commands: [rm], args_patterns: ['/etc', '/home'], decision: deny}
"""


def started(*texts: Any) -> dict[str, Any]:
    return {"session_id": "s1", "policy_sources": [{"name": "p.yaml", "text": e} for e in texts]}


def proposed(scenario: Scenario, recorded: dict[str, Any]) -> list[Suggestion | None]:
    summary = summarise(scenario)
    summary.started = recorded
    return list(map(Suggestions(summary).of, summary.attention.groups))


def test_there_is_a_line_for_each_command_line_of_a_group(made: Scenario) -> None:
    for option in ("--force", "-f", "--force-with-lease"):
        made.deny(10, 1, "forced", "git", "push", option, "origin")
    [suggestion] = proposed(made, started(POLICY))
    assert suggestion is not None
    assert suggestion.for_all
    assert suggestion.line.split("\n")[1:] == [
        '- {name: allow-git-push-f-origin, commands: [git], args: [push, "-f", origin], '
        "decision: allow, overrides: [forced]}",
        "- {name: allow-git-push-force-with-lease-origin, commands: [git], "
        'args: [push, "--force-with-lease", origin], decision: allow, overrides: [forced]}',
    ]


def test_where_there_are_more_command_lines_than_are_kept_it_is_for_some(made: Scenario) -> None:
    for number in range(6):
        made.deny(10, 1, "forced", "git", "push", f"-f{number}")
    [suggestion] = proposed(made, started(POLICY))
    assert suggestion is not None
    assert not suggestion.for_all
    summary = summarise(made)
    summary.started = started(POLICY)
    assert "proposed rules: sigwrap policy learn s1" in render_text(summary)
    markdown = render_markdown(summary)
    assert "\nproposed rules: sigwrap policy learn s1\n" in markdown
    assert "<summary>To allow these, add to your policy</summary>" in markdown


def test_several_command_lines_are_told_each_with_its_number(made: Scenario) -> None:
    for folder in ("/etc", "/usr", "/usr", "/a|b", "/c", "/d"):
        made.deny(10, 1, "removal", "rm", "-rf", folder)
    made.execute(11, 1, "ls", "a")
    made.execute(11, 1, "ls", "b")
    summary = summarise(made)
    text = render_text(summary)
    lines = (
        "denied  6 times  rm  (rule removal), event 2",
        "        1  rm -rf /etc",
        "        2  rm -rf /usr",
        "        1  rm -rf '/a|b'",
        "        1  rm -rf /c",
        "        1  others",
    )
    assert "\n  ".join(("Needs attention", *lines)) in text
    assert "\n".join(("### Needs attention", "", "```", *lines)) in render_markdown(summary)
    assert "\n  2 audited: ls (2) (--only audited)\n" in text
    group = report_document(summary)["attention"]["groups"][0]
    assert (group["what"], group["command"]) == ("rm -rf /etc", "rm")
    assert group["examples"] == ["rm -rf /usr", "rm -rf '/a|b'", "rm -rf /c"]
    assert group["command_lines"][:2] == [
        {"what": "rm -rf /etc", "count": 1},
        {"what": "rm -rf /usr", "count": 2},
    ]
    assert group["other_command_lines"] == 1


def test_no_two_rules_of_a_report_have_the_same_name(made: Scenario) -> None:
    made.deny(10, 1, "removal", "rm", "-rf", "/a/etc")
    made.deny(10, 1, "another", "rm", "-rf", "/a/etc/")
    names = [each.name for each in proposed(made, started(POLICY)) if each]
    assert names == ["allow-rm-rf-a-etc-2", "allow-rm-rf-a-etc-3"]


LONG = "".join(f"- {{name: r{n}, commands: [git], decision: deny}}\n" for n in range(6_000))


@pytest.mark.parametrize(
    "recorded",
    [
        {},
        {"policy_sources": 3},
        started(None),
        started("{"),
        started("version: 1\nname: x\nextends: x\n"),
        started(f"version: 1\nname: x\ncommand_rules:\n{LONG}"),
    ],
)
def test_without_a_policy_that_loads_no_rule_is_proposed(
    made: Scenario, recorded: dict[str, Any]
) -> None:
    made.deny(10, 1, "forced", "git", "push", "-f", "origin")
    [suggestion] = proposed(made, recorded)
    assert suggestion is not None
    assert suggestion.line == "" and "policy" in suggestion.why_not


@pytest.mark.parametrize(
    ("times", "said"), [(1, "approved by ann"), (2, "approved by ann, the first time")]
)
def test_an_approver_is_named_only_for_the_first_of_several_approvals(
    made: Scenario, times: int, said: str
) -> None:
    for who in ("ann", "bob")[:times]:
        more = {"rule_name": "ask", "reason": f"approved by {who}", "approval_id": f"a-{who}"}
        made.add("exec_allowed", 10, path="/usr/bin/npm", argv=["npm", "ci"], ppid=1, **more)
    [group] = summarise(made).attention.groups
    assert (group.outcome, group.reason) == ("approved", said)


def test_no_rule_is_proposed_for_what_destroys(made: Scenario) -> None:
    made.deny(10, 1, "mine", "rm", "-rf", "/")
    made.deny(10, 1, "format-disk", "mkfs.ext4", "/dev/sda")
    where = {"direction": "connect", "protocol": "tcp", "destination": "169.254.169.254:80"}
    where |= {"address": "169.254.169.254", "rule_name": "mine"}
    made.add("connection_denied", 10, **where, port=80)
    for each in proposed(made, started(POLICY)):
        assert each is not None
        assert (each.line, each.why_not[-23:]) == ("", "write the rule yourself")


def test_a_warning_for_each_denial_is_one_line_of_the_workflow(made: Scenario) -> None:
    made.deny(10, 1, "no-push", "git", "push", "100%\n::stop-commands::x", message="not\nhere")
    for number in range(12):
        made.deny(10, 1, "removal", f"rm{number}")
    made.execute(10, 1, "ls")
    first, *others = github_warnings(summarise(made)).split("\n")
    assert first == (
        "::warning title=sigwrap denied::git push $'100%25\\n::stop-commands::x' "
        "(rule no-push: not here)"
    )
    assert len(others) == 9
    assert others[-1] == "::warning title=sigwrap denied::4 more, in the job's summary"
