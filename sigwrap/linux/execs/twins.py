"""The files that denying rules name, known again under other names.

A hard link is the same inode, and a copy has the same content. Such a program is judged by the
names of the original as well. What has a name of its own in a folder of PATH since before the run
is what it is called: there, one file with many names behaves by its name (busybox, rustup, shims).

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
from sigwrap.linux.paths import Inode, State
from sigwrap.policy.judge.named import Named
from sigwrap.policy.judge.request import Program
from sigwrap.policy.judge.wrappers import MULTICALL
from sigwrap.tuples import NamedTuple

_SYSTEM_FOLDERS = (
    *("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"),
)
_LOADERS = sorted(map(os.fsdecode, elf.USUAL))  # these run another program without an exec
_SAMPLE_BYTES = 64 * 1024
_SAMPLES = 4
_SETTLED_S = 1  # what was changed as shortly before the run may have been changed in it


class _Original(NamedTuple):
    path: str
    names: frozenset[str]

    def opened(self) -> int:
        return os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


class Twins:
    def __init__(self, named: Named, search_path: str) -> None:
        """Looks through the folders, once."""
        self._since_s = int(time.time()) - _SETTLED_S
        self._originals: dict[Inode, _Original] = {}
        self._by_size: dict[int, list[Inode]] = {}
        self._compared = KnownByState[tuple[_Original, ...]]()
        self._folders: set[str] = set()
        for folder in (*search_path.split(":"), *_SYSTEM_FOLDERS):
            if folder.startswith("/"):
                self._look_through(folder, named)
        for path in (*named.paths, *_LOADERS):
            self._add(os.path.realpath(path), path.rpartition("/")[2])

    def of(self, fd: int, state: State, program: Program) -> tuple[Program, ...]:
        """What else the file is, which an exec found to be `program`."""
        original = self._originals.get(state.inode)
        if original is not None:
            found: tuple[_Original, ...] = (original,)
            if program.path == original.path:
                return ()
        elif state.size in self._by_size:
            found = self._same_content(fd, state)
        else:
            return ()
        if not found or self._has_its_own_name(program, state):
            return ()
        return tuple(
            Program(each.path, name, program.argv, program.sha256, counts_by_name=True)
            for each in found
            for name in each.names
        )

    def _has_its_own_name(self, program: Program, state: State) -> bool:
        is_older = state.changed[0] < self._since_s
        return is_older and program.path.rpartition("/")[0] in self._folders

    def _look_through(self, folder: str, named: Named) -> None:
        real = os.path.realpath(folder)
        if real in self._folders:
            return
        self._folders.add(real)
        try:
            names = os.listdir(real)
        except OSError:
            return
        for name in {*named.among(names), *MULTICALL.intersection(names)}:
            self._add(f"{real}/{name}", name)

    def _add(self, called: str, name: str) -> None:
        try:
            state = os.stat(called)
            path = os.path.realpath(called) if os.path.islink(called) else called
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
