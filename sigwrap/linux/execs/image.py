"""Compare what the kernel loaded with what was judged: at the exec stop, before the new image runs
its first instruction; without a stop, as soon as sigwrap sees the image."""

from __future__ import annotations

import os

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.file_state import Place, place_of
from sigwrap.tuples import NamedTuple

_SHOWN_BYTES = 64 * 1024


def difference(pid: int, judged: Executable, *, files_too: bool = True) -> str:
    """Return what differs, or ""."""
    try:
        if not _is_loaded(pid, judged):
            return "the kernel loaded another file"
        if not _matches(pid, judged.command_line, judged.cut):
            return "its arguments changed"
        if files_too and not judged.loader_holds(pid):
            return "the kernel loaded another interpreter"
        if judged.readable and place_of(b"/proc/%d/root" % pid) != judged.root:
            return "its root directory changed, and it loads libraries from there"
        if judged.readable and not judged.where.holds(pid):
            return "its directory changed"
        if files_too and not (judged.content_holds() and judged.digests_hold()):
            return "the file's content changed"
        if judged.readable and judged.environment and judged.environment.differs(pid):
            return "its environment changed"
    except OSError as unreadable:
        return f"cannot read the loaded image: {unreadable.strerror}"
    return ""


class State(NamedTuple):
    """What an exec changes in /proc."""

    file: Place | None  # None if unreadable
    layout: tuple[int, ...]
    command_line: bytes

    @property
    def is_half_loaded(self) -> bool:
        """Return whether the kernel has yet to set the arguments."""
        return self.file is not None and not self.command_line


def state(pid: int, judged: Executable) -> State | None:
    """Return the process's state; None if it has no image, because it ends.

    As many bytes of its arguments are read as tell them from those of `judged`.
    """
    try:
        file = judged.place_of_image(pid)
        line = _read(pid, len(judged.command_line) + 1)
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError:
        return State(None, (), b"")
    return State(file, procfs.image(pid) or (), line)


def file(pid: int, judged: Executable) -> Place | None:
    try:
        return judged.place_of_image(pid)
    except OSError:
        return None


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
