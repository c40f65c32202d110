"""Sockets that a policy keeps are looked for in bounded time, whoever makes names beside them."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path

import pytest

from sigwrap.kernel.file_state import Born, born_at
from sigwrap.network import look as places
from sigwrap.network.look import KeptSockets

NOBODYS = ((0, 0), (0, 0))


def bound(at: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(at))
    return made


def test_later_only_so_many_names_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptSockets([f"{tmp_path}/d-*/*"])
    for number in range(30):
        (tmp_path / f"d-{number}").mkdir()
        for other in range(30):
            (tmp_path / f"d-{number}/{other}").touch()
    asked: list[str] = []

    def born_sockets(paths: Iterable[str]) -> Iterable[tuple[str, Born]]:
        asked.extend(paths)
        return ()

    monkeypatch.setattr(places, "born_sockets", born_sockets)
    monkeypatch.setattr(places, "_MOST_NAMES", 100)
    monkeypatch.setattr(places, "_LOOKS_EVERY_S", 0)
    kept.names_of(NOBODYS)
    assert 0 < len(asked) <= 100


def test_what_the_session_makes_is_known_up_to_a_bound_and_what_was_there_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_LOOKS_EVERY_S", 0)
    monkeypatch.setattr(places, "_MOST_LATER", 10)
    with bound(tmp_path / "kept-before"):
        before = born_at(str(tmp_path / "kept-before").encode())
        kept = KeptSockets([f"{tmp_path}/kept-*"])
        (tmp_path / "kept-before").rename(tmp_path / "moved")
        with bound(tmp_path / "kept-stays"):
            stays = born_at(str(tmp_path / "kept-stays").encode())
            for number in range(30):
                with bound(tmp_path / f"kept-{number}"):
                    kept.names_of(NOBODYS)
                    (tmp_path / f"kept-{number}").rename(tmp_path / f"other-{number}")
            inodes = [born_at(str(tmp_path / f"other-{each}").encode()) for each in range(30)]
            known = [number for number, inode in enumerate(inodes) if kept.names_of(inode)]
            assert known == list(range(21, 30))
            assert kept.names_of(before) == {f"{tmp_path}/kept-before"}
            assert kept.names_of(stays) == {f"{tmp_path}/kept-stays"}


def test_of_many_names_of_one_socket_a_glob_keeps_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_LOOKS_EVERY_S", 0)
    kept = KeptSockets([f"{tmp_path}/kept-*", f"{tmp_path}/*-1"])
    with bound(tmp_path / "kept-0"):
        inode = born_at(str(tmp_path / "kept-0").encode())
        for number in range(1, 30):
            (tmp_path / f"kept-{number}").hardlink_to(tmp_path / "kept-0")
            kept.names_of(inode)
        names = kept.names_of(inode)
        assert len(names) == 2 and f"{tmp_path}/kept-1" in names


def test_another_file_that_has_got_the_number_of_one_that_is_gone_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the same tick of the file system's clock: a few milliseconds."""
    monkeypatch.setattr(places, "_LOOKS_EVERY_S", 0)
    kept_at, free_at = tmp_path / "kept-0", tmp_path / "free"
    kept = KeptSockets([f"{tmp_path}/kept-*"])
    for _ in range(5):
        with bound(kept_at):
            file = born_at(str(kept_at).encode())
            assert kept.names_of(file) == {str(kept_at)}
        kept_at.unlink()
        other = file
        while other[1] == file[1]:
            with bound(free_at):
                other = born_at(str(free_at).encode())
            free_at.unlink()
        assert kept.names_of(other) == frozenset()
