"""The remote kill switch: it ends a run only if its answer says so."""

from __future__ import annotations

import os
import selectors
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.harness import REFUSED, Running, Sigwrap
from tests.support.processes import Roles
from tests.support.waiting import PATIENCE_S, reader
from tests.support.web import CERTIFICATE, Answer, WebServer, page

URL = "--killswitch-url"
VARIABLE = "SIGWRAP_KILLSWITCH_URL"
KILLED = page(b'{"killed": true, "reason": "all stop"}')
ALIVE = page(b'{"killed": false}')
WAITS = ("--", "sh", "-c", "echo ready; read x; exit 3")

Serve = Callable[..., WebServer]
Impatient = Callable[..., Running]


@pytest.fixture
def serve() -> Iterator[Serve]:
    made: list[WebServer] = []

    def serve(answer: Answer, *, secure: bool = False, port: int = 0) -> WebServer:
        made.append(WebServer(answer, secure=secure, port=port))
        return made[-1]

    yield serve
    for each in made:
        each.close()


@pytest.fixture
def impatient(sigwrap: Sigwrap, programs: Path) -> Impatient:
    def start(*words: str) -> Running:
        return sigwrap.start_line([sys.executable, str(programs / "impatient.py"), *words])

    return start


def end_of(sigwrap: Sigwrap) -> str:
    reason: str = sigwrap.sealed_events("session_ended")[0].payload["reason"]
    return reason


def missed(sigwrap: Sigwrap) -> list[str]:
    return [event.payload["reason"] for event in sigwrap.events("killswitch_missed")]


def goes_on(sigwrap: Sigwrap, process: Running) -> None:
    """Let the command end, and check that its own status is what sigwrap returns."""
    process.say(b"\n")
    assert process.wait(PATIENCE_S) == 3
    assert end_of(sigwrap) == "the command ended"


def misses(subject: Sigwrap, url: str, variables: dict[str, str] | None = None) -> list[str]:
    """Return the reasons for missed polls of a run that goes on."""
    process, _ = subject.start_ready(URL, url, *WAITS, env=variables or {})
    subject.await_event("killswitch_missed")
    goes_on(subject, process)
    return missed(subject)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


# Answers


@pytest.mark.promise("kill switch from elsewhere")
def test_killed_at_the_start(as_user: Sigwrap, serve: Serve) -> None:
    """The option wins over the variable, and an empty variable counts as unset."""
    server = serve(KILLED)
    assert as_user.run("--", "true", env={VARIABLE: ""}).returncode == 0
    assert missed(as_user) == []
    environment = {VARIABLE: "http://127.0.0.1:1/"}
    done = as_user.run(URL, server.url, "--", "sleep", "1000", env=environment)
    assert done.returncode == REFUSED
    assert b"sigwrap: killed by the remote kill switch " in done.stderr
    assert "all stop" in end_of(as_user)
    assert as_user.alive() == []
    head, *headers = server.requests[0].decode().split("\r\n")
    assert head == "GET /switch HTTP/1.1"
    assert f"Host: localhost:{server.port}" in headers


def _drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for byte in b'{"killed": true, "reason": "slow"}':
        connection.sendall(bytes([byte]))
        time.sleep(1)  # the slowness that is tested


def test_an_answer_that_drips_takes_five_seconds(sigwrap: Sigwrap, serve: Serve) -> None:
    """The command does not wait meanwhile."""
    misses(sigwrap, serve(_drip).url)
    started, missed_it, *_ = sigwrap.events("session_started", "killswitch_missed")
    # The second reason: a busy machine gave the thread no processor time.
    assert missed_it.payload["reason"] in ("no response within 5 s", "the poll does not return")
    assert 4 < (missed_it.time_ns - started.time_ns) / 1e9 < 20  # it drips for 30


def test_three_misses_in_a_row_end_the_run_with_fail_closed(
    sigwrap: Sigwrap, serve: Serve, impatient: Impatient
) -> None:
    server = serve(ALIVE)
    process = impatient("--killswitch-fail-closed", URL, server.url, *WAITS)
    reader(process.stdout).until(rb"ready")
    server.await_requests(2)
    assert missed(sigwrap) == []
    server.answer = page(b"", "503 Service Unavailable")
    assert process.wait(PATIENCE_S) == REFUSED
    assert f"no answer from {server.url} for 3 polls (fail closed)" in end_of(sigwrap)
    counts = [event.payload["count"] for event in sigwrap.events("killswitch_missed")]
    assert counts == [1, 3]


# A file


