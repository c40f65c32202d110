from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.approve.control_client import LeftSocket, is_listened_at, left_sockets, remove_left


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current one: the path of a test's folder is too long for a socket's address."""
    made = tmp_path / "control"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def listening(folder: Path) -> Iterator[Path]:
    path = folder / "runs.sock"
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)
        end.listen(0)
        yield path


def leave(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(path.name)


def test_a_socket_is_left_where_nobody_listens(folder: Path, listening: Path) -> None:
    leave(folder / "killed.sock")
    leave(folder / "killed.sock.new-0123456789ab")
    leave(folder / "mine.socket")
    (folder / "file.sock").touch()
    (folder / "link.sock").symlink_to(folder / "killed.sock")
    store = str(folder.parent)
    found = left_sockets(store)
    assert found == [
        LeftSocket("killed", "killed.sock"),
        LeftSocket("killed", "killed.sock.new-0123456789ab"),
    ]
    assert is_listened_at(store, "runs") and not is_listened_at(store, "killed")
    assert remove_left(store, [*found, LeftSocket("runs", "runs.sock")]) == 2
    assert sorted(os.listdir(folder)) == ["file.sock", "link.sock", "mine.socket", "runs.sock"]


def test_a_full_one_is_listened_at(folder: Path, listening: Path) -> None:
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        for end in (first, second):
            end.setblocking(False)
            try:
                end.connect(listening.name)
            except BlockingIOError:
                break
        assert left_sockets(str(folder.parent)) == []


def test_a_folder_that_is_a_link_is_not_gone_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    leave(tmp_path / "elsewhere" / "killed.sock")
    (tmp_path / "control").symlink_to(tmp_path / "elsewhere")
    assert left_sockets(str(tmp_path)) == []
    assert remove_left(str(tmp_path), [LeftSocket("killed", "killed.sock")]) == 0
