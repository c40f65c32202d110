"""What a tree uses, as /proc shows it: processor time, and memory.

A process is read before its children are listed, so before who may end and be counted in its times.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Container, Iterable, Iterator, Mapping

from sigwrap.bare.collections import deque
from sigwrap.errors import KernelError
from sigwrap.linux import process, procfs
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS
from sigwrap.mediate.usage_limits import Look, ProcessUse

_TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SYS_KCMP = NUMBERS["kcmp"]
_KCMP_VM = 1


def look(known: Mapping[int, ProcessUse]) -> Look:
    """`known`: the processes of the last look."""
    supervisor = os.getpid()
    ended = frozenset(pid for pid in known if not _is_there(pid))  # before anybody is read
    reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = {each.pid: each for each in _below(supervisor)}
    for pid, before in known.items():
        # The kernel leaves out some where one ends just as its parent's children are listed.
        if pid not in found and pid not in ended:
            again = _read(pid)
            if again is not None and again[0].start_time == before.start_time:
                found[pid] = again[0]
    reaped_ms = int((reaped.ru_utime + reaped.ru_stime) * 1000)
    return Look(supervisor, reaped_ms, tuple(found.values()), ended)


def beyond_resident(processes: Iterable[ProcessUse]) -> int:
    """Swapped out, and page tables: who only reads one page in every two megabytes of an empty
    mapping has no memory but these."""
    return sum(_in_status(each.pid, b"VmSwap", b"VmPTE") for each in processes)


def shared_out_memory(of: ProcessUse, tree: Container[int]) -> int:
    """Resident and swapped, but no pages of files, which the kernel can drop; of what several
    share, its part; and its page tables. Of who may not be looked into, all. It waits for whoever
    changes the process's mappings."""
    if of.ppid in tree and _is_in_memory_of(of.pid, of.ppid):
        return 0
    tables = _in_status(of.pid, b"VmPTE")
    looks = {
        "smaps_rollup": (b"Pss_Anon", b"Pss_Shmem", b"SwapPss"),
        "status": (b"RssAnon", b"RssShmem", b"VmSwap"),
    }
    for path, names in looks.items():
        found = procfs.kilobytes(f"/proc/{of.pid}/{path}", *names)
        if found:
            return found * 1024 + tables
    return of.memory_bytes + tables


def _below(supervisor: int) -> Iterator[ProcessUse]:
    if not process.has_children_files():
        for found in process.below(supervisor):
            if read := _read(found.pid):
                yield read[0]
        return
    tree = {supervisor}
    waiting = deque(process.children(supervisor))
    while waiting:
        pid = waiting.popleft()
        read = None if pid in tree else _read(pid)
        if read is None or read[0].ppid not in tree:  # it has ended; another may have its number
            continue
        yield read[0]
        tree.add(pid)
        if read[1] == 1:  # thread
            waiting += procfs.children(f"/proc/{pid}/task/{pid}/children")
        else:
            waiting += process.children(pid)


def _read(pid: int) -> tuple[ProcessUse, int] | None:
    """And how many threads it has."""
    fields = procfs.figures(pid)
    if fields is None:
        return None
    threads = int(fields[17])
    pages = int(fields[21])
    if pages <= 0 and threads > 1:  # its first thread has ended, and the others have its memory
        pages = max((int(each[21]) for each in _threads(pid)), default=0)
    found = ProcessUse(
        pid,
        int(fields[19]),
        int(fields[1]),
        (int(fields[11]) + int(fields[12])) * _TICK_MS,
        (int(fields[13]) + int(fields[14])) * _TICK_MS,
        max(0, pages) * _PAGE_BYTES,
    )
    return found, threads


def _in_status(pid: int, *names: bytes) -> int:
    """The sum of these lines, in bytes."""

    def read(tid: int) -> int:
        return procfs.kilobytes(f"/proc/{tid}/status", *names) or 0

    found = read(pid)
    if not found:  # its first thread has ended, and the others may have its memory
        found = max(map(read, procfs.threads(pid)), default=0)
    return found * 1024


def _threads(pid: int) -> Iterator[list[bytes]]:
    for tid in procfs.threads(pid):
        fields = procfs.figures(tid)
        if fields is not None:
            yield fields


def _is_there(pid: int) -> bool:
    try:
        os.getpgid(pid)  # needs no right over it
    except ProcessLookupError:
        return False
    return True


def _is_in_memory_of(pid: int, parent: int) -> bool:
    """As from a vfork to its exec: the same pages are no shared ones, and would be there twice."""
    try:
        return syscall("kcmp", _SYS_KCMP, pid, parent, _KCMP_VM, 0, 0) == 0
    except KernelError:
        return False
