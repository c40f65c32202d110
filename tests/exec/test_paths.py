"""Which file a path means to another process."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.kernel.paths import Caller, WouldBlock, is_found_at

ATTEMPTS = 100


@pytest.fixture
def other(tmp_path: Path) -> Iterator[int]:
    """A process in tmp_path/folder, with that folder's `file` open as descriptor 9."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_text("x")
    (tmp_path / "outside").write_text("y")
    ready, tell = os.pipe()
    wait, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.chdir(tmp_path / "folder")
        os.dup2(os.open("file", os.O_RDONLY), 9)
        os.close(go)
        os.write(tell, b"x")
        os.read(wait, 1)
        os._exit(0)
    os.read(ready, 1)
    yield pid
    os.close(go)
    os.waitpid(pid, 0)
    for fd in (ready, tell, wait):
        os.close(fd)


def _opened(caller: Caller, path: bytes, folder_fd: int) -> int:
    """In the moment in which another test mounts something, the kernel's caches can't be asked."""
    for _ in range(ATTEMPTS):
        try:
            return caller.open(path, folder_fd)
        except WouldBlock as last:
            why = last
    raise why


def _found(pid: int, path: bytes | str, folder_fd: int = -100, *, walked: bool = False) -> str:
    caller = Caller(pid, pid)
    if walked:
        caller.shares_our_root = False
    fd = _opened(caller, os.fsencode(path), folder_fd)
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


@pytest.mark.parametrize("walked", [False, True], ids=["by the kernel", "part by part"])
def test_from_its_own_folder_and_descriptors(other: int, tmp_path: Path, walked: bool) -> None:
    (tmp_path / "folder" / "link").symlink_to("../outside")
    (tmp_path / "folder" / "absolute").symlink_to(tmp_path / "outside")
    (tmp_path / "self").symlink_to("/proc/self/fd/9")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "opened").symlink_to("/dev/fd")
    (tmp_path / "folder" / "opened").symlink_to("../opened")
    file, outside = str(tmp_path / "folder" / "file"), str(tmp_path / "outside")
    for path, wanted in {
        "file": file,
        "./file": file,
        "../outside": outside,
        "link": outside,
        "absolute": outside,
        f"{tmp_path}/folder//link": outside,
        "/proc/self/fd/9": file,
        "/dev/fd/9": file,
        "//dev/./fd/9": file,
        "/./proc/self/fd/9": file,
        f"{tmp_path}/opened/9": file,
        "opened/9": file,
        f"/proc/self/task/{other}/fd/9": file,
        "/proc/self/cwd/file": file,
        "/proc/thread-self/fd/9": file,
        f"/proc/{other}/fd/9": file,
        f"/proc/{other}/root{outside}": outside,
        f"{tmp_path}/self": file,
        "/../../" + outside: outside,
    }.items():
        assert _found(other, path, walked=walked) == wanted, path
    for path, error in {
        "": errno.ENOENT,
        "nope": errno.ENOENT,
        "file/": errno.ENOTDIR,
        "file/x": errno.ENOTDIR,
        f"{tmp_path}/loop": errno.ELOOP,
        "/proc/self/fd/77": errno.ENOENT,
        "x" * 300: errno.ENAMETOOLONG,
    }.items():
        with pytest.raises(OSError) as failure:
            _found(other, path, walked=walked)
        assert failure.value.errno == error, path


def test_no_descriptor_of_ours_is_left(other: int, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in ("file", "nope", "/proc/self/fd/9", "/proc/self/fd/77", f"{tmp_path}/outside/x"):
        for walked in (False, True):
            try:
                _found(other, path, walked=walked)
            except OSError:
                pass
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_open_file_is_found_at_its_path_or_not(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in ("/", "/proc", "/dev/null", "/sys", str(tmp_path), str(file)):
        fd = os.open(path, os.O_PATH)
        assert is_found_at(path, fd, may_wait=False)
        assert is_found_at(path, fd, may_wait=True)
        os.close(fd)
    fd = os.open(file, os.O_PATH)
    file.rename(tmp_path / "moved")
    assert not is_found_at(str(file), fd, may_wait=True)
    file.touch()
    assert not is_found_at(str(file), fd, may_wait=True)
    assert not is_found_at("", fd, may_wait=False)
    os.close(fd)
