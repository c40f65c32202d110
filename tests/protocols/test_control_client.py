"""Sessions that are stalled, and sockets that aren't what their name says, hold up no other."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sigwrap.approve import control_client
from sigwrap.approve.control_client import ask_all
from tests.support.waiting import PATIENCE_S

Server = Callable[[socket.socket], None]


@pytest.fixture
def store() -> Iterator[Path]:
    """Its path is short enough for a socket's address."""
    with tempfile.TemporaryDirectory(prefix="sigwrap-", dir="/tmp") as folder:
        (Path(folder) / "control").mkdir()
        yield Path(folder)


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
    answered, failures = ask_all(str(store), {"do": "list"})
    return [each.session_id for each in answered], sorted(map(str, failures))


@pytest.mark.tier("ci")
def test_whoever_answers_is_heard_whatever_the_others_do(
    store: Path, serve: Callable[[str, Server], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_client, "WITHIN_S", 5.0)
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


def fill(store: Path, name: str, held: list[socket.socket]) -> None:
    """A socket with no room for another connection."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(store / "control" / f"{name}.sock"))
    listening.listen(0)
    end = socket.socket(socket.AF_UNIX)
    end.connect(str(store / "control" / f"{name}.sock"))
    held += [listening, end]


@pytest.fixture
def held() -> Iterator[list[socket.socket]]:
    made: list[socket.socket] = []
    yield made
    for each in made:
        each.close()


@pytest.mark.tier("ci")
def test_however_many_sockets_are_full_or_silent_it_takes_no_longer(
    store: Path,
    serve: Callable[[str, Server], None],
    held: list[socket.socket],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_client, "WITHIN_S", 5.0)
    for number in range(100):
        fill(store, f"a{number:03}", held)
        listening = socket.socket(socket.AF_UNIX)
        held.append(listening)
        listening.bind(str(store / "control" / f"b{number:03}.sock"))
        listening.listen()
    for number in range(2000):
        (store / "control" / f"c{number:04}.sock").write_text("")
    serve("z-answers", answers)
    started_s = time.monotonic()
    heard, failures = asked(store)
    assert time.monotonic() - started_s < 40.0  # one after the other they took ten times as long
    assert heard == ["z-answers"]
    assert len(failures) == 200
    assert {failure.split(" ", 2)[2] for failure in failures} == {"does not answer"}


def test_one_that_has_room_after_a_while_is_heard(
    store: Path,
    held: list[socket.socket],
    serve: Callable[[str, Server], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_client, "WITHIN_S", PATIENCE_S)
    fill(store, "full", held)
    listening = held[0]

    def serves() -> None:
        listening.accept()[0].close()
        end = listening.accept()[0]
        answers(end)
        held.append(end)

    asks = threading.Timer(0.2, serves)
    asks.start()
    assert asked(store) == (["full"], [])
    asks.join()
