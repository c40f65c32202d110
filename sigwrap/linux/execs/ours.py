"""What sigwrap knows of files and variables by itself, whatever a caller shows it.

A file that a denying rule names is recognized under other names by its inode. A hard link or a
renamed file is judged by the names of the original as well. A name that the file has had in a
folder of PATH since before the run counts alone: there, one file with many names behaves by its
name (busybox, rustup, shims). sigwrap looks that up in its own view of the folders, below what was
mounted since: by a bind mount, a caller's path can lead to any file.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping

from sigwrap.bare import NamedTuple
from sigwrap.linux.execs.commands import SystemCommands
from sigwrap.linux.execs.content import USUAL_LOADERS
from sigwrap.linux.execs.where import Mounts
from sigwrap.linux.file_state import Inode, State
from sigwrap.linux.paths import Caller, OurView, our_view, path_of
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.request import Program
from sigwrap.policy.judge.system_folders import COMMAND_FOLDERS
from sigwrap.policy.judge.wrappers import MULTICALL

_LOADERS = sorted(map(os.fsdecode, USUAL_LOADERS))  # these run another program without an exec
_SETTLED_S = 1  # a file that changed so shortly before the run may have changed in it


class Ours:
    __slots__ = ("commands", "mounts", "named_files", "variables", "view")

    def __init__(self, variables: Mapping[str, bytes], named: Named, path: bytes = b"") -> None:
        """`variables`: the user's own, all of which the session was given. `path`: the PATH."""
        self.variables = variables
        self.view = our_view()
        self.mounts = Mounts(self.view.root)
        self.commands = SystemCommands(self.view, os.fsdecode(path))
        self.named_files = NamedFiles(named, os.fsdecode(path), self.view)


class _Original(NamedTuple):
    path: str
    names: frozenset[str]


class _Folder(NamedTuple):
    inode: Inode
    mount: int


class NamedFiles:
    def __init__(self, named: Named, search_path: str, view: OurView) -> None:
        """Look through the folders of `search_path` and the system's, once."""
        self._view = view
        self._since_s = int(time.time()) - _SETTLED_S
        self._originals: dict[Inode, _Original] = {}
        self._folders: dict[str, _Folder | None] = {}
        us = self._us(may_wait=True)
        for folder in (*search_path.split(":"), *COMMAND_FOLDERS):
            if folder.startswith("/"):
                self._look_through(folder, named, us)
        for path in (*named.paths, *_LOADERS):
            self._add(os.path.realpath(path), path.rpartition("/")[2])

    def originals(self, state: State, program: Program, *, may_wait: bool) -> list[Program]:
        """Return as what else `program` counts, whose file has this state. Raises MayWait."""
        if self.is_original(state, program.path):
            return []
        original = self._originals[state.inode]
        folder, _, basename = program.path.rpartition("/")
        if self._is_called(basename, folder, state.inode, may_wait=may_wait):
            return []
        names = {basename} if basename in original.names else original.names
        return [
            Program(original.path, name, program.argv, program.sha256, counts_by_name=True)
            for name in names
        ]

    def is_original(self, state: State, path: str) -> bool:
        """Return whether no rule names the file, or it is at the path where it was found."""
        original = self._originals.get(state.inode)
        return original is None or path == original.path

    def _is_called(self, name: str, first: str, inode: Inode, *, may_wait: bool) -> bool:
        """Return whether the file has had this name in one of the folders since before the run."""
        us = self._us(may_wait=may_wait)
        return any(
            self._has(us, folder, name, inode)
            for folder in sorted(self._folders, key=lambda folder: folder != first)
        )

    def _has(self, us: Caller, folder: str, name: str, inode: Inode) -> bool:
        """Return whether the folder holds the file, below what is mounted over either.

        A link or a rename changes the file, so it is not older than the run.
        """
        fds: list[int] = []
        try:
            fds.append(us.open(os.fsencode(folder)))
            its = _folder_of(us, fds[0])
            if its != self._folders[folder]:
                return False
            fds.append(us.open_part(fds[0], os.fsencode(name)))
            found = us.state_of(fds[1])
        except OSError:
            return False
        finally:
            for fd in fds:
                os.close(fd)
        is_older = found.changed[0] < self._since_s
        return is_older and found.inode == inode and found.mount == its.mount

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
            self._folders[real] = _folder_of(us, fd)
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
        if known is not None:
            path, names = known.path, names | known.names
        self._originals[inode] = _Original(path, frozenset(names))


def _folder_of(us: Caller, fd: int) -> _Folder:
    state = us.known_state(fd)
    return _Folder(state.inode, state.mount)
