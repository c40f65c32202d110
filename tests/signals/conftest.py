"""Like tests/process, whose harness this suite shares: $SIGWRAP_UNDER_TEST, or the sigwrap beside
this Python."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "process"))
sys.path.insert(0, str(Path(__file__).parent))
for _module in ("harness", "signal_lab"):
    pytest.register_assert_rewrite(_module)

from harness import NOBODY, Sigwrap, compile_c  # noqa: E402
from signal_lab import HERE, Lab  # noqa: E402


@pytest.fixture
def sigwrap(tmp_path: Path) -> Iterator[Sigwrap]:
    subject = Sigwrap(tmp_path, tmp_path / "store")
    yield subject
    subject.clean_up()


@pytest.fixture
def lab(sigwrap: Sigwrap) -> Lab:
    return Lab(sigwrap)


def _users() -> list[object]:
    as_nobody = pytest.param(
        NOBODY, id="nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")
    )
    return [pytest.param(None, id="us"), as_nobody]


@pytest.fixture(params=_users())
def users_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """As we are and as an ordinary user, in a folder that this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    if request.param is not None:
        os.chown(folder, request.param, request.param)
    subject = Sigwrap(folder, folder / "store", request.param)
    yield Lab(subject)
    subject.clean_up()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def attack() -> Iterator[str]:
    """attack.c, built once, where every user may run it."""
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-attack-"))
    folder.chmod(0o755)
    yield compile_c(folder, "attack", (HERE / "attack.c").read_text(), "-pthread")
    shutil.rmtree(folder)
