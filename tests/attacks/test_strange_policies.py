"""A policy file that never ends, or that nobody writes to, is refused before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.support.harness import REFUSED, Sigwrap

MADE: dict[str, Callable[[Path], object]] = {
    "FIFO": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "terminal": lambda path: path.symlink_to("/dev/ptmx"),
    "folder": lambda path: path.mkdir(),
}


def test_it_is_refused_at_once(sigwrap: Sigwrap) -> None:
    """And so is one that a policy extends."""
    for kind, make in MADE.items():
        path = sigwrap.folder / f"{kind}.yaml"
        make(path)
        _assert_refused(sigwrap, path, str(path))
    path = sigwrap.folder / "policy.yaml"
    path.write_text("version: 1\nname: test\nextends: FIFO.yaml\n")
    _assert_refused(sigwrap, path, "")


def _assert_refused(subject: Sigwrap, path: Path, named: str) -> None:
    done = subject.run("--policy", str(path), "--", "touch", "ran")
    assert (done.returncode, done.stdout) == (REFUSED, b""), path
    said = done.stderr.decode()
    assert said.startswith(f"sigwrap: {named}")
    assert "can't be read: " in said and (named or "not a regular file" in said), said
    assert not (subject.folder / "ran").exists()
