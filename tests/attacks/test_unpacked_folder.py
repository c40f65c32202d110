"""What the tree leaves in the folder that the one-file binary unpacked to is removed, and nothing
else is. The test puts it there, at the moment at which COMMAND could."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, PYTHON, Running, Sigwrap
from tests.support.processes import Roles, children
from tests.support.waiting import PATIENCE_S, await_that, reader

pytestmark = pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")

DEEP = 2_100
Started = tuple[Running, Path]


@pytest.fixture
def started(as_user: Sigwrap) -> Started:
    process = as_user.start("--no-report", "--", "sh", "-c", "echo ready; read x; exit 7")
    reader(process.stdout).until(rb"ready")
    (unpacked,) = as_user.folder.glob("_MEI*")
    return process, unpacked


@pytest.fixture
def precious(as_user: Sigwrap) -> Path:
    folder = as_user.folder / "precious"
    folder.mkdir()
    (folder / "file").write_text("kept")
    if as_user.user is not None:
        for path in (folder, folder / "file"):
            os.chown(path, as_user.user, as_user.user)
    return folder


def _ends(process: Running) -> None:
    _, said = process.communicate(b"x\n", PATIENCE_S)
    assert (process.returncode, said) == (7, b"")


def _nothing_is_left(subject: Sigwrap) -> None:
    assert list(subject.folder.glob("_MEI*")) == []


def _waits_for_input(pid: int) -> bool:
    return Path(f"/proc/{pid}/wchan").read_text().endswith("pipe_read")


def test_links_are_not_followed(as_user: Sigwrap, started: Started, precious: Path) -> None:
    """And no depth is too deep."""
    process, unpacked = started
    (unpacked / "link").symlink_to(precious)
    (unpacked / "more").mkdir(0o755)
    (unpacked / "more" / "link").symlink_to(precious)
    if as_user.user is not None:
        os.chown(unpacked / "more", as_user.user, as_user.user)
    nest = f"import os\nfor _ in range({DEEP}): os.mkdir('d'); os.chdir('d')"
    made = as_user.native(*PYTHON, "-c", nest, cwd=unpacked)
    assert made.returncode == 0
    _ends(process)
    assert (precious / "file").read_text() == "kept"
    _nothing_is_left(as_user)


def test_a_folder_in_its_place_is_kept(as_user: Sigwrap, started: Started, precious: Path) -> None:
    process, unpacked = started
    unpacked.rename(as_user.folder / "away")
    unpacked.symlink_to(precious)
    _ends(process)
    assert (precious / "file").read_text() == "kept"
    _nothing_is_left(as_user)


def test_a_folder_in_its_place_is_kept_by_other_commands(as_user: Sigwrap, precious: Path) -> None:
    """They run outside the session, and the session may be able to write to their folder."""
    process = as_user.start("hook", "claude-code")
    await_that(lambda: any(as_user.folder.glob("_MEI*/base_library.zip")))
    (unpacked,) = as_user.folder.glob("_MEI*")
    await_that(lambda: any(map(_waits_for_input, children(process.pid))))
    unpacked.rename(as_user.folder / "away")
    unpacked.symlink_to(precious)
    process.communicate(b"{}", PATIENCE_S)
    assert (precious / "file").read_text() == "kept"


def test_links_are_not_followed_when_the_outer_process_was_killed(
    as_user: Sigwrap, started: Started, precious: Path
) -> None:
    process, unpacked = started
    (unpacked / "link").symlink_to(precious)
    roles = Roles.of(process.pid)
    assert roles.front != process.pid
    pidfd = os.pidfd_open(roles.front)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(None, PATIENCE_S)
    os.close(pidfd)
    assert (precious / "file").read_text() == "kept"
