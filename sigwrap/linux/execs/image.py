"""Compare what the kernel loaded with what was judged: before the new image runs its first
instruction."""

from __future__ import annotations

import os

from sigwrap.linux import proc_files
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.file_state import place_of

_SHOWN_BYTES = 64 * 1024


def difference(pid: int, judged: Executable) -> str:
    """Return what differs, or ""."""
    try:
        if not _is_loaded(pid, judged):
            return "the kernel loaded another file"
        if not _matches(pid, judged.command_line, judged.cut):
            return "its arguments changed"
        if not judged.loader_holds(pid):
            return "the kernel loaded another interpreter"
        if judged.readable and place_of(b"/proc/%d/root" % pid) != judged.root:
            return "its root directory changed, and it loads libraries from there"
        if judged.readable and not judged.where.holds(pid):
            return "its directory changed"
        if not (judged.content_holds() and judged.digests_hold()):
            return "the file's content changed"
        if judged.readable and judged.environment and judged.environment.differs(pid):
            return "its environment changed"
    except OSError as unreadable:
        return f"cannot read the loaded image: {unreadable.strerror}"
    return ""


def shown(pid: int) -> tuple[str, tuple[str, ...]]:
    """Return the loaded file and its arguments, as far as they are readable."""
    path, argv = "", list[bytes]()
    try:
        argv = _read(pid, _SHOWN_BYTES).split(b"\0")[:-1]
        path = proc_files.link(f"/proc/{pid}/exe")
    except OSError:
        pass
    return path, tuple(map(os.fsdecode, argv))


def _is_loaded(pid: int, judged: Executable) -> bool:
    """Return whether the judged file is loaded, from the same mount.

    On another mount, other libraries may lie beside the file. If sigwrap may not read the program,
    it can only check that the loaded one is unreadable as well.
    """
    try:
        loaded = judged.place_of_image(pid)
    except PermissionError:
        if judged.readable:
            raise
        return True
    return loaded == judged.image


def _matches(pid: int, wanted: bytes, cut: bool) -> bool:
    found = _read(pid, len(wanted) + 1)
    return found.startswith(wanted) if cut else found == wanted


def _read(pid: int, size: int) -> bytes:
    """Read the arguments in one call, which returns `size` bytes, or all."""
    fd = proc_files.open_file(f"/proc/{pid}/cmdline")
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)
