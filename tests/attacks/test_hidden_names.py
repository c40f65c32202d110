"""Where sigwrap runs as root, nobody learns from it what is in a folder that is closed to him."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize("pure", ["", "1"], ids=["extension", "python"])
def test_what_is_missing_there_is_refused_like_what_is_there(
    sigwrap: Sigwrap, folder: Path, programs: Path, pure: str
) -> None:
    closed, opened = folder / "closed", folder / "open"
    for path in (closed, closed / "below", opened):
        path.mkdir()
    (closed / "there").write_text("")
    (closed / "below/there").write_text("")
    closed.chmod(0o700)
    (opened / "through").symlink_to(closed / "below/../../open")
    (opened / "missed").symlink_to(closed / "nothing")
    hidden = ["there", "nothing", "there/x", "nothing/x", "below/there", "below/nothing"]
    tried = [str(closed / name) for name in hidden]
    tried += ["../closed/there", "../closed/nothing", "through/nothing", "missed", "missed/x"]
    tried += [f"{opened}//{name}" for name in ("through/nothing", "missed", "missed/x", "nothing")]
    tried += ["nothing", "/usr/bin/nothing", "/usr/bin/env/x", "//dev/fd/99", "/proc/self/fd/99"]
    line = [*PYTHON, str(programs / "asks_for_hidden_names.py"), str(opened), *tried]
    natively = sigwrap.native(*line)
    done = sigwrap.run("--", *line, env={"SIGWRAP_PURE_PYTHON": pure})
    assert done.stdout.decode().splitlines() == natively.stdout.decode().splitlines()
    assert natively.stdout.count(b"EACCES") == 14
    assert natively.stdout.count(b"ENOENT") == 5
