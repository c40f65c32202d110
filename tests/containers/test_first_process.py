"""As the first process of a pid namespace, as a container's entry point is."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from sigwrap.kernel import procfs
from tests.support.harness import INTERRUPTED, Sigwrap
from tests.support.processes import children, tree
from tests.support.waiting import PATIENCE_S, await_that, reader

pytestmark = pytest.mark.skipif(
    os.getuid() != 0
    or not shutil.which("unshare")
    or subprocess.run(["unshare", "-fp", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs root and pid namespaces",
)

IN_NAMESPACE = ("unshare", "-fp", "--mount-proc", "--kill-child")
# bash misses a signal that comes between its look for one and its read, so it reads for a second.
CLEANS = 'trap "echo cleaned; exit 3" INT TERM; echo ready; while :; do read -t 1 x; done'
ORPHANS = "for i in $(seq 100); do (true &); done; "


def test_a_signal_from_outside_ends_the_run_and_nobody_remains(sigwrap: Sigwrap) -> None:
    """The sender has no number in here, and is believed all the same; an orphan that has left its
    session is ended with the rest, and those that had ended before are no zombies by then."""
    text = f"{ORPHANS} setsid sh -c 'trap : TERM; while :; do sleep 1000; done' & {CLEANS}"
    process = sigwrap.start_line([*IN_NAMESPACE, *sigwrap.line("--", "bash", "-c", text)])
    said = reader(process.stdout)
    said.until(rb"ready")
    (first,) = children(process.pid)

    def nobody_waits_to_be_reaped() -> bool:
        found = [procfs.stat(pid) for pid in tree(first)]
        return all(each is None or not each.has_ended for each in found)

    await_that(nobody_waits_to_be_reaped)
    os.kill(first, signal.SIGTERM)
    said.until(rb"cleaned")
    assert process.wait(PATIENCE_S) == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded"]
    assert sigwrap.events("interrupt_received")[0].payload["sender_place"] in (
        "elsewhere",
        "outer-process",
    )
    assert sigwrap.alive() == []


@pytest.mark.parametrize("role", ["sigwrap", "sigwrap-forward"])
def test_ctrl_c_on_a_containers_terminal(sigwrap: Sigwrap, forward: str, role: str) -> None:
    line = sigwrap.line("--") if role == "sigwrap" else [forward, "--"]
    terminal = sigwrap.terminal_for([*IN_NAMESPACE, *line, "bash", "-c", CLEANS])
    terminal.output.until(rb"ready")
    terminal.press("C")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == (INTERRUPTED if role == "sigwrap" else 3)


def test_sigwrap_forward_does_without_a_proc_of_its_own(sigwrap: Sigwrap, forward: str) -> None:
    """The one that is there has the numbers of the namespace above."""
    text = f'{ORPHANS} trap "echo asked; exit 3" TERM; echo ready; while :; do read -t 1 x; done'
    process = sigwrap.start_line(
        ["unshare", "-fp", "--kill-child", forward, "--", "bash", "-c", text]
    )
    said = reader(process.stdout)
    said.until(rb"ready")
    (first,) = children(process.pid)
    os.kill(first, signal.SIGTERM)
    said.until(rb"asked")
    assert process.wait(PATIENCE_S) == 3
