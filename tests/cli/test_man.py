"""The manual page has the help of every command, and man renders it without a warning."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sigwrap.cli.app import ROOT
from tests.support.harness import Sigwrap
from tests.tools.manual import PAGE, manual


def test_the_page_is_that_of_the_commands() -> None:
    """To update it: python -m tests.tools.manual"""
    assert PAGE.read_text(encoding="utf-8") == manual(ROOT) + "\n"


def test_man_prints_it(sigwrap: Sigwrap) -> None:
    assert sigwrap.run("man").stdout == PAGE.read_bytes()


def test_every_command_is_in_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    shown = [name for name, each in ROOT.commands.items() if not each.hidden]
    assert {name for name in shown if f"sigwrap {name}" not in text} <= {"run"}
    assert "complete \\-\\-" not in text


def test_man_renders_it_without_a_warning() -> None:
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("needs man and groff")
    done = subprocess.run(
        ["man", "--warnings", "-l", PAGE],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "--older-than AGE" in done.stdout and "\\" not in done.stdout
