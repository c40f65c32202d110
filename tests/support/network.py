"""Network rules of a test, and servers in the test itself."""

from __future__ import annotations

import contextlib
import functools
import http.server
import socket
import threading
from pathlib import Path
from typing import NamedTuple

from tests.support.harness import Sigwrap


class Rules(NamedTuple):
    rules: tuple[str, ...]
    default: str = "allow"


STREAMS = Rules(('name: seen, protocol: tcp, destinations: ["*"], decision: audit',))
DATAGRAMS = Rules(
    ('name: kept, destinations: [192.0.2.0/24, "unix:/nowhere/**"], decision: deny',), "audit"
)
"""So that messages are looked at as well."""


def network_policy(subject: Sigwrap, *rules: str, default: str = "allow") -> str:
    path = subject.folder / "policy.yaml"
    text = "version: 1\nname: test\n"
    text += f"defaults: {{command: allow, signal: allow, network: {default}}}\n"
    if rules:
        text += "network_rules:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules)
    path.write_text(text)
    path.chmod(0o644)
    return str(path)


def under(subject: Sigwrap, rules: Rules) -> tuple[str, ...]:
    return ("-p", network_policy(subject, *rules.rules, default=rules.default), "--")


def was_looked_at(subject: Sigwrap) -> None:
    types = {each.type for each in subject.sealed_events()}
    assert types & {"connection_allowed", "connection_audited"}
    assert not types & {"connection_denied", "mediation_failed", "call_refused"}


class Files(http.server.ThreadingHTTPServer):
    """What is in a folder; and what was asked for."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, folder: Path) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, *_: object) -> None:
                asked.append(self.path)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class Answering:
    """At a file, a name or an address: each connection gets an answer."""

    def __init__(self, at: Path | str | tuple[str, int], answer: bytes) -> None:
        self._socket = socket.socket(socket.AF_INET if isinstance(at, tuple) else socket.AF_UNIX)
        self._socket.bind(str(at) if isinstance(at, Path) else at)
        self._socket.listen(10)
        if isinstance(at, Path):
            at.chmod(0o777)
        self._answer = answer
        self.connections = 0
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.connections += 1
                connection.sendall(self._answer)
                connection.shutdown(socket.SHUT_WR)
                with contextlib.suppress(OSError):
                    connection.recv(1000)  # else what wasn't read breaks the connection

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
