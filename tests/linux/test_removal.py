from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.start.onefile import empty_folder

DEEP = 2_100


def _identity(folder: Path) -> tuple[int, int]:
    found = folder.lstat()
    return found.st_dev, found.st_ino


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not list(folder.iterdir())


def _nest(folder: Path, depth: int) -> None:
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.chdir(folder)
        for _ in range(depth):
            os.mkdir("d")
            os.chdir("d")
        Path("file").write_text("deep")
    finally:
        os.fchdir(before)
        os.close(before)


def test_no_depth_is_too_deep(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    _nest(folder, DEEP)
    empty_folder(str(folder), _identity(folder))
    assert _is_empty(folder)


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "unpacked", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("kept")
    (folder / "inside").mkdir(parents=True)
    (folder / "link").symlink_to(elsewhere)
    (folder / "inside" / "link").symlink_to(elsewhere)
    (folder / "inside" / "dangling").symlink_to("nowhere")
    empty_folder(str(folder), _identity(folder))
    assert _is_empty(folder)
    assert (elsewhere / "precious").read_text() == "kept"


def test_folders_without_permissions_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    (folder / "a" / "b" / "c").mkdir(parents=True)
    (folder / "a" / "b" / "c" / "file").write_text("")
    for each in (folder / "a" / "b" / "c", folder / "a" / "b", folder / "a", folder):
        each.chmod(0)
    empty_folder(str(folder), _identity(folder))
    assert _is_empty(folder)


def test_what_took_the_name_is_not_emptied(tmp_path: Path) -> None:
    folder, precious = tmp_path / "unpacked", tmp_path / "precious"
    folder.mkdir()
    identity = _identity(folder)
    precious.mkdir()
    (precious / "file").write_text("kept")
    folder.rename(tmp_path / "away")

    folder.symlink_to(precious)
    empty_folder(str(folder), identity)
    assert _is_empty(folder)

    folder.rmdir()
    precious.rename(folder)
    empty_folder(str(folder), identity)
    assert _is_empty(folder)
    assert (tmp_path / "unpacked.kept" / "file").read_text() == "kept"


@pytest.mark.parametrize("put", [Path.symlink_to, lambda name, other: other.rename(name)])
def test_what_takes_the_name_at_the_last_moment_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path, Path], object]
) -> None:
    folder, precious = tmp_path / "unpacked", tmp_path / "precious"
    folder.mkdir()
    precious.mkdir(0o755)
    (precious / "file").write_text("kept")
    identity = _identity(folder)
    found = os.lstat(folder)

    def found_before_it_is_swapped(_path: str) -> os.stat_result:
        folder.rename(tmp_path / "away")
        put(folder, precious)
        return found

    with monkeypatch.context() as patched:
        patched.setattr("sigwrap.start.onefile.os.lstat", found_before_it_is_swapped)
        empty_folder(str(folder), identity)
    assert folder.stat().st_mode & 0o777 == 0o755
    assert (folder / "file").read_text() == "kept"


def test_a_folder_inside_that_becomes_a_link_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, precious = tmp_path / "unpacked", tmp_path / "precious"
    (folder / "inside").mkdir(parents=True)
    precious.mkdir(0o755)

    def is_a_folder_and_then_a_link(_name: str, *, dir_fd: int) -> None:
        os.rmdir("inside", dir_fd=dir_fd)
        os.symlink(precious, "inside", dir_fd=dir_fd)
        raise IsADirectoryError

    with monkeypatch.context() as patched:
        patched.setattr("sigwrap.start.onefile.os.unlink", is_a_folder_and_then_a_link)
        empty_folder(str(folder), _identity(folder))
    assert precious.stat().st_mode & 0o777 == 0o755


def test_two_descriptors_are_enough(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    _nest(folder, 50)
    identity = _identity(folder)
    child = os.fork()
    if child == 0:
        try:
            free = os.open("/", os.O_RDONLY)
            os.closerange(free, 4096)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + 2, free + 2))
            empty_folder(str(folder), identity)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert _is_empty(folder)
