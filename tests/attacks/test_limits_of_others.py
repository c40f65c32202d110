"""The limits of a process are changed by nobody but who may kill it.

By RLIMIT_CPU the kernel kills, with RLIMIT_NOFILE nothing can be opened any more, and with
RLIMIT_FSIZE no log be written.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import IS_BINARY, PYTHON
from tests.support.signal_lab import Lab
from tests.support.waiting import Reader

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
SIGWRAPS_OWN = 3 if IS_BINARY else 2  # the supervisor, the front process, and what unpacked them
HAS_A_THREAD = """
import os, threading
gate = threading.Event()
thread = threading.Thread(target=gate.wait, daemon=True)
thread.start()
print(os.getpid(), thread.native_id, flush=True)
os.read(0, 1)
"""


def test_by_no_name_of_sigwrap_or_the_outside(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    line = [*lab.subject.as_user(), *PYTHON, "-c", HAS_A_THREAD]
    outside = lab.subject.start_line(line)
    pid, thread = Reader(outside.stdout.fileno()).line().split()
    lab.subject.env["ABOVE"] = str(SIGWRAPS_OWN)
    told, namespace = lab.tells(programs / "limits_by_any_name.py", pid.decode(), thread.decode())
    assert len(told) == SIGWRAPS_OWN + 2
    assert all(each == ["EPERM"] for each in told.values()), told
    if namespace is not None:
        number, itself, child, outside_by_number = namespace
        assert (number, itself, child, outside_by_number) == (1, [0], [0], ["ESRCH"])
    limits = Path(f"/proc/{outside.pid}/limits").read_text()
    assert " 2999 " not in limits
    targets = [each["target_type"] for each in lab.payloads("signal_blocked")]
    assert set(targets) == {"parent", "user"}
