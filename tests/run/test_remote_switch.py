"""The remote kill switch: its URL, its answers byte by byte, and the loop's own clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.errors import SessionError, UsageError
from sigwrap.mediate.remote_switch import Alive, Answer, Killed, Missed
from sigwrap.run.loop import Loop
from sigwrap.run.remote_switch import switch as module
from sigwrap.run.remote_switch.address import File, Web, read_address, without_secrets
from sigwrap.run.remote_switch.certificates import verifying_context
from sigwrap.run.remote_switch.http import LONGEST_BODY, NoAnswer, get, response
from sigwrap.run.remote_switch.proxies import Proxy, proxy_for
from sigwrap.run.remote_switch.switch import RemoteSwitch
from tests.support.web import CERTIFICATE

OPTION = "--killswitch-url"


# The URL


def test_an_address_of_the_web() -> None:
    for url, host, port, target in [
        ("https://example.com", "example.com", 443, "/"),
        ("HTTPS://example.com:8443/a/b?c=d#e", "example.com", 8443, "/a/b?c=d"),
        ("https://example.com?c=d", "example.com", 443, "/?c=d"),
        ("https://[2001:db8::1]:8443/", "2001:db8::1", 8443, "/"),
        ("http://localhost:8000/x", "localhost", 8000, "/x"),
        ("http://127.1.2.3/x", "127.1.2.3", 80, "/x"),
        ("http://[::1]/x", "::1", 80, "/x"),
    ]:
        found = read_address(url, OPTION)
        assert isinstance(found, Web)
        assert (found.host, found.port, found.target) == (host, port, target), url


def test_a_file() -> None:
    for url, path in [
        ("file:///etc/switch", b"/etc/switch"),
        ("file://localhost/etc/switch?x#y", b"/etc/switch"),
        ("FILE:///a%20b%25/\N{LATIN SMALL LETTER U WITH DIAERESIS} c", b"/a b%/\xc3\xbc c"),
    ]:
        found = read_address(url, OPTION)
        assert isinstance(found, File)
        assert found.path == path, url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "http://128.0.0.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost.example.com/",
        "http://localhost@example.com/",
        "https://",
        "https://a b/",
        "https://a/\r\nX: y",
        "https://exämple.com/",
        "https://a\\@b/",
        "https://a:65536/",
        "https://[::1/",
        "https://[1:2]/",
        "https://-a!/",
        "ftp://example.com/",
        "file://server/switch",
        "file:///",
        "file:///a%00b",
        "://",
    ],
)
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--killswitch-url "):
        read_address(url, OPTION)


def test_what_is_shown_of_it_has_no_secret() -> None:
    for url, shown in [
        ("https://user:secret@example.com/path?token=secret#secret", "https://example.com/path"),
        ("https://secret@host", "https://host"),
        ("https://a:secret@b@host/@x", "https://host/@x"),
        ("ftp://secret@host/\x1b[2J", "ftp://host/\\e[2J"),
        ("secret@host?secret", "host"),
        ("https://host/" + "x" * 1000, "https://host/" + "x" * 187 + "…"),
    ]:
        assert without_secrets(url) == shown, url


def test_a_request_has_what_a_server_needs() -> None:
    address = read_address("https://us%40er:pa:ss@example.com:8443/x?y", OPTION)
    assert isinstance(address, Web)
    lines = get(address).decode().split("\r\n")
    assert lines[:2] == ["GET /x?y HTTP/1.1", "Host: example.com:8443"]
    assert "Authorization: Basic dXNAZXI6cGE6c3M=" in lines
    assert lines[-2:] == ["", ""]


# Proxies


def test_a_proxy() -> None:
    for variables, host, proxy in [
        ({}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "example.com", Proxy("p", 3128, "")),
        ({"HTTPS_PROXY": "p:3128/"}, "example.com", Proxy("p", 3128, "")),
        ({"HTTPS_PROXY": "http://a:b@p"}, "example.com", Proxy("p", 80, "Basic YTpi")),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:2"}, "h", Proxy("low", 1, "")),
        ({"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:1"}, "localhost", None),
        ({"HTTPS_PROXY": "http://p:1"}, "127.0.0.9", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .Example.com"}, "a.example.com", None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "example.com:443"}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com"}, "example.com", Proxy("p", 1, "")),
    ]:
        environment = {name.encode(): value.encode() for name, value in variables.items()}
        assert proxy_for(host, 443, environment) == proxy, variables


@pytest.mark.parametrize("value", ["https://user:secret@p:1", "socks5://p:1", "http://p:x", "[:"])
def test_a_proxy_that_can_t_be_used_is_said_at_the_start(value: str) -> None:
    with pytest.raises(UsageError, match=r"^\$HTTPS_PROXY ") as refused:
        proxy_for("example.com", 443, {b"HTTPS_PROXY": value.encode()})
    assert "secret" not in str(refused.value)


# Certificates


def test_certificates_are_those_of_the_variable(tmp_path: Path) -> None:
    found = verifying_context({b"SSL_CERT_FILE": bytes(CERTIFICATE)})
    assert [each["serialNumber"] for each in found.get_ca_certs()] == ["01"]
    (tmp_path / "any-name").write_bytes(CERTIFICATE.read_bytes())
    (tmp_path / "README").write_text("no certificate")
    found = verifying_context({b"SSL_CERT_DIR": b"/nowhere:" + bytes(tmp_path)})
    assert [each["serialNumber"] for each in found.get_ca_certs()] == ["01"]


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({b"SSL_CERT_FILE": b"/nowhere"}, r"\$SSL_CERT_FILE: /nowhere: No such file"),
        ({b"SSL_CERT_FILE": b"/etc/passwd"}, "no PEM certificates"),
        ({b"SSL_CERT_DIR": b"/proc/self/fdinfo"}, "no CA certificates found"),
    ],
)
def test_where_there_is_nobody_to_believe_nothing_runs(
    variables: dict[bytes, bytes], why: str
) -> None:
    with pytest.raises(SessionError, match=why):
        verifying_context(variables)


# Answers, byte by byte


def read(data: bytes, piece: int = 1 << 16) -> bytes:
    reading = response()
    try:
        next(reading)
        for start in range(0, len(data), piece):
            reading.send(data[start : start + piece])
        reading.send(b"")
    except StopIteration as done:
        body: bytes = done.value
        return body
    raise AssertionError("it wants more than there is")


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        OK + b"Content-Length: 2\r\n\r\n{}",
        OK + b"content-length:2\r\n\r\n{} and what follows",
        OK + b"\r\n{}",
        b"HTTP/1.0 200\n\n{}",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK + b"\r\n{}",
        CHUNKED + b"1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n",
        CHUNKED + b"02\r\n{}\r\n0\r\n",
    ],
)
def test_a_body(data: bytes) -> None:
    for piece in [1, 7, 1 << 16]:
        assert read(data, piece) == b"{}"


BODY = b'{"killed": true}'
LONG = b"x" * (LONGEST_BODY + 1)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "is incomplete"),
        (BODY + b"\n", "not an HTTP response"),
        (b"HTTP/1.1 500 Oops\r\n\r\n" + BODY, "status 500"),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n" + BODY, "does not follow redirects"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "not an HTTP response"),
        (OK + b"no header\r\n\r\n", "malformed headers"),
        (OK + b"a: b\r\n" * 1000, "malformed headers"),
        (OK + b"a: " + b"b" * 10_000, "too long"),
        (b"x" * 10_000, "too long"),
        (OK + b"Content-Length: 17\r\n\r\n" + BODY, "is incomplete"),
        (OK + b"Content-Length: 1\r\nContent-Length: 16\r\n\r\n" + BODY, "two lengths"),
        (OK + b"Content-Length: -1\r\n\r\n" + BODY, "not a number"),
        (OK + b"Content-Length: 1000000000\r\n\r\n", "longer than 64 KiB"),
        (OK + b"\r\n" + LONG, "longer than 64 KiB"),
        (OK + b"Content-Encoding: gzip\r\n\r\n" + BODY, "compressed"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "unknown transfer coding"),
        (CHUNKED + b"10\r\n" + BODY, "is incomplete"),
        (CHUNKED + b"2\r\n" + BODY + b"\r\n0\r\n\r\n", "longer than its size"),
        (CHUNKED + b"zz\r\n", "no size"),
        (CHUNKED + b"ffffffff\r\n", "longer than 64 KiB"),
        (CHUNKED + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 65, "longer than 64 KiB"),
    ],
)
def test_what_is_no_answer(data: bytes, why: str) -> None:
    with pytest.raises(NoAnswer, match=why):
        read(data)


# The loop


class Polled:
    """A remote switch whose polls end as a test says, in a loop with time of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fail_closed: bool = False) -> None:
        monkeypatch.setattr(module, "EVERY_S", 0.02)
        monkeypatch.setattr(module, "_GIVEN_UP_AFTER_S", 0.01)
        self.loop = Loop()
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.killed: list[tuple[str, str]] = []
        self.poll: Callable[[], Answer] = Alive
        recorder = SimpleNamespace(
            record=lambda name, _pid, payload: self.events.append((name, payload)),
            tell=lambda _line: None,
        )
        switch = RemoteSwitch("file:///x", OPTION, environment={}, fail_closed=fail_closed)
        switch._poll = lambda: self.poll()
        switch.start_thread()
        self._switch = switch
        self._recorder: Any = recorder

    def start(self) -> None:
        self._switch.start(self.loop, self._recorder, self._on_killed)

    def _on_killed(self, reason: str, by: str) -> None:
        self.killed.append((reason, by))

    def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.loop.turn(None)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_poll_that_never_comes_back_is_a_row_of_misses(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    """By the loop's clock: nothing of this depends on the thread."""
    polled = Polled(monkeypatch, fail_closed=True)

    def poll() -> Answer:
        release.wait()
        return Alive()

    polled.poll = poll
    polled.start()
    polled.until(lambda: bool(polled.killed))
    misses = [(payload["reason"], payload["count"]) for _, payload in polled.events]
    assert misses == [("the poll does not return", 1), ("the poll does not return", 3)]
    assert polled.killed == [("no answer from file:///x for 3 polls (fail closed)", "file:///x")]


@pytest.mark.parametrize("late", [Alive(), Killed("stop")])
def test_an_answer_that_comes_late_counts_only_where_it_is_a_kill(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event, late: Answer
) -> None:
    polled = Polled(monkeypatch)
    answers: list[Answer] = [late]

    def poll() -> Answer:
        release.wait()
        return answers.pop() if answers else Missed("down")

    polled.poll = poll
    polled.start()
    polled.until(lambda: bool(polled.events))
    release.set()
    if isinstance(late, Killed):
        polled.until(lambda: bool(polled.killed))
    else:
        monkeypatch.setattr(module, "_GIVEN_UP_AFTER_S", 60)
        polled.until(lambda: not answers and polled.loop.turn(0) is False)
        assert "killswitch_reached" not in [name for name, _ in polled.events]


def test_an_error_of_our_own_is_a_miss_and_the_next_poll_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(module, "_GIVEN_UP_AFTER_S", 60)

    def poll() -> Answer:
        if not polled.events:  # the answer to the first may come too late to count
            raise ValueError("\x1b[2J")
        return Killed("stop")

    polled.poll = poll
    polled.start()
    polled.until(lambda: bool(polled.killed))
    assert polled.events[0][1]["reason"] == "internal error: ValueError: \\e[2J"
