from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from sigwrap.kernel import process, procfs
from tests.support.harness import PYTHON


@contextmanager
def _ended(text: str) -> Iterator[tuple[int, int]]:
    """Its pid and start time, until it is reaped at the end."""
    line = [*PYTHON, "-c", f"import os, resource, signal\n{text}"]
    with subprocess.Popen(line) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        found = procfs.stat(process.pid)
        assert found is not None
        yield process.pid, found.start_time


def test_one_that_was_not_used_up() -> None:
    text = "resource.setrlimit(resource.RLIMIT_CPU, (99, 99))\nos.kill(os.getpid(), 9)"
    with _ended(text) as (pid, start_time):
        assert process.used_up_cpu_limit(pid, start_time) == 0


def test_the_oom_killers_count_grows_only() -> None:
    before, after = process.oom_kills(), process.oom_kills()
    assert before is not None and after is not None
    assert 0 <= before <= after
