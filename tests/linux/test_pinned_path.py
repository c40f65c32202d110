"""Paths that lead where they led before, or nowhere."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from sigwrap.kernel.descriptors import PinnedPath


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path.resolve() / "above" / "folder"
    made.mkdir(parents=True)
    return made


def leads_to(pinned: PinnedPath, path: Path) -> bool:
    fd = pinned.open()
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    finally:
        os.close(fd)


def failure_of(pinned: PinnedPath) -> int | None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError) as failure:
        pinned.open(os.O_DIRECTORY)
    assert os.listdir("/proc/self/fd") == before
    return failure.value.errno


def test_it_leads_to_a_folder_on_whatever_mounts_there_are(folder: Path) -> None:
    for path in (folder, Path("/proc/self/fd").resolve(), Path("/dev/shm"), Path("/")):
        assert leads_to(PinnedPath(str(path)), path)


def test_a_link_on_the_way_is_not_followed(folder: Path) -> None:
    pinned = PinnedPath(str(folder))
    above = folder.parent
    above.rename(above.with_name("away"))
    above.symlink_to("away")
    assert failure_of(pinned) == errno.ENOTDIR
    above.unlink()
    assert failure_of(pinned) == errno.ENOENT


def test_a_link_at_the_end_is_opened_itself(folder: Path) -> None:
    link = folder / "link"
    link.symlink_to("nowhere")
    assert leads_to(PinnedPath(str(link)), link)


def test_what_is_made_later_is_found(folder: Path) -> None:
    later = folder / "a" / "b"
    pinned = PinnedPath(str(later))
    assert failure_of(pinned) == errno.ENOENT
    later.mkdir(parents=True)
    assert leads_to(pinned, later)


@pytest.mark.parametrize("over", ["folder", "above"])
def test_no_mount_is_entered_but_those_that_were_there(folder: Path, over: str) -> None:
    pinned = PinnedPath(str(folder))
    place = folder if over == "folder" else folder.parent
    mounted = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        (place / "folder").mkdir(exist_ok=True)
        assert failure_of(pinned) == errno.EXDEV
        on_it = place / "folder"
        pinned_on_it = PinnedPath(str(on_it))
        assert leads_to(pinned_on_it, on_it)
    finally:
        subprocess.run(["umount", place], check=True)
    assert leads_to(pinned, folder)
    if over == "above":
        assert failure_of(pinned_on_it) == errno.EXDEV
