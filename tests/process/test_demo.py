"""The scripted session in demo/ makes events of each kind that a report shows."""

from __future__ import annotations

import shutil
import subprocess

from tests.support.harness import UNDER_TEST, Sigwrap
from tests.support.long_session import DEMO
from tests.support.waiting import PATIENCE_S

SHOWN = {
    *("exec_allowed", "exec_audited", "exec_denied", "exec_redirected", "process_exited"),
    *("signal_sent", "signal_blocked", "approval_requested", "approval_denied"),
}


def test_it_runs_to_its_end_and_the_process_outside_the_session_still_runs(
    as_user: Sigwrap,
) -> None:
    demo = shutil.copytree(DEMO.parent, as_user.folder / "demo")
    line = [*as_user.as_user(), "sh", str(demo / DEMO.name), str(as_user.store)]
    environment = {**as_user.env, "SIGWRAP": UNDER_TEST}
    done = subprocess.run(line, env=environment, capture_output=True, timeout=PATIENCE_S)
    end = b"sigwrap exited with status 0; the process outside the session still runs\n"
    assert done.stdout.endswith(end), done.stderr
    types = {event.type for event in as_user.events()}
    assert types >= SHOWN
    assert not (as_user.folder / "shop-demo").exists()


def test_outside_a_session_it_does_nothing() -> None:
    done = subprocess.run(["sh", str(DEMO)], env={}, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and b"run this under sigwrap" in done.stderr
