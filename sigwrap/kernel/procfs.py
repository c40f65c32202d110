"""Read /proc, below a directory of it that no process in a session can mount over.

Root in a session can mount anything over /proc, and over each directory in it. So the run opens its
own before the command starts. For root it is a new mount without a path, on which no process can
mount. For root of a user namespace, which may not make a new one, it is a copy of the mount. For an
ordinary user, whose session cannot mount there, it is the directory. Paths are written as usual,
`/proc/…`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from sigwrap.bare import AnyStr, NamedTuple
from sigwrap.errors import DOCTOR, KernelError, SessionError
from sigwrap.kernel.libc import syscall
from sigwrap.machine import NUMBERS

_SYS_OPEN_TREE = NUMBERS["open_tree"]
_SYS_MOUNT_SETATTR = NUMBERS["mount_setattr"]
_CLONE = 1
_ITSELF = 0x1000  # AT_EMPTY_PATH
_ALL_OF_IT = 0x8000  # AT_RECURSIVE: includes mounts of containers over parts of it
_PRIVATE = struct.pack("<QQQQ", 0, 0, 1 << 18, 0)  # mounts made elsewhere do not appear there

_SYS_FSOPEN = NUMBERS["fsopen"]
_SYS_FSCONFIG = NUMBERS["fsconfig"]
_SYS_FSMOUNT = NUMBERS["fsmount"]
_CLOEXEC = 1  # for both descriptors
_CREATE = 6
_THIS_FOLDER = -100  # AT_FDCWD
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_held: int | None = None
_is_a_mount_of_ours = False
_skipped = 0  # bytes to skip in a path, once /proc is open


def hold() -> None:
    """Open /proc, once, before the command runs."""
    global _held, _skipped, _is_a_mount_of_ours
    for make in (_new_mount, _copied_mount):
        try:
            folder = make()
        except (KernelError, OSError):
            continue
        if _can_be_read(folder):
            _held, _is_a_mount_of_ours = folder, True
            break
        os.close(folder)
    else:
        try:
            _held = os.open("/proc", _FOLDER)
        except OSError:
            return  # there is no /proc
    _skipped = len("/proc/")


def _can_be_read(folder: int) -> bool:
    """Return False if file rules of another session forbid to read it."""
    try:
        os.close(os.open("self/maps", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder))
    except OSError:
        return False
    return True


def require() -> None:
    """Check that there is a /proc, and that it belongs to this pid namespace."""
    way_out = f"mount it: mount -t proc proc /proc; {DOCTOR}"
    if not os.path.exists("/proc/self"):
        raise SessionError("/proc is missing, and sigwrap needs it", way_out)
    if link("/proc/self") != str(os.getpid()):
        raise SessionError("/proc belongs to another pid namespace", way_out)


def is_ours() -> bool:
    """Return whether no process in the session can mount over it."""
    return _is_a_mount_of_ours


def _new_mount() -> int:
    context = syscall("fsopen", _SYS_FSOPEN, b"proc\0", _CLOEXEC)
    try:
        syscall("fsconfig", _SYS_FSCONFIG, context, _CREATE, 0, 0, 0)
        mounted = syscall("fsmount", _SYS_FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    return _folder_of(mounted)


def _copied_mount() -> int:
    flags = _CLONE | os.O_CLOEXEC | _ALL_OF_IT
    mounted = syscall("open_tree", _SYS_OPEN_TREE, _THIS_FOLDER, b"/proc\0", flags)
    try:
        flags = _ITSELF | _ALL_OF_IT
        size = len(_PRIVATE)
        syscall("mount_setattr", _SYS_MOUNT_SETATTR, mounted, b"\0", flags, _PRIVATE, size)
    except KernelError:
        os.close(mounted)
        raise
    return _folder_of(mounted)


def _folder_of(mounted: int) -> int:
    """Open the directory of a mount, whose own descriptor is usable only for paths."""
    try:
        return os.open(".", _FOLDER, dir_fd=mounted)
    finally:
        os.close(mounted)


def held() -> tuple[int, ...]:
    """Return the descriptor of /proc, for a thread with its own table."""
    return () if _held is None else (_held,)


def at(path: bytes) -> tuple[int, bytes]:
    """Return a directory's descriptor and a path from there, also for paths outside /proc."""
    if _held is None or not path.startswith(b"/proc/"):
        return _THIS_FOLDER, path
    return _held, path[_skipped:]


