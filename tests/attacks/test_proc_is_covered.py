"""Root inside can mount over /proc; sigwrap reads another one."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S

SIGWRAP = Path(__file__).parents[2] / "sigwrap"
BY_PATH = re.compile(r'(os\.(open|readlink|stat|listdir|scandir)|os\.path\.\w+|\bopen)\(b?f?"/proc')
BEFORE_COMMAND = {"linux/descriptors.py"}
HOLDS_IT = {"linux/proc_files.py"}


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_sigwrap_believes_no_proc_of_somebody_elses(lab: Lab, programs: Path) -> None:
    lab.under("name: own, signals: ['@all'], target: children, decision: allow")
    line = lab.subject.line("--", *python(programs / "covers_proc.py"))
    process = lab.subject.start_line(["unshare", "--mount", *line])
    said, error = process.communicate(b"", PATIENCE_S)
    assert process.returncode == 0, error
    covered, ran, killed, status, left = json.loads(said)
    assert (covered, ran, killed, status) == (0, 0, 0, 9), error
    assert not Path(f"/proc/{left}").exists()
    execs = {each.payload["path"]: each.payload for each in lab.subject.events("exec_audited")}
    (true,) = [payload for path, payload in execs.items() if path.endswith("/true")]
    assert true["verified"], true
    (sent,) = lab.payloads("signal_sent")
    assert sent["target_type"] == "children"


@pytest.mark.parametrize("propagation", ["private", "shared"])
def test_nor_what_is_mounted_over_a_part_of_it(
    users_lab: Lab, programs: Path, propagation: str
) -> None:
    """As root of a user namespace, who may have no /proc of his own."""
    lab = users_lab.under("name: own, signals: ['@all'], target: children, decision: allow")
    words = ("unshare", "-U", "-r", "-m", f"--propagation={propagation}")
    if lab.subject.native(*words, "true").returncode != 0:
        pytest.skip("needs user namespaces")
    outside = lab.outsider()
    limits = Path(f"/proc/{outside.pid}/limits")
    before = limits.read_text()
    line = lab.subject.line("--", *python(programs / "lies_about_outside.py", outside.pid))
    process = lab.subject.start_line([*lab.subject.as_user(), *words, *line])
    said, error = process.communicate(b"", PATIENCE_S)
    assert process.returncode == 0, error
    assert json.loads(said) == ["EPERM", 0, "EPERM"]
    assert limits.read_text() == before
    (started,) = lab.subject.events("session_started")
    assert not [each for each in started.payload["missing"] if each.startswith("proc:")]


def test_nothing_of_a_run_reads_proc_by_its_path() -> None:
    found = [
        f"{path.relative_to(SIGWRAP)}: {match.group()}"
        for part in ("linux", "run", "front")
        for path in sorted((SIGWRAP / part).rglob("*.py"))
        if str(path.relative_to(SIGWRAP)) not in BEFORE_COMMAND | HOLDS_IT
        for match in BY_PATH.finditer(path.read_text())
    ]
    assert found == []
