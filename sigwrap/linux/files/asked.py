"""What a call asks for that opens, makes, deletes or renames files: its paths are copied out of its
caller's memory, which is read once."""

from __future__ import annotations

import errno
import os
import struct

from sigwrap import calls
from sigwrap.linux.memory import PATH_MAX, Memory
from sigwrap.linux.paths import AT_FDCWD
from sigwrap.linux.seccomp import Notification, int32
from sigwrap.tuples import NamedTuple

RESOLVE_IN_ROOT = 0x10
_AT_SYMLINK_FOLLOW, _AT_EMPTY_PATH = 0x400, 0x1000
_CREAT = calls.O_CREAT | calls.O_WRONLY | calls.O_TRUNC
_O_PATH = os.O_PATH
_HOW = struct.Struct("<QQQ")  # flags, mode, resolve

# Where the folder and the path are among a call's arguments; None: the current folder.
_AT: dict[str, tuple[tuple[int | None, int], ...]] = {
    **dict.fromkeys(("open", "creat", "truncate", "truncate64"), ((None, 0),)),
    **dict.fromkeys(("unlink", "rmdir", "mkdir", "mknod"), ((None, 0),)),
    **dict.fromkeys(("openat", "openat2", "unlinkat", "mkdirat", "mknodat"), ((0, 1),)),
    **dict.fromkeys(("rename", "link"), ((None, 0), (None, 1))),
    **dict.fromkeys(("renameat", "renameat2", "linkat"), ((0, 1), (2, 3))),
    "symlink": ((None, 1),),
    "symlinkat": ((1, 2),),
}


class Name(NamedTuple):
    folder_fd: int  # the caller's
    path: bytes


class Asked(NamedTuple):
    syscall: str
    names: tuple[Name, ...]
    flags: int = 0  # of one that opens a file
    resolve: int = 0  # openat2's
    follows: bool = False  # a link is what it leads to

    @property
    def opens(self) -> bool:
        return self.syscall in ("open", "openat", "openat2", "creat")

    @property
    def changes_nothing(self) -> bool:
        """By its flags. With O_PATH the kernel passes over those that would."""
        return self.opens and (bool(self.flags & _O_PATH) or not self.flags & calls.O_CHANGES)


def asked(notification: Notification, syscall: str, *, may_wait: bool = False) -> Asked:
    """Raises Unreadable, MayWait, and OSError as the kernel fails the call."""
    arguments: tuple[int, ...] = notification[6:]
    flags = resolve = 0
    with Memory(notification.tid, may_wait=may_wait) as memory:
        match syscall:
            case "open":
                flags = arguments[1]
            case "openat":
                flags = arguments[2]
            case "creat":
                flags = _CREAT
            case "openat2":
                if arguments[3] < _HOW.size:
                    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
                flags, _mode, resolve = _HOW.unpack(memory.block(arguments[2], _HOW.size))
        names = tuple(_name(memory, arguments, *at) for at in _AT[syscall])
    return Asked(syscall, names, flags, resolve, _follows(syscall, arguments, flags))


def _name(memory: Memory, arguments: tuple[int, ...], folder: int | None, path: int) -> Name:
    text, is_cut = memory.string(arguments[path], PATH_MAX)
    if is_cut:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    return Name(AT_FDCWD if folder is None else int32(arguments[folder]), text)


def _follows(syscall: str, arguments: tuple[int, ...], flags: int) -> bool:
    match syscall:
        case "truncate" | "truncate64":
            return True
        case "linkat":
            return bool(arguments[4] & (_AT_SYMLINK_FOLLOW | _AT_EMPTY_PATH))
        case "open" | "openat" | "openat2" | "creat":
            exclusively = os.O_CREAT | os.O_EXCL
            return not flags & os.O_NOFOLLOW and flags & exclusively != exclusively
        case _:
            return False
