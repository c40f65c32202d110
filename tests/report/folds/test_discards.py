from __future__ import annotations

import pytest

from sigwrap.report.folds.attention import may_discard_changes

DISCARD = """\
git reset --hard
/usr/bin/git -C /x reset --hard HEAD~1
git clean -fdx
git clean --force -e keep
git checkout -- .
git checkout HEAD -- a.txt
git checkout -f main
git switch --discard-changes main
git restore a.txt
git restore --staged --worktree a.txt
hg update -C
hg revert --all
svn revert -R ."""
KEEP = """\
git
git reset HEAD a.txt
git clean -ndx
git clean -nf
git checkout main
git checkout -b new
git restore --staged a.txt
git status
git log -- .
echo git reset --hard
hg update"""


@pytest.mark.parametrize("line", DISCARD.splitlines())
def test_it_may_have_discarded_changes(line: str) -> None:
    assert may_discard_changes(line.split())


@pytest.mark.parametrize("line", KEEP.splitlines())
def test_it_keeps_changes(line: str) -> None:
    assert not may_discard_changes(line.split())


def test_without_words_there_is_nothing_to_say() -> None:
    assert not may_discard_changes([])
