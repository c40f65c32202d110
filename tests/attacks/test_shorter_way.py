"""What goes the shorter way is judged, recorded and compared like what goes the long one."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

WITH = {"SIGWRAP_PURE_PYTHON": ""}
WITHOUT = {"SIGWRAP_PURE_PYTHON": "1"}
BOTH_WAYS = pytest.mark.parametrize("env", [WITH, WITHOUT], ids=["with", "without"])
ROOT_SWAPS = 200

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sigwrap.linux.execs._repeated") is None,
    reason="needs the extension: a C compiler and Python's headers at make setup",
)


def _repeated(subject: Sigwrap) -> int:
    (ended,) = subject.sealed_events("session_ended")
    count: int = ended.payload["repeated"]
    return count


def test_a_root_that_another_thread_swaps(sigwrap: Sigwrap, compiled: Path) -> None:
    """The file is the very one that was judged, but it would load its libraries from there."""
    if os.getuid() != 0:
        pytest.skip("chroot needs root")
    tool, evil = sigwrap.folder / "sees_mark", sigwrap.folder / "evil"
    shutil.copy(compiled / "sees_mark", tool)
    (evil / sigwrap.folder.relative_to("/")).mkdir(parents=True)
    os.link(tool, evil / tool.relative_to("/"))
    (evil / "mark").touch()
    rules = f"\n  - {{name: rest, commands: [flips_root, {tool}], decision: allow}}\n"
    name = policy(sigwrap.folder, rules)
    text = Path(name).read_text().replace("{command: allow", "{command: deny")
    Path(name).write_text(text)
    line = (str(compiled / "flips_root"), str(evil), str(tool), str(ROOT_SWAPS))
    done = sigwrap.run("-p", name, "--", *line, env=WITH)
    assert (done.returncode, done.stdout) == (0, b"")
    assert _repeated(sigwrap) > 0
    reasons = {event.payload["reason"] for event in sigwrap.events("exec_verification_failed")}
    assert all(reason.startswith("its root is another") for reason in reasons)
