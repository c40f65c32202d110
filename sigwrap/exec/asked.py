"""What an exec asks for: its arguments and its environment, as the caller's memory has them now;
and its root and working directory.

The caller can change these after sigwrap has read them. The exec stop compares them with the new
image.
"""

from __future__ import annotations

import _thread
import errno
import os
import select
from collections.abc import Mapping, Sequence

from sigwrap.bare import NamedTuple, blake2b
from sigwrap.calls import I386
from sigwrap.exec.content import ExecRefused
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import (
    MountLine,
    Place,
    mount_of,
    place_of,
    read_mountinfo,
    unescaped,
)
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.paths import AT_FDCWD, Caller, OurView, WouldBlock, path_of
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.policy.judge.loading import loading_variables
from sigwrap.policy.judge.match import UNTOLD_BELOW
from sigwrap.session.effects import NOWHERE, Whereabouts

MATCHED_BYTES = 64 * 1024
_ENVIRONMENT_BYTES = 256 * 1024
_MOST_VARIABLES = 4096
_AT_EXECVE_CHECK = 0x10000
_MOST_UNTOLD = 256

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

    __slots__ = ("_asked", "_clean", "_entries", "_loaded", "_own", "_raw", "_stays", "_was_read")

    def __init__(self, asked: Asked, own: Mapping[str, bytes]) -> None:
        """`own`: the variables that sigwrap was started with."""
        self._asked = asked
        self._own = own
        self._entries: Entries | None = None
        self._raw: Sequence[bytes] | None = None
        self._stays = False
        self._was_read = False
        self._clean: list[Sequence[str]] = []  # names of programs that nothing is loaded into
        self._loaded: tuple[Sequence[str], tuple[str, ...]] | None = None  # by names of programs

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
        self._clean.append(names)
        return False

    def loaded(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """Return the variables that load code, with their values; None if they can't be read."""
        self.read()
        if self._entries is None:
            return None
        found = _loaded(names, self._entries, self._own)
        self._loaded = names, found
        return found

    def digest(self, *, stays: bool) -> str:
        """Return a digest, or "". `stays`: the exec stop compares every entry."""
        self.read()
        if self._raw is None:
            return ""
        self._stays = stays
        return blake2b(_joined(self._raw)).hexdigest()

    def differs(self, pid: int) -> bool:
        """Return whether the new image has others, as far as they matter. Raises OSError."""
        if not self._clean and not self._stays and self._loaded is None:
            return False
        with os.fdopen(procfs.open_file(f"/proc/{pid}/environ"), "rb") as file:
            found = file.read()
        if self._stays and self._raw is not None and found != _joined(self._raw):
            return True
        entries = _entries(found.split(b"\0"))
        if self._loaded is not None:
            names, loaded = self._loaded
            if _loaded(names, entries, self._own) != loaded:
                return True
        return any(loading_variables(names, entries, self._own) for names in self._clean)


def _loaded(names: Sequence[str], entries: Entries, own: Mapping[str, bytes]) -> tuple[str, ...]:
    found = set(loading_variables(names, entries, own))
    return tuple(f"{name}={os.fsdecode(value)}" for name, value in entries if name in found)


def _joined(raw: Sequence[bytes]) -> bytes:
    """Return the entries as /proc/PID/environ has them."""
    return b"".join(entry + b"\0" for entry in raw)


def _entries(raw: Sequence[bytes]) -> Entries:
    split = (entry.partition(b"=") for entry in raw)
    return tuple((os.fsdecode(name), value) for name, _, value in split)


# The root and the working directory, and whether sigwrap's own paths lead there.

_CHUNK = 1 << 16


class OurMounts:
    """The mounts of sigwrap's own mount namespace below its root."""

    def __init__(self, our_root: Place) -> None:
        self._root_mount = our_root[3]  # not listed if the root is a directory within a mount
        self._list_fd = procfs.open_file("/proc/self/mountinfo")
        self._changes = select.poll()
        self._changes.register(self._list_fd, select.POLLPRI)
        self._lock = _thread.allocate_lock()  # a worker may look as well
        self._ids = self._numbers()

    def hold(self, fd: int) -> bool:
        """Return whether an open file lies on one of them.

        The kernel reuses ids, but a change of the list before the file was opened is noticed here.
        """
        mount = mount_of(fd)
        if mount == self._root_mount:
            return True
        with self._lock:
            if self._changes.poll(0):
                self._ids = self._numbers()
            return mount in self._ids

    def cover(self, fd: int) -> bool:
        """Return whether another mount covers the path of a file that lies on one of them.

        This asks no file system.
        """
        path = os.fsencode(path_of(fd))
        with self._lock:
            listed = self._listed()
        return bool(path) and mount_at(path, self._root_mount, listed) != mount_of(fd)

    def _numbers(self) -> frozenset[int]:
        return frozenset(each.number for each in self._listed())

    def _listed(self) -> list[MountLine]:
        os.lseek(self._list_fd, 0, os.SEEK_SET)
        data = b""
        while chunk := os.read(self._list_fd, _CHUNK):
            data += chunk
        return read_mountinfo(data)


def mount_at(path: bytes, root: int, listed: Sequence[MountLine]) -> int:
    """Return the mount at the end of a path without links.

    On the way, each mount continues in the first one on it. A mount on the root itself does not
    count, because processes stay below it.
    """
    nearest: dict[int, tuple[int, int]] = {}  # by mount: path length so far, mount there
    for each in listed:
        point = unescaped(each.point)
        if point != b"/" and (path == point or path.startswith(point + b"/")):
            found = len(point), each.number
            nearest[each.parent] = min(found, nearest.get(each.parent, found))
    number = root
    while number in nearest:
        number = nearest[number][1]
    return number


class Where:
    """The root and directory of a caller, which the exec stop compares if a decision used them."""

    __slots__ = ("_caller", "_folder", "_mounts")

    def __init__(self, caller: Caller, mounts: OurMounts) -> None:
        self._caller = caller
        self._mounts = mounts
        self._folder: Place | None = None

    def read(self) -> Whereabouts:
        try:
            folder = self._caller.open_folder()
        except OSError:  # the caller is ending, or may not be read any more
            return NOWHERE
        try:
            self._folder = place_of(folder)
            are_ours = self._caller.shares_our_root and self._mounts.hold(folder)
            return Whereabouts(
                path_of(folder),
                f"{self._caller.root} {self._folder}",
                are_ours,
                is_covered=are_ours and self._mounts.cover(folder),
            )
        finally:
            os.close(folder)

    def holds(self, pid: int) -> bool:
        """Return at the exec stop whether the directory is the same."""
        return self._folder is None or place_of(b"/proc/%d/cwd" % pid) == self._folder


def cwd_of(tid: int) -> str:
    try:
        return procfs.link(f"/proc/{tid}/cwd")
    except OSError:
        return ""


def folder_of(tid: int, pid: int, view: OurView) -> str:
    """Return the working directory; "" if it can't be read without waiting.

    The kernel returns no path longer than a page. Then it is the path of a directory above, with
    UNTOLD_BELOW for each one below that.
    """
    if told := cwd_of(tid):
        return told
    try:
        caller = Caller(tid, pid, view)
        folder = caller.open_folder()
    except OSError:
        return ""
    try:
        for untold in range(_MOST_UNTOLD):
            if told := path_of(folder):
                return told + UNTOLD_BELOW * untold
            above = caller.open_part(folder, b"..")
            os.close(folder)
            folder = above
    except (OSError, WouldBlock):
        pass
    finally:
        os.close(folder)
    return ""
