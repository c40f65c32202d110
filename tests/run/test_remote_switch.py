"""The remote kill switch: its URL, its answers, and the loop's own clock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.control import remote_switch as module
from sigwrap.control.remote_switch import (
    LONGEST_BODY,
    Alive,
    Answer,
    File,
    Killed,
    Missed,
    RemoteSwitch,
    Server,
    Web,
    poll_of,
    proxy_for,
    read_address,
    read_answer,
    verifying_context,
)
from sigwrap.errors import SessionError, UsageError
from sigwrap.kernel.peer import ListenerCheck
from sigwrap.session.loop import Loop
from sigwrap.session.run_end import SwitchedOff
from tests.support.stand_in import session_of
from tests.support.web import CERTIFICATE, WebServer

OPTION = "--killswitch-url"


# The URL


def test_a_web_address() -> None:
    for url, host, port, target in [
        ("https://example.com", "example.com", 443, "/"),
        ("HTTPS://Example.com:8443/a/b?c=d#e", "example.com", 8443, "/a/b?c=d"),
        ("https://example.com?c=d", "example.com", 443, "/?c=d"),
        ("https://[2001:db8::1]:8443/", "2001:db8::1", 8443, "/"),
        ("http://localhost:8000/x", "localhost", 8000, "/x"),
        ("http://127.1.2.3/x", "127.1.2.3", 80, "/x"),
        ("http://[::1]/x", "::1", 80, "/x"),
    ]:
        found = read_address(url, OPTION)
        assert isinstance(found, Web)
        assert (found.server.host, found.server.port, found.target) == (host, port, target), url


def test_a_file() -> None:
    for url, path in [
        ("file:///etc/switch", b"/etc/switch"),
        ("file://localhost/etc/switch?x#y", b"/etc/switch"),
        ("FILE:///a%20b%25/\N{LATIN SMALL LETTER U WITH DIAERESIS} c", b"/a b%/\xc3\xbc c"),
        ("file:///a\udcff\n", b"/a\xff\n"),
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
        "https://a/\r\nX: secret",
        "https://exämple.com/",
        "https://a\\@secret/",
        "https://a:65536/",
        "https://a:0/",
        "https://me:sec/ret@a/",
        "https://[::1/",
        "https://[1:2]secret/",
        "https://-a!/",
        "https:/me:secret@a/",
        "ftp://me:secret@example.com/",
        "file://server/switch",
        "file://sérver/switch",
        "file:///",
        "file:///a%00b",
        "://",
        "secret",
    ],
)
def test_not_an_address(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--killswitch-url: ") as refused:
        read_address(url, OPTION)
    assert "sec" not in str(refused.value)


def test_the_address_is_shown_without_secrets() -> None:
    for url, shown in [
        ("https://user:secret@example.com/path?token=secret#secret", "https://example.com/path"),
        ("https://secret@host", "https://host"),
        ("https://a:secret@b@host:1/@x", "https://host:1/@x"),
        ("https://host/" + "x" * 1000, "https://host/" + "x" * 187 + "…"),
        ("file:///a\x1b[2J?secret", "file:///a%1B%5B2J"),
    ]:
        assert read_address(url, OPTION).shown == shown, url


def test_user_and_password_are_decoded() -> None:
    found = read_address("https://us%40er:pa:ss@example.com/", OPTION)
    assert isinstance(found, Web)
    assert found.server.authorization == "Basic dXNAZXI6cGE6c3M="


# Proxies


def test_a_proxy() -> None:
    for variables, host, proxy in [
        ({}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:3128"}, "example.com", Server("p", 3128, "")),
        ({"HTTPS_PROXY": "p:3128/"}, "example.com", Server("p", 3128, "")),
        ({"HTTPS_PROXY": "http://a:b@p"}, "example.com", Server("p", 80, "Basic YTpi")),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:2"}, "h", Server("low", 1, "")),
        ({"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:1"}, "localhost", None),
        ({"HTTPS_PROXY": "http://p:1"}, "127.0.0.9", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "example.com", None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .Example.com"}, "a.example.com", None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "example.com:443"}, "example.com", None),
        (
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com,,"},
            "example.com",
            Server("p", 1, ""),
        ),
    ]:
        environment = {name.encode(): value.encode() for name, value in variables.items()}
        assert proxy_for(Server(host, 443, ""), environment) == proxy, variables


@pytest.mark.parametrize("value", ["https://user:secret@p:1", "socks5://p:1", "http://p:x", "[:"])
def test_an_unusable_proxy_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(UsageError, match=r"^\$HTTPS_PROXY: ") as refused:
        proxy_for(Server("example.com", 443, ""), {b"HTTPS_PROXY": value.encode()})
    assert "secret" not in str(refused.value)


# Certificates


def test_certificates_come_from_the_variables(tmp_path: Path) -> None:
    found = verifying_context({b"SSL_CERT_FILE": bytes(CERTIFICATE)})
    assert [each["serialNumber"] for each in found.get_ca_certs()] == ["01"]
    (tmp_path / "any-name").write_bytes(CERTIFICATE.read_bytes())
    (tmp_path / "link").symlink_to("any-name")
    (tmp_path / "README").write_text("no certificate")
    found = verifying_context({b"SSL_CERT_DIR": b"/nowhere:" + bytes(tmp_path)})
    assert [each["serialNumber"] for each in found.get_ca_certs()] == ["01"]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SSL_CERT_FILE", "/nowhere"),
        ("SSL_CERT_FILE", "/etc/passwd"),
        ("SSL_CERT_DIR", "/proc/self/fdinfo"),
    ],
)
def test_without_certificates_nothing_runs(variable: str, value: str) -> None:
    with pytest.raises(SessionError, match=f"no CA certificates in {value} "):
        verifying_context({variable.encode(): value.encode()})


# Answers

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b'{"killed": true}'
LONG = b"x" * (LONGEST_BODY + 1)


@pytest.fixture
def answer_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], Answer]]:
    # The tests themselves may be supervised, and they are what listens.
    monkeypatch.setattr(ListenerCheck, "objection", lambda *_: "")
    server = WebServer(lambda _: None)
    poll = poll_of(read_address(server.url, OPTION), {})

    def answer_to(data: bytes) -> Answer:
        server.answer = lambda connection: connection.sendall(data)
        return poll()

    yield answer_to
    server.close()


def test_an_answer(answer_to: Callable[[bytes], Answer]) -> None:
    for data in (
        OK + b"Content-Length: 16\r\n\r\n" + BODY,
        OK + b"content-length:16\r\n\r\n" + BODY + b" and what follows",
        OK + b"\r\n" + BODY,
        b"HTTP/1.0 200\n\n" + BODY,
        CHUNKED + b"1\r\n{\r\nf;x=y\r\n" + BODY[1:] + b"\r\n0\r\n\r\n",
    ):
        assert answer_to(data) == Killed("no reason given"), data


def test_http_looks_no_name_up() -> None:
    """It would be one that only looks like an address of this machine."""
    assert poll_of(read_address("http://127.999.0.1/", OPTION), {})() == Missed(
        "Name or service not known"
    )


def test_no_answer(answer_to: Callable[[bytes], Answer]) -> None:
    for data, why in [
        (b"", "not a complete HTTP response"),
        (BODY + b"\n", "not a complete HTTP response"),
        (b"HTTP/1.1 500 Oops\r\n\r\n" + BODY, "status 500"),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n" + BODY, "does not follow redirects"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, "not a complete HTTP response"),
        (OK + b"a: b\r\n" * 1000, "not a complete HTTP response"),
        (OK + b"a: " + b"b" * 100_000, "not a complete HTTP response"),
        (b"x" * 100_000, "not a complete HTTP response"),
        (OK + b"Content-Length: 17\r\n\r\n" + BODY, "is incomplete"),
        (OK + b"Content-Length: 1000000000\r\n\r\n" + LONG, "larger than 64 KiB"),
        (OK + b"\r\n" + LONG, "larger than 64 KiB"),
        (CHUNKED + b"10\r\n" + BODY[:5], "not a complete HTTP response"),
        (CHUNKED + b"zz\r\n", "not a complete HTTP response"),
        (CHUNKED + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 65, "larger than 64 KiB"),
    ]:
        found = answer_to(data)
        assert isinstance(found, Missed), data[:80]
        assert why in found.reason, data[:80]


def test_what_an_answer_says() -> None:
    for body, answer in (
        (b'{"killed": true, "reason": "stop"}', Killed("stop")),
        (b'{"killed": true}', Killed("no reason given")),
        (b'{"killed": true, "reason": {"a": 1}}', Killed("no reason given")),
        (b'{"killed": true, "reason": "a\\n b\\u001b[2J"}', Killed("a b\\e[2J")),
        (b'{"killed": true, "reason": "\xff"}', Missed("the answer is not UTF-8")),
        (b'{"killed": false, "reason": "no"}', Alive()),
        (b"{}", Alive()),
        (b' {"a": [{"killed": true}]}\n', Alive()),
        (b'{"killed": "true"}', Missed("in the answer, killed is neither true nor false")),
        (b'{"killed": 1}', Missed("in the answer, killed is neither true nor false")),
        (b'{"killed": 0}', Missed("in the answer, killed is neither true nor false")),
        (b'{"killed": null}', Missed("in the answer, killed is neither true nor false")),
        (b"true", Missed("the answer is not a JSON object")),
        (b'[{"killed": true}]', Missed("the answer is not a JSON object")),
        (b"", Missed("the answer is not JSON")),
        (b"<html>killed: true</html>", Missed("the answer is not JSON")),
        (b'{"killed": true', Missed("the answer is not JSON")),
        (b'{"killed": true} {}', Missed("the answer is not JSON")),
        (b'\xef\xbb\xbf{"killed": true}', Missed("the answer is not JSON")),
        (b'{"killed": true, "n": ' + b"1" * 5000 + b"}", Missed("the answer is not JSON")),
        (b"[" * 65_000, Missed("the answer is not JSON")),
        (b'{"a":' * 9000 + b"1" + b"}" * 9000, Missed("the answer is not JSON")),
    ):
        assert read_answer(body) == answer


def test_a_long_reason_is_cut_to_a_line() -> None:
    for char in ("x", "\\u001b", "\\ud800"):
        found = read_answer(b'{"killed": true, "reason": "' + char.encode() * 9000 + b'"}')
        assert isinstance(found, Killed)
        assert len(found.reason) == 201
        assert found.reason.endswith("…")
        assert found.reason.isprintable()


# What follows from answers and misses


MISS = Missed("refused")
URL = "http://127.0.0.1/x"


class Switch:
    """Returns what a remote switch does about an answer."""

    def __init__(self, *, fail_closed: bool = False) -> None:
        self.done: list[object] = []
        self._switch = RemoteSwitch(URL, OPTION, environment={}, fail_closed=fail_closed)
        recorder = SimpleNamespace(
            record=lambda name, _pid, payload: self.done.append((name, payload)),
            tell=lambda _line: self.done.append("told"),
        )
        run = SimpleNamespace(switch_off=lambda switched: self.done.append(switched.reason))
        self._switch._is_thread_idle = False  # it never polls here
        self._switch.begin(session_of(recorder=recorder, ending=SimpleNamespace(run=run)))

    def on(self, answer: Answer) -> list[object]:
        self.done.clear()
        self._switch._take(answer)
        return list(self.done)


def missed(count: int) -> tuple[str, dict[str, object]]:
    return ("killswitch_missed", {"url": URL, "reason": "refused", "count": count})


def reached(after: int) -> tuple[str, dict[str, object]]:
    return ("killswitch_reached", {"url": URL, "missed": after})


def test_a_kill_is_one_whatever_is_heard_before_and_then() -> None:
    assert Switch().on(Alive()) == []
    subject = Switch()
    assert subject.on(Killed("stop")) == ["stop"]
    assert [subject.on(each) for each in (Killed("more"), Alive(), MISS)] == [[], [], []]
    subject = Switch()
    subject.on(MISS)
    assert subject.on(Killed("stop")) == [reached(1), "stop"]


def test_the_first_miss_is_told_where_nothing_was_reached_yet() -> None:
    subject = Switch()
    assert subject.on(MISS) == [missed(1), "told"]
    assert subject.on(Alive()) == [reached(1)]
    assert subject.on(MISS) == [missed(1)]


def test_of_a_long_row_the_first_and_every_30th_are_recorded() -> None:
    subject = Switch()
    subject.on(Alive())
    recorded = [step for _ in range(100) for step in subject.on(MISS)]
    assert recorded == [missed(count) for count in (1, 30, 60, 90)]
    assert subject.on(Alive()) == [reached(100)]


def test_fail_closed_takes_three_in_a_row() -> None:
    subject = Switch(fail_closed=True)
    for answer in (MISS, MISS, Alive(), MISS, MISS):
        assert not any("no answer" in str(step) for step in subject.on(answer))
    assert subject.on(MISS) == [missed(3), f"no answer from {URL} for 3 polls (fail closed)"]
    assert subject.on(MISS) == []


# The loop


class Polled:
    """A remote switch whose polls end as a test says, in a loop of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, fail_closed: bool = False) -> None:
        monkeypatch.setattr(module, "EVERY_S", 0.02)
        monkeypatch.setattr(module, "_GIVE_UP_AFTER_S", 0.01)
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
        ending = SimpleNamespace(run=SimpleNamespace(switch_off=self._on_killed))
        self._switch.begin(session_of(loop=self.loop, recorder=self._recorder, ending=ending))

    @property
    def is_held_up(self) -> bool:
        return self._switch.is_held_up

    def _on_killed(self, switched: SwitchedOff) -> None:
        self.killed.append((switched.reason, switched.by))

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
    """The loop's clock alone decides it."""
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
def test_a_late_answer_counts_only_if_it_kills(
    monkeypatch: pytest.MonkeyPatch, release: threading.Event, late: Answer
) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(module, "EVERY_S", 60)

    def poll() -> Answer:
        release.wait()
        return late

    polled.poll = poll
    polled.start()
    polled.until(lambda: bool(polled.events))
    release.set()
    polled.until(lambda: not polled.is_held_up)
    assert polled.killed == ([("stop", "file:///x")] if isinstance(late, Killed) else [])
    names = [name for name, _ in polled.events]
    assert ("killswitch_reached" in names) == isinstance(late, Killed)


def test_an_internal_error_is_a_miss_and_shows_no_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    polled = Polled(monkeypatch)
    monkeypatch.setattr(module, "_GIVE_UP_AFTER_S", 60)

    def poll() -> Answer:
        if not polled.events:  # the answer to the first may come too late to count
            raise ValueError("secret")
        return Killed("stop")

    polled.poll = poll
    polled.start()
    polled.until(lambda: bool(polled.killed))
    assert polled.events[0][1]["reason"] == "internal error: ValueError"
