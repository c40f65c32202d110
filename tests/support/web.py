"""A web server on this machine that answers as a test says, byte for byte."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

from tests.support.waiting import PATIENCE_S

CERTIFICATE = Path(__file__).with_name("localhost.pem")
"""Of localhost, signed by itself, with its key: good for tests only."""

Answer = Callable[[socket.socket], None]


def page(body: bytes, status: str = "200 OK", *headers: str) -> Answer:
    lines = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", "")
    data = "\r\n".join(lines).encode() + body
    return lambda connection: connection.sendall(data)


class WebServer:
    """Each connection has one request, and is closed once it is answered."""

    def __init__(self, answer: Answer, *, secure: bool = False, port: int = 0) -> None:
        self.answer = answer
        self.requests: list[bytes] = []
        self._news = threading.Condition()
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self._scheme = "https" if secure else "http"
        self._context = None
        if secure:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(CERTIFICATE)
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self.port}/switch"

    def await_requests(self, count: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.requests) >= count, PATIENCE_S)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes whoever waits in accept
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:  # who polls may have gone
            connection.settimeout(PATIENCE_S)
            if self._context is None:
                self._exchange(connection)
            else:
                with self._context.wrap_socket(connection, server_side=True) as secured:
                    self._exchange(secured)

    def _exchange(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            if not (data := connection.recv(4096)):
                return
            request += data
        with self._news:
            self.requests.append(request)
            self._news.notify_all()
        self.answer(connection)
