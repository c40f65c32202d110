"""Which of the system's commands a program has the name of, where a search along PATH found it.

A shell, `env` or execvp(3) that searches PATH keeps in argv[0] the word that it was given, which
has no slash, and execs a path whose folder is one of PATH. So a program whose argv[0] has a slash,
or whose folder is the system's, costs nothing but that look.
"""

from __future__ import annotations

import os
import stat
import time

from sigwrap.linux.execs.ownership import in_a_system_folder, is_roots_own
from sigwrap.linux.file_state import State
from sigwrap.linux.paths import SERVED, Caller, MayWait, OurView, path_of
from sigwrap.policy.judge.system_folders import COMMAND_FOLDERS, may_be_the_systems
from sigwrap.tuples import NamedTuple

_LISTED_AGAIN_S = 1.0


class _Listed(NamedTuple):
    changed: tuple[int, int]
    names: frozenset[str]


class SystemCommands:
    """The names in the system's folders, listed at the start; where one of these folders has
    changed, it is listed anew."""

    __slots__ = ("_folders", "_listed_s", "_view")

    def __init__(self, view: OurView) -> None:
        self._view = view
        self._folders: dict[str, _Listed] = {}
        self._listed_s = time.monotonic()
        self._list(may_wait=True)

    def shadowed(
        self, caller: Caller, fd: int, state: State, called: bytes, *, elsewhere: bool
    ) -> str:
        """By the file of `fd`, which was found by the path `called`; empty where it shadows none.
        Raises MayWait."""
        path = os.fsdecode(called)
        if not path.startswith("/"):
            path = f"{_folder_of(caller, elsewhere=elsewhere)}/{path.removeprefix('./')}"
        if _is_in_the_systems(caller, fd, state, path, elsewhere=elsewhere):
            return ""
        return self._of_name(path.rpartition("/")[2])

    def _of_name(self, name: str) -> str:
        now_s = time.monotonic()
        if now_s - self._listed_s > _LISTED_AGAIN_S:
            self._listed_s = now_s
            self._list(may_wait=False)
        for folder, listed in self._folders.items():
            if name in listed.names and self._is_command(f"{folder}/{name}"):
                return f"{folder}/{name}"
        return ""

    def _list(self, *, may_wait: bool) -> None:
        """In the order of COMMAND_FOLDERS, each folder once, whatever links lead to it."""
        us = self._us(may_wait=may_wait)
        found: dict[str, _Listed] = {}
        real: set[tuple[int, int]] = set()
        for folder in COMMAND_FOLDERS:
            known = self._folders.get(folder)
            try:
                fd = us.open(os.fsencode(folder))
            except MayWait:
                if known is not None:
                    found[folder] = known
                continue
            except OSError:
                continue
            try:
                state = us.known_state(fd)
                if state.inode in real or not in_a_system_folder(f"{folder}/"):
                    continue
                real.add(state.inode)
                if known is None or known.changed != state.changed:
                    # An O_PATH descriptor can't be listed, but the folder that it holds can.
                    known = _Listed(state.changed, frozenset(os.listdir(folder)))
                found[folder] = known
            except OSError:
                continue
            finally:
                os.close(fd)
        self._folders = found

    def _is_command(self, path: str) -> bool:
        us = self._us(may_wait=False)
        try:
            fd = us.open(os.fsencode(path))
        except MayWait:
            return True  # what it is, somebody else would have to tell
        except OSError:
            return False
        try:
            mode = us.known_state(fd).mode
        finally:
            os.close(fd)
        return stat.S_ISREG(mode) and bool(mode & 0o111)

    def _us(self, *, may_wait: bool) -> Caller:
        return Caller(os.getpid(), os.getpid(), self._view, may_wait=may_wait)


def _folder_of(caller: Caller, *, elsewhere: bool) -> str:
    """Where the caller is. Empty where that is on a mount of its own, of which the path says
    nothing, or too long to be told."""
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
        raise MayWait(SERVED)
    if elsewhere:  # something is mounted there: the folder says nothing, but its file may
        return caller.is_plain(fd, state) and is_roots_own(fd)
    return in_a_system_folder(path)
