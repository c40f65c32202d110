"""The kernel's own limit on how many processes a test may make, whatever sigwrap lets through."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import uuid
from dataclasses import dataclass
from pathlib import Path

from sigwrap.kernel import procfs
from tests.support.waiting import await_that

AT_MOST = 150
_ROOTS = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
_BEYOND_WHAT_RUNS = 100


class NoBackstop(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Backstop:
    words: list[str | bytes]  # before a command line
    group: Path | None

    @classmethod
    def make(cls, at_most: int = AT_MOST) -> Backstop:
        if os.getuid() != 0:
            # The kernel holds it for every user but root.
            most = _tasks_of(os.getuid()) + max(at_most - AT_MOST, 0) + _BEYOND_WHAT_RUNS
            hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
            if hard != resource.RLIM_INFINITY:
                most = min(most, hard)
            return cls(["prlimit", f"--nproc={most}", "--"], None)
        for root in _ROOTS:
            group = root / f"sigwrap-test-{uuid.uuid4().hex}"
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                (group / "pids.max").write_text(str(at_most))
            except OSError:
                group.rmdir()
                continue
            enter = f'echo $$ > {group}/cgroup.procs && exec "$@"'
            return cls(["sh", "-c", enter, "sh"], group)
        raise NoBackstop("no cgroup of pids can be made")

    def most_so_far(self) -> int:
        """How many processes and threads there were at a time, sigwrap's own two with them; 0 where
        nobody has counted."""
        if self.group is None or not (self.group / "pids.peak").exists():
            return 0
        return int((self.group / "pids.peak").read_text())

    def remove(self) -> None:
        if self.group is None:
            return
        await_that(lambda: not self._kill_all())
        self.group.rmdir()

    def _kill_all(self) -> bool:
        assert self.group is not None
        pids = [int(pid) for pid in (self.group / "cgroup.procs").read_text().split()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(pids)


def _tasks_of(uid: int) -> int:
    count = 0
    for pid in procfs.all_pids():
        rights = procfs.rights(pid)
        if rights is not None and rights.real_uid == uid:
            count += len(procfs.threads(pid))
    return count
