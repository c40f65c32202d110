"""A policy file that never ends, or that nobody writes to, is refused before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import REFUSED, Sigwrap

MADE: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/ptmx"),
    "folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", MADE)
def test_it_is_refused_at_once(sigwrap: Sigwrap, kind: str) -> None:
    path = sigwrap.folder / "policy.yaml"
    MADE[kind](path)
    done = sigwrap.run("--policy", str(path), "--", "touch", "ran")
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert done.stderr.startswith(f"sigwrap: {path}: can't be read: ".encode())
    assert not (sigwrap.folder / "ran").exists()


def test_so_is_one_that_a_policy_extends(sigwrap: Sigwrap) -> None:
    os.mkfifo(sigwrap.folder / "base.yaml")
    path = sigwrap.folder / "policy.yaml"
    path.write_text("version: 1\nname: test\nextends: base.yaml\n")
    done = sigwrap.run("--policy", str(path), "--", "touch", "ran")
    assert done.returncode == REFUSED
    assert b"can't be read: not a plain file" in done.stderr
