from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event, outcome
from sigwrap.report.folds import attention as module
from sigwrap.report.folds.attention import Attention, By

SHELL = By(10, "sh")


class Fold(Attention):
    def __init__(self) -> None:
        super().__init__()
        self.seq = 0

    def event(self, type_name: str, pid: int, **payload: Any) -> Event:
        self.seq += 1
        return Event(self.seq, self.seq, type_name, pid, payload, "")

    def exec(self, became: str, *argv: str, pid: int = 11, rule: str = "r", by: By = SHELL) -> None:
        event = self.event(
            f"exec_{became}", pid, path=f"/usr/bin/{argv[0]}", argv=list(argv), rule_name=rule
        )
        self.add(event, outcome(event), by)

    def signal(self, name: str, target: str, **more: Any) -> None:
        event = self.event(
            "signal_blocked", 10, signal_name=name, target_cmd=target, rule_name="s", **more
        )
        self.add(event, outcome(event), SHELL)


@pytest.fixture
def fold() -> Fold:
    return Fold()


def shown(fold: Fold) -> list[tuple[str, int, str, int]]:
    return [
        (each.outcome, each.count, " ".join(each.first.payload.get("argv", [])), each.first.seq)
        for each in fold.groups
    ]


def test_rule_denials_come_before_unanswered_requests(fold: Fold) -> None:
    fold.answered(fold.event("approval_denied", 11))
    fold.exec("denied", "npm")
    fold.exec("denied", "rm", pid=12)
    fold.exec("denied", "dd", pid=12)
    assert [each.first.payload["argv"] for each in fold.groups] == [["rm"], ["dd"], ["npm"]]


def test_approved_groups_are_in_order_of_their_first_event(
    fold: Fold,
) -> None:
    fold.answered(fold.event("approval_granted", 11))
    for argv in (["build"], ["dash"], ["build"]):  # a script, and the shell that reads it
        payload = {"path": f"/bin/{argv[0]}", "argv": argv, "rule_name": "r", "approval_id": "a1"}
        event = fold.event("exec_allowed", 11, **payload)
        fold.add(event, outcome(event), SHELL)
    assert shown(fold) == [("approved", 2, "build", 2), ("approved", 1, "dash", 3)]
    assert [each.answer for each in fold.groups] == ["approved", "approved"]


def test_a_group_is_of_one_rule_and_one_command(fold: Fold) -> None:
    fold.exec("denied", "rm", "-rf", "/")
    fold.exec("denied", "rm", "-rf", "/home")
    fold.exec("denied", "rm", "x", rule="other")
    fold.exec("denied", "dd")
    fold.exec("denied", "git", "push", "--force")
    fold.exec("denied", "git", "push", "-f")
    fold.exec("denied", "git", "reset", "--hard")
    assert shown(fold) == [
        ("denied", 2, "rm -rf /", 1),
        ("denied", 1, "rm x", 3),
        ("denied", 1, "dd", 4),
        ("denied", 2, "git push --force", 5),
        ("denied", 1, "git reset --hard", 7),
    ]
    assert [(line.payload["argv"][2], n) for line, n in fold.groups[0].lines] == [
        ("/", 1),
        ("/home", 1),
    ]
    assert fold.groups[0].last_seq == 2


def test_a_group_knows_how_often_each_command_line_came_as_far_as_they_are_kept(fold: Fold) -> None:
    for folder in ("/etc", "/root", "/usr", "/usr", "/lib", "/bin", "/usr", "/etc", "/bin"):
        fold.exec("denied", "rm", "-rf", folder)
    (group,) = fold.groups
    assert group.command == ("rm",)
    assert [(line.payload["argv"][2], n) for line, n in group.lines] == [
        ("/etc", 2),
        ("/root", 1),
        ("/usr", 3),
        ("/lib", 1),
    ]
    assert (group.other_lines, group.count) == (2, 9)


def test_signals_are_counted_as_often_as_they_were_sent(fold: Fold) -> None:
    fold.signal("SIGTERM", "node")
    fold.signal("SIGTERM", "node", count=29_999)
    fold.signal("SIGTERM", "npm")
    assert [each.count for each in fold.groups] == [30_000, 1]
    assert [[n for _, n in each.lines] for each in fold.groups] == [[30_000], [1]]


def test_callers_are_counted_and_the_rest_is_only_a_number(fold: Fold) -> None:
    for number in range(8):
        fold.exec("denied", "rm", by=By(number, f"sh{number % 7}"))
    (group,) = fold.groups
    assert group.by["sh0"] == (By(0, "sh0"), 2)
    assert len(group.by) == 5
    assert group.by_more == 2


def test_a_group_has_the_answer_to_its_approval_request(fold: Fold) -> None:
    for answer, became in (
        ("approval_denied", "denied"),
        ("approval_expired", "denied"),
        ("approval_granted", "audited"),
    ):
        fold.answered(fold.event(answer, 11))
        fold.exec(became, "npm", "install")
    fold.answered(fold.event("approval_denied", 12))
    fold.ended(12)
    fold.exec("denied", "npm", "install", pid=12)
    assert [each.answer for each in fold.groups] == ["", "denied", "expired", "approved"]


def test_any_number_of_audited_groups_hides_no_denied_one(fold: Fold) -> None:
    for number in range(module.GROUPS_LIMIT + 5):
        fold.exec("audited", f"program{number}")
    for number in range(3):
        fold.exec("denied", f"bad{number}")
    assert len(fold.groups) == module.GROUPS_LIMIT + 3
    assert [each.outcome for each in fold.groups[:4]] == ["denied"] * 3 + ["audited"]
    assert fold.more == 5
