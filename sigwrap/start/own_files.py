"""Detect changes of the files that sigwrap runs from, since the command began.

This run has loaded them by then, but a stub and the next start of sigwrap read them again. A
change shows by the ctime of a file or directory, which no user can set.

A process that changes them may put other directories or links in their place, which may lead into
a file system of its own, or add millions of files. So directories are opened by pinned paths and
known by their inodes, file states come from the kernel's caches only, a new directory is not
listed, and only so many names are looked at.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Iterator

from sigwrap.bare import NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import Known, PinnedPath
from sigwrap.kernel.file_state import State, born_at, known_state_in, may_be_later_in
from sigwrap.kernel.paths import Caller, WouldBlock, open_on_one_mount, path_of
from sigwrap.start import onefile
from sigwrap.start.own_code import read_files

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ABOVE_THE_PACKAGE = os.path.dirname(PACKAGE)
_INSTALLED = os.path.basename(_ABOVE_THE_PACKAGE) in ("site-packages", "dist-packages")
_UNPACKED = onefile.unpacked_folder()
_IS_ZIPAPP = not _UNPACKED and not os.path.isdir(PACKAGE)
_IS_CHECKOUT = not (_INSTALLED or _IS_ZIPAPP or _UNPACKED)
_CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE
_RUN_AT_EVERY_START = ("sitecustomize.py", "usercustomize.py")
_BYTECODE = "__pycache__"
_SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
_NAMES_LOOKED_AT = 20_000  # below a directory; an installation has a tenth
_S = 1_000_000_000

# Every file below it is sigwrap's.
_OURS = _UNPACKED or PACKAGE
# Files with a noted state of their own; other files are found through their directories.
_PROGRAM = (sys.executable, _ABOVE_THE_PACKAGE) if _IS_ZIPAPP else (sys.executable,)
_SETTINGS = os.path.abspath(os.path.join(sys.prefix, "pyvenv.cfg"))


class _Pinned(NamedTuple):
    path: PinnedPath
    identity: tuple[int, int]


class _Noted(NamedTuple):
    time_ns: int
    pins: dict[str, _Pinned]  # of files, directories, and the links on the path to these
    names: dict[str, list[str]]  # by directory: the loaded files in it
    of_the_start: list[str]  # what only a start reads


_noted: _Noted


def note_own_files() -> None:
    """Note all files and their directories; the command is about to run."""
    global _noted
    time_ns = time.clock_gettime_ns(_CLOCK_OF_FILES)
    noted = _Noted(time_ns, {}, {}, [*_of_the_start()])
    for path in () if _UNPACKED else {*_mapped_files(), *_files()}:
        folder, name = os.path.split(path)
        noted.names.setdefault(folder, []).append(name)
    known: Known = {}
    for path in dict.fromkeys((*_PROGRAM, _OURS, *noted.of_the_start, *noted.names)):
        try:
            real, noted.pins[path] = _pinned(path, known)
            for link in _links_on(path) if real != path else ():
                _, noted.pins[link] = _pinned(link, known, os.O_NOFOLLOW)
        except OSError:
            continue  # no file is loaded from there
    _noted = noted


def changeable() -> list[str]:
    """Return the mapped files that this user can write: a change of one changes our code."""
    return sorted(path for path in set(_mapped_files()) if _can_be_written(path))


def _mapped_files() -> Iterator[str]:
    return mapped_in(procfs.all_contents("/proc/self/maps"))


def mapped_in(maps: bytes) -> Iterator[str]:
    """Yield the files of private mappings, except removed ones, from a text of /proc/PID/maps.

    The kernel escapes only line ends there.
    """
    for line in maps.split(b"\n")[:-1]:
        _span, flags, _offset, _device, inode, padded = line.split(b" ", 5)
        path = os.fsdecode(padded.lstrip(b" "))
        if inode != b"0" and flags.endswith(b"p") and not path.endswith(" (deleted)"):
            yield path


def _can_be_written(path: str) -> bool:
    """Return whether this user can write it; an owner can always make it writable.

    The system's own libraries do not count: with them, root can change every program.
    """
    try:
        status = os.stat(path)
        if status.st_uid == 0 and path.startswith(_SYSTEM_FOLDERS):
            return False
        may_be = status.st_uid == os.geteuid() or os.access(path, os.W_OK)
        return may_be and not _is_busy_program(path)
    except OSError:
        return True


def _is_busy_program(path: str) -> bool:
    """Return whether this is our program's file, and the kernel refuses to open it for writing.

    Linux 6.11 and 6.12 do not. No other file is opened: its watchers would see a writer.
    """
    if not os.path.samefile(path, "/proc/self/exe"):
        return False
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as failure:
        return failure.errno == errno.ETXTBSY
    return False


def _pinned(path: str, known: Known, flags: int = 0) -> tuple[str, _Pinned]:
    """Return the path without links too; with O_NOFOLLOW, the last part may be a link."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    try:
        real, status = path_of(fd), os.fstat(fd)
    finally:
        os.close(fd)
    return real, _Pinned(PinnedPath(real, known), (status.st_dev, status.st_ino))


