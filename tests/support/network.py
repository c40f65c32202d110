"""Network rules of a test, servers in the test itself, and clients that are compared under them."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.harness import Sigwrap

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
HERE = '[loopback, "unix:*"]'


class Rules(NamedTuple):
    rules: tuple[str, ...]
    default: str = "allow"


STREAMS = Rules(('name: seen, protocol: tcp, destinations: ["*"], decision: audit',))
DATAGRAMS = Rules(
    ('name: kept, destinations: [192.0.2.0/24, "unix:/nowhere/**"], decision: deny',), "audit"
)
"""So that messages are looked at as well."""
ONLY_HERE = Rules(
    (
        f"name: here, destinations: {HERE}, decision: allow",
        f"name: servers, direction: bind, destinations: {HERE}, decision: allow",
    ),
    "deny",
)
ALL = (STREAMS, DATAGRAMS, ONLY_HERE)


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


def same(
    subject: Sigwrap, *line: str, under_each: Sequence[Rules] = ALL, status: int = 0, **options: Any
) -> bytes:
    """What it says, natively and under rules that allow it. `{run}`: a folder of each run's own."""
    number = 0

    def folder_of_its_own() -> list[str]:
        nonlocal number
        number += 1
        return [word.replace("{run}", f"{subject.folder}/run{number}") for word in line]

    def said(done: subprocess.CompletedProcess[bytes]) -> tuple[int, bytes, bytes]:
        place = f"{subject.folder}/run{number}".encode()
        return (
            done.returncode,
            done.stdout.replace(place, b"{run}"),
            done.stderr.replace(place, b"{run}"),
        )

    natively = said(subject.native(*folder_of_its_own(), **options))
    assert natively[0] == status, natively
    for rules in under_each:
        done = subject.run(*under(subject, rules), *folder_of_its_own(), **options)
        assert said(done) == natively, rules
        was_looked_at(subject)
    return natively[1]


def was_looked_at(subject: Sigwrap) -> None:
    types = {each.type for each in subject.sealed_events()}
    assert types & {"connection_allowed", "connection_audited"}
    assert not types & {"connection_denied", "mediation_failed", "call_refused"}


def denied(subject: Sigwrap, destination: str, *line: str, status: int = 1, **options: Any) -> str:
    """It ends by itself, with an error of its own, after one line of ours. What it says: that."""
    host, _, port = destination.rpartition(":")
    where = f'destinations: ["{destination}"]'
    if not destination.startswith("unix:"):
        where = f"destinations: [{host}], ports: [{port}]"
    rules = Rules((f"name: keep, {where}, decision: deny",))
    done = subject.run(*under(subject, rules), *line, **options)
    ours, theirs = ours_and_theirs(done)
    what = f"connection to {destination}: denied by rule keep of test"
    assert ours == [f"sigwrap: {what} (sigwrap report tells more)"], theirs
    assert done.returncode == status
    refused = subject.sealed_events("connection_denied")
    assert refused and {each.payload["destination"] for each in refused} == {destination}
    return "\n".join(theirs)


def ours_and_theirs(done: subprocess.CompletedProcess[bytes]) -> tuple[list[str], list[str]]:
    """The lines of standard error."""
    lines = done.stderr.decode().splitlines()
    ours = [each for each in lines if each.startswith("sigwrap: ")]
    return ours, [each for each in lines if each not in ours]


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


class ByConnection:
    """For each connection a program of its own, with the connection as its streams."""

    def __init__(self, *line: str) -> None:
        self._line = line
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.connections = 0
        self._started: list[subprocess.Popen[bytes]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                self.connections += 1
                self._started.append(
                    subprocess.Popen(
                        self._line,
                        stdin=connection.fileno(),
                        stdout=connection.fileno(),
                        stderr=subprocess.DEVNULL,
                    )
                )

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for each in self._started:
            each.kill()
            each.wait()


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


class SshClient:
    """With its own copy of the key: it takes none that others may read."""

    def __init__(self, subject: Sigwrap, prepared: Path, host: str, port: int) -> None:
        key = subject.folder / "key"
        shutil.copy(prepared / "user_key", key)
        if subject.user is not None:
            os.chown(key, subject.user, subject.user)
        self.who = f"{pwd.getpwuid(os.getuid()).pw_name}@{host}"
        self.line = (
            "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR"
            f" -o UserKnownHostsFile={subject.folder}/known -i {key} -p {port}"
        )


def prepare_ssh(folder: Path) -> str:
    """A server's configuration and keys, by which whoever runs the tests may log in."""
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # else it doesn't start
    for name in ("host_key", "user_key"):
        line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(line, check=True)
    config = folder / "sshd_config"
    config.write_text(
        f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/user_key.pub\nUsePAM no\n"
        "StrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nPidFile none\n"
        "KbdInteractiveAuthentication no\n"
    )
    return str(config)


def unused_port(host: str) -> int:
    with socket.socket() as taken:
        taken.bind((host, 0))
        return int(taken.getsockname()[1])
