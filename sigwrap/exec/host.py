"""What sigwrap itself sees of the machine, to compare with what a caller shows it: the
system's commands, which of them a program shadows, and the files that rules name.

A shell, `env` or execvp(3) that searches PATH keeps in argv[0] the word that it was given, which
has no slash, and execs a path whose folder is one of PATH. So a program whose argv[0] has a slash,
or whose folder is the system's, costs nothing but that look.

A program that stood there before the session is no shadow: the user put it there (a virtual
environment, pyenv, nvm). The kernel sets a file's change time at each write, rename, hard link and
chmod, and on the usual file systems no process can set it back. So the file and every link on its
path must have an older one, and a folder of the user's PATH must still be the same folder.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping

from sigwrap.bare import NamedTuple
from sigwrap.exec.asked import is_program
from sigwrap.exec.content import USUAL_LOADERS
from sigwrap.exec.facts import UNKNOWN_LOCATION, Location
from sigwrap.kernel.file_state import (
    Inode,
    Place,
    State,
    magic_of,
    place_of,
)
from sigwrap.kernel.paths import (
    SERVED,
    Caller,
    WouldBlock,
    is_found_at,
    open_known,
    path_of,
)
from sigwrap.policy.judge.globs import Named
from sigwrap.policy.judge.request import Program
from sigwrap.policy.judge.system_folders import COMMAND_FOLDERS, may_be_the_systems
from sigwrap.policy.judge.wrappers import MULTICALL

_CLOCK_REALTIME_COARSE = 5  # the clock of change times
# File systems where each change of a file sets its change time: ext, XFS, btrfs, F2FS, ZFS,
# bcachefs, overlay, squashfs, EROFS. On FAT a process can set it, and on tmpfs a mapping changes a
# file without it.
_WITH_CHANGE_TIMES = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E}
    | {0x794C7630, 0x73717368, 0xE0F5E1E2}
)
_KEPT = 1000
_LOOKED_AT_AGAIN_S = 1.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_known_folders: dict[str, tuple[bool, float]] = {}  # and when that was seen


class HostView:
    """The files, mounts and commands that sigwrap itself sees, for all execs of a session."""

    __slots__ = ("commands", "named_files", "variables")

    def __init__(self, variables: Mapping[str, bytes], named: Named, path: bytes = b"") -> None:
        """`variables`: the user's own, all of which the session was given. `path`: the PATH."""
        self.variables = variables
        self.commands = SystemCommands(os.fsdecode(path))
        self.named_files = NamedFiles(named, os.fsdecode(path))


class Where:
    """The root and directory of a caller, which the exec stop compares if a decision used them."""

    __slots__ = ("_caller", "folder")

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.folder: Place | None = None  # once it was read

    def read(self) -> Location:
        try:
            folder = self._caller.open_folder()
        except OSError:  # the caller is ending, or may not be read any more
            return UNKNOWN_LOCATION
        try:
            self.folder = place_of(folder)
            path = path_of(folder)
            try:
                is_ours = self._caller.shares_our_root and is_found_at(path, folder, may_wait=False)
            except WouldBlock:
                is_ours = False
            return Location(path, f"{self._caller.root} {self.folder}", is_ours)
        finally:
            os.close(folder)


def is_the_systems(fd: int, called: str, path: str) -> bool:
    """Return whether only root can change the file of `fd`, at `path`, and what it was called.

    A link with the file's own name may belong to any user.
    """
    if not is_roots_own(fd) or not in_a_system_folder(path):
        return False
    return called.rpartition("/")[2] == path.rpartition("/")[2] or in_a_system_folder(called)


def is_roots_own(fd: int) -> bool:
    state = os.fstat(fd)
    return state.st_uid == 0 and not state.st_mode & _WRITABLE_BY_OTHERS


def in_a_system_folder(path: str) -> bool:
    """Return whether only root can change the folder of an absolute path."""
    if not may_be_the_systems(path):
        return False
    folder = path.rpartition("/")[0]
    known, now_s = _known_folders.get(folder), time.monotonic()
    if known is None or now_s - known[1] > _LOOKED_AT_AGAIN_S:
        if len(_known_folders) >= _KEPT:
            _known_folders.clear()
        known = _known_folders[folder] = _only_root_changes(folder), now_s
    return known[0]


def _only_root_changes(folder: str) -> bool:
    """Check the folder and each one on the way to it, which could be renamed and replaced."""
    on_the_way = "/"
    for part in folder.split("/"):
        on_the_way = os.path.join(on_the_way, part)
        try:
            state = os.stat(on_the_way)
        except OSError:
            return False
        if state.st_uid != 0 or state.st_mode & _WRITABLE_BY_OTHERS:
            return False
    return True


