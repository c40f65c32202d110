"""The suite runs against $SIGWRAP_UNDER_TEST, or the sigwrap beside this Python."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("harness")

from harness import NOBODY, Sigwrap  # noqa: E402


def _users() -> list[object]:
    as_nobody = pytest.param(
        NOBODY, id="nobody", marks=pytest.mark.skipif(os.getuid() != 0, reason="needs root")
    )
    return [pytest.param(None, id="us"), as_nobody]


@pytest.fixture
def sigwrap(tmp_path: Path) -> Iterator[Sigwrap]:
    subject = Sigwrap(tmp_path, tmp_path / "store")
    yield subject
    subject.clean_up()


@pytest.fixture(params=_users())
def as_user(request: pytest.FixtureRequest) -> Iterator[Sigwrap]:
    """The same, as we are and as an ordinary user, in a folder that this user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    if request.param is not None:
        os.chown(folder, request.param, request.param)
    subject = Sigwrap(folder, folder / "store", request.param)
    yield subject
    subject.clean_up()
    shutil.rmtree(folder)
