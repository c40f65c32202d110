"""A yes to a script is one to the exec by which its interpreter goes on, and to nothing else."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.exec.test_approved import Run
from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.programs import may_unshare, needs, script

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
    ("first_line", "questions"),
    [
        ("#!./between", 1),
        ("#!/usr/bin/env -S\tok\t-x", 1),
        ("#!/usr/bin/env -S A=b ok", 2),
        ("#!/usr/bin/env -S /usr/bin/env -S ok", 2),
        ("#!/usr/bin/env -S nice ok", 2),
    ],
)
def test_of_other_first_lines(
    as_user: Sigwrap, folder: Path, first_line: str, questions: int
) -> None:
    """Where it says more than words, or has a program between, what follows is asked about."""
    script(folder, "between", "#!/usr/bin/env ok\n")
    script(folder, "job", f"{first_line}\n")
    run = Run(as_user, "./job", "a")
    for _ in range(questions):
        assert run.answer("approve", run.question()).returncode == 0
    run.out.until(rb"ok \S+\n")
    assert run.end() == 0
    assert len(as_user.sealed_events("approval_requested")) == questions


def test_always_covers_both_from_then_on(as_user: Sigwrap, folder: Path) -> None:
    run = Run(as_user, "sh", "-c", "./job a; ./job a; ./job a")
    assert run.answer("approve", run.question(), "--always").returncode == 0
    assert run.end() == 0
    assert run.out.rest() == b"ok ./job\n" * 3
    assert len(as_user.sealed_events("approval_requested")) == 3
    assert len(_approved(as_user)) == 6


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
    ],
)
def test_what_differs_is_asked_about_anew(as_user: Sigwrap, folder: Path, stray: str) -> None:
    script(folder, "job", f"#!{folder}/env ok\n")
    as_user.env["STRAY"] = stray
    run = Run(as_user, "./job", "a")
    assert run.answer("approve", run.question()).returncode == 0
    assert run.answer("deny", run.question()).returncode == 0
    assert run.end() == (9 if stray != "child" else 0)
    assert run.out.rest() == b""
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["reason"] == "not approved"


def test_the_words_of_a_first_line_are_shown(as_user: Sigwrap, folder: Path) -> None:
    script(folder, "job", "#!/usr/bin/env -S ok remove everything --\n")
    terminal = as_user.on_terminal("-p", str(folder / "policy.yaml"), "--", "./job", "all")
    terminal.read_question()
    runs = "/usr/bin/env '-S ok remove everything --' ./job all"
    assert f"\n  runs {runs}\r".encode() in terminal.output.seen
    listed = as_user.native(UNDER_TEST, "approvals")
    assert f"\n        runs {runs}\n".encode() in listed.stdout
    terminal.type("n\n")
    assert terminal.await_status() == 126
    (asked,) = as_user.sealed_events("approval_requested")
    assert asked.payload["runs"] == runs


def test_what_a_first_line_sets_is_shown(as_user: Sigwrap, folder: Path) -> None:
    """And the program that is found by it is named where it is asked about itself."""
    script(folder, "job", f"#!/usr/bin/env -S PATH={folder}/sub ok\n")
    run = Run(as_user, "./job")
    assert run.answer("approve", run.question()).returncode == 0
    assert run.answer("deny", run.question()).returncode == 0
    assert run.end() == 126
    first, second = (event.payload for event in as_user.sealed_events("approval_requested"))
    assert first["runs"] == f"/usr/bin/env '-S PATH={folder}/sub ok' ./job"
    assert [Path(file).name for file in first["files"]] == ["job", "env"]
    assert second["files"][0] == str(folder / "sub/ok")


def test_another_mount_of_the_script_is_asked_about_anew(as_user: Sigwrap, folder: Path) -> None:
    """There other files can lie beside it."""
    if not may_unshare():
        pytest.skip("needs user namespaces")
    script(folder, "job", f"#!{folder}/env ok\n")
    as_user.env["STRAY"] = "mount"
    run = Run(as_user, "./here/job")
    assert run.answer("approve", run.question()).returncode == 0
    assert run.answer("deny", run.question()).returncode == 0
    assert run.end() == 9
    assert run.out.rest() == b""


def test_one_yes_is_enough_in_namespaces_of_ones_own(as_user: Sigwrap, folder: Path) -> None:
    if not may_unshare():
        pytest.skip("needs user namespaces")
    run = Run(as_user, "unshare", "-Urm", "./job", "a")
    assert run.answer("approve", run.question()).returncode == 0
    run.out.until(rb"ok \./job\n")
    assert run.end() == 0
    (asked,) = as_user.sealed_events("approval_requested")
    assert "in another root or mount namespace" in asked.payload["note"]


@pytest.mark.tier("all")
@needs("npm")
def test_npm_is_asked_about_once(as_user: Sigwrap) -> None:
    line = ("-p", "agent-default", "--approvals", "control", "--", "sh", "-c", "npm ci; npm ci")
    process = as_user.start(*line)
    as_user.await_event("approval_requested")
    (asked,) = as_user.events("approval_requested")
    approval_id = asked.payload["approval_id"]
    done = as_user.native(UNDER_TEST, "approve", approval_id, "--always")
    assert done.returncode == 0
    process.communicate()
    by = [event.payload["by"] for event in as_user.sealed_events("approval_granted")]
    assert len(by) == 2 and by[0] == by[1]
    paths = [path.rpartition("/")[2] for path, _ in _approved(as_user)]
    assert paths == ["npm", "node", "npm", "node"]
