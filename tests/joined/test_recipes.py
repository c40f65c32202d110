"""The recipes of docs/agents.md, As a shell."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.harness import UNDER_TEST, Sigwrap

TEXT = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")


def block(language: str, containing: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    (found,) = [each for each in blocks if containing in each]
    return str(found)


@pytest.fixture
def subject(subject: Sigwrap) -> Sigwrap:
    """With both names on its PATH."""
    folder = subject.folder / "bin"
    folder.mkdir()
    (folder / "sigwrap").symlink_to(UNDER_TEST)
    beside = Path(UNDER_TEST).with_name("sigwrap-shell")
    (folder / "sigwrap-shell").symlink_to(beside if beside.exists() else UNDER_TEST)
    subject.env["PATH"] = f"{folder}:{subject.env['PATH']}"
    return subject


def said(subject: Sigwrap, script: str) -> str:
    done = subject.native("sh", "-e", "-c", script, cwd=subject.folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_one_session_for_many_commands(subject: Sigwrap) -> None:
    found = said(subject, block("sh", "--join-name"))
    assert found.startswith("stopped\nRunning for ")
    assert "joined   2 commands" in found


def test_by_the_variables_of_agents(subject: Sigwrap) -> None:
    by_shell = block("sh", "export SHELL")
    assert said(subject, f"{by_shell}\n$SHELL -c 'echo by $0'") == f"by {shutil.which('bash')}\n"
    prefix = block("sh", "CLAUDE_CODE_SHELL_PREFIX")
    assert said(subject, f"{prefix}\n$CLAUDE_CODE_SHELL_PREFIX 'echo one; echo 2'") == "one\n2\n"
