from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser
from tests.support.waiting import PATIENCE_S, Reader, reader

ROOT = Path(__file__).parents[3]
PAGE_SERVER = (sys.executable, "-m", "tests.watch.programs.page_server")


class Answered:
    def __init__(self, received: bytes) -> None:
        head, _, self.body = received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        self.headers = dict(line.lower().split(": ", 1) for line in lines)

    @property
    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


class Served:
    """A page over a source that does what it is told, and who asks it."""

    def __init__(self, store: Path, environment: dict[str, str], **bounds: Any):
        self.process = subprocess.Popen(
            [*PAGE_SERVER, str(store), json.dumps(bounds)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        self._says = reader(self.process.stdout)
        self.errors: Reader = reader(self.process.stderr)
        started = self._next("path")
        self.entry: str = started["path"]
        self.port: int = started["port"]
        self.host = f"127.0.0.1:{self.port}"
        self.cookie = ""
        self.token = ""

    # What it tells of

    def tell(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()
        self._next("obeyed")

    def did(self) -> list[Any]:
        found: list[Any] = self._next("did")["did"]
        return found

    def attended(self) -> bool:
        return bool(self._next("attended")["attended"])

    def _next(self, name: str) -> dict[str, Any]:
        while True:
            said: dict[str, Any] = json.loads(self._says.line())
            if name in said:
                return said

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    # Who asks

    def connect(self) -> socket.socket:
        end = socket.create_connection(("127.0.0.1", self.port))
        end.settimeout(PATIENCE_S)
        return end

    def filled(self, text: str) -> bytes:
        """With the host, the cookie and the token, where it has {host}, {cookie} and {token}."""
        said = text.format(host=self.host, cookie=self.cookie, token=self.token)
        return said.encode("latin-1")

    def raw(self, *pieces: bytes) -> Answered:
        """Whatever it answers, up to its end."""
        with self.connect() as end:
            for piece in pieces:
                end.sendall(piece)
            return Answered(read_all(end))

    def request(
        self, method: str, path: str, body: bytes = b"", **different: str | None
    ) -> Answered:
        """Send a request as a browser with the cookie; `different`: other fields, None for none."""
        fields: dict[str, str | None] = {"host": self.host, "cookie": self.cookie or None}
        if method == "POST":
            fields |= {
                "origin": f"http://{self.host}",
                "x_sigwrap_token": self.token or None,
                "content_type": "application/json",
                "content_length": str(len(body)),
            }
        fields |= different
        lines = [
            f"{name.replace('_', '-')}: {value}"
            for name, value in fields.items()
            if value is not None
        ]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""])
        return self.raw(head.encode() + body)

    def get(self, path: str, **different: str | None) -> Answered:
        return self.request("GET", path, b"", **different)

    def post(self, path: str, order: Any, **different: str | None) -> Answered:
        return self.request("POST", path, json.dumps(order).encode(), **different)

    def enter(self) -> None:
        answered = self.get(self.entry)
        assert answered.status == 303, answered.body
        self.cookie = answered.headers["set-cookie"].partition(";")[0]
        page = self.get("/").body.decode()
        self.token = page.partition('name="token" content="')[2].partition('"')[0]

    def stream(self, session_id: str = "") -> socket.socket:
        end = self.connect()
        head = f"GET /stream?session={session_id} HTTP/1.1\r\nHost: {{host}}\r\n"
        end.sendall(self.filled(f"{head}Cookie: {{cookie}}\r\nSec-Fetch-Site: same-origin\r\n\r\n"))
        return end


def read_all(end: socket.socket) -> bytes:
    received = b""
    try:
        while data := end.recv(1 << 16):
            received += data
    except ConnectionResetError:
        pass  # it had more to say than was heard
    return received


@pytest.fixture
def private() -> Iterator[Path]:
    """A folder of our own, whose path is short enough for a socket's address."""
    with tempfile.TemporaryDirectory(prefix="sigwrap-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def start(*, env: dict[str, str] | None = None, **bounds: Any) -> Served:
        started.append(Served(tmp_path / "store", {**os.environ, **(env or {})}, **bounds))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def own(serve: Callable[..., Served]) -> Served:
    """One that has let us in, and that the test may end."""
    found = serve()
    found.enter()
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that has let us in, for all tests that leave nothing behind that it did."""
    found = Served(tmp_path_factory.mktemp("page") / "store", dict(os.environ))
    found.enter()
    yield found
    found.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """In a folder whose path is short enough for its own sockets."""
    short = tempfile.TemporaryDirectory(prefix="sigwrap-", dir="/tmp", ignore_cleanup_errors=True)
    with short as folder:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("TMPDIR", folder)
            started = Browser(Path(folder))
        with started:
            yield started
