"""Read what /proc shows of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sigwrap.bare import NamedTuple, signal
from sigwrap.kernel import proc_files
from sigwrap.kernel.proc_files import all_contents, contents, file_status, link, names, open_file

_DUMP_CORE = (
    *(signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS),
    *(signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS, signal.SIGXCPU, signal.SIGXFSZ),
)
_EXITING = 0x00000004
_KERNEL_THREAD = 0x00200000
_MOST_ANCESTORS = 4096  # more than there can be, unless pids are reused meanwhile
_CAP_KILL = 1 << 5
_CAP_SYS_ADMIN = 1 << 21


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
    data = contents(f"/proc/{pid}/stat")
    return None if data is None else _image(_after_name(data))


def figures(pid: int) -> list[bytes] | None:
    """Return the fields of the stat file from the state on; None if there is no such process."""
    data = contents(f"/proc/{pid}/stat")
    return None if data is None else _after_name(data)


def kilobytes(path: str, *names: bytes) -> int | None:
    """Return the sum of these lines of a file; None if it is unreadable."""
    data = contents(path)
    if not data:
        return None
    found = (_status_field(data, name) for name in names if b"\n" + name + b":" in data)
    return sum(int(field.split()[0]) for field in found)


def terminal(pid: int) -> tuple[int, int] | None:
    """Return the controlling terminal's number, or 0, and its foreground group."""
    data = contents(f"/proc/{pid}/stat")
    if data is None:
        return None
    fields = _after_name(data)
    return int(fields[4]), int(fields[5])


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
    status = contents(f"/proc/{tid}/status")
    return None if status is None else int(_status_field(status, b"Tgid"))


def pidfd_target(pidfd: int) -> int | None:
    number = descriptor_field("self", pidfd, b"Pid")
    return None if number is None else int(number)


def descriptor_field(pid: int | str, fd: int | str, name: bytes) -> bytes | None:
    found = descriptor_fields(pid, fd, name)
    return None if found is None else found[0]


def descriptor_fields(pid: int | str, fd: int | str, *names: bytes) -> list[bytes] | None:
    """Return lines of fdinfo, such as flags or mnt_id, but not its first line.

    None if one is missing, or if they cannot be read.
    """
    info = contents(f"/proc/{pid}/fdinfo/{fd}")
    if info is None or not all(b"\n" + name + b":" in info for name in names):
        return None
    return [_status_field(info, name) for name in names]


def comm(pid: int) -> str:
    data = contents(f"/proc/{pid}/comm")
    return "" if data is None else data.rstrip(b"\n").decode("utf-8", "surrogateescape")


def command_line(pid: int) -> str:
    data = contents(f"/proc/{pid}/cmdline") or b""
    return data.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "surrogateescape")


def arguments(pid: int) -> tuple[str, ...]:
    """Return the process's arguments; () if it has none, or they are unreadable."""
    data = (contents(f"/proc/{pid}/cmdline") or b"").rstrip(b"\0")
    return tuple(os.fsdecode(word) for word in data.split(b"\0")) if data else ()


def environment(pid: int | str = "self") -> dict[bytes, bytes]:
    """Return the variables that exec passed. Python may add to os.environ (LC_CTYPE)."""
    block = contents(f"/proc/{pid}/environ") or b""
    pairs = (entry.partition(b"=") for entry in block.split(b"\0"))
    return {name: value for name, equals, value in pairs if name and equals}


def environment_area(pid: int | str) -> tuple[int, int]:
    """Return the address and size of the environment that exec passed; 0, 0 if unreadable."""
    data = contents(f"/proc/{pid}/stat")
    if data is None:
        return 0, 0
    fields = _after_name(data)
    start, end = int(fields[47]), int(fields[48])
    return start, end - start


def ignored_signals(pid: int) -> frozenset[int]:
    return _signal_set(pid, b"SigIgn")


def caught_signals(pid: int) -> frozenset[int]:
    return _signal_set(pid, b"SigCgt")


def has_pending(tid: int, number: int) -> bool:
    """Return whether the signal is pending for the thread or its process."""
    status = contents(f"/proc/{tid}/status")
    return status is not None and (
        _has(status, b"SigPnd", number) or _has(status, b"ShdPnd", number)
    )


def handles(pid: int, number: int) -> bool:
    """Return whether the process handles the signal, or may wait for it (its leader blocks it)."""
    status = contents(f"/proc/{pid}/status")
    if status is None:
        return False
    return _has(status, b"SigCgt", number) or (
        _has(status, b"SigBlk", number) and not _has(status, b"SigIgn", number)
    )


def survives(pid: int, number: int) -> bool:
    """Return whether the process handles or ignores the signal, like one in system(3)."""
    return handles(pid, number) or number in ignored_signals(pid)


def catches_or_ignores(pid: int, number: int) -> bool:
    """Return whether a signal cannot end the process; one that it only blocks will end it later."""
    status = contents(f"/proc/{pid}/status")
    if status is None:
        return False
    return _has(status, b"SigCgt", number) or _has(status, b"SigIgn", number)


def is_alone_and_catches(pid: int, number: int) -> bool:
    """Return whether the process has one thread, and a handler for the signal."""
    status = contents(f"/proc/{pid}/status")
    if status is None or int(_status_field(status, b"Threads")) != 1:
        return False
    return _has(status, b"SigCgt", number)


def is_deaf_to(tid: int, number: int) -> bool:
    """Return whether the thread blocks the signal, or its process ignores it."""
    return blocks(tid, number) or number in ignored_signals(tid)


