"""Empty a folder that other processes may have filled.

A folder inside is moved to the top before it is emptied, so a deep one takes no more descriptors
and no longer paths. No link is followed, and what cannot be removed stays. Modes are changed
through descriptors, since a name may become a link at any time.
"""

from __future__ import annotations

import os
import stat

from sigwrap.linux import proc_files

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_WHATEVER_ITS_MODE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OURS = 0o700


def empty_folder(path: str, identity: tuple[int, int]) -> None:
    """Empty the folder with this device and inode.

    Anything else with that name is renamed, and replaced by an empty folder: the caller is about
    to remove all below the name.
    """
    try:
        if _is_removed(path, identity):
            os.mkdir(path, _OURS)
        else:
            _empty(path, identity)
    except OSError:
        return


def _is_removed(path: str, identity: tuple[int, int]) -> bool:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return True
    if _is(found, identity):
        return False
    if stat.S_ISLNK(found.st_mode):
        os.unlink(path)
    else:
        os.rename(path, f"{path}.kept")
    return True


def _is(found: os.stat_result, identity: tuple[int, int]) -> bool:
    return (found.st_dev, found.st_ino) == identity


def _empty(top: str, identity: tuple[int, int]) -> None:
    moved_to = f"{top}/{os.urandom(8).hex()}-"  # an unused name
    folders = [top]
    for folder in folders:
        try:
            fd = _open(folder, identity if folder == top else None)
        except OSError:
            continue
        try:
            for name in os.listdir(fd):
                if not _is_unlinked(name, fd) and _is_moved(name, fd, f"{moved_to}{len(folders)}"):
                    folders.append(f"{moved_to}{len(folders)}")
        finally:
            os.close(fd)
    for folder in folders[1:]:
        try:
            os.rmdir(folder)
        except OSError:
            continue


def _open(folder: str, identity: tuple[int, int] | None) -> int:
    fd = os.open(folder, _WHATEVER_ITS_MODE)
    try:
        if identity is not None and not _is(os.fstat(fd), identity):
            raise FileNotFoundError(folder)
        _make_ours(fd)
        return os.open(".", _FOLDER, dir_fd=fd)
    finally:
        os.close(fd)


def _make_ours(fd: int) -> None:
    # fchmod(2) wants one that is open to be read.
    proc, path = proc_files.at(b"/proc/self/fd/%d" % fd)
    os.chmod(path, _OURS, dir_fd=proc)


def _is_unlinked(name: str, folder: int) -> bool:
    """Unlink the name, and return False for a folder."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        return False
    except OSError:
        return True  # it cannot be removed
    return True


def _is_moved(name: str, folder: int, to: str) -> bool:
    try:
        fd = os.open(name, _WHATEVER_ITS_MODE, dir_fd=folder)
        try:
            _make_ours(fd)  # moving it changes its own `..`
        finally:
            os.close(fd)
        os.rename(name, to, src_dir_fd=folder)
    except OSError:
        return False
    return True
