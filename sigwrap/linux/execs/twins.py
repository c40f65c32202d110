"""The files that denying rules name, known again under other names.

A hard link is the same inode, and a copy has the same content. Such a program is judged by the
names of the original as well. What has a name of its own in a folder of PATH since before the run
is what it is called: there, one file with many names behaves by its name (busybox, rustup, shims).
That is looked up as sigwrap sees those folders, and below whatever was mounted since: a caller's
path says nothing, for by a bind mount any file has any path.

Of content no more is compared than a few samples, and only where the size is the same; where it
can't be read, the size is enough. Whoever changes a byte has another program: this catches copies,
it doesn't recognize programs.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable

from sigwrap.linux.execs import elf
from sigwrap.linux.execs.content import KnownByState, reopen
from sigwrap.linux.file_state import Inode, State
from sigwrap.linux.paths import Caller, OurView, path_of
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.request import Program
from sigwrap.policy.judge.system_folders import COMMAND_FOLDERS
from sigwrap.policy.judge.wrappers import MULTICALL
from sigwrap.tuples import NamedTuple

_LOADERS = sorted(map(os.fsdecode, elf.USUAL))  # these run another program without an exec
_SAMPLE_BYTES = 64 * 1024
_SAMPLES = 4
_SETTLED_S = 1  # what was changed as shortly before the run may have been changed in it


class _Original(NamedTuple):
    path: str
    names: frozenset[str]

    def opened(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


class _Place(NamedTuple):
    inode: Inode
    mount: int


class Twins:
    def __init__(self, named: Named, search_path: str, view: OurView) -> None:
        """Looks through the folders, once."""
        self._view = view
        self._since_s = int(time.time()) - _SETTLED_S
        self._originals: dict[Inode, _Original] = {}
        self._by_size: dict[int, list[Inode]] = {}
        self._compared = KnownByState[tuple[_Original, ...]]()
        self._folders: dict[str, _Place | None] = {}
        us = self._us(may_wait=True)
        for folder in (*search_path.split(":"), *COMMAND_FOLDERS):
            if folder.startswith("/"):
                self._look_through(folder, named, us)
        for path in (*named.paths, *_LOADERS):
            self._add(os.path.realpath(path), path.rpartition("/")[2])

    def of(self, fd: int, state: State, program: Program, *, may_wait: bool) -> tuple[Program, ...]:
        """What else the file is, which an exec found to be `program`. Raises MayWait."""
        original = self._originals.get(state.inode)
        if original is not None:
            found: tuple[_Original, ...] = (original,)
            if program.path == original.path:
                return ()
        elif state.size in self._by_size:
            found = self._same_content(fd, state)
        else:
            return ()
        folder, _, basename = program.path.rpartition("/")
        if not found or self._is_called(basename, folder, state.inode, may_wait=may_wait):
            return ()
        return tuple(
            Program(each.path, name, program.argv, program.sha256, counts_by_name=True)
            for each in found
            for name in ({basename} if basename in each.names else each.names)
        )

    def is_none(self, state: State, path: str) -> bool:
        """Whether that stays so for as long as the file has this state and this path."""
        original = self._originals.get(state.inode)
        if original is not None:
            return path == original.path
        return state.size not in self._by_size or self._compared.get(state) == ()

    def _is_called(self, name: str, first: str, inode: Inode, *, may_wait: bool) -> bool:
        """Whether the file has this name in one of the folders, since before the run."""
        us = self._us(may_wait=may_wait)
        return any(
            self._has(us, folder, name, inode)
            for folder in sorted(self._folders, key=lambda folder: folder != first)
        )

    def _has(self, us: Caller, folder: str, name: str, inode: Inode) -> bool:
        """What is mounted over the folder, or over the name in it, doesn't count. A file that is
        linked or renamed is changed by that."""
        fds: list[int] = []
        try:
            fds.append(us.open(os.fsencode(folder)))
            place = _place_of(us, fds[0])
            if place != self._folders[folder]:
                return False
            fds.append(us.open_part(fds[0], os.fsencode(name)))
            found = us.state_of(fds[1])
        except OSError:
            return False
        finally:
            for fd in fds:
                os.close(fd)
        is_older = found.changed[0] < self._since_s
        return is_older and found.inode == inode and found.mount == place.mount

    def _us(self, *, may_wait: bool) -> Caller:
        return Caller(os.getpid(), os.getpid(), self._view, may_wait=may_wait)

    def _look_through(self, folder: str, named: Named, us: Caller) -> None:
        real = os.path.realpath(folder)
        if real in self._folders:
            return
        self._folders[real] = None
        try:
            names = os.listdir(real)
            fd = us.open(os.fsencode(real))
        except OSError:
            return
        try:
            self._folders[real] = _place_of(us, fd)
        finally:
            os.close(fd)
        for name in {*named.among(names), *MULTICALL.intersection(names)}:
            self._add(f"{real}/{name}", name)

    def _add(self, called: str, name: str) -> None:
        path = called
        try:
            state = os.lstat(called)
            if stat.S_ISLNK(state.st_mode):
                fd = os.open(called, os.O_PATH | os.O_CLOEXEC)
                try:
                    state, path = os.fstat(fd), path_of(fd)
                finally:
                    os.close(fd)
        except OSError:
            return
        if not stat.S_ISREG(state.st_mode):
            return
        inode = (os.major(state.st_dev) << 32 | os.minor(state.st_dev), state.st_ino)
        basename = path.rpartition("/")[2]
        names = {basename} if basename in MULTICALL else {basename, name}
        known = self._originals.get(inode)
        if known is None:
            self._by_size.setdefault(state.st_size, []).append(inode)
        else:
            path, names = known.path, names | known.names
        self._originals[inode] = _Original(path, frozenset(names))

    def _same_content(self, fd: int, state: State) -> tuple[_Original, ...]:
        known = self._compared.get(state)
        if known is None:
            samples = _samples(lambda: reopen(fd), state.size)
            originals = [self._originals[inode] for inode in self._by_size[state.size]]
            known = tuple(
                each
                for each in originals
                if not samples or _samples(each.opened, state.size) == samples
            )
            self._compared.keep(state, known)
        return known


def _place_of(us: Caller, fd: int) -> _Place:
    state = us.known_state(fd)
    return _Place(state.inode, state.mount)


def _samples(opened: Callable[[], int], size: int) -> list[bytes]:
    """Empty where it can't be read."""
    try:
        fd = opened()
    except OSError:
        return []
    try:
        return [os.pread(fd, _SAMPLE_BYTES, offset) for offset in _offsets(size)]
    except OSError:
        return []
    finally:
        os.close(fd)


def _offsets(size: int) -> Iterable[int]:
    last = max(0, size - _SAMPLE_BYTES)
    return (last * part // (_SAMPLES - 1) for part in range(_SAMPLES))
