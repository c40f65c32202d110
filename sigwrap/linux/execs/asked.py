"""What the arguments of an exec say, as the caller's memory has them now."""

from __future__ import annotations

import errno

from sigwrap.calls import I386
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.paths import AT_FDCWD
from sigwrap.linux.seccomp import Notification, int32

MATCHED_BYTES = 64 * 1024
_ENVIRONMENT_BYTES = 256 * 1024
_MOST_VARIABLES = 4096
_AT_EXECVE_CHECK = 0x10000


class ExecRefused(Exception):
    """The kernel would refuse the exec; `errno` is what it would say."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.errno = error


def only_asks(notification: Notification, syscall: str) -> bool:
    """Whether the call asks (Linux 6.14) if the file could be executed, and nothing more."""
    return syscall == "execveat" and bool(notification.argument4 & _AT_EXECVE_CHECK)


class Asked:
    """The call's arguments. The strings can be rewritten after we read them."""

    __slots__ = (
        "argv",
        "argv_at",
        "environment_at",
        "flags",
        "folder_fd",
        "path",
        "path_at",
        "truncated",
        "word_size",
    )

    def __init__(self, notification: Notification, syscall: str, memory: Memory) -> None:
        """Without argv. Raises Unreadable, and ExecRefused."""
        self.word_size = 4 if notification.arch == I386 else 8
        if syscall == "execve":
            self.folder_fd, self.flags = AT_FDCWD, 0
            self.path_at, self.argv_at = notification.argument0, notification.argument1
            self.environment_at = notification.argument2
        else:
            self.folder_fd, self.flags = int32(notification.argument0), notification.argument4
            self.path_at, self.argv_at = notification.argument1, notification.argument2
            self.environment_at = notification.argument3
        if self.word_size == 4:
            self.path_at &= 0xFFFFFFFF
            self.argv_at &= 0xFFFFFFFF
            self.environment_at &= 0xFFFFFFFF
        self.path, cut = memory.string(self.path_at)
        if cut:
            raise ExecRefused(errno.ENAMETOOLONG)
        self.argv: list[bytes] = []
        self.truncated = False

    def read_argv(self, memory: Memory) -> tuple[list[bytes], bool]:
        """Raises Unreadable."""
        self.argv, self.truncated = memory.strings(self.argv_at, self.word_size, MATCHED_BYTES)
        return self.argv, self.truncated

    def variable(self, tid: int, name: bytes, *, may_wait: bool = False) -> bytes | None:
        """None as well where the environment is too large, or can't be read."""
        start = name + b"="
        found = self.environment(tid, may_wait=may_wait) or ()
        return next((entry[len(start) :] for entry in found if entry.startswith(start)), None)

    def environment(self, tid: int, *, may_wait: bool = False) -> list[bytes] | None:
        """None where it is too large, or can't be read."""
        try:
            with Memory(tid, may_wait=may_wait) as memory:
                found, cut = memory.strings(
                    self.environment_at, self.word_size, _ENVIRONMENT_BYTES, _MOST_VARIABLES
                )
        except Unreadable:
            return None
        return None if cut else found
