"""An HTTP server that gives each request the next answer, and the last one from then on."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event as Flag
from threading import Thread
from typing import Any, NamedTuple

from tests.support.web import CERTIFICATE

Answer = Callable[["Handler"], None]


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class HttpServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *answers: Answer, is_secure: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = [*answers]
        self.asked: list[Asked] = []
        self.is_closed = Flag()
        if is_secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"{'https' if is_secure else 'http'}://localhost:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client may leave before the answer."""

    def close(self) -> None:
        self.is_closed.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HttpServer

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(Asked(self.command, self.path, dict(self.headers), body))
        answers = self.server.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def do_POST(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def says(status: int, body: bytes = b"{}", **headers: str) -> Answer:
    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def trickles(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
    while not handler.server.is_closed.wait(0.05):
        handler.wfile.write(b"x")


def is_frozen(handler: Handler) -> None:
    handler.server.is_closed.wait()


def hangs_up(handler: Handler) -> None:
    handler.close_connection = True


def breaks_off(handler: Handler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 3\r\n\r\n{}')
    handler.close_connection = True
