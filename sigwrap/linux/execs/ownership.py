"""Whether a program is the system's own: only root can change it, and what it was called by."""

from __future__ import annotations

import os
import stat
import time

from sigwrap.policy.judge.system_folders import may_be_the_systems

_FOLDERS_KEPT = 1000
_LOOKED_AT_AGAIN_S = 1.0
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_known_folders: dict[str, tuple[bool, float]] = {}  # and when that was seen


def is_the_systems(fd: int, called: str, path: str) -> bool:
    """`path`: where the file of `fd` is. Where it is called by its own name, it doesn't matter by
    which link; another name has to be the system's too."""
    if not is_roots_own(fd) or not in_a_system_folder(path):
        return False
    return called.rpartition("/")[2] == path.rpartition("/")[2] or in_a_system_folder(called)


def is_roots_own(fd: int) -> bool:
    state = os.fstat(fd)
    return state.st_uid == 0 and not state.st_mode & _WRITABLE_BY_OTHERS


def in_a_system_folder(path: str) -> bool:
    """`path`: of what is in the folder, absolute."""
    if not may_be_the_systems(path):
        return False
    folder = path.rpartition("/")[0]
    known, now_s = _known_folders.get(folder), time.monotonic()
    if known is None or now_s - known[1] > _LOOKED_AT_AGAIN_S:
        if len(_known_folders) >= _FOLDERS_KEPT:
            _known_folders.clear()
        known = _known_folders[folder] = _only_root_changes(folder), now_s
    return known[0]


def _only_root_changes(folder: str) -> bool:
    """It, and each folder on the way to it: a folder that can be renamed can be replaced."""
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
