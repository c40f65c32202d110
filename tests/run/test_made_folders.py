"""Folders that a policy wants to be there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.files.tree import make_missing, remove_unused
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy

Wants = Callable[..., Engine]


@pytest.fixture
def wants(tmp_path: Path) -> Wants:
    def policy(*paths: str, default: str = "deny") -> Engine:
        text = (
            f"version: 1\nname: x\ndefaults: {{file: {default}}}\nfile_rules:\n"
            f"  - {{name: r, paths: [{', '.join(paths)}], operations: [write], decision: allow, "
            "make_missing: true}\n"
        )
        variables = {"HOME": str(tmp_path)}
        source = Source("p.yaml", text)
        return Engine(parse_policy(source, variables=variables, find_base=lambda *_: None))

    return policy


def test_they_are_made_for_their_owner_and_removed_where_nothing_is_in_them(
    wants: Wants, tmp_path: Path
) -> None:
    made = make_missing(wants("~/a/b", "~/c/**"))
    assert made == [f"{tmp_path}/a", f"{tmp_path}/a/b", f"{tmp_path}/c"]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    (tmp_path / "c" / "used").touch()
    remove_unused(made)
    assert os.listdir(tmp_path) == ["c"]


@pytest.mark.parametrize(
    ("path", "default"),
    [("~/*", "deny"), ("/of-a-test-of-sigwrap/x", "deny"), ("~/file/x", "deny"), ("~/a", "allow")],
)
def test_some_are_not_made(wants: Wants, tmp_path: Path, path: str, default: str) -> None:
    """Of a glob nobody knows which, in the root folder nothing is made, a file is no folder, and
    where COMMAND may make it, it does."""
    (tmp_path / "file").touch()
    assert make_missing(wants(path, default=default)) == []
    assert os.listdir(tmp_path) == ["file"]


def test_none_is_made_in_a_folder_of_somebody_else(wants: Wants, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root")
    os.chown(tmp_path, 65534, 65534)
    assert make_missing(wants("~/a")) == []
