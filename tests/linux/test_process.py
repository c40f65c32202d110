from __future__ import annotations

import os
import signal
import subprocess

from sigwrap.kernel import procfs
from sigwrap.kernel.process import send_to_same


def test_a_signal_reaches_only_the_process_that_was_seen() -> None:
    child = subprocess.Popen(["sleep", "60"])
    found = procfs.stat(child.pid)
    assert found is not None
    assert not send_to_same(found._replace(start_time=found.start_time - 1), signal.SIGKILL)
    assert send_to_same(found, signal.SIGINT)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert send_to_same(found, signal.SIGINT)  # a zombie still has its pid
    assert child.wait() == -signal.SIGINT
    assert not send_to_same(found, signal.SIGINT)