def test_a_file(sigwrap: Sigwrap, impatient: Impatient) -> None:
    file = sigwrap.folder / "a switch"
    os.mkfifo(file)
    process = impatient(URL, f"file://{sigwrap.folder}/a%20switch", *WAITS)
    reader(process.stdout).until(rb"ready")
    sigwrap.await_event("killswitch_missed")
    file.unlink()
    file.write_text("{}")
    sigwrap.await_event("killswitch_reached")
    file.write_text('{"killed": true, "reason": "by file"}')
    assert process.wait(PATIENCE_S) == REFUSED
    assert "by file" in end_of(sigwrap)
    assert missed(sigwrap)[0] == "it is a FIFO"
    assert sigwrap.events("killswitch_reached")[0].payload["missed"] >= 1
    said = process.stderr.read().decode()
    assert said.count(": it is a FIFO") == 1


def test_a_terabyte_is_not_read(sigwrap: Sigwrap) -> None:
    file = sigwrap.folder / "switch"
    file.touch()
    os.truncate(file, 1 << 40)
    assert "larger than" in misses(sigwrap, f"file://{file}")[0]


@pytest.mark.parametrize("is_ours", [False, True])
def test_the_log_says_if_the_command_can_replace_a_link_to_it(
    as_user: Sigwrap, is_ours: bool
) -> None:
    """In a folder such as /tmp, the owner of a link can."""
    folder = Path(tempfile.mkdtemp(prefix="sigwrap-test-"))
    try:
        (folder / "switch").write_text("{}")
        folder.chmod(0o755)
        shared = folder / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        (shared / "link").symlink_to("../switch")
        if is_ours and as_user.user is not None:
            os.lchown(shared / "link", as_user.user, as_user.user)
        assert as_user.run(URL, f"file://{shared}/link", "--", "true").returncode == 0
    finally:
        shutil.rmtree(folder)
    (started,) = as_user.events("session_started")
    said = [each for each in started.payload["missing"] if "can write to it too" in each]
    is_root = os.getuid() == 0 and as_user.user is None
    assert bool(said) == (not is_root and (is_ours or os.getuid() != 0))


@pytest.mark.parametrize("is_locked", [False, True])
def test_the_log_says_if_the_command_can_write_the_file(as_user: Sigwrap, is_locked: bool) -> None:
    """A read-only file of the same user counts: its owner can change the mode."""
    folder = as_user.folder / "locked"
    file = folder / "switch"
    folder.mkdir()
    file.write_text("{}")
    if is_locked:
        file.chmod(0o400)
        folder.chmod(0o500)
    if as_user.user is not None:
        for each in (file, folder):
            os.chown(each, as_user.user, as_user.user)
    assert as_user.run(URL, f"file://{file}", "--", "true").returncode == 0
    found = as_user.events("session_started")[0].payload["missing"]
    said = [each for each in found if "the command can write to it too" in each]
    is_root = os.getuid() == 0 and as_user.user is None  # which can write everything
    assert bool(said) != is_root


# https


def test_an_unknown_certificate_is_not_trusted(sigwrap: Sigwrap, serve: Serve) -> None:
    """With $SSL_CERT_FILE it is. The test of the proxy checks the name in it."""
    server = serve(KILLED, secure=True)
    trusting = {"SSL_CERT_FILE": str(CERTIFICATE)}
    assert misses(sigwrap, server.url)[0].startswith("cannot verify its certificate: self")
    assert server.requests == []
    done = sigwrap.run(URL, server.url, "--", "sleep", "1000", env=trusting)
    assert done.returncode == REFUSED
    assert "all stop" in end_of(sigwrap)


