"""What has a name of its own in a folder of PATH since before the run goes by it, and nothing else
does: a caller's path says nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.exec import commands
from sigwrap.kernel.paths import Caller, our_view
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.request import Program
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy

RULES = """
version: 1
name: t
defaults: {command: allow, signal: allow}
command_rules:
  - {name: no-tool, commands: [tool, link], decision: deny}
"""
Names = Callable[[Path, str], list[str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """On PATH, with a program of two names, and another name for it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy("/usr/bin/env", folder / "tool")
    os.link(folder / "tool", folder / "other")
    (folder / "link").symlink_to("tool")
    return folder


@pytest.fixture
def names(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Under which a file is known as well, that a caller has at some path; the run begins later
    than all of this."""
    view = our_view()
    monkeypatch.setattr(commands, "_SETTLED_S", -100)
    policy = parse_policy(Source("t.yaml", RULES), variables={}, find_base=lambda _b, _s: None)
    known = commands.NamedFiles(Named(policy.command_rules), str(folder), view)
    caller = Caller(os.getpid(), os.getpid(), view, may_wait=True)

    def names(file: Path, called: str) -> list[str]:
        fd = caller.open(bytes(file))
        try:
            state = caller.state_of(fd)
            also = known.originals(state, Program(called, "x", ("x",)), may_wait=True)
        finally:
            os.close(fd)
        return sorted(each.name for each in also)

    return names


def test_by_its_own_name_it_is_what_it_is_called(folder: Path, names: Names) -> None:
    assert names(folder / "other", f"{folder}/other") == []
    assert names(folder / "other", "/elsewhere/other") == []
    assert names(folder / "tool", f"{folder}/tool") == []


def test_by_a_path_that_is_not_its_own_it_is_the_original(folder: Path, names: Names) -> None:
    for called in ["/usr/bin/ls", "/usr/bin/none", "/usr/bin/..", ""]:
        assert names(folder / "tool", called) == ["link", "tool"], called


def test_another_folder_in_the_place_of_the_first_gives_no_names(
    folder: Path, names: Names
) -> None:
    folder.rename(folder.parent / "moved")
    folder.mkdir()
    os.rename(folder.parent / "moved" / "other", folder / "other")
    assert names(folder / "other", f"{folder}/other") == ["link", "tool"]


def test_a_hard_link_is_the_original_unless_it_is_called_so(
    folder: Path, names: Names, tmp_path: Path
) -> None:
    os.link(folder / "tool", tmp_path / "hard")
    assert names(tmp_path / "hard", "/srv/hard") == ["link", "tool"]
    assert names(tmp_path / "hard", "/srv/tool") == []


def test_a_copy_is_another_program(folder: Path, names: Names, tmp_path: Path) -> None:
    shutil.copy(folder / "tool", tmp_path / "copy")
    assert names(tmp_path / "copy", "/srv/copy") == []
