"""What an exec asks for: its arguments and its environment, as the caller's memory has them now,
and the files that its words name along PATH.

The caller can change these after sigwrap has read them. The exec stop compares them with the new
image.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence

from sigwrap.bare import NamedTuple, blake2b
from sigwrap.calls import I386
from sigwrap.exec.content import ExecRefused
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import State
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.paths import AT_FDCWD, Caller, WouldBlock
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.policy.judge.loading import loading_variables

MATCHED_BYTES = 64 * 1024
_ENVIRONMENT_BYTES = 256 * 1024
_MOST_VARIABLES = 4096
_AT_EXECVE_CHECK = 0x10000

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_LOOK_UPS_AT_ONCE = 48  # three nested wrappers, a PATH of sixteen folders
_LOOK_UPS = 4096
_TOO_LONG = "too many paths to search for the program that it wraps"

Entries = tuple[tuple[str, bytes], ...]


def only_asks(notification: Notification, syscall: str) -> bool:
    """Return whether the call only asks (Linux 6.14) if the file could be executed."""
    return syscall == "execveat" and bool(notification.argument4 & _AT_EXECVE_CHECK)


class Given(NamedTuple):
    """An exec that sigwrap chooses itself: along with it, no variables are judged."""

    path: bytes
    argv: list[bytes]
    folder_fd: int = AT_FDCWD
    flags: int = 0

    def read_argv(self) -> tuple[list[bytes], bool]:
        return self.argv, False


class Asked:
    """The arguments of an execve or execveat."""

    __slots__ = (
        "_argv_at",
        "_memory",
        "_tid",
        "_word_size",
        "argv",
        "environment_at",
        "flags",
        "folder_fd",
        "path",
        "truncated",
    )

    def __init__(self, notification: Notification, syscall: str, memory: Memory) -> None:
        """Read all but argv. Raises Unreadable, and ExecRefused."""
        self._memory = memory
        self._tid = notification.tid
        self._word_size = 4 if notification.arch == I386 else 8
        arguments: tuple[int, ...] = notification[6:]
        self.folder_fd, self.flags = AT_FDCWD, 0
        if syscall == "execveat":
            self.folder_fd, self.flags = int32(arguments[0]), arguments[4]
            arguments = arguments[1:]
        highest = (1 << 8 * self._word_size) - 1
        path_at, self._argv_at, self.environment_at = (each & highest for each in arguments[:3])
        self.path, cut = memory.string(path_at)
        if cut:
            raise ExecRefused(errno.ENAMETOOLONG)
        self.argv: list[bytes] = []
        self.truncated = False

    def read_argv(self) -> tuple[list[bytes], bool]:
        """Return argv, and whether it is cut. Raises Unreadable."""
        self.argv, self.truncated = self._memory.strings(
            self._argv_at, self._word_size, MATCHED_BYTES
        )
        return self.argv, self.truncated

    def variable(self, name: bytes, *, may_wait: bool = False) -> bytes | None:
        """Return the variable's value; None also if the environment is too large or unreadable."""
        start = name + b"="
        found = self.environment(may_wait=may_wait) or ()
        return next((entry[len(start) :] for entry in found if entry.startswith(start)), None)

    def environment(self, *, may_wait: bool = False) -> list[bytes] | None:
        """Return the entries; None if they are too large or unreadable. Raises WouldBlock."""
        try:
            with Memory(self._tid, may_wait=may_wait) as memory:
                found, cut = memory.strings(
                    self.environment_at, self._word_size, _ENVIRONMENT_BYTES, _MOST_VARIABLES
                )
        except Unreadable:
            return None
        return None if cut else found


class Environment:
    """The variables of an exec, and what they make its program load."""

    __slots__ = ("_asked", "_entries", "_matters", "_own", "_raw", "_was_read")

    def __init__(self, asked: Asked, own: Mapping[str, bytes]) -> None:
        """`own`: the variables that sigwrap was started with."""
        self._asked = asked
        self._own = own
        self._entries: Entries | None = None
        self._raw: Sequence[bytes] | None = None
        self._was_read = False
        self._matters = False  # a decision depends on it

    def read(self, *, may_wait: bool = False) -> None:
        """Read the entries once. What failed in a worker must not be tried again in the loop."""
        if self._was_read:
            return
        self._was_read = True
        try:
            raw = self._raw = self._asked.environment(may_wait=may_wait)
        except WouldBlock:
            return  # a rule asks for them too late for a worker
        self._entries = None if raw is None else _entries(raw)

    def loads_code(self, names: Sequence[str], added: Sequence[str]) -> bool:
        """Return whether they load code into a program of these names, or can't be read.

        `added`: variables that a wrapper sets.
        """
        self.read()
        if self._entries is None:
            return True
        set_by_wrapper = tuple((name, b"set") for name in added)
        if loading_variables(names, self._entries + set_by_wrapper, self._own):
            return True
        self._matters = True
        return False

    def loaded(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """Return the variables that load code, with their values; None if they can't be read."""
        self.read()
        if self._entries is None:
            return None
        self._matters = True
        found = set(loading_variables(names, self._entries, self._own))
        return tuple(
            f"{name}={os.fsdecode(value)}" for name, value in self._entries if name in found
        )

    def digest(self, *, matters: bool) -> str:
        """Return a digest, or ""."""
        self.read()
        if self._raw is None:
            return ""
        self._matters |= matters
        return blake2b(_joined(self._raw)).hexdigest()

    def differs(self, pid: int) -> bool:
        """Return whether the image has others, if a decision depends on them. Raises OSError."""
        if not self._matters:
            return False
        with os.fdopen(procfs.open_file(f"/proc/{pid}/environ"), "rb") as file:
            return file.read() != _joined(self._raw or ())


def _joined(raw: Sequence[bytes]) -> bytes:
    """Return the entries as /proc/PID/environ has them."""
    return b"".join(entry + b"\0" for entry in raw)


def _entries(raw: Sequence[bytes]) -> Entries:
    split = (entry.partition(b"=") for entry in raw)
    return tuple((os.fsdecode(name), value) for name, _, value in split)


def is_program(state: State) -> bool:
    return stat.S_ISREG(state.mode) and bool(state.mode & 0o111)


class Search:
    """The search of one exec, with a limit for all its look-ups together."""

    __slots__ = ("_asked", "_caller", "_folders", "_left")

    def __init__(self, caller: Caller, asked: Asked) -> None:
        self._caller = caller
        self._asked = asked
        self._folders: list[bytes] | None = None
        self._left = _LOOK_UPS if caller.may_wait else _LOOK_UPS_AT_ONCE

    def find(self, word: bytes) -> tuple[int, State, bytes] | None:
        """Return an O_PATH descriptor, its state and its path. Raises WouldBlock."""
        for folder in [b""] if b"/" in word else self._path():
            self._left -= 1
            if self._left < 0:
                raise WouldBlock(_TOO_LONG)
            path = os.path.join(folder, word)
            try:
                fd = self._caller.open(path)
            except OSError:
                continue
            state = self._caller.state_of(fd)
            if is_program(state):
                return fd, state, path
            os.close(fd)
        return None

    def _path(self) -> list[bytes]:
        if self._folders is None:
            path = self._asked.variable(b"PATH", may_wait=self._caller.may_wait)
            self._folders = (DEFAULT_PATH if path is None else path).split(b":")
        return self._folders


def cwd_of(tid: int) -> str:
    """Return the working directory; "" if it cannot be read, or is longer than the kernel tells."""
    try:
        return procfs.link(f"/proc/{tid}/cwd")
    except OSError:
        return ""