def _links_on(path: str) -> Iterator[str]:
    """Yield the links that an absolute path goes through, each by a path without another link."""
    folder, parts = "/", path.split("/")[1:]
    for position, part in enumerate(parts, 1):
        here = os.path.join(folder, part)
        if os.path.islink(here):
            yield here
            target = os.path.normpath(os.path.join(folder, os.readlink(here)))
            yield from _links_on(os.path.join(target, *parts[position:]))
            return
        folder = here


def changed_own_files() -> list[str]:
    """Return the files that changed or are gone, except those unpacked for this run."""
    return sorted(set(_changed((_OURS,) if _UNPACKED else ())))


def changed_stub_file() -> str:
    """Return a changed file that a stub is loaded from, or an empty string."""
    # A zipapp is the program that was called, and Python reads its settings for a stub as well.
    read = (*_PROGRAM, _SETTINGS)
    return next(_changed([each for each in _noted.of_the_start if each not in read]), "")


def _changed(left_out: Collection[str]) -> Iterator[str]:
    for path, pinned in _noted.pins.items():
        if path not in left_out or path in _noted.names:
            yield from _changed_at(path, pinned)


def _changed_at(path: str, pinned: _Pinned) -> Iterator[str]:
    """Yield the path if a file or link changed, and the changed files in a directory."""
    try:
        fd = pinned.path.open()
    except OSError:
        yield path
        return
    try:
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != pinned.identity:
            yield path
        elif not stat.S_ISDIR(status.st_mode):
            if status.st_ctime_ns > _noted.time_ns:
                yield path
        else:
            yield from _changed_in(fd, path, _noted.names.get(path, ()))
            if path == _OURS or path in _noted.of_the_start:
                yield from _changed_below(fd, path, iter(range(_NAMES_LOOKED_AT)))
    finally:
        os.close(fd)


def _changed_below(fd: int, folder: str, left: Iterator[int]) -> list[str]:
    try:
        found = _entries(fd, folder, left)
    except OSError:  # the session has taken away sigwrap's permission to read it
        return [folder]
    if next(left, None) is None:
        return [folder]
    changed = [*_changed_in(fd, folder, (name for name in found if not found[name]))]
    for name in filter(found.get, found):
        path = os.path.join(folder, name)
        try:
            inner = open_on_one_mount(fd, name, os.O_DIRECTORY)
        except OSError:
            changed.append(path)
            continue
        try:
            is_new = born_at(inner)[1] > divmod(_noted.time_ns, _S)
            changed += [path] if is_new else _changed_below(inner, path, left)
        finally:
            os.close(inner)
    # A name in it is gone, or all of it was replaced. Others may write to the excepted ones.
    if not changed and not _IS_CHECKOUT and folder not in (_ABOVE_THE_PACKAGE, _UNPACKED):
        return [folder] if os.fstat(fd).st_ctime_ns > _noted.time_ns else []
    return changed


def _changed_in(fd: int, folder: str, names: Iterable[str]) -> Iterator[str]:
    for name in list(may_be_later_in(fd, names, _noted.time_ns)):
        path = os.path.join(folder, name)
        if path not in _noted.pins and _has_changed(fd, path):
            yield path


def _entries(fd: int, folder: str, left: Iterator[int]) -> dict[str, bool]:
    """Return the names to check, and which are directories. Beside the package, only what Python
    runs at every start counts. In a checkout, any process that imports a module writes bytecode."""
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        with os.scandir(readable) as entries:
            looked_at = (entry for _, entry in zip(left, entries, strict=False))
            found = {each.name: each.is_dir(follow_symlinks=False) for each in looked_at}
    finally:
        os.close(readable)
    if _INSTALLED and folder == _ABOVE_THE_PACKAGE:
        return {
            name: False for name in found if name.endswith(".pth") or name in _RUN_AT_EVERY_START
        }
    if _IS_CHECKOUT:
        found.pop(_BYTECODE, None)
    return found


def _has_changed(fd: int, path: str) -> bool:
    try:
        state = known_state_in(fd, os.fsencode(os.path.basename(path)))
        if stat.S_ISLNK(state.mode) and not _is_later(state):
            us = Caller(os.getpid(), os.getpid())
            behind = us.open(os.fsencode(path))
            try:
                state = us.known_state(behind)
            finally:
                os.close(behind)
    except FileNotFoundError:
        return not path.endswith(".pyc")  # Python needs no bytecode file
    except (OSError, WouldBlock):
        return True
    return _is_later(state)


def _is_later(state: State) -> bool:
    return state.changed > divmod(_noted.time_ns, _S)


def _files() -> Iterator[str]:
    """Yield the files of modules outside the package."""
    yield from (path for path in read_files() if path.startswith("/") and "/proc/" not in path)
    inside = ("/proc/", _ABOVE_THE_PACKAGE) if _IS_ZIPAPP else (PACKAGE,)
    for module in list(sys.modules.values()):
        file: str | None = getattr(module, "__file__", None)
        if file and not file.startswith(inside):
            yield file
            yield getattr(module, "__cached__", None) or file


def _of_the_start() -> Iterator[str]:
    """Yield other files and directories that a start reads."""
    if _UNPACKED:
        return
    yield from (os.path.abspath(sys.argv[0]), _SETTINGS)
    if _INSTALLED:
        yield _ABOVE_THE_PACKAGE
    elif not _IS_ZIPAPP:
        yield os.path.join(_ABOVE_THE_PACKAGE, "policies")