def test_an_answer_through_a_proxy(sigwrap: Sigwrap, serve: Serve) -> None:
    """Only the proxy knows the host, and it gets its own password."""
    server = serve(KILLED, secure=True)

    def proxy(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 Connection established\r\nContent-Length: 0\r\n\r\n")
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            _pass_on(connection, other)

    through = serve(proxy)
    variables = {
        "https_proxy": f"http://me:secret@127.0.0.1:{through.port}",
        "SSL_CERT_FILE": str(CERTIFICATE),
    }
    (why, *_) = misses(sigwrap, "https://example.invalid/", variables)
    assert "cannot verify its certificate" in why  # the certificate names another host
    request = through.requests[0].decode().split("\r\n")
    assert request[0] == "CONNECT example.invalid:443 HTTP/1.1"
    assert "Host: example.invalid:443" in request
    assert "Proxy-Authorization: Basic bWU6c2VjcmV0" in request
    through.answer = page(b"", "407 Proxy Authentication Required")
    whys = misses(sigwrap, "https://example.invalid/", variables)
    assert set(whys) == {"the proxy refused the connection: status 407"}


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with selectors.DefaultSelector() as waiting:
        waiting.register(one, selectors.EVENT_READ, other)
        waiting.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in waiting.select():
                data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                if not data:
                    return
                key.data.sendall(data)


# Supervised processes


@pytest.mark.parametrize("how", ["", "undumpable", "leaves"])
def test_a_supervised_process_is_not_believed(as_user: Sigwrap, programs: Path, how: str) -> None:
    """It is recognised if it can be inspected, cannot be, or no longer listens."""
    port = free_port()
    fake, said = as_user.start_ready(
        "--", sys.executable, str(programs / "fakes_killswitch.py"), str(port), *how.split()
    )
    process = as_user.start(URL, f"http://localhost:{port}/", *WAITS)
    heard = reader(process.stdout)
    heard.until(rb"ready")
    as_user.await_event("killswitch_missed")
    process.say(b"\n")
    assert process.wait(PATIENCE_S) == 3
    possible = {"response not trusted: a supervised process listens there"}
    if how == "leaves":
        possible.add("response not trusted: the listening process is gone")
    if how:
        possible.add("response not trusted: cannot find the listening process")
    assert set(missed(as_user)) <= possible
    fake.kill()
    assert b"asked" not in said.rest()


def test_a_supervised_process_does_not_hide_the_real_server(
    sigwrap: Sigwrap, programs: Path, serve: Serve
) -> None:
    """It listens at the other address of localhost."""
    server = serve(KILLED)
    fake, _ = sigwrap.start_ready(
        *("--", sys.executable, str(programs / "fakes_killswitch.py")),
        *(str(server.port), "other address"),
    )
    done = sigwrap.run(URL, server.url, "--", "sleep", "1000")
    assert done.returncode == REFUSED
    assert "all stop" in end_of(sigwrap)
    fake.kill()


def test_the_polling_thread_has_few_descriptors(sigwrap: Sigwrap, serve: Serve) -> None:
    """Its own table: the command cannot fill it by making the supervisor hold descriptors."""
    server = serve(ALIVE)
    process, _ = sigwrap.start_ready(URL, server.url, *WAITS)
    server.await_requests(1)
    supervisor = Roles.of(process.pid).supervisor
    tables = {
        tid: len(os.listdir(f"/proc/{supervisor}/task/{tid}/fd"))
        for tid in map(int, os.listdir(f"/proc/{supervisor}/task"))
    }
    assert tables.pop(supervisor) > 6
    assert all(count <= 4 for count in tables.values())
    goes_on(sigwrap, process)


# The URL


def test_a_token_is_neither_shown_nor_inherited(as_user: Sigwrap) -> None:
    url = f"http://me:sesame@127.0.0.1:{free_port()}/path?token=sesame#sesame"
    # Only ancestors: reading from another process could wait for it.
    each = 'tr "\\0" "\\n" </proc/$p/environ; cat /proc/$p/cmdline'
    above = 'p=$(sed -n "s/^PPid:[^0-9]*//p" /proc/$p/status)'
    look = f'p=$$; while [ "${{p:-0}}" -gt 1 ]; do {each}; {above}; done 2>/dev/null'
    if as_user.user is None:
        look = "cat /proc/self/environ"  # root may look into any process
    script = f"{look}; echo ready; read x; exit 3"
    process, said = as_user.start_ready("--", "sh", "-c", script, env={VARIABLE: url})
    as_user.await_event("killswitch_missed")
    goes_on(as_user, process)
    shown = said.rest()
    assert b"SIGWRAP_SESSION=" in said.seen + shown
    assert b"sesame" not in said.seen + shown
    assert b"sesame" not in process.stderr.read()
    event = as_user.events("killswitch_missed")[0]
    assert event.payload["url"].endswith("/path")
    assert not any("sesame" in repr(each.payload) for each in as_user.events())


@pytest.mark.parametrize(
    ("words", "variable", "said"),
    [
        ((URL, "ftp://u:sesame@h/?sesame"), "", "--killswitch-url: not a supported URL"),
        ((), "https:/me:sesame@h/x", "$SIGWRAP_KILLSWITCH_URL: not a supported URL"),
        ((), "https:///me:sesame@h/x", "$SIGWRAP_KILLSWITCH_URL: no host"),
        ((), "https://me:ses/ame@h/x", "$SIGWRAP_KILLSWITCH_URL: no host"),
        (
            ("--killswitch-fail-closed",),
            "",
            "--killswitch-fail-closed, but there is no kill switch to poll",
        ),
    ],
)
def test_an_unusable_url_is_refused_and_nothing_runs(
    sigwrap: Sigwrap, words: tuple[str, ...], variable: str, said: str
) -> None:
    environment = {VARIABLE: variable}
    done = sigwrap.run(*words, "--", "echo", "it ran", env=environment)
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert f"sigwrap: {said}" in done.stderr.decode()
    assert b"sesame" not in done.stderr
    assert not sigwrap.has_sessions()
