"""Real clients under network rules: what the rules allow goes as it does natively, and what they
deny ends at once, with one line of sigwrap and the client's own error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.network import (
    DATAGRAMS,
    ONLY_HERE,
    SSHD,
    STREAMS,
    ByConnection,
    Files,
    SshClient,
    denied,
    prepare_ssh,
    same,
)
from tests.support.programs import compile_go, needs

pytestmark = pytest.mark.tier("all")
HI = b"hi\n"
WITH_MESSAGES = (DATAGRAMS, ONLY_HERE)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "hi").write_bytes(HI)
    return tmp_path


@pytest.fixture
def server(site: Path) -> Iterator[Files]:
    made = Files(site)
    yield made
    made.close()


@pytest.mark.skipif(not SSHD, reason="needs sshd")
def test_ssh(as_user: Sigwrap, site: Path) -> None:
    """Also by a connection that several share: there, descriptors go through a socket."""
    server = ByConnection(str(SSHD), "-i", "-f", prepare_ssh(site))
    client = SshClient(as_user, site, "127.0.0.1", server.port)
    ssh, who = client.line, client.who
    text = f"""
        {ssh} {who} 'cat; exit 3' <policy.yaml | grep -c version
        {ssh} -M -N -f -S {{run}} {who} && {ssh} -S {{run}} {who} 'echo shared; echo to >&2; exit 4'
        echo $?; {ssh} -S {{run}} -O exit {who} 2>/dev/null
    """
    (as_user.folder / "policy.yaml").write_text("version\n")
    found = same(as_user, "sh", "-c", text, under_each=WITH_MESSAGES)
    assert found == b"1\nshared\n4\n"
    reached = server.connections
    error = denied(as_user, f"127.0.0.1:{server.port}", "sh", "-c", f"{ssh} {who} true", status=255)
    assert error == f"ssh: connect to host 127.0.0.1 port {server.port}: Connection refused"
    assert server.connections == reached
    server.close()


@pytest.mark.parametrize(
    "language", [pytest.param("node", marks=needs("node")), pytest.param("go", marks=needs("go"))]
)
def test_languages(as_user: Sigwrap, programs: Path, language: str, server: Files) -> None:
    """Clients and servers that talk to each other, many at a time."""
    line = ["node", str(programs / "talks.js")]
    if language == "go":
        line = [compile_go(programs / "talks.go")]
    same(as_user, *line, under_each=WITH_MESSAGES)
    assert same(as_user, *line, f"{server.url}/hi", under_each=[STREAMS]) == HI
    asked = len(server.asked)
    error = denied(as_user, f"127.0.0.1:{server.server_port}", *line, f"{server.url}/hi")
    assert "refused" in error.lower()
    assert len(server.asked) == asked
