"""The agent's session in demo/ has in it what a report is there for."""

from __future__ import annotations

import shutil
import subprocess

from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.long_session import DEMO
from tests.support.waiting import PATIENCE_S

SHOWN = {
    *("exec_allowed", "exec_audited", "exec_denied", "exec_redirected", "process_exited"),
    *("signal_sent", "signal_blocked", "approval_requested", "approval_denied", "agent_signal"),
}


def test_it_runs_to_its_end_and_the_neighbour_lives(as_user: Sigwrap) -> None:
    demo = shutil.copytree(DEMO.parent, as_user.folder / "demo")
    line = [*as_user.as_user(), "sh", str(demo / DEMO.name), str(as_user.store)]
    environment = {**as_user.env, "SIGWRAP": UNDER_TEST}
    done = subprocess.run(line, env=environment, capture_output=True, timeout=PATIENCE_S)
    assert done.stdout.endswith(b"sigwrap ended with status 0; the neighbour lives\n"), done.stderr
    types = {event.type for event in as_user.events()}
    assert types >= SHOWN
    assert not (as_user.folder / "shop-demo").exists()


def test_outside_of_a_session_it_does_nothing() -> None:
    done = subprocess.run(["sh", str(DEMO)], env={}, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and b"run it under sigwrap" in done.stderr
