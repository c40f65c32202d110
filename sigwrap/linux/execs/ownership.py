"""Whether a program is the system's own: only root can change it, and what it was called by."""

from __future__ import annotations

import os
import stat

from sigwrap.policy.judge.system_folders import may_be_the_systems

_FOLDERS_KEPT = 1000
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH

_known_folders: dict[str, bool] = {}


def is_the_systems(fd: int, called: str, path: str) -> bool:
    """`path`: where the file of `fd` is. Where it is called by its own name, it doesn't matter by
    which link; another name has to be the system's too."""
    state = os.fstat(fd)
    if state.st_uid != 0 or state.st_mode & _WRITABLE_BY_OTHERS:
        return False
    if not _in_a_system_folder(path):
        return False
    return called.rpartition("/")[2] == path.rpartition("/")[2] or _in_a_system_folder(called)


def _in_a_system_folder(path: str) -> bool:
    if not may_be_the_systems(path):
        return False
    folder = path.rpartition("/")[0]
    known = _known_folders.get(folder)
    if known is None:
        if len(_known_folders) >= _FOLDERS_KEPT:
            _known_folders.clear()
        known = _known_folders[folder] = _only_root_changes(folder)
    return known


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