def open_file(path: str | bytes, flags: int = os.O_RDONLY) -> int:
    return os.open(path[_skipped:], flags | os.O_CLOEXEC, dir_fd=_held)


def contents(path: str) -> bytes | None:
    """Read a file that the kernel writes at once; None if it is unreadable or the process ended."""
    try:
        fd = open_file(path)
    except OSError:
        return None
    try:
        data = os.read(fd, 4096)
        if len(data) < 4096:
            return data
        parts = [data]
        while data := os.read(fd, 1 << 16):
            parts.append(data)
        return b"".join(parts)
    except OSError:  # ESRCH: the process ended between open and read
        return None
    finally:
        os.close(fd)


def all_contents(path: str) -> bytes:
    """Read a list in several read(2) calls, each of which returns whole lines. Raises OSError."""
    with os.fdopen(open_file(path), "rb") as file:
        return file.read()


def link(path: AnyStr) -> AnyStr:
    return os.readlink(path[_skipped:], dir_fd=_held)


def linked(path: str) -> str:
    """Return a link's target; "" if it is unreadable or missing."""
    try:
        return link(path)
    except OSError:
        return ""


def file_status(path: str) -> os.stat_result:
    return os.stat(path[_skipped:], dir_fd=_held)


def names(path: str) -> list[str]:
    folder = open_file(path, _FOLDER)
    try:
        return os.listdir(folder)
    finally:
        os.close(folder)


def exists(path: str) -> bool:
    try:
        file_status(path)
    except OSError:
        return False
    return True


def all_pids() -> list[int]:
    """Return the pids of all processes.

    Opens /proc anew: processes forked from this one share the position in the held directory, and
    would take entries from each other's lists.
    """
    return [int(name) for name in names("/proc/.") if name.isdigit()]


_EXITING = 0x00000004
_KERNEL_THREAD = 0x00200000
_MOST_ANCESTORS = 4096  # more than there can be, unless pids are reused meanwhile
_CAP_SYS_ADMIN = 1 << 21
_STAT_BYTES = 2048


class Stat(NamedTuple):
    pid: int
    comm: str
    state: str
    ppid: int
    pgrp: int
    session: int
    is_kernel_thread: bool
    is_exiting: bool  # at least its leader, which has no image any more
    threads: int
    start_time: int
    exit_status: int  # as in wait(2), for a zombie; 0 if unreadable
    image: tuple[int, ...]  # where its last exec put code, stack, heap; () if unreadable

    @property
    def has_ended(self) -> bool:
        """Return whether the process has ended. With threads left, it runs without its leader."""
        return self.state in "ZX" and self.threads <= 1


def stat(pid: int) -> Stat | None:
    """Return the process's stat file; None if there is no such process."""
    data = contents(f"/proc/{pid}/stat")
    return None if data is None else read_stat(data)


def ancestors(pid: int) -> Iterator[int]:
    """Yield the process's parent, the parent's parent, and so on."""
    for _ in range(_MOST_ANCESTORS):
        found = stat(pid)
        if found is None or found.ppid == 0:
            return
        pid = found.ppid
        yield pid


def has_ended(pid: int) -> bool:
    found = stat(pid)
    return found is None or found.has_ended


def is_stopped(pid: int) -> bool:
    """Return whether a signal stopped the process. A stop for its tracer does not count."""
    found = stat(pid)
    return found is not None and found.state == "T"