class SystemCommands:
    """Finds the system commands that other programs shadow."""

    __slots__ = ("_known", "_on_path", "_since")

    def __init__(self, path: str = "", since_ns: int | None = None) -> None:
        """`path`: the PATH at the start. `since_ns`: when the session began, if not now."""
        self._known: dict[str, tuple[dict[str, Inode], float]] = {}  # and when that was seen
        if since_ns is None:
            since_ns = time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
        self._since = divmod(since_ns, 1_000_000_000)
        folders = {each.rstrip("/") for each in path.split(":") if each.startswith("/")}
        self._on_path = {each: self._inode_of(each) for each in folders}

    def shadowed(
        self, caller: Caller, fd: int, state: State, called: bytes, *, elsewhere: bool
    ) -> str:
        """Return the command that the file of `fd`, found by the path `called`, shadows, or "".
        Raises WouldBlock."""
        path = os.fsdecode(called)
        if not path.startswith("/"):
            path = f"{_folder_of(caller, elsewhere=elsewhere)}/{path.removeprefix('./')}"
        if _is_in_the_systems(caller, fd, state, path, elsewhere=elsewhere):
            return ""
        found = self._commands(path.rpartition("/")[2], may_wait=caller.may_wait)
        if not found or state.inode in found.values():  # a link to the command itself
            return ""
        if self._is_older(caller, fd, state, path, elsewhere=elsewhere):
            return ""
        return next(iter(found))

    def _commands(self, name: str, *, may_wait: bool) -> dict[str, Inode]:
        known, now_s = self._known.get(name), time.monotonic()
        if known is None or now_s - known[1] > _LOOKED_AT_AGAIN_S:
            if len(self._known) >= _KEPT:
                self._known.clear()
            found = _system_commands(name, _ourselves(may_wait=may_wait))
            known = self._known[name] = found, now_s
        return known[0]

    def _is_older(
        self, caller: Caller, fd: int, state: State, path: str, *, elsewhere: bool
    ) -> bool:
        """Return whether the file and what leads to it stood there before the session. False if in
        doubt."""
        if elsewhere or not caller.shares_our_root or not caller.is_local(state):
            return False
        if not self._is_before(state):
            return False
        folder = path.rpartition("/")[0].rstrip("/")
        if folder in self._on_path:
            at_start = self._on_path[folder]
            if at_start is None or self._inode_of(folder) != at_start:
                return False  # another folder was put in its place
        try:
            return magic_of(fd) in _WITH_CHANGE_TIMES and self._led_to(caller, path) == state.inode
        except OSError:
            return False

    def _is_before(self, state: State) -> bool:
        seconds, nanoseconds = state.changed
        if not nanoseconds:  # some file systems keep whole seconds only
            return seconds < self._since[0]
        return state.changed < self._since

    def _led_to(self, caller: Caller, path: str) -> Inode | None:
        """Return what the path leads to, or None if one of its links is not older."""
        found, links = caller.open_with_links(os.fsencode(path))
        try:
            return caller.known_state(found).inode if all(map(self._is_before, links)) else None
        finally:
            os.close(found)

    def _inode_of(self, folder: str) -> Inode | None:
        try:
            return _state_at(f"{folder}/", _ourselves(may_wait=False)).inode
        except (WouldBlock, OSError):
            return None


def _system_commands(name: str, us: Caller) -> dict[str, Inode]:
    """Return the paths and files of the system's commands of this name. Raises WouldBlock."""
    found: dict[str, Inode] = {}
    for folder in COMMAND_FOLDERS:
        path = f"{folder}/{name}"
        try:
            state = _state_at(path, us)
        except OSError:
            continue
        if is_program(state) and in_a_system_folder(path):
            found[path] = state.inode
    return found


def _state_at(path: str, us: Caller) -> State:
    try:
        fd = open_known(path)
    except BlockingIOError:  # the kernel has not looked for it yet
        fd = us.open(os.fsencode(path))
    try:
        return us.known_state(fd)
    finally:
        os.close(fd)


def _ourselves(*, may_wait: bool) -> Caller:
    return Caller(os.getpid(), os.getpid(), may_wait=may_wait)


def _folder_of(caller: Caller, *, elsewhere: bool) -> str:
    """Return the caller's working folder; empty if it is on a mount of its own, where the path says
    nothing, or if it is too long."""
    if elsewhere:
        return ""
    folder = caller.open_folder()
    try:
        return path_of(folder)
    finally:
        os.close(folder)


def _is_in_the_systems(
    caller: Caller, fd: int, state: State, path: str, *, elsewhere: bool
) -> bool:
    if not may_be_the_systems(path):
        return False
    if not caller.shares_our_root:
        return True  # a container's own system; the event says that it is elsewhere
    if not caller.may_wait and not caller.is_local(state):
        raise WouldBlock(SERVED)
    if elsewhere:  # something is mounted there: the folder says nothing, but its file may
        return caller.is_plain(fd, state) and is_roots_own(fd)
    return in_a_system_folder(path)


class _Original(NamedTuple):
    path: str
    names: frozenset[str]


class NamedFiles:
    """The files that rules name, as sigwrap itself finds them, whatever a caller shows it."""

    def __init__(self, named: Named, search_path: str) -> None:
        """Look through the folders of `search_path` and the system's, once."""
        self._originals: dict[Inode, _Original] = {}
        folders = (each for each in (*search_path.split(":"), *COMMAND_FOLDERS) if each[:1] == "/")
        for real in dict.fromkeys(map(os.path.realpath, folders)):  # /bin is a link to /usr/bin
            try:
                names = os.listdir(real)
            except OSError:
                continue
            for name in {*named.among(names), *MULTICALL.intersection(names)}:
                self._add(f"{real}/{name}", name)
        for path in filter(os.path.exists, (*named.paths, *map(os.fsdecode, USUAL_LOADERS))):
            self._add(os.path.realpath(path), path.rpartition("/")[2])

    def originals(self, state: State, program: Program) -> list[Program]:
        """Return as what else `program` counts, whose file has this state: under another name, by
        a rename or a hard link, it is the same program."""
        if self.is_original(state, program.path):
            return []
        original = self._originals[state.inode]
        basename = program.path.rpartition("/")[2]
        names = {basename} if basename in original.names else original.names
        return [
            Program(original.path, name, program.argv, program.sha256, counts_by_name=True)
            for name in names
        ]

    def is_original(self, state: State, path: str) -> bool:
        """Return whether no rule names the file, or it is at the path where it was found."""
        original = self._originals.get(state.inode)
        return original is None or path == original.path

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
