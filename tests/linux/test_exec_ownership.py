"""Which programs are the system's own."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.exec import host
from sigwrap.exec.host import is_the_systems


def judged(called: str) -> bool:
    fd = os.open(called, os.O_PATH)
    try:
        return is_the_systems(fd, called, os.readlink(f"/proc/self/fd/{fd}"))
    finally:
        os.close(fd)


@pytest.fixture
def no_folders_known() -> Iterator[None]:
    host._known_folders.clear()
    yield
    host._known_folders.clear()


def test_the_systems_files_and_links_are() -> None:
    assert judged("/usr/bin/env")
    assert judged("/bin/sh")
    assert judged("//usr/bin/env") is judged("/usr//bin/env") is True


def test_a_link_elsewhere_is_the_systems_only_by_the_files_own_name(tmp_path: Path) -> None:
    for name, expected in (("env", True), ("ls", False)):
        link = tmp_path / name
        link.symlink_to("/usr/bin/env")
        assert judged(str(link)) is expected


def test_a_copy_elsewhere_is_not(tmp_path: Path) -> None:
    shutil.copy("/usr/bin/env", tmp_path / "env")
    assert not judged(str(tmp_path / "env"))


def test_a_path_that_leads_back_is_not_believed() -> None:
    fd = os.open("/bin/sh", os.O_PATH)
    path = os.readlink(f"/proc/self/fd/{fd}")
    assert not is_the_systems(fd, "/usr/bin/../bin/xsh", path)
    os.close(fd)


def test_what_others_may_change_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_folders_known: None
) -> None:
    """Neither the folder's own mode nor that of one above it may let others in."""
    monkeypatch.setattr(host, "may_be_the_systems", lambda path: True)
    tmp_path.chmod(0o777)
    (tmp_path / "tool").touch(0o755)
    assert not judged(str(tmp_path / "tool"))  # below a folder that everybody writes to


def test_not_all_folders_are_kept(monkeypatch: pytest.MonkeyPatch, no_folders_known: None) -> None:
    monkeypatch.setattr(host, "_KEPT", 2)
    fd = os.open("/usr/bin/env", os.O_PATH)
    for folder in ("/usr/a", "/usr/b", "/usr/c"):
        assert not is_the_systems(fd, f"{folder}/x", "/usr/bin/env")
        assert len(host._known_folders) <= 2
    os.close(fd)
