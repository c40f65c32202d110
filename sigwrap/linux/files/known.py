"""What is at a path, as far as the kernel's caches know: no file system is asked, so nothing waits.

A process that has just tried a path has put it there."""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.linux.file_state import (
    AT_EMPTY_PATH,
    AT_STATX_DONT_SYNC,
    OWNER,
    STATX_BASIC_STATS,
    ask,
    told_state,
)
from sigwrap.linux.paths import open_known, path_of
from sigwrap.mediate.refused_files import Found
from sigwrap.policy.judge.request import Operation

_NOTHING_THERE = (errno.ENOENT, errno.ENOTDIR)
_TRIES = 3  # another process that renames something can break one off
_IN_A_FOLDER = frozenset({Operation.CREATE, Operation.DELETE})


def look(path: str) -> Found | None:
    """None: nothing is there. OSError where the caches do not know."""
    for left in reversed(range(_TRIES)):
        try:
            fd = open_known(path)
            break
        except OSError as refusal:
            if refusal.errno in _NOTHING_THERE:
                return None
            if refusal.errno != errno.EAGAIN or not left:
                raise
    try:
        found = ask(fd, b"", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS)
        mode = told_state(found).mode
        uid, gid = OWNER.unpack_from(found)
        return Found(path_of(fd), stat.S_ISDIR(mode), frozenset(_permitted(mode, uid, gid)))
    finally:
        os.close(fd)


def _permitted(mode: int, uid: int, gid: int) -> set[Operation]:
    """To us, and so to our processes. Access lists are not looked at."""
    if os.geteuid() == 0:
        bits = 0o7
    elif uid == os.geteuid():
        bits = mode >> 6
    elif gid in (os.getegid(), *os.getgroups()):
        bits = mode >> 3
    else:
        bits = mode
    may = {Operation.READ} if bits & 0o4 else set()
    if bits & 0o2:
        may |= _IN_A_FOLDER | {Operation.WRITE}
    return may
