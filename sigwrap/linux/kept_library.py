"""A library that is read before COMMAND runs, and loaded once it is needed: from memory, so that
whoever writes its file meanwhile changes nothing, and by a way that nobody can put another on.
"""

from __future__ import annotations

import ctypes
import fcntl
import os

from sigwrap.linux import proc_files
from sigwrap.linux.libc import libc

_FILE_SYSTEM = 0x200  # CLONE_FS: a thread has a current folder by itself
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_PIECE_BYTES = 1 << 24
_PERTURB = -6  # M_PERTURB: what is allocated has the complement of this byte, 0: nothing is done


_command_may_run = False


def command_may_run() -> None:
    """From now on /proc may be another."""
    global _command_may_run
    _command_may_run = True


def demand_folder() -> None:
    """OSError where this thread can't have one of its own, as in a container: then what is loaded
    later can't be reached."""
    if libc.unshare(_FILE_SYSTEM) != 0:
        raise PermissionError(ctypes.get_errno(), "unshare")


def read(path: str) -> int:
    """A descriptor of what is in the file. OSError where a system forbids code that is in no file,
    or limits files, or where a container forbids what loading it takes."""
    demand_folder()
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fd = _new(path)
        while os.sendfile(fd, source, None, _PIECE_BYTES):
            continue
    finally:
        os.close(source)
    return _sealed(fd)


def written(name: str, data: bytes) -> int:
    """The same of what was read otherwise."""
    fd = _new(name)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    return _sealed(fd)


def _new(name: str) -> int:
    """None of the standard streams, where one of them is closed."""
    fd = os.memfd_create(os.path.basename(name), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        os.close(fd)


def _sealed(fd: int) -> int:
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return fd


class Reachable:
    """While it is entered, `path` leads the dynamic linker to it: /proc may be another by now."""

    def __init__(self, fd: int) -> None:
        self._held = proc_files.held()
        if self._held and not _command_may_run and libc.unshare(_FILE_SYSTEM) != 0:
            self._held = ()  # /proc is still the one that it seems to be
        self.path = f"./self/fd/{fd}" if self._held else f"/proc/self/fd/{fd}"

    def __enter__(self) -> None:
        if self._held:
            if libc.unshare(_FILE_SYSTEM) != 0:
                raise ImportError("this thread cannot have its own working directory")
            self._here = os.open(".", os.O_PATH | os.O_CLOEXEC)
            os.chdir(self._held[0])
            _fill_memory_with(0)

    def __exit__(self, *_: object) -> None:
        if self._held:
            _fill_memory_with(None)
            os.chdir(self._here)
            os.close(self._here)


def _fill_memory_with(byte: int | None) -> None:
    """What is allocated from now on; None: with nothing. The linker asks for the path of the folder
    that it is in, and a /proc that is a mount of ours has none: then glibc looks through those
    above, and 2.41 takes a lock there that nobody has set to 0, so it may never be free."""
    perturb = getattr(libc, "mallopt", None)
    if perturb is not None:
        perturb(_PERTURB, 0 if byte is None else byte ^ 0xFF)


def load(fd: int) -> None:
    """For those that need it: the linker finds it by the name that it gives itself."""
    reachable = Reachable(fd)
    with reachable:
        ctypes.CDLL(reachable.path)
