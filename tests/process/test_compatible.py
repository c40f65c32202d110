"""Programs that do something special with processes work as they do without sigwrap: the same
output, the same status. tests/programs has programs of somebody else's."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import EXECS, PYTHON, Sigwrap


def _same(sigwrap: Sigwrap, *words: str, status: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Natively first; `{run}` stands for a folder of each run's own."""
    done = []
    for number, start in enumerate((sigwrap.native, sigwrap.run)):
        folder = sigwrap.folder / f"run{number}"
        folder.mkdir(exist_ok=True)
        lead = ["--"] if number else []
        filled = [word.replace("{run}", str(folder)) for word in words]
        found = start(*lead, *filled)
        for name in ("stdout", "stderr"):
            text = getattr(found, name).replace(os.fsencode(folder), b"{run}")
            setattr(found, name, text)
        done.append(found)
    native, wrapped = done
    assert native.returncode == status, native.stderr
    assert (wrapped.returncode, wrapped.stdout) == (native.returncode, native.stdout)
    assert wrapped.stderr == native.stderr
    sigwrap.verify(ended=True)
    return wrapped


@pytest.mark.tier("all")
def test_a_shell(sigwrap: Sigwrap, programs: Path) -> None:
    _same(sigwrap, "sh", str(programs / "shells.sh"), status=9)


@pytest.mark.tier("all")
def test_pipelines_with_sigpipe(sigwrap: Sigwrap) -> None:
    text = "yes | head -3 | tail -1; seq 100000 | head -1; echo ${PIPESTATUS[*]}"
    _same(sigwrap, "bash", "-c", text)


@pytest.mark.tier("all")
def test_python_starts_processes_by_vfork(sigwrap: Sigwrap, programs: Path) -> None:
    _same(sigwrap, PYTHON[0], str(programs / "subprocesses.py"), "vfork")


def test_exec_from_a_thread_that_is_not_the_leader(sigwrap: Sigwrap, compiled: Path) -> None:
    program = str(compiled / "thread_exec")
    _same(sigwrap, program, status=5)
    command = sigwrap.events("session_started")[0].payload["command_pid"]
    assert [event.pid for event in sigwrap.events(*EXECS)] == [command, command]
    _same(sigwrap, program, "in a child", status=5)


def test_a_setsid_daemon(sigwrap: Sigwrap, programs: Path) -> None:
    """It can be started, talked to and ended from inside."""
    _same(sigwrap, "sh", str(programs / "setsid_daemon.sh"), "{run}")
