"""The supervisor bears as much as the machine does: nothing recurses over the tree, and what a
request brought along is let go with it."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import PYTHON, Sigwrap
from tests.support.waiting import PATIENCE_S, reader

LONG = 420  # two calls for each would be more than Python bears
EXECS, WORDS = 40, 20_000
AT_MOST_KB = EXECS * WORDS * 16 // 1024  # an object of each word alone takes four times as much


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


def test_the_arguments_of_execs_are_let_go(as_user: Sigwrap, programs: Path) -> None:
    line = (*PYTHON, str(programs / "execs_with_many_words.py"), str(EXECS), str(WORDS))
    done = as_user.run("-p", "agent-observe", "--", *line)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < AT_MOST_KB
