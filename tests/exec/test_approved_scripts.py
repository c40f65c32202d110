"""A yes to a script is one to the exec by which its interpreter goes on, and to nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.exec.test_approved import Run
from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import may_unshare, script

ASK = """
  - {name: ask, commands: [job, ok], decision: approve, message: looked at first}
"""


@pytest.fixture
def folder(as_user: Sigwrap, compiled: Path) -> Path:
    """With a script, the program that runs it, and others of the same names."""
    found = as_user.folder
    (found / "sub").mkdir()
    for place in (found, found / "sub"):
        script(place, "job", "#!/usr/bin/env ok\n")
        shutil.copy(compiled / "first", place / "ok")
    script(found, "garbage", "no program\n")
    (found / "here").symlink_to(".")
    shutil.copy(compiled / "goes_astray", found / "env")
    if as_user.user is not None:
        for path in found.rglob("*"):
            os.chown(path, as_user.user, as_user.user, follow_symlinks=False)
    as_user.env["PATH"] = f"{found}:{as_user.env['PATH']}"
    policy(found, ASK)
    return found


def _approvals(subject: Sigwrap) -> list[str]:
    granted = subject.events("approval_granted")
    return [event.payload["approval_id"] for event in granted]


def _approved(subject: Sigwrap) -> list[tuple[str, str]]:
    """Which execs ran by which approval."""
    execs = [event.payload for event in subject.events("exec_allowed")]
    return [(each["path"], each["approval_id"]) for each in execs if "approval_id" in each]


def test_one_yes_is_enough_for_both_execs(as_user: Sigwrap, folder: Path) -> None:
    run = Run(as_user, "sh", "-c", "./job a; ./job a")
    for _ in range(2):
        assert run.answer("approve", run.question()).returncode == 0
        run.out.until(rb"ok \./job\n")
    assert run.end() == 0
    assert not as_user.sealed_events("exec_denied")
    first, second = _approvals(as_user)
    ok = str(folder / "ok")
    assert _approved(as_user) == [
        ("./job", first),
        (ok, first),
        ("./job", second),
        (ok, second),
    ]
    covered = as_user.events("exec_allowed")[2].payload
    assert covered["reason"].endswith(" with ./job, which it runs")
    assert covered["reason"].startswith("approved by uid ")
    assert (covered["rule_name"], covered["verified"]) == ("ask", True)


@pytest.mark.parametrize(
    "stray",
    [
        "words",
        "file",
        "interpreter",
        "script",
        "rewritten script",
        "variable",
        "folder",
        "namespace",
        "exec between",
        "child",
        "mount",
    ],
)
def test_what_differs_is_asked_about_anew(as_user: Sigwrap, folder: Path, stray: str) -> None:
    """By another mount of the script, other files can lie beside it."""
    if stray == "mount" and not may_unshare():
        pytest.skip("needs user namespaces")
    script(folder, "job", f"#!{folder}/env ok\n")
    as_user.env["STRAY"] = stray
    run = Run(as_user, "./here/job" if stray == "mount" else "./job", "a")
    assert run.answer("approve", run.question()).returncode == 0
    assert run.answer("deny", run.question()).returncode == 0
    assert run.end() == (9 if stray != "child" else 0)
    assert run.out.rest() == b""
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["reason"] == "request denied"
