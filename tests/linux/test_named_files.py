"""A file that a rule names counts as that one under any other name: a path says nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.exec import host
from sigwrap.kernel.paths import Caller
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
    """On PATH, with a program and a link to it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    shutil.copy("/usr/bin/env", folder / "tool")
    (folder / "link").symlink_to("tool")
    return folder


@pytest.fixture
def names(folder: Path) -> Names:
    """Under which a file is known as well, that a caller has at some path."""
    policy = parse_policy(Source("t.yaml", RULES), variables={}, find_base=lambda _b, _s: None)
    known = host.NamedFiles(Named(policy.command_rules), str(folder))
    caller = Caller(os.getpid(), os.getpid(), may_wait=True)

    def names(file: Path, called: str) -> list[str]:
        fd = caller.open(bytes(file))
        try:
            also = known.originals(caller.state_of(fd), Program(called, "x", ("x",)))
        finally:
            os.close(fd)
        return sorted(each.name for each in also)

    return names


def test_by_a_path_that_is_not_its_own_it_is_the_original(folder: Path, names: Names) -> None:
    assert names(folder / "tool", f"{folder}/tool") == []
    for called in ["/usr/bin/ls", "/usr/bin/none", "/usr/bin/..", "", f"{folder}/other"]:
        assert names(folder / "tool", called) == ["link", "tool"], called


def test_a_hard_link_is_the_original(folder: Path, names: Names, tmp_path: Path) -> None:
    os.link(folder / "tool", tmp_path / "hard")
    assert names(tmp_path / "hard", "/srv/hard") == ["link", "tool"]
    assert names(tmp_path / "hard", "/srv/tool") == ["tool"]


def test_a_copy_is_another_program(folder: Path, names: Names, tmp_path: Path) -> None:
    shutil.copy(folder / "tool", tmp_path / "copy")
    assert names(tmp_path / "copy", "/srv/copy") == []
