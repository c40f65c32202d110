"""A developer's day under agent-default: what signals its own works as without sigwrap."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support.programs import compile_go, needs
from tests.support.signal_lab import Lab


def _says(lab: Lab, *line: str, said: bytes, status: int = 0) -> None:
    done = lab.subject.run("--", *line)
    assert (done.returncode, done.stdout, done.stderr) == (status, said, b"")
    assert lab.payloads("signal_blocked") == []


# fmt: off
SHELL_LINES = (
    ("set -m; sleep 1000 & kill %1; wait %1; echo $?", b"143\n"),
    ("set -m; sleep 1000 | sleep 1000 & kill -TERM %1; wait; echo $?", b"0\n"),
    ("set -m; sleep 1000 & kill -STOP %1; kill -CONT %1; kill %1; wait; echo $?", b"0\n"),
    ("timeout 0.1 sleep 1000; echo $?", b"124\n"),
    ("timeout -s KILL 0.1 sleep 1000; echo $?", b"137\n"),
    ("timeout --foreground 0.1 sleep 1000; echo $?", b"124\n"),
    ("sleep 1000 & kill -0 $! && kill $! && wait $!; echo $?", b"143\n"),
    ("trap 'echo caught' USR1; kill -USR1 $$; echo on", b"caught\non\n"),
    ("(sleep 1000 & echo $! >pid; wait) & until [ -s pid ]; do :; done;"
     " kill $(cat pid); wait $!; echo $?", b"0\n"),
    ("sh -c 'kill -SEGV $$'; echo $?", b"139\n"),
    ("coproc cat; kill $COPROC_PID; wait $COPROC_PID; echo $?", b"143\n"),
    ("yes | head -1", b"y\n"),
)
# fmt: on


def test_shell(users_lab: Lab) -> None:
    """Each line in a shell of its own; and one may ask after sigwrap, which runs it."""
    shells = (f"bash -c {shlex.quote(text)}" for text, _ in SHELL_LINES)
    text = "\n".join(("exec 2>/dev/null; kill -0 $$ $PPID; echo $?", *shells))
    said = b"0\n" + b"".join(said for _, said in SHELL_LINES)
    _says(users_lab, "bash", "-c", text, said=said)


@pytest.mark.fault(
    "callers",
    "signals interrupt threads that wait for a decision",
    sees="nothing, from Linux 5.19 on",
    keeps="complete",
)
@needs("go")
def test_go_preempts_its_threads(users_lab: Lab, programs: Path) -> None:
    _says(users_lab, compile_go(programs / "preempts.go"), said=b"well\n")
    assert len(users_lab.payloads()) <= 5  # SIGURG to itself is not worth a line
