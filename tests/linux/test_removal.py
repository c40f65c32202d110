from __future__ import annotations

import os
import resource
from pathlib import Path

from sigwrap.linux.removal import empty_folder

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
