from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import UNDER_TEST, Sigwrap


@pytest.fixture
def forward(as_user: Sigwrap) -> str:
    """Beside sigwrap; the binary is the same file under another name."""
    beside = Path(UNDER_TEST).with_name("sigwrap-forward")
    if beside.exists():
        return str(beside)
    link = as_user.folder / "sigwrap-forward"
    link.symlink_to(UNDER_TEST)
    return str(link)
