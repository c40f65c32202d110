"""A denied interpreter stays denied, by whatever detour it is reached."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script

Attempt = Callable[..., list[str]]


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    folder = as_user.folder
    shutil.copy(compiled / "first", folder / "bad")
    shutil.copy(compiled / "first", folder / "copy")
    (folder / "link").symlink_to("bad")
    (folder / "hard-link").hardlink_to(folder / "bad")
    (folder / "down").mkdir()
    script(folder, "script", f"#!{folder}/bad\n")
    script(folder, "outer", f"#!{folder}/script\n")
    script(folder, "relative", "#!down/../bad\n")
    script(folder, "by-env", "#!/usr/bin/env -S ./bad ran\n")
    digest = hashlib.sha256((folder / "bad").read_bytes()).hexdigest()
    rules = f"""
  - {{name: by-name, commands: [bad], decision: deny}}
  - {{name: by-content, commands: ["*"], sha256: ["{digest}"], decision: deny}}
"""
    policy(folder, rules)
    return as_user


@pytest.fixture
def attempt(as_user: Sigwrap, programs: Path) -> Attempt:
    """What a case of detours.py says."""

    def run(case: str, *words: str) -> list[str]:
        line = (*PYTHON, str(programs / "detours.py"), case, *words)
        done = as_user.run("-p", str(as_user.folder / "policy.yaml"), "--", *line)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().splitlines()

    return run


def test_no_detour_leads_to_it(placed: Sigwrap, attempt: Attempt) -> None:
    """Its first instruction would be a line of its own."""
    said = dict(line.rsplit(" ", 1) for line in attempt("every_detour"))
    refused_later = {"sh -c exec": "126", "xargs": "126", "find": "0"}
    assert len(said) == 30
    assert said == {name: refused_later.get(name, "13") for name in said}
    events = placed.sealed_events("exec_denied")
    assert len(events) >= len(said)
    assert {event.payload["rule_name"] for event in events} == {"by-name", "by-content"}


def test_a_program_that_executes_itself(as_user: Sigwrap, attempt: Attempt) -> None:
    """/proc/self/exe is the caller's, not sigwrap's."""
    python = os.path.realpath(PYTHON[0])
    name = Path(python).name
    rules = f"""
  - {{name: again, commands: ["{name}"], args_patterns: ["^print..again..$"], decision: deny}}
"""
    policy(as_user.folder, rules)
    assert attempt("itself") == ["13", "4", "0"] * 3


def test_in_another_root(placed: Sigwrap, attempt: Attempt) -> None:
    if placed.user is not None or os.getuid() != 0:
        pytest.skip("chroot needs root")
    wanted = ["13", "13", "13", "13", "2", "13"]
    assert attempt("in_another_root", str(placed.folder)) == wanted
    first = placed.sealed_events("exec_denied")[0].payload
    assert first["programs"][0]["path"] == str(placed.folder / "bad")  # from our root
