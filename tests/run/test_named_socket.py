"""A socket in the store, while somebody else gives names there to other files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from sigwrap.run.asking.named_socket import NamedSocket
from sigwrap.store.folder import HeldFolder, Interfered


def test_another_file_is_not_taken_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where somebody was quicker than our look at it."""
    status = HeldFolder.status

    def after_somebody(folder: HeldFolder, name: str) -> os.stat_result | None:
        if ".new-" in name:
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(str(tmp_path / "other"))
            (tmp_path / "other").rename(tmp_path / name)
        return status(folder, name)

    named = NamedSocket(str(tmp_path / "first.sock"))
    assert named.objection() == ""
    monkeypatch.setattr(HeldFolder, "status", after_somebody)
    with pytest.raises(Interfered):
        named.restore()
    with pytest.raises(Interfered):
        NamedSocket(str(tmp_path / "second.sock"))
    assert [path.name for path in tmp_path.iterdir()] == ["first.sock"]
    monkeypatch.undo()
    assert named.objection() == ""
    named.close()
    assert not list(tmp_path.iterdir())
