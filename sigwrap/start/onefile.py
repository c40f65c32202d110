"""PyInstaller's one-file packaging: its directory, its outer process, its variables.

The file starts as two processes: a bootloader that unpacks and waits, and its child, which is this
program. In other installations these functions do nothing.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Mapping

from sigwrap.bare import signal
from sigwrap.errors import SigwrapError
from sigwrap.kernel import procfs
from sigwrap.kernel.process import keep_from_core

_LIBRARY_PATH = b"LD_LIBRARY_PATH"
_ORIGINAL_LIBRARY_PATH = b"LD_LIBRARY_PATH_ORIG"
_NEEDED_BY_ANY_START = "base_library.zip"
_PIECE_BYTES = 1 << 24


def unpacked_folder() -> str:
    """Return the directory that the file was unpacked to, or an empty string."""
    return getattr(sys, "_MEIPASS", "")


# Read at the start: the command may put another directory there.
_found = os.lstat(unpacked_folder() or "/")
_IDENTITY = _found.st_dev, _found.st_ino


def release_unpacked(*, for_stubs: bool) -> None:
    """Unlink the files that this process has mapped: a change would reach its code, and a
    truncation would end it with SIGBUS.

    `for_stubs`: put copies in their place, from which sigwrap-stub can start.
    """
    for path in list(_files_below(unpacked_folder())) if unpacked_folder() else ():
        if os.path.basename(path) == _NEEDED_BY_ANY_START:
            continue  # it is not mapped, and shows that the directory is in use
        try:
            if for_stubs:
                _copy(path, f"{path}.copy")
                os.rename(f"{path}.copy", path)
            else:
                os.unlink(path)
        except OSError:
            continue  # own_files.changeable names it


def _files_below(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for each in entries:
            if each.is_dir(follow_symlinks=False):
                yield from _files_below(each.path)
            else:
                yield each.path


def _copy(path: str, to: str) -> None:
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    mode = os.fstat(source).st_mode
    try:
        copy = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            while os.sendfile(copy, source, None, _PIECE_BYTES):
                continue
        finally:
            os.close(copy)
    finally:
        os.close(source)


def empty_unpacked(bootloader_pid: int) -> None:
    """Empty the directory once no process of the tree is left.

    The bootloader removes it, and would follow links in it. 2,000 nested directories would overflow
    its stack.
    """
    if not unpacked_folder():
        return
    for fd in (0, 1):
        try:
            os.close(fd)  # new descriptors get these numbers, which are below every limit
        except OSError:
            continue
    empty_folder(unpacked_folder(), _IDENTITY)
    if os.getppid() != bootloader_pid:  # the bootloader has died
        try:
            os.rmdir(unpacked_folder())
        except OSError:
            pass


def can_die_of(number: int) -> bool:
    """Return whether the bootloader can die of this signal too: for 32 and 33 it exits with 1."""
    return not unpacked_folder() or number in signal.valid_signals()


def leave_no_core(bootloader_pid: int) -> None:
    """Prevent a core of the bootloader, which dies of the same signal as this process."""
    if bootloader_pid:
        keep_from_core(bootloader_pid)


def bootloader_pid() -> int:
    """Return the pid of the bootloader, or 0.

    Call it early. If the bootloader was killed before it handles signals, no process waits for the
    command's status.
    """
    if not unpacked_folder():
        return 0
    pid = os.getppid()
    if not _runs_our_file(pid):
        raise SigwrapError("the outer process of the binary has died")
    return pid


def _runs_our_file(pid: int) -> bool:
    try:
        theirs, ours = map(procfs.file_status, (f"/proc/{pid}/exe", "/proc/self/exe"))
    except OSError:
        return False
    return os.path.samestat(theirs, ours)


def original_environment(environment: dict[bytes, bytes]) -> dict[bytes, bytes]:
    if not unpacked_folder():
        return environment
    restored = {
        name: value
        for name, value in environment.items()
        if not name.startswith(b"_PYI_") and name not in (_LIBRARY_PATH, _ORIGINAL_LIBRARY_PATH)
    }
    if _ORIGINAL_LIBRARY_PATH in environment:
        restored[_LIBRARY_PATH] = environment[_ORIGINAL_LIBRARY_PATH]
    return restored


def variables_of_the_unpacked(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the variables with which a new process of the file uses the same directory."""
    if not unpacked_folder():
        return {}
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(b"_PYI_") or name == _LIBRARY_PATH
    }


def own_line() -> list[str]:
    """Return the command line that starts this program again."""
    if unpacked_folder():
        return [sys.executable]
    return [sys.executable, *sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]]


# Empty the folder of the unpacked program: other processes may have filled it.

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
    proc, path = procfs.at(b"/proc/self/fd/%d" % fd)
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
