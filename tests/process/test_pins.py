"""What `sigwrap policy pin` prints, under which a run is started."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.support.harness import REFUSED, Sigwrap

NOT_RUN = 126


@pytest.fixture
def pinned(as_user: Sigwrap) -> str:
    """A policy that pins a `tool` of the user's own, which lies along PATH behind a link."""
    folder = as_user.folder
    (folder / "bin").mkdir()
    shutil.copy("/usr/bin/id", folder / "bin" / "tool-1.0")
    (folder / "bin" / "tool").symlink_to("tool-1.0")
    as_user.env["PATH"] = f"{folder}/bin:/usr/bin:/bin"
    done = as_user.native(*as_user.line("policy", "pin", "tool", "/usr/bin/env"))
    assert done.returncode == 0, done.stderr
    path = folder / "pinned.yaml"
    head = b"version: 1\nname: pinned\nextends: agent-observe\n\n"
    path.write_bytes(head + done.stdout)
    checked = as_user.native(*as_user.line("policy", "check", str(path)))
    assert checked.returncode == 0 and b"warning" not in checked.stdout, checked.stdout
    return str(path)


def _tool(subject: Sigwrap, pinned: str, *words: str) -> tuple[int, str]:
    done = subject.run("-p", pinned, "--", *words)
    return done.returncode, done.stderr.decode()


def test_the_pinned_tool_runs_and_so_does_a_copy_of_it(as_user: Sigwrap, pinned: str) -> None:
    assert _tool(as_user, pinned, "env", "tool", "-u") == (0, "")
    copies = as_user.folder / "copies"
    copies.mkdir()
    shutil.copy("/usr/bin/id", copies / "tool")
    assert _tool(as_user, pinned, str(copies / "tool"), "-u") == (0, "")


@pytest.mark.parametrize("way", ["changed", "another first along PATH", "link led elsewhere"])
def test_another_file_under_the_name_is_denied(as_user: Sigwrap, pinned: str, way: str) -> None:
    bin_folder = as_user.folder / "bin"
    if way == "changed":
        with (bin_folder / "tool-1.0").open("ab") as file:
            file.write(b"!")
    elif way == "link led elsewhere":
        (bin_folder / "tool").unlink()
        (bin_folder / "tool").symlink_to("/usr/bin/true")
    else:
        (as_user.folder / "first").mkdir()
        shutil.copy("/usr/bin/true", as_user.folder / "first" / "tool")
        as_user.env["PATH"] = f"{as_user.folder}/first:{as_user.env['PATH']}"
    status, err = _tool(as_user, pinned, "tool", "-u")
    assert status == NOT_RUN
    assert "denied by rule pin-tool of pinned: tool is not the one that was pinned" in err
    assert "sigwrap policy pin tool tells its digest of now" in err
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["rule_name"] == "pin-tool"


def test_a_file_that_may_not_be_read_is_not_pinned(as_user: Sigwrap) -> None:
    tool = as_user.folder / "tool"
    shutil.copy("/usr/bin/id", tool)
    tool.chmod(0o711)  # root's own: as root it is read all the same
    done = as_user.native(*as_user.line("policy", "pin", str(tool)))
    if os.getuid() == 0 and as_user.user is None:
        assert done.returncode == 0
        return
    tool.chmod(0o111)
    done = as_user.native(*as_user.line("policy", "pin", str(tool)))
    assert done.returncode == REFUSED and done.stdout == b""
    line = f"sigwrap: {tool} can't be pinned: {tool} can't be read: Permission denied"
    assert done.stderr.decode().startswith(line)
    assert done.stderr.count(b"\n") == 1
