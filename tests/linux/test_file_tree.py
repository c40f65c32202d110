"""Rules as they lie on the disk, and what the kernel is told of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from sigwrap.files import tree
from sigwrap.files.tree import Listing, TooManyNames, as_they_lie
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.request import Action, Decision, Operation
from sigwrap.policy.judge.rules import FileRule
from sigwrap.policy.problems import Place


def rule(
    *paths: Path | str, operation: Operation = Operation.READ, action: Action = Action.DENY
) -> FileRule:
    texts = tuple(map(str, paths))
    return FileRule(Place("p.yaml", 1, 1), "r", action, texts, (operation,))


def lying(*rules: FileRule, default: Action = Action.ALLOW) -> list[FileRule]:
    files = FileRules(rules, Decision(default, "builtin:default", ""))
    return as_they_lie(rules, files)


def paths(rules: Iterable[FileRule]) -> list[set[str]]:
    return [set(each.paths) for each in rules]


def test_a_path_by_a_link_is_its_target_too(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    by_link = rule(tmp_path / "link" / "deep" / "*.txt", operation=Operation.WRITE)
    assert paths(lying(by_link)) == [{f"{tmp_path}/link/deep/*.txt", f"{tmp_path}/real/deep/*.txt"}]


def test_of_what_may_not_be_read_only_what_is_there_counts(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "a.key").touch()
    denied = rule(tmp_path / "there", tmp_path / "not", tmp_path / "*.key", tmp_path / "*.pem")
    assert paths(lying(denied)) == [{f"{tmp_path}/there", f"{tmp_path}/a.key"}]
    allowed = rule(tmp_path / "not", action=Action.ALLOW)
    assert paths(lying(allowed)) == [{f"{tmp_path}/not"}]


def test_what_may_not_be_made_need_not_be_there(tmp_path: Path) -> None:
    both = rule(tmp_path / "not")._replace(operations=(Operation.READ, Operation.CREATE))
    read, create = lying(both)
    assert (read.operations, read.paths) == ((Operation.READ,), ())
    assert (create.operations, create.paths) == ((Operation.CREATE,), (f"{tmp_path}/not",))


def test_what_links_in_a_denied_folder_lead_to_is_denied(tmp_path: Path) -> None:
    (tmp_path / "safe").mkdir()
    (tmp_path / "safe" / "id").touch()
    (tmp_path / ".ssh" / "keys").mkdir(parents=True)
    (tmp_path / ".ssh" / "keys" / "id").symlink_to(tmp_path / "safe" / "id")
    (denied,) = lying(rule(tmp_path / ".ssh"))
    assert f"{tmp_path}/safe/id" in denied.paths


def test_a_folder_that_a_link_in_a_denied_one_leads_to_has_a_life_of_its_own(
    tmp_path: Path,
) -> None:
    """A link to the project, or to all of the home folder, would make that unreadable."""
    (tmp_path / "project").mkdir()
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "Documents").symlink_to(tmp_path / "project")
    (denied,) = lying(rule(tmp_path / ".config"))
    assert denied.paths == (f"{tmp_path}/.config",)


def test_a_link_that_the_tree_could_have_made_allows_nothing_of_what_it_leads_to(
    tmp_path: Path,
) -> None:
    """In a session before: the rule would be about another place in the next one."""
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "out").symlink_to(tmp_path / "home")
    (tmp_path / "kept").symlink_to("project")
    writes = (Operation.WRITE, Operation.CREATE, Operation.DELETE)
    project = rule(tmp_path / "project", action=Action.ALLOW)._replace(operations=writes)
    out = project._replace(paths=(f"{tmp_path}/project/out", f"{tmp_path}/kept/out/x"))
    kept = project._replace(paths=(f"{tmp_path}/kept",))
    _, allowed, by_link = lying(project, out, kept, default=Action.DENY)
    assert set(allowed.paths) == {
        f"{tmp_path}/project/out",
        f"{tmp_path}/kept/out/x",
        f"{tmp_path}/project/out/x",
    }
    assert set(by_link.paths) == {f"{tmp_path}/kept", f"{tmp_path}/project"}
    (denied,) = lying(out._replace(decision=Action.DENY), default=Action.DENY)
    assert f"{tmp_path}/home/x" in denied.paths


def test_links_that_go_round_are_no_way_and_no_trap(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "up").symlink_to("..")
    assert lying(rule(tmp_path / "a", tmp_path / "in"))


def test_names_are_listed_without_links(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    found = Listing().names_in(str(tmp_path))
    assert sorted(found or ()) == [("file", False), ("folder", True)]
    assert Listing().names_in(f"{tmp_path}/not") is None


def test_so_many_names_are_listed_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        os.mknod(tmp_path / str(number))
    monkeypatch.setattr(tree, "MOST_NAMES", 3)
    with pytest.raises(TooManyNames) as caught:
        Listing().names_in(str(tmp_path))
    assert str(caught.value) == str(tmp_path)
