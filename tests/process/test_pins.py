"""Runs under the policy that `sigwrap policy pin` prints."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap

NOT_RUN = 126


@pytest.mark.promise("pins")
def test_the_pinned_tool_and_its_copy_run_and_another_under_the_name_does_not(
    sigwrap: Sigwrap,
) -> None:
    folder = sigwrap.folder
    pinned = _policy_that_pins_a_tool(sigwrap)
    for folder_of_a_copy, copied in (("copies", "/usr/bin/id"), ("first", "/usr/bin/true")):
        (folder / folder_of_a_copy).mkdir()
        shutil.copy(copied, folder / folder_of_a_copy / "tool")
    assert _run(sigwrap, pinned, "env", "tool", "-u") == (0, "")
    assert _run(sigwrap, pinned, str(folder / "copies/tool"), "-u") == (0, "")

    sigwrap.env["PATH"] = f"{folder}/first:{sigwrap.env['PATH']}"
    _is_denied(sigwrap, pinned)
    (folder / "first/tool").unlink()
    assert _run(sigwrap, pinned, "tool", "-u") == (0, "")
    with (folder / "bin/tool-1.0").open("ab") as file:
        file.write(b"!")
    _is_denied(sigwrap, pinned)
    (folder / "bin/tool").unlink()
    (folder / "bin/tool").symlink_to("/usr/bin/true")
    _is_denied(sigwrap, pinned)


def _policy_that_pins_a_tool(subject: Sigwrap) -> Path:
    """Pin a tool of the user, which PATH finds through a link."""
    folder = subject.folder
    (folder / "bin").mkdir()
    shutil.copy("/usr/bin/id", folder / "bin/tool-1.0")
    (folder / "bin/tool").symlink_to("tool-1.0")
    subject.env["PATH"] = f"{folder}/bin:/usr/bin:/bin"
    done = subject.run("policy", "pin", "tool", "/usr/bin/env")
    assert done.returncode == 0, done.stderr
    path = folder / "pinned.yaml"
    path.write_bytes(done.stdout.replace(b"agent-default", b"agent-observe"))
    checked = subject.run("policy", "check", str(path))
    assert checked.returncode == 0 and b"warning" not in checked.stdout, checked.stdout
    return path


def _run(subject: Sigwrap, pinned: Path, *words: str) -> tuple[int, str]:
    done = subject.run("-p", str(pinned), "--", *words)
    return done.returncode, done.stderr.decode()


def _is_denied(subject: Sigwrap, pinned: Path) -> None:
    status, err = _run(subject, pinned, "tool", "-u")
    assert status == NOT_RUN
    assert "(rule pin-tool, policy pinned)" in err
    assert "sigwrap policy pin tool prints the new digest" in err
    (denied,) = subject.sealed_events("exec_denied")
    assert denied.payload["rule_name"] == "pin-tool"
