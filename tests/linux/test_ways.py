"""Paths that are gone again by the way that was noted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigwrap.linux.ways import Ways

FOLDERS = 30


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    made = []
    for number in range(FOLDERS):
        folder = tmp_path / f"{number % 5}" / f"{number}"
        folder.mkdir(parents=True)
        (folder / "file").touch()
        made.append(str(folder / "file"))
    return made


def test_no_more_is_held_than_the_parts_of_one_way(files: list[str]) -> None:
    ways = Ways()
    for path in files:
        ways.note(path)
    before = open_descriptors()
    held = []
    for path, fd in ways.opened(files):
        assert os.path.samestat(os.fstat(fd), os.stat(path))
        held.append(open_descriptors() - before)
    assert len(held) == FOLDERS
    assert max(held) <= files[0].count("/") + 2
    assert open_descriptors() == before


def test_a_link_in_the_place_of_a_folder_is_told(files: list[str]) -> None:
    ways = Ways()
    for path in files:
        ways.note(path)
    folder = os.path.dirname(files[3])
    os.rename(folder, f"{folder}-away")
    os.symlink("/proc/self", folder)
    assert [path for path, fd in ways.opened(files) if fd < 0] == [files[3]]
