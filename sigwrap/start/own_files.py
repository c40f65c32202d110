"""Detect changes of the files that sigwrap runs from, since the command began.

This run has loaded them by then, but a stub and the next start of sigwrap read them again. A
changed file shows by its ctime, which no user can set, and a replaced directory by its inode.

A process that changes them may add links into a file system of its own, or millions of files. So
directories are opened by pinned paths, file states come from the kernel's caches only, and a new
directory is not listed.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from sigwrap.bare import NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import Known, PinnedPath
from sigwrap.kernel.file_state import State, known_state_in, may_be_later_in, mount_of
from sigwrap.kernel.paths import Caller, WouldBlock, our_view, path_of
from sigwrap.start import onefile
from sigwrap.start.own_code import read_files

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ABOVE_THE_PACKAGE = os.path.dirname(PACKAGE)
_INSTALLED = os.path.basename(_ABOVE_THE_PACKAGE) in ("site-packages", "dist-packages")
_IS_ZIPAPP = not onefile.unpacked_folder() and not os.path.isdir(PACKAGE)
_CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE
_RUN_AT_EVERY_START = ("sitecustomize.py", "usercustomize.py")
_BYTECODE = "__pycache__"
_SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")
_NAMES_LOOKED_AT = 20_000  # in a directory

# Every file below it is sigwrap's.
_OURS = onefile.unpacked_folder() or PACKAGE
# Files with a noted state of their own; other files are found through their directories.
_PROGRAM = (sys.executable, _ABOVE_THE_PACKAGE) if _IS_ZIPAPP else (sys.executable,)


class _Pinned(NamedTuple):
    path: PinnedPath
    identity: tuple[int, int]


class _Noted(NamedTuple):
    time_ns: int
    pins: dict[str, _Pinned]  # of files, directories, and the links on the path to these
    names: dict[str, list[str]]  # by directory: the loaded files in it
    inside: dict[str, dict[str, int]]  # by directory of sigwrap's: the directories in it
    of_the_start: list[str]  # what only a start reads


_noted: _Noted


def note_own_files() -> None:
    """Note all files and their directories; the command is about to run."""
    global _noted
    noted = _Noted(time.clock_gettime_ns(_CLOCK_OF_FILES), {}, {}, {}, [*_of_the_start()])
    for path in set(_files()):
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
    for path in _OURS, *noted.of_the_start:
        if path != _ABOVE_THE_PACKAGE:
            _note_inside(path, noted.inside)
    _noted = noted


def _note_inside(folder: str, inside: dict[str, dict[str, int]]) -> None:
    try:
        with os.scandir(folder) as entries:
            found = {e.name: e.inode() for e in entries if e.is_dir(follow_symlinks=False)}
    except OSError:
        return  # it is a file
    if not _INSTALLED:
        found.pop(_BYTECODE, None)
    inside[folder] = found
    for name in found:
        _note_inside(os.path.join(folder, name), inside)


def changeable() -> list[str]:
    """Return the mapped files that this user can write: a change of one changes our code."""
    return sorted(path for path in set(_mapped_files()) if _can_be_written(path))


def _mapped_files() -> Iterator[str]:
    """Yield the files of private mappings, except removed ones."""
    return mapped_in(procfs.all_contents("/proc/self/maps"))


def mapped_in(maps: bytes) -> Iterator[str]:
    """Yield the files in a text of /proc/PID/maps, where the kernel escapes only line ends."""
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
    return sorted(set(_changed((_OURS,) if onefile.unpacked_folder() else ())))


def changed_stub_file() -> str:
    """Return a changed file that a stub is loaded from, or an empty string."""
    return next(_changed(_noted.of_the_start), "")


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
            if path in _noted.inside or path == _ABOVE_THE_PACKAGE:
                yield from _changed_below(fd, path)
    finally:
        os.close(fd)


def _changed_below(fd: int, folder: str) -> Iterator[str]:
    inside = _noted.inside.get(folder, {})
    try:
        names = _names(fd, folder)
    except OSError:  # the session has taken away sigwrap's permission to read it
        yield folder
        return
    yield from _changed_in(fd, folder, names - inside.keys())
    for name, inode in inside.items():
        path = os.path.join(folder, name)
        try:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            inner = os.open(name, flags, dir_fd=fd)
        except OSError:
            yield path
            continue
        try:
            # The server of another mount could block.
            if mount_of(inner) == mount_of(fd) and os.fstat(inner).st_ino == inode:
                yield from _changed_below(inner, path)
            else:
                yield path
        finally:
            os.close(inner)


def _changed_in(fd: int, folder: str, names: Iterable[str]) -> Iterator[str]:
    for name in list(may_be_later_in(fd, names, _noted.time_ns)):
        path = os.path.join(folder, name)
        if path not in _noted.pins and _has_changed(fd, path):
            yield path


def _names(fd: int, path: str) -> set[str]:
    """Return the names to check: beside the package, only what Python runs at every start.

    In a checkout, any process that imports a module writes its bytecode.
    """
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
    try:
        with os.scandir(readable) as entries:
            names = {entry.name for entry in islice(entries, _NAMES_LOOKED_AT)}
    finally:
        os.close(readable)
    if _INSTALLED and path == _ABOVE_THE_PACKAGE:
        return {name for name in names if name.endswith(".pth") or name in _RUN_AT_EVERY_START}
    return names if _INSTALLED else names - {_BYTECODE}


def _has_changed(fd: int, path: str) -> bool:
    try:
        state = known_state_in(fd, os.fsencode(os.path.basename(path)))
        if stat.S_ISLNK(state.mode) and not _is_later(state):
            us = Caller(os.getpid(), os.getpid(), our_view())
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
    seconds, nanoseconds = state.changed
    return seconds * 1_000_000_000 + nanoseconds > _noted.time_ns


def _files() -> Iterator[str]:
    """Yield the loaded files outside the package."""
    if onefile.unpacked_folder():
        return
    yield from _mapped_files()
    yield from (path for path in read_files() if path.startswith("/") and "/proc/" not in path)
    inside = ("/proc/", _ABOVE_THE_PACKAGE) if _IS_ZIPAPP else (PACKAGE,)
    for module in list(sys.modules.values()):
        for path in (getattr(module, "__file__", None), getattr(module, "__cached__", None)):
            if path and not path.startswith(inside):
                yield path


def _of_the_start() -> Iterator[str]:
    """Yield other files and directories that a start reads."""
    if onefile.unpacked_folder():
        return
    yield from map(os.path.abspath, (sys.argv[0], os.path.join(sys.prefix, "pyvenv.cfg")))
    if _INSTALLED:
        yield _ABOVE_THE_PACKAGE
    elif not _IS_ZIPAPP:
        yield os.path.join(_ABOVE_THE_PACKAGE, "policies")
