"""Real servers under network rules: they serve as they do natively, to clients outside and to those
of other sessions, and one that may not listen says so and ends."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, Running, Sigwrap
from tests.support.network import (
    ALL,
    SSHD,
    Answering,
    Rules,
    SshClient,
    denied,
    ours_and_theirs,
    prepare_ssh,
    under,
    unused_port,
    was_looked_at,
)
from tests.support.programs import needs
from tests.support.waiting import PATIENCE_S, Late, await_that

HOST = f"127.{1 + os.getpid() // 250 % 250}.{1 + os.getpid() % 250}.1"
"""Of these tests alone, so that nobody takes its ports."""
POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
NGINX = """
daemon off; worker_processes 2; pid {folder}/pid; error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path tmp1; proxy_temp_path tmp2; fastcgi_temp_path tmp3;
    uwsgi_temp_path tmp4; scgi_temp_path tmp5;
    server {{
        listen {host}:{port};
        listen unix:{folder}/nginx;
        location / {{ return 200 "hi\\n"; }}
        location /address/ {{ proxy_pass http://127.0.0.1:{behind}; }}
        location /file/ {{ proxy_pass http://unix:{folder}/behind; }}
    }}
}}
"""
PAGE = b"HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\nbehind\n"


@contextmanager
def served(
    subject: Sigwrap, rules: Rules | None, line: Sequence[str], is_ready: Callable[[], bool]
) -> Iterator[Running]:
    """Natively where there are no rules. It is interrupted at the end."""
    if rules is None:
        server = subject.start_line([*subject.as_user(), *line])
    else:
        server = subject.start(*under(subject, rules), *line)
    await_that(lambda: server.poll() is not None or is_ready())
    yield server
    server.send_signal(signal.SIGINT)
    try:
        _, said = server.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as late:
        raise Late("it goes on serving") from late
    assert b"sigwrap: connection" not in said and b"sigwrap: listening" not in said
    if rules is not None:
        assert server.returncode == INTERRUPTED, said
        was_looked_at(subject)


def _answers(at: tuple[str, int]) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection(at, PATIENCE_S):
        return True
    return False


def serves_as_natively(
    subject: Sigwrap, line: Sequence[str], is_ready: Callable[[], bool], client: list[str]
) -> bytes:
    """What a client finds natively: that, whichever of the two is under rules."""
    with served(subject, None, line, is_ready):
        natively = subject.native(*client)
    assert natively.returncode == 0, natively
    other = Sigwrap(subject.folder, subject.folder / "client", subject.user)
    for rules in ALL:
        with served(subject, rules, line, is_ready):
            done = [subject.native(*client), other.run(*under(other, rules), *client)]
        for each in done:
            assert (each.stdout, each.stderr) == (natively.stdout, natively.stderr)
        was_looked_at(other)
    other.clean_up()
    return natively.stdout


def may_not_listen(subject: Sigwrap, line: Sequence[str], at: tuple[str, int]) -> str:
    """What it says of that, besides our line."""
    rules = Rules(
        (f"name: keep, direction: bind, destinations: [{at[0]}], decision: deny",),
    )
    done = subject.run(*under(subject, rules), *line)
    ours, theirs = ours_and_theirs(done)
    what = f"listening at {at[0]}:{at[1]}: denied by rule keep of test"
    assert ours == [f"sigwrap: {what} (sigwrap report tells more)"], theirs
    assert 0 < done.returncode < 125 or done.returncode == 255
    assert not _answers(at)
    return done.stdout.decode() + "\n".join(theirs)


@needs("nginx")
@needs("curl")
def test_nginx(as_user: Sigwrap) -> None:
    """Its workers are another user than their parent, where that is root."""
    folder, port = as_user.folder, unused_port(HOST)
    folder.chmod(0o755)
    behind = [Answering(("127.0.0.1", 0), PAGE), Answering(folder / "behind", PAGE)]
    text = NGINX.format(folder=folder, host=HOST, port=port, behind=behind[0].port)
    (folder / "conf").write_text(text)
    nginx = shutil.which("nginx") or ""
    line = [nginx, "-p", str(folder), "-e", "stderr", "-c", "conf"]
    base = f"http://{HOST}:{port}"
    urls = [f"{base}/", f"{base}/address/", f"{base}/file/"]
    found = serves_as_natively(
        as_user,
        line,
        lambda: _answers((HOST, port)),
        ["curl", "-sS", *urls, "--next", "--unix-socket", f"{folder}/nginx", "http://a/"],
    )
    assert found == b"hi\nbehind\nbehind\nhi\n"
    assert "listen() to" in may_not_listen(as_user, line, (HOST, port))
    for each in behind:
        each.close()


@needs("redis-server")
def test_redis(as_user: Sigwrap) -> None:
    port = unused_port(HOST)
    line = ["redis-server", "--bind", HOST, "--port", str(port), "--save", ""]
    line += ["--unixsocket", f"{as_user.folder}/redis"]
    text = (
        f"for at in '-h {HOST} -p {port}' '-s {as_user.folder}/redis'; do"
        " redis-cli $at set a 1; redis-cli $at incr a; yes 'incr a' | head -1000 |"
        " redis-cli $at | tail -1; done"
    )

    def is_ready() -> bool:
        return _answers((HOST, port))

    found = serves_as_natively(as_user, line, is_ready, ["sh", "-c", text])
    assert found == b"OK\n2\n1002\n" * 2
    with served(as_user, None, line, is_ready):
        for destination, at in (
            (f"{HOST}:{port}", ["-h", HOST, "-p", str(port)]),
            (f"unix:{as_user.folder}/redis", ["-s", f"{as_user.folder}/redis"]),
        ):
            error = denied(as_user, destination, "redis-cli", *at, "ping")
            assert error.startswith("Could not connect to Redis at ")
    assert "Permission denied" in may_not_listen(as_user, line, (HOST, port))


@pytest.mark.skipif(not POSTGRES, reason="needs postgresql")
def test_postgres(as_user: Sigwrap) -> None:
    """By its socket, it lets in whoever the kernel says is that user."""
    if as_user.user is None and os.getuid() == 0:
        pytest.skip("PostgreSQL refuses to run as root")
    programs, data, port = POSTGRES[-1].parent, as_user.folder / "data", unused_port(HOST)
    user = pwd.getpwuid(os.getuid() if as_user.user is None else as_user.user).pw_name
    words = ["-D", str(data), "-U", user, "--auth-host=trust", "--auth-local=peer", "--no-sync"]
    made = as_user.native(str(programs / "initdb"), *words)
    assert made.returncode == 0, made.stderr
    line = [str(programs / "postgres"), "-D", str(data), "-h", HOST, "-p", str(port)]
    line += ["-k", str(as_user.folder), "-c", "fsync=off"]
    psql = f"{programs}/psql -p {port} -U {user} -AtX postgres"
    text = (
        f"for at in {HOST} {as_user.folder}; do"
        f" {psql} -h $at -c 'select 6*7' -c 'listen a' -c 'notify a, $$said$$' |"
        " sed 's/PID [0-9]*/PID/';"
        f" {psql} -h $at -c 'copy (select generate_series(1, 100000)) to stdout' | tail -1; done"
    )

    def is_ready() -> bool:
        """It answers before: that it isn't yet."""
        words = [f"{programs}/pg_isready", "-q", "-h", HOST, "-p", str(port)]
        return subprocess.run(words, check=False).returncode == 0

    found = serves_as_natively(as_user, line, is_ready, ["sh", "-c", text])
    assert found.count(b"42\n") == found.count(b"100000\n") == 2
    with served(as_user, None, line, is_ready):
        for destination, host in (
            (f"{HOST}:{port}", HOST),
            (f"unix:{as_user.folder}/.s.PGSQL.{port}", str(as_user.folder)),
        ):
            error = denied(as_user, destination, *psql.split(), "-h", host, status=2)
            assert error.startswith("psql: error: connection to server ")
    said = may_not_listen(as_user, line, (HOST, port))
    assert "could not listen" in said or "could not create" in said


@pytest.mark.skipif(not SSHD, reason="needs sshd")
def test_sshd(as_user: Sigwrap, tmp_path: Path) -> None:
    if as_user.user is not None:
        pytest.skip("a login takes root")
    port = unused_port(HOST)
    config = prepare_ssh(tmp_path)
    line = [str(SSHD), "-D", "-f", config, "-o", f"ListenAddress={HOST}:{port}"]
    client = SshClient(as_user, tmp_path, HOST, port)
    text = f"{client.line} {client.who} 'echo in it; echo $((6 * 7))'"

    def is_ready() -> bool:
        return _answers((HOST, port))

    found = serves_as_natively(as_user, line, is_ready, ["sh", "-c", text])
    assert found == b"in it\n42\n"
    assert "Permission denied" in may_not_listen(as_user, [*line, "-e"], (HOST, port))
