"""Whom network rules keep from the session is reached by no way."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import may_unshare
from tests.support.waiting import await_that

RULES = """network_rules:
  - {{name: port, destinations: [127.0.0.0/8], ports: [{port}], decision: deny}}
  - {{name: file, destinations: ["unix:{folder}/kept/**"], decision: deny}}"""
# By these nobody gets there, not every user, or not on every machine.
NOT_EVERYWHERE = {
    "with_the_first_bytes",
    "with_the_first_message",
    "by_another_protocol",
    "by_a_ring",
    "by_i386",
    "by_socketcall",
    "by_a_message_of_32_bits",
    "by_a_message_through_socketcall",
    "with_another_socket",
    "by_another_name",
    "mounted_elsewhere",
    "as_a_packet",
    "as_a_raw_packet",
}
# Without anybody who looks, a try takes no time in which another thread could do something.
RACES = {"with_another_address_for_a_datagram", "with_a_name_at_last"}
TRIES = 2000


class Kept:
    """Servers that nobody is to reach, and one that anybody may; and what was said to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "kept").mkdir()
        self.said: set[str] = set()
        self._sockets: list[socket.socket] = []
        self.port = self._serve(socket.SOCK_STREAM, ("127.0.0.1", 0)).getsockname()[1]
        self._serve(socket.SOCK_DGRAM, ("127.0.0.1", self.port))
        allowed = self._serve(socket.SOCK_STREAM, ("127.0.0.1", 0), keeps=False)
        self.allowed = allowed.getsockname()[1]
        self.stream, self.datagrams = str(folder / "kept/stream"), str(folder / "kept/datagrams")
        self._serve(socket.SOCK_STREAM, self.stream)
        self._serve(socket.SOCK_DGRAM, self.datagrams)
        for path in (folder, folder / "kept", self.stream, self.datagrams):
            os.chmod(path, 0o777)

    def _serve(self, kind: int, at: Any, *, keeps: bool = True) -> socket.socket:
        made = socket.socket(socket.AF_UNIX if isinstance(at, str) else socket.AF_INET, kind)
        made.bind(at)
        self._sockets.append(made)
        if kind == socket.SOCK_STREAM:
            made.listen(1000)

        def serve() -> None:
            while made.fileno() >= 0:
                try:
                    said = _accepted(made) if kind == socket.SOCK_STREAM else made.recv(100)
                except OSError:
                    continue
                if keeps:
                    self.said.add(said.decode())

        threading.Thread(target=serve, daemon=True).start()
        return made

    def line(self, programs: Path, *ways: str, tries: int = TRIES) -> list[str]:
        words = (self.port, self.allowed, self.stream, self.datagrams)
        further = (programs / "connects_as_others", tries, *ways)
        return [*PYTHON, str(programs / "reaches_sockets.py"), *map(str, (*words, *further))]

    def await_what_was_said(self) -> None:
        """What comes last is seen last."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"the end", ("127.0.0.1", self.port))
        with socket.create_connection(("127.0.0.1", self.port)) as last:
            last.sendall(b"the end, too")
        await_that(lambda: {"the end", "the end, too"} <= self.said)

    def close(self) -> None:
        for each in self._sockets:
            each.close()


def _accepted(made: socket.socket) -> bytes:
    connection, _ = made.accept()
    with connection:
        return connection.recv(100)


@pytest.fixture
def kept(as_user: Sigwrap) -> Iterator[Kept]:
    made = Kept(as_user.folder)
    yield made
    made.close()


def test_nobody_is_reached(as_user: Sigwrap, kept: Kept, compiled: Path) -> None:
    rules = RULES.format(port=kept.port, folder=as_user.folder)
    as_user.policy = policy(as_user.folder, " []", rules)
    done = as_user.run("--", *kept.line(compiled))
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    kept.await_what_was_said()
    assert kept.said == {"the end", "the end, too"}, (kept.said, told)
    assert set(told) == _ways(compiled)
    denied = as_user.sealed_events("connection_denied")
    assert {"port", "file", "builtin:network"} == {each.payload["rule_name"] for each in denied}
    assert as_user.events("mediation_failed") == []


def test_each_of_these_ways_leads_there_without_rules(
    as_user: Sigwrap, kept: Kept, compiled: Path
) -> None:
    """Else the test above would say nothing."""
    ways = sorted(_ways(compiled) - RACES)
    told = json.loads(as_user.native(*kept.line(compiled, *ways)).stdout)
    told |= json.loads(as_user.native(*kept.line(compiled, *RACES, tries=100 * TRIES)).stdout)
    kept.await_what_was_said()
    assert _ways(compiled) - NOT_EVERYWHERE - kept.said == set(), told


def test_a_server_of_another_type_makes_no_name_the_sessions_own(as_user: Sigwrap) -> None:
    """Each type of socket has abstract names of its own."""
    name = f"/tmp/.X11-unix/X{os.getpid()}"
    rule = '{name: x, destinations: ["unix:x11"], decision: deny}'
    as_user.policy = policy(as_user.folder, " []", f"network_rules: [{rule}]")
    script = (
        "import socket\n"
        f"name = '\\0{name}'\n"
        "def reach(kind): return socket.socket(socket.AF_UNIX, kind).connect_ex(name)\n"
        "own = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "own.bind(name); own.listen()\n"
        "print(reach(socket.SOCK_SEQPACKET), reach(socket.SOCK_STREAM))\n"
    )
    with _listening(f"\0{name}"):
        done = as_user.run("--", *PYTHON, "-c", script)
    assert done.stdout == b"0 13\n", done.stderr


def test_a_file_makes_no_abstract_name_the_sessions_own(as_user: Sigwrap) -> None:
    """A relative path can have the letters of an abstract name."""
    name = f"/tmp/.X11-unix/X{os.getpid()}"
    rule = '{name: x, destinations: ["unix:x11"], decision: deny}'
    as_user.policy = policy(as_user.folder, " []", f"network_rules: [{rule}]")
    script = (
        "import os, socket\n"
        "os.makedirs('@/tmp/.X11-unix')\n"
        "own = socket.socket(socket.AF_UNIX)\n"
        f"own.bind('@{name}'); own.listen()\n"
        "def reach(name): return socket.socket(socket.AF_UNIX).connect_ex(name)\n"
        f"print(reach('@{name}'), reach('\\0{name}'))\n"
    )
    with _listening(f"\0{name}"):
        done = as_user.run("--", *PYTHON, "-c", script)
    assert done.stdout == b"0 13\n", done.stderr


def test_what_is_kept_is_known_among_many_names(as_user: Sigwrap) -> None:
    """Also where it gets another one."""
    folder = as_user.folder / "many"
    folder.mkdir()
    for number in range(3000):
        (folder / f"other-{number}").touch()
    rule = f'{{name: keep, destinations: ["unix:{folder}/*.kept"], decision: deny}}'
    as_user.policy = policy(as_user.folder, " []", f"network_rules: [{rule}]")
    script = (
        "import os, socket\n"
        "for number in range(30):\n"
        f"    os.rename(f'{folder}/{{number}}.kept', 'renamed')\n"
        "    print(socket.socket(socket.AF_UNIX).connect_ex('renamed'))\n"
    )
    with _listening(*(f"{folder}/{number}.kept" for number in range(30))):
        folder.chmod(0o777)
        done = as_user.run("--", *PYTHON, "-c", script)
    assert done.stdout.split() == [b"13"] * 30, done.stderr


@pytest.mark.skipif(not may_unshare(), reason="needs user namespaces")
def test_a_name_in_a_mount_namespace_of_ones_own_is_no_allowance(as_user: Sigwrap) -> None:
    """What one has made oneself is reached there."""
    folder = as_user.folder
    (folder / "allowed").mkdir()
    (folder / "allowed").chmod(0o777)
    own = f'{{name: own, destinations: ["unix:{folder}/allowed/*"], decision: allow}}'
    servers = '{name: servers, direction: bind, destinations: ["unix:*"], decision: allow}'
    as_user.policy = policy(folder, " []", f"network_rules: [{own}, {servers}]")
    text = Path(as_user.policy).read_text()
    Path(as_user.policy).write_text(text.replace("signal: allow}", "signal: allow, network: deny}"))
    script = (
        "import ctypes, os, socket\n"
        "def reach(name): return socket.socket(socket.AF_UNIX).connect_ex(name)\n"
        "def bind(name, place): libc.mount(name.encode(), place.encode(), None, 4096, None)\n"
        "libc = ctypes.CDLL(None)\n"
        "uid = os.getuid()\n"
        "print(reach('kept'))\n"
        "open('allowed/mounted', 'w').close(); open('allowed/own', 'w').close()\n"
        "assert libc.unshare(0x10000000 | 0x20000) == 0\n"
        "open('/proc/self/uid_map', 'w').write(f'0 {uid} 1')\n"
        "own = socket.socket(socket.AF_UNIX); own.bind('own'); own.listen()\n"
        "bind('kept', 'allowed/mounted'); bind('own', 'allowed/own')\n"
        "print(reach('allowed/mounted'), reach('allowed/own'))\n"
    )
    folder.chmod(0o777)
    with _listening(str(folder / "kept")):
        done = as_user.run("--", *PYTHON, "-c", script)
    assert done.stdout.split() == [b"13", b"13", b"0"], (done.stdout, done.stderr)


@contextmanager
def _listening(*names: str) -> Iterator[None]:
    with ExitStack() as stack:
        for name in names:
            outside = stack.enter_context(socket.socket(socket.AF_UNIX))
            outside.bind(name)
            outside.listen()
            if not name.startswith("\0"):
                os.chmod(name, 0o777)
        yield


def _ways(programs: Path) -> set[str]:
    text = (programs / "reaches_sockets.py").read_text()
    return set(re.findall(r'^    "(\w+)":', text, re.MULTILINE))
