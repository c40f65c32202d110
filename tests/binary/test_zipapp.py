"""The zipapp does the same with the machine's Python."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from tests.binary.conftest import Run

pytestmark = pytest.mark.binary

# The one that built it, without the packages of its virtual environment.
PYTHON = (os.path.realpath(sys.executable), "-I", "-S")


def test_it_runs_a_command_and_reads_its_log(zipapp: Path, run: Run) -> None:
    done = run(*PYTHON, zipapp, "--", "sh", "-c", "echo said; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "")
    for words in (
        "sessions",
        "report",
        "replay --instant",
        "verify",
        "query",
        "--help",
        "run --help",
        "help policy",
        "policy check agent-default agent-strict agent-observe ci",
    ):
        done = run(*PYTHON, zipapp, *words.split())
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_it_can_be_executed_and_imports_nothing_from_elsewhere(zipapp: Path) -> None:
    assert zipapp.read_bytes().startswith(b"#!/usr/bin/env -S python3 -I\n")
    assert zipapp.stat().st_mode & stat.S_IXOTH
    assert "sigwrap/py.typed" in zipfile.ZipFile(zipapp).namelist()


def test_a_links_name_selects_the_role(zipapp: Path, run: Run, tmp_path: Path) -> None:
    assert run(*PYTHON, zipapp, "link", tmp_path).returncode == 0
    for role, status in (("sigwrap-forward", 7), ("sigwrap-stub", 126)):
        assert run(*PYTHON, tmp_path / role, "--", "sh", "-c", "exit 7").returncode == status


def test_another_python_takes_the_sources(zipapp: Path, run: Run, tmp_path: Path) -> None:
    """Bytecode of another version inside is passed over."""
    without = tmp_path / "other.pyz"
    with zipfile.ZipFile(zipapp) as full, zipfile.ZipFile(without, "w") as changed:
        for name in full.namelist():
            data = full.read(name)
            changed.writestr(name, b"\0\0\r\n" + data[4:] if name.endswith(".pyc") else data)
    assert run(*PYTHON, without, "--", "sh", "-c", "exit 5").returncode == 5


def test_without_an_engine_for_patterns_it_says_so(zipapp: Path, run: Run, tmp_path: Path) -> None:
    without = tmp_path / "other.pyz"
    with zipfile.ZipFile(zipapp) as full, zipfile.ZipFile(without, "w") as changed:
        for name in full.namelist():
            if not name.startswith("cpython-"):
                changed.writestr(name, full.read(name))
    done = run(*PYTHON, without, "policy", "check", "agent-default")
    assert done.returncode == 125
    assert "this zipapp carries their engine for another Python" in done.stderr
    assert "Traceback" not in done.stderr


RECORDS = """
version: 1
name: records
extends: agent-observe
command_rules:
  - {name: records, commands: [tool], decision: redirect,
     redirect_to: {command: /bin/echo, append_args: true, via: stub, record: true}}
"""


def test_no_stub_runs_from_it_once_it_was_changed(zipapp: Path, run: Run, tmp_path: Path) -> None:
    own, tool, policy = tmp_path / "own.pyz", tmp_path / "tool", tmp_path / "policy.yaml"
    shutil.copy(zipapp, own)
    shutil.copy("/bin/true", tool)
    policy.write_text(RECORDS)
    script = f"{tool} recorded; sleep 0.1; echo x >>{own}; {tool} recorded; exit 7"
    done = run(*PYTHON, own, "-p", policy, "--no-report", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (7, "recorded\n"), done
    assert f"sigwrap's own file has changed: {own}" in done.stderr
