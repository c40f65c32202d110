"""Nothing recurses over the tree: a chain of processes may be as long as the machine bears."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import Sigwrap
from tests.support.waiting import PATIENCE_S, reader

LONG = 420  # two calls for each would be more than Python bears


def test_of_unseen_forks(as_user: Sigwrap, compiled: Path) -> None:
    chain = (str(compiled / "chain"), str(LONG), "/bin/sh", "-c", "echo deep; exit 7")
    done = as_user.run("--no-report", "-p", "agent-observe", "--", *chain)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"deep\n", b"")
    assert as_user.sealed_events("mediation_failed") == []
    execs = [each for each in as_user.events("exec_audited") if each.payload["path"] == "/bin/sh"]
    assert len(execs) == 1


def test_that_is_ended(sigwrap: Sigwrap, compiled: Path) -> None:
    chain = (str(compiled / "chain"), str(LONG), "/bin/sh", "-c", "echo ready; exec cat")
    process = sigwrap.start("--no-report", "-p", "agent-observe", "--grace", "0.1", "--", *chain)
    reader(process.stdout).until(rb"ready")
    sigwrap.native("kill", "-KILL", str(sigwrap.command_pid()))
    process.wait(PATIENCE_S)
    assert sigwrap.alive() == []
    sigwrap.verify(ended=True)
