"""Each file has one kind of attack, as an ordinary user and as root."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.programs import Library

EXECS = Path(__file__).parents[1] / "exec"
INSIDE = Path(__file__).parents[1] / "signals" / "programs" / "inside.py"


@pytest.fixture
def programs(library: Library, request: pytest.FixtureRequest) -> Path:
    """With what programs in a session share beside them."""
    folder = library.beside(request.path.parent)
    shutil.copy(INSIDE, folder)
    (folder / INSIDE.name).chmod(0o755)
    return folder


@pytest.fixture
def first(library: Library) -> Path:
    """It writes its name and its word with its first system call."""
    return library.compiled_beside(EXECS) / "first"
