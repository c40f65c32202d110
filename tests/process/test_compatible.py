"""What tests/programs has no program for works as it does without sigwrap."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import EXECS, Sigwrap


def test_exec_from_a_thread_that_is_not_the_leader(sigwrap: Sigwrap, compiled: Path) -> None:
    program = str(compiled / "thread_exec")
    for words in ((), ("in a child",)):
        done = sigwrap.run("--", program, *words)
        assert (done.returncode, done.stdout, done.stderr) == (5, b"from a thread\n", b"")
        sigwrap.verify(ended=True)
        if not words:
            command = sigwrap.command_pid()
            assert [event.pid for event in sigwrap.events(*EXECS)] == [command, command]