def blocks(tid: int, number: int) -> bool:
    return number in _signal_set(tid, b"SigBlk")


def numbers(pid: int, field: str) -> list[int]:
    """Return a field's numbers; [] if the process has ended.

    NSpid and NSpgid list this namespace's number first, the process's own last. TracerPid has one.
    A process that is ending has no CoreDumping once it has given up its memory.
    """
    status, name = contents(f"/proc/{pid}/status"), field.encode()
    if status is None or b"\n" + name + b":" not in status:
        return []
    return [int(n) for n in _status_field(status, name).split()]


def filters(tid: int | str) -> int | None:
    """Return how many seccomp filters a thread has; None also before Linux 5.9."""
    status = contents(f"/proc/{tid}/status")
    if status is None or b"\nSeccomp_filters:" not in status:
        return None
    return int(_status_field(status, b"Seccomp_filters"))


def threads(pid: int) -> list[int]:
    try:
        return [int(tid) for tid in names(f"/proc/{pid}/task")]
    except OSError:
        return []


def children(path: str) -> list[int]:
    """Read a task's `children` file; [] if the kernel was built without it."""
    try:
        return [int(pid) for pid in all_contents(path).split()]
    except OSError:
        return []


class Credentials(NamedTuple):
    real_uid: int
    effective_uid: int
    saved_uid: int
    can_kill_any: bool


def credentials(pid: int) -> Credentials | None:
    status = contents(f"/proc/{pid}/status")
    if status is None:
        return None
    real, effective, saved, _filesystem = _status_field(status, b"Uid").split()
    capabilities = int(_status_field(status, b"CapEff"), 16)
    return Credentials(
        int(real),
        int(effective),
        int(saved),
        bool(capabilities & _CAP_KILL),
    )


class Rights(NamedTuple):
    """A thread's ids and capabilities, with the numbers of this user namespace."""

    uid: int
    gid: int
    groups: frozenset[int]  # supplementary
    capabilities: int  # valid in its own user namespace


def rights(tid: int | str) -> Rights | None:
    """Return the thread's rights; None if it is gone."""
    status = contents(f"/proc/{tid}/status")
    if status is None:
        return None
    return Rights(
        int(_status_field(status, b"Uid").split()[3]),
        int(_status_field(status, b"Gid").split()[3]),
        frozenset(map(int, _status_field(status, b"Groups").split())),
        int(_status_field(status, b"CapEff"), 16),
    )


def user_namespace(pid: int | str) -> str:
    try:
        return link(f"/proc/{pid}/ns/user")
    except OSError:
        return f"none of {pid}"


def is_in_our_user_namespace(tid: int | str) -> bool:
    return user_namespace(tid) == user_namespace("self")


def network_namespace(tid: int | str) -> str:
    return link(f"/proc/{tid}/ns/net")


def is_about_to_dump_core(tid: int) -> bool:
    """Return whether a pending signal will end the process with a core dump."""
    status = contents(f"/proc/{tid}/status")
    if status is None:
        return False
    pending = _signal_bits(status, b"SigPnd") | _signal_bits(status, b"ShdPnd")
    for name in (b"SigBlk", b"SigIgn", b"SigCgt"):
        pending &= ~_signal_bits(status, name)
    return any(pending & 1 << number - 1 for number in _DUMP_CORE)


def signal_breaks_off(tid: int) -> bool | None:
    """Return None if no pending signal can interrupt the thread; True if one is sure to do so.

    A signal for the process may be delivered to another thread: then return False.
    """
    status = contents(f"/proc/{tid}/status")
    if status is None:
        return None
    taken = ~_signal_bits(status, b"SigBlk")
    if _signal_bits(status, b"SigPnd") & taken:
        return True
    if _signal_bits(status, b"ShdPnd") & taken:
        return int(_status_field(status, b"Threads")) == 1
    return None


def identity(pid: int) -> tuple[bytes, ...]:
    """Return what two processes must share so that one may read the other's memory."""
    status = contents(f"/proc/{pid}/status")
    if status is None:
        return ()
    try:
        namespace = link(f"/proc/{pid}/ns/user").encode()
    except OSError:
        namespace = b""
    fields = (_status_field(status, name) for name in (b"Uid", b"Gid", b"CapPrm", b"CapEff"))
    return (*fields, namespace)


def is_dumpable(pid: int) -> bool:
    """Return whether /proc shows another owner than root; useless for root's processes."""
    found = credentials(pid)
    try:
        return found is not None and file_status(f"/proc/{pid}/fd").st_uid == found.effective_uid
    except OSError:
        return False


def can_be_covered() -> bool:
    """Return whether a process in the session may mount over /proc, and so forge its content."""
    status = contents("/proc/self/status")
    may_mount = status is None or int(_status_field(status, b"CapEff"), 16) & _CAP_SYS_ADMIN
    return bool(may_mount) and not proc_files.is_ours()


def _signal_set(pid: int, name: bytes) -> frozenset[int]:
    status = contents(f"/proc/{pid}/status")
    if status is None:
        return frozenset()
    bits = _signal_bits(status, name)
    return frozenset(number for number in range(1, 65) if bits & 1 << number - 1)


def _has(status: bytes, name: bytes, number: int) -> bool:
    return bool(_signal_bits(status, name) & 1 << number - 1)


def _signal_bits(status: bytes, name: bytes) -> int:
    return int(_status_field(status, name), 16)


def _status_field(status: bytes, name: bytes) -> bytes:
    start = status.index(b"\n" + name + b":") + len(name) + 2
    return status[start : status.index(b"\n", start)].strip()
