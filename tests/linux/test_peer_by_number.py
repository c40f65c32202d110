"""Whoever listened is judged, and not who has its number by now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE_S

NAMESPACE = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"]
HAS_ENDED = ("it has ended", "cannot identify the process")  # the latter before Linux 6.16


def said_in_a_namespace(tmp_path: Path, name: str) -> dict[str, str]:
    program = Path(__file__).with_name("programs") / "listens_by_number.py"
    line = [*NAMESPACE, "--mount-proc", sys.executable, str(program), str(tmp_path / "s"), name]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if "unshare" in done.stderr:
        pytest.skip("needs user namespaces")
    assert done.returncode == 0, done.stderr
    return dict(line.split(": ", 1) for line in done.stdout.splitlines())


def test_whoever_has_the_number_of_a_listener_that_ended_is_not_believed(tmp_path: Path) -> None:
    said = said_in_a_namespace(tmp_path, "sh")
    for when in ("not reaped", "reaped", "another"):
        assert said[when] in HAS_ENDED, when
    assert said["by number"] == "cannot identify the process"
    assert said["ourselves by number"] == ""


def test_before_linux_6_5_a_supervisor_is_known_by_its_name(tmp_path: Path) -> None:
    assert said_in_a_namespace(tmp_path, "sigwrap-super")["by number"] == ""
