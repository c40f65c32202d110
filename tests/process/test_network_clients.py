"""Real clients under network rules: what the rules allow goes as it does natively, and what they
deny ends at once, with one line of sigwrap and the client's own error."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pip
import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.network import (
    DATAGRAMS,
    ONLY_HERE,
    SSHD,
    STREAMS,
    Answering,
    ByConnection,
    Files,
    SshClient,
    denied,
    prepare_ssh,
    same,
)
from tests.support.programs import compile_go, needs

HI = b"hi\n"
WITH_MESSAGES = (DATAGRAMS, ONLY_HERE)
PIP = (
    *("install", "--disable-pip-version-check", "--no-cache-dir", "--no-warn-script-location"),
    *("--retries", "0", "--root-user-action", "ignore", "--no-input", "-q"),
)
NPM = {
    "npm_config_update_notifier": "false",
    "npm_config_audit": "false",
    "npm_config_fund": "false",
    "npm_config_progress": "false",
    "npm_config_fetch_retries": "0",
    "npm_config_logs_max": "0",
}
GIT = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "hi").write_bytes(HI)
    return tmp_path


@pytest.fixture
def server(site: Path) -> Iterator[Files]:
    made = Files(site)
    yield made
    made.close()


@needs("curl")
def test_curl(as_user: Sigwrap, server: Files) -> None:
    by_name = f"http://localhost:{server.server_port}/hi"
    assert same(as_user, "curl", "-sS", f"{server.url}/hi", by_name) == 2 * HI
    asked = len(server.asked)
    error = denied(
        as_user, f"127.0.0.1:{server.server_port}", "curl", "-sS", f"{server.url}/hi", status=7
    )
    assert error.startswith("curl: (7)")
    assert len(server.asked) == asked


@needs("curl")
def test_curl_to_a_file(as_user: Sigwrap) -> None:
    at = as_user.folder / "local"
    server = Answering(at, b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nhi\n")
    line = ("curl", "-sS", "--unix-socket", str(at), "http://local/")
    assert same(as_user, *line) == HI
    asked = server.connections
    error = denied(as_user, f"unix:{at}", *line, status=7)
    assert error.startswith("curl: (7)")
    assert server.connections == asked
    server.close()


@needs("git")
def test_git(as_user: Sigwrap, site: Path, server: Files) -> None:
    _repository(site / "work", site / "project.git")
    daemon = ByConnection(
        "git", "daemon", "--inetd", "--export-all", f"--base-path={site}", str(site)
    )
    urls = (f"{server.url}/project.git", f"git://127.0.0.1:{daemon.port}/project.git")
    text = 'for url; do rm -rf {run}; git clone -q "$url" {run} && cat {run}/file || exit; done'
    found = same(as_user, "sh", "-c", text, "sh", *urls, env=GIT)
    assert found == b"in it\nin it\n"
    reached = len(server.asked), daemon.connections
    for port, url in zip((server.server_port, daemon.port), urls, strict=True):
        error = denied(
            as_user, f"127.0.0.1:{port}", "git", "clone", "-q", url, "denied", env=GIT, status=128
        )
        assert "fatal: " in error
    assert reached == (len(server.asked), daemon.connections)
    daemon.close()


def _repository(work: Path, bare: Path) -> None:
    work.mkdir()
    (work / "file").write_text("in it\n")
    for line in (
        "git init -q -b main",
        "git add .",
        "git -c user.name=a -c user.email=a@b commit -q -m first",
        f"git clone -q --bare . {bare}",
        f"git -C {bare} update-server-info",
    ):
        subprocess.run(line.split(), cwd=work, env={**os.environ, **GIT}, check=True)


@pytest.mark.skipif(not SSHD, reason="needs sshd")
def test_ssh(as_user: Sigwrap, site: Path) -> None:
    """Also by a connection that several share: there, descriptors go through a socket."""
    _repository(site / "work", site / "project.git")
    server = ByConnection(str(SSHD), "-i", "-f", prepare_ssh(site))
    client = SshClient(as_user, site, "127.0.0.1", server.port)
    ssh, who = client.line, client.who
    text = f"""
        {ssh} {who} 'cat; exit 3' <policy.yaml | grep -c version
        {ssh} -M -N -f -S {{run}} {who} && {ssh} -S {{run}} {who} 'echo shared; echo to >&2; exit 4'
        echo $?; {ssh} -S {{run}} -O exit {who} 2>/dev/null; rm -rf {{run}}
        git clone -q {who}:{site}/project.git {{run}} && cat {{run}}/file
    """
    (as_user.folder / "policy.yaml").write_text("version\n")
    env = {**GIT, "GIT_SSH_COMMAND": ssh}
    assert (
        same(as_user, "sh", "-c", text, env=env, under_each=WITH_MESSAGES)
        == b"1\nshared\n4\nin it\n"
    )
    reached = server.connections
    error = denied(as_user, f"127.0.0.1:{server.port}", "sh", "-c", f"{ssh} {who} true", status=255)
    assert error == f"ssh: connect to host 127.0.0.1 port {server.port}: Connection refused"
    assert server.connections == reached
    server.close()


@needs("npm")
def test_npm(as_user: Sigwrap, site: Path, server: Files) -> None:
    (site / "package.json").write_text('{"name": "library", "version": "1.0.0", "main": "m.js"}')
    (site / "m.js").write_text("module.exports = 42;\n")
    archive = site / "library-1.0.0.tgz"
    with tarfile.open(archive, "w:gz") as packed:
        for name in ("package.json", "m.js"):
            packed.add(site / name, f"package/{name}")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    dist = {"tarball": f"{server.url}/{archive.name}", "integrity": f"sha512-{digest}"}
    version = {"name": "library", "version": "1.0.0", "dist": dist}
    told = {"name": "library", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
    (site / "library").write_text(json.dumps(told))
    text = (
        "mkdir -p {run} && cd {run} && npm install --silent --cache $PWD/cache library"
        " && node -p 'require(\"library\")'"
    )
    env = {**NPM, "npm_config_registry": f"{server.url}/"}
    assert same(as_user, "sh", "-c", text, env=env, under_each=[ONLY_HERE]) == b"42\n"
    line = ("npm", "install", "--cache", "cache", "library")
    error = denied(as_user, f"127.0.0.1:{server.server_port}", *line, env=env)
    assert "ECONNREFUSED" in error


def test_pip(as_user: Sigwrap, site: Path, server: Files) -> None:
    index = site / "simple/library"
    index.mkdir(parents=True)
    with zipfile.ZipFile(index / "library-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("library.py", "answer = 42\n")
        about = "library-1.0.dist-info"
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: library\nVersion: 1.0\n")
        wheel.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{about}/RECORD", "")
    shutil.copytree(Path(pip.__file__).parent, as_user.folder / "programs/pip")
    env = {"PYTHONPATH": str(as_user.folder / "programs"), "PIP_INDEX_URL": f"{server.url}/simple"}
    python = PYTHON[0]
    text = f"{python} -S -m pip {' '.join(PIP)} -t {{run}} library && cat {{run}}/library.py"
    found = same(as_user, "sh", "-c", text, env=env, under_each=[ONLY_HERE])
    assert found == b"answer = 42\n"
    line = (python, "-S", "-m", "pip", *PIP, "-t", "denied", "library")
    error = denied(as_user, f"127.0.0.1:{server.server_port}", *line, env=env)
    assert "Connection refused" in error or "No matching distribution" in error


def _python(programs: Path) -> tuple[str, ...]:
    return (*PYTHON, str(programs / "talks.py"))


def _node(programs: Path) -> tuple[str, ...]:
    if not shutil.which("node"):
        pytest.skip("needs node")
    return ("node", str(programs / "talks.js"))


def _go(programs: Path) -> tuple[str, ...]:
    if not shutil.which("go"):
        pytest.skip("needs go")
    return (compile_go(programs / "talks.go"),)


def _java(programs: Path) -> tuple[str, ...]:
    if not shutil.which("javac"):
        pytest.skip("needs a JDK")
    if not (programs / "Talks.class").exists():
        subprocess.run(["javac", "-d", programs, programs / "Talks.java"], check=True)
    return ("java", "-XX:TieredStopAtLevel=1", "-cp", str(programs), "Talks")


LANGUAGES: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "python": _python,
    "node": _node,
    "go": _go,
    "java": _java,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages(as_user: Sigwrap, programs: Path, language: str, server: Files) -> None:
    """Clients and servers that talk to each other, many at a time."""
    line = LANGUAGES[language](programs)
    same(as_user, *line, under_each=WITH_MESSAGES)
    assert same(as_user, *line, f"{server.url}/hi", under_each=[STREAMS]) == HI
    asked = len(server.asked)
    error = denied(as_user, f"127.0.0.1:{server.server_port}", *line, f"{server.url}/hi")
    assert "refused" in error.lower()
    assert len(server.asked) == asked