def read_stat(data: bytes) -> Stat:
    left, right = data.index(b"("), data.rindex(b")")
    fields = _after_name(data)
    flags = int(fields[6])
    return Stat(  # by position, which is faster, and each exec makes several
        int(data[:left]),
        data[left + 1 : right].decode("utf-8", "surrogateescape"),
        chr(fields[0][0]),
        int(fields[1]),
        int(fields[2]),
        int(fields[3]),
        bool(flags & _KERNEL_THREAD),
        bool(flags & _EXITING),
        int(fields[17]),
        int(fields[19]),
        int(fields[49]),
        _image(fields),
    )


def image(pid: int) -> tuple[int, ...] | None:
    """Return stat(pid).image in a third of the time; None if there is no such process."""
    fields = figures(pid)
    return None if fields is None else _image(fields)


def figures(pid: int) -> list[bytes] | None:
    """Return the fields of the stat file from the state on; None if there is no such process."""
    data = contents(f"/proc/{pid}/stat")
    return None if data is None else _after_name(data)


class LastFigures:
    """Reads the figures of the last process faster: its stat file stays open.

    Once that process has ended, the file cannot be read, even if another process has its pid.
    """

    def __init__(self) -> None:
        self._pid, self._fd = 0, -1

    def of(self, pid: int) -> list[bytes] | None:
        """Return figures(pid)."""
        if pid == self._pid:
            try:
                return _after_name(os.pread(self._fd, _STAT_BYTES, 0))
            except ProcessLookupError:
                pass
        self.close()
        try:
            self._fd, self._pid = open_file(f"/proc/{pid}/stat"), pid
            return _after_name(os.pread(self._fd, _STAT_BYTES, 0))
        except OSError:
            return None

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._pid, self._fd = 0, -1


def kilobytes(path: str, *names: bytes) -> int | None:
    """Return the sum of these lines of a file; None if it is unreadable."""
    data = contents(path)
    if not data:
        return None
    found = (_field(data, name) for name in names)
    return sum(int(field.split()[0]) for field in found if field)


def terminal(pid: int) -> tuple[int, int] | None:
    """Return the controlling terminal's number, or 0, and its foreground group."""
    fields = figures(pid)
    return None if fields is None else (int(fields[4]), int(fields[5]))


def controlling_terminal(pid: int) -> int | None:
    """Return the device number of the controlling terminal."""
    found = terminal(pid)
    return None if found is None else found[0] & 0xFFFFFFFF or None


def _after_name(data: bytes) -> list[bytes]:
    """Return the fields after the name, which may contain parentheses, spaces and line ends."""
    return data[data.rindex(b")") + 2 :].split(b" ")


def _image(fields: list[bytes]) -> tuple[int, ...]:
    stack = int(fields[25])
    return (int(fields[23]), stack, int(fields[44])) if stack else ()


def call_of(pid: int, tid: int) -> int | None:
    """Return the system call that a thread is in; less than 0 for none, None if unreadable."""
    known = call_and_arguments(pid, tid)
    return None if known is None else known[0]


def call_and_arguments(pid: int, tid: int) -> tuple[int, tuple[int, ...]] | None:
    try:
        fd = open_file(f"/proc/{pid}/task/{tid}/syscall")
        try:
            words = os.read(fd, 256).split()
        finally:
            os.close(fd)
    except (FileNotFoundError, ProcessLookupError):
        return -1, ()
    except OSError:
        return None
    if not words or words[0] == b"running":
        return None
    return int(words[0]), tuple(int(word, 16) for word in words[1:7])


def thread_state(pid: int, tid: int) -> str:
    """Return the thread's state; "" if it is gone."""
    data = contents(f"/proc/{pid}/task/{tid}/stat")
    return "" if data is None else chr(data[data.rindex(b")") + 2])


def tgid(tid: int) -> int | None:
    found = _field(contents(f"/proc/{tid}/status"), b"Tgid")
    return None if found is None else int(found)


def descriptor_field(pid: int | str, fd: int | str, name: bytes) -> bytes | None:
    """Return a line of fdinfo, such as flags or mnt_id, but not its first line, or None."""
    return _field(contents(f"/proc/{pid}/fdinfo/{fd}"), name)


