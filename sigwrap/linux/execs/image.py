"""What the kernel loaded, held against what was judged: at the exec stop, before the new image runs
its first instruction."""

from __future__ import annotations

import os

from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.paths import inode_of

_SHOWN_BYTES = 64 * 1024


def difference(pid: int, judged: Executable) -> str:
    """Empty where the right program was loaded."""
    try:
        if not _is_loaded(pid, judged):
            return "another file was loaded"
        if not _matches(pid, judged.command_line, judged.cut):
            return "its arguments are others"
        if not judged.content_holds():
            return "the file's content changed"
    except OSError as unreadable:
        return f"the loaded image can't be read: {unreadable.strerror}"
    return ""


def shown(pid: int) -> tuple[str, tuple[str, ...]]:
    """The loaded file and its arguments, as far as they can be known."""
    path, argv = "", list[bytes]()
    try:
        argv = _read(pid, _SHOWN_BYTES).split(b"\0")[:-1]
        path = os.readlink(f"/proc/{pid}/exe")
    except OSError:
        pass
    return path, tuple(map(os.fsdecode, argv))


def _is_loaded(pid: int, judged: Executable) -> bool:
    """Of a program that sigwrap may not read, only this is known: what was loaded may not be read
    either."""
    try:
        loaded = inode_of(b"/proc/%d/exe" % pid)
    except PermissionError:
        if judged.readable:
            raise
        return True
    return loaded == judged.image


def _matches(pid: int, wanted: bytes, cut: bool) -> bool:
    found = _read(pid, len(wanted) + 1)
    return found.startswith(wanted) if cut else found == wanted


def _read(pid: int, size: int) -> bytes:
    """In one read: the kernel goes on until it has `size` bytes, or all."""
    fd = os.open(f"/proc/{pid}/cmdline", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)
