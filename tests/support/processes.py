"""The processes of a run, as the kernel shows them."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sigwrap.kernel import procfs
from tests.support.harness import IS_BINARY
from tests.support.waiting import await_that


@dataclass(frozen=True, slots=True)
class Roles:
    front: int
    supervisor: int

    @classmethod
    def of(cls, pid: int) -> Roles:
        """`pid` as its caller knows it: the front process, or the binary's outer one."""
        for process in [pid, *children(pid)]:
            for child in children(process):
                if procfs.comm(child) == "sigwrap-super":
                    return cls(process, child)
        raise AssertionError(f"no supervisor under {pid}")


def children(pid: int) -> list[int]:
    return [
        found.pid
        for other in procfs.all_pids()
        if (found := procfs.stat(other)) is not None and found.ppid == pid
    ]


def tree(pid: int) -> list[int]:
    below = [pid]
    for parent in below:
        below += children(parent)
    return below


def await_key_taken(outermost: int, number: int = signal.SIGINT) -> None:
    """By sigwrap's processes that pass it on. A signal that still waits for one of them would
    swallow the next of its number: no two keys of a person are that close."""
    processes = [outermost, *children(outermost)] if IS_BINARY else [outermost]
    for pid in processes:
        await_that(partial(_is_taken, pid, number))


def _is_taken(pid: int, number: int) -> bool:
    """Not while its handler runs."""
    found = procfs.stat(pid)
    if found is None:
        return True
    status = Path(f"/proc/{pid}/status").read_text()
    (pending,) = re.findall(r"^ShdPnd:\t(\w+)$", status, re.MULTILINE)
    return found.state == "S" and not int(pending, 16) >> (number - 1) & 1