def comm(pid: int) -> str:
    data = contents(f"/proc/{pid}/comm")
    return "" if data is None else data.rstrip(b"\n").decode("utf-8", "surrogateescape")


def command_line(pid: int) -> str:
    return " ".join(arguments(pid))


def arguments(pid: int) -> tuple[str, ...]:
    """Return the process's arguments; () if it has none, or they are unreadable."""
    data = (contents(f"/proc/{pid}/cmdline") or b"").rstrip(b"\0")
    return tuple(os.fsdecode(word) for word in data.split(b"\0")) if data else ()


def environment(pid: int | str = "self") -> dict[bytes, bytes]:
    """Return the variables that exec passed. Python may add to os.environ (LC_CTYPE)."""
    block = contents(f"/proc/{pid}/environ") or b""
    pairs = (entry.partition(b"=") for entry in block.split(b"\0"))
    return {name: value for name, equals, value in pairs if name and equals}


def numbers(pid: int, field: str) -> list[int]:
    """Return a field's numbers; [] if the process has ended.

    NSpid and NSpgid list this namespace's number first, the process's own last. TracerPid has one.
    A process that is ending has no CoreDumping once it has given up its memory.
    """
    found = _field(contents(f"/proc/{pid}/status"), field.encode())
    return [int(number) for number in (found or b"").split()]


def filters(tid: int | str) -> int | None:
    """Return how many seccomp filters a thread has; None also before Linux 5.9."""
    found = _field(contents(f"/proc/{tid}/status"), b"Seccomp_filters")
    return None if found is None else int(found)


def threads(pid: int) -> list[int]:
    try:
        return [int(tid) for tid in names(f"/proc/{pid}/task")]
    except OSError:
        return []


def open_files(pid: int) -> Iterator[tuple[str, str]]:
    """Yield a process's descriptors and their links; nothing if it ended or is unreadable."""
    try:
        fds = names(f"/proc/{pid}/fd")
    except OSError:
        return
    for fd in fds:
        if found := linked(f"/proc/{pid}/fd/{fd}"):
            yield fd, found


def children(path: str) -> list[int]:
    """Read a task's `children` file; [] if the kernel was built without it."""
    try:
        return [int(pid) for pid in all_contents(path).split()]
    except OSError:
        return []


class Rights(NamedTuple):
    """A thread's ids and capabilities, with the numbers of this user namespace."""

    real_uid: int
    effective_uid: int
    saved_uid: int
    uid: int  # for files, as gid is
    gid: int
    groups: frozenset[int]  # supplementary
    capabilities: int  # valid in its own user namespace


def rights(tid: int | str) -> Rights | None:
    """Return the thread's rights; None if it is gone."""
    status = contents(f"/proc/{tid}/status")
    if status is None:
        return None
    real, effective, saved, files = map(int, status_field(status, b"Uid").split())
    return Rights(
        *(real, effective, saved, files),
        int(status_field(status, b"Gid").split()[3]),
        frozenset(map(int, status_field(status, b"Groups").split())),
        int(status_field(status, b"CapEff"), 16),
    )


def user_namespace(pid: int | str) -> str:
    return linked(f"/proc/{pid}/ns/user") or f"none of {pid}"


def can_be_covered() -> bool:
    """Return whether a process in the session may mount over /proc, and so forge its content."""
    status = contents("/proc/self/status")
    may_mount = status is None or int(status_field(status, b"CapEff"), 16) & _CAP_SYS_ADMIN
    return bool(may_mount) and not is_ours()


def _field(data: bytes | None, name: bytes) -> bytes | None:
    return status_field(data, name) if data and b"\n" + name + b":" in data else None


def status_field(status: bytes, name: bytes) -> bytes:
    start = status.index(b"\n" + name + b":") + len(name) + 2
    return status[start : status.index(b"\n", start)].strip()
