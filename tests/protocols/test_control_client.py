"""Sessions that are stalled, and sockets that aren't what their name says, hold up no other."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sigwrap.protocols import control_client
from sigwrap.protocols.control_client import ask_everybody

Server = Callable[[socket.socket], None]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "control").mkdir()
    return tmp_path


@pytest.fixture
def serve(store: Path) -> Iterator[Callable[[str, Server], None]]:
    listening: list[socket.socket] = []
    over = threading.Event()

    def make(name: str, server: Server) -> None:
        end = socket.socket(socket.AF_UNIX)
        listening.append(end)
        end.bind(str(store / "control" / f"{name}.sock"))
        end.listen()

        def run() -> None:
            try:
                connection, _ = end.accept()
            except OSError:
                return
            with connection:
                try:
                    server(connection)
                except OSError:
                    return
                over.wait()

        threading.Thread(target=run, daemon=True).start()

    yield make
    over.set()
    for end in listening:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()


def answers(end: socket.socket) -> None:
    end.recv(1 << 16)
    end.sendall(b'{"v": 1, "ok": true, "requests": []}\n')


def says(data: bytes) -> Server:
    def server(end: socket.socket) -> None:
        end.recv(1 << 16)
        end.sendall(data)
        end.shutdown(socket.SHUT_RDWR)

    return server


def drips(end: socket.socket) -> None:
    while True:
        end.sendall(b" ")


def asked(store: Path) -> tuple[list[str], list[str]]:
    with ask_everybody(str(store), {"do": "list"}) as (answered, failures):
        return [each.client.session_id for each in answered], sorted(map(str, failures))


def test_whoever_answers_is_heard_whatever_the_others_do(
    store: Path, serve: Callable[[str, Server], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_client, "PATIENCE_S", 1.0)
    for name, server in {
        "a-silent": lambda end: None,
        "b-answers": answers,
        "c-garbage": says(b"\xff\x00\n"),
        "d-deep": says(b"[" * 200_000 + b"\n"),
        "e-hangs-up": says(b""),
        "f-drips": drips,
        "g-answers": answers,
    }.items():
        serve(name, server)
    folder = store / "control"
    (folder / "h-file.sock").write_text("")
    os.mkfifo(folder / "i-fifo.sock")
    (folder / "j-folder.sock").mkdir()
    (folder / "k-link.sock").symlink_to("/nowhere")
    serve("l\nm", answers)
    heard, failures = asked(store)
    assert heard == ["b-answers", "g-answers"]
    assert [failure.split()[1] for failure in failures] == [
        "a-silent",
        "c-garbage",
        "d-deep",
        "e-hangs-up",
        "f-drips",
    ]


def test_a_store_without_sessions_has_nobody_to_ask(tmp_path: Path) -> None:
    assert asked(tmp_path) == ([], [])


def test_so_many_sockets_are_asked_and_no_more(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_client, "_MOST_SOCKETS", 3)
    for number in range(5):
        (store / "control" / f"{number}.sock").write_text("")
    assert asked(store) == ([], ["2 sockets are not asked"])
