"""Sockets that a policy keeps are looked for in bounded time, whoever makes names beside them."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from sigwrap.linux.file_state import inode_of
from sigwrap.linux.sockets import places
from sigwrap.linux.sockets.places import KeptPlaces


def bound(at: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(at))
    return made


def test_what_is_there_at_first_is_found_among_many(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"d-{number}").mkdir()
    with bound(tmp_path / "d-7/kept"):
        inode = inode_of(str(tmp_path / "d-7/kept").encode())
        kept = KeptPlaces([f"{tmp_path}/d-*/k*"])
        (tmp_path / "d-7/kept").rename(tmp_path / "moved")
        assert kept.names_of(inode) == {f"{tmp_path}/d-7/kept"}


def test_later_only_so_many_names_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptPlaces([f"{tmp_path}/d-*/*"])
    for number in range(30):
        (tmp_path / f"d-{number}").mkdir()
        for other in range(30):
            (tmp_path / f"d-{number}/{other}").touch()
    asked: list[bytes] = []

    def kind_of(path: bytes) -> tuple[int, int]:
        asked.append(path)
        return stat.S_IFREG, 0

    monkeypatch.setattr(places, "kind_of", kind_of)
    monkeypatch.setattr(places, "_MOST_NAMES", 100)
    monkeypatch.setattr(places, "_LOOKS_EVERY_S", 0)
    kept.names_of((0, 0))
    assert len(asked) <= 100
