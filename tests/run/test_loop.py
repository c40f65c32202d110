"""What is watched, also where the kernel refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.session.loop import Loop


def test_what_can_t_be_watched_is_not(tmp_path: Path) -> None:
    """A file can't, as nothing can when a user's watches are used up."""
    loop = Loop()
    with open(tmp_path / "file", "wb") as file:
        with pytest.raises(PermissionError):
            loop.watch(file.fileno(), lambda _: None)
        loop.unwatch(file.fileno())
