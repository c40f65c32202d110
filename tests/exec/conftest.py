"""Real execs under a policy of the test's own. Runs what tests/process runs; same harness."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "process"))
pytest.register_assert_rewrite("harness")
sys.path.insert(0, str(Path(__file__).parent))

from backstop import Backstop, NoBackstop  # noqa: E402
from harness import NOBODY, Sigwrap  # noqa: E402

SOURCES = Path(__file__).parent / "programs"
FLAGS = {
    "first": ["-static", "-nostdlib", "-fno-stack-protector", "-fno-pie", "-no-pie"],
}


@pytest.fixture(
    params=[
        pytest.param(None, id="us"),
        pytest.param(
            NOBODY, id="nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")
        ),
    ]
)
def wrapped(request: pytest.FixtureRequest) -> Iterator[Sigwrap]:
    """As we are and as an ordinary user, in a folder that this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-exec-"))
    if request.param is not None:
        os.chown(folder, request.param, request.param)
    subject = Sigwrap(folder, folder / "store", request.param)
    yield subject
    subject.clean_up()
    shutil.rmtree(folder)


@pytest.fixture
def sigwrap(tmp_path: Path) -> Iterator[Sigwrap]:
    subject = Sigwrap(tmp_path, tmp_path / "store")
    yield subject
    subject.clean_up()


@pytest.fixture
def backstop() -> Iterator[Backstop]:
    """For what would take the machine along if sigwrap failed."""
    try:
        subject = Backstop.make()
    except NoBackstop as why:
        pytest.skip(f"needs a limit of the kernel on a fork bomb: {why}")
    yield subject
    subject.remove()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The C programs of this folder, where everybody may run them."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-programs-"))
    folder.chmod(0o755)
    for source in SOURCES.glob("*.c"):
        flags = FLAGS.get(source.stem, ["-pthread"])
        line = [compiler, "-O1", *flags, "-o", str(folder / source.stem), str(source)]
        subprocess.run(line, check=True)
    yield folder
    shutil.rmtree(folder)
