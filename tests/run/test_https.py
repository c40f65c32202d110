"""Web servers: their addresses, proxies, certificates and responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sigwrap.errors import SessionError, UsageError
from sigwrap.https import Address, Client, NoAnswer, proxy_for, read_address, verifying_context
from sigwrap.kernel.peer import ListenerCheck
from tests.support.web import CERTIFICATE, WebServer

OPTION = "--option"
LONGEST = 64 * 1024


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
        assert (found.host, found.target) == (host, target), url
        assert found.place == (host.encode(), port), url


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
        "file:///a",
        "://",
        "secret",
    ],
)
def test_not_an_address(url: str) -> None:
    with pytest.raises(UsageError, match=r"^--option: ") as refused:
        read_address(url, OPTION)
    assert "sec" not in str(refused.value)


def test_the_address_is_shown_without_secrets() -> None:
    for url, shown in [
        ("https://user:secret@example.com/path?token=secret#secret", "https://example.com/path"),
        ("https://secret@host", "https://host"),
        ("https://a:secret@b@host:1/@x", "https://host:1/@x"),
        ("HTTPS://secret:@[::A]:443/?secret", "https://[::a]:443/"),
    ]:
        assert str(read_address(url, OPTION)) == shown, url


def test_user_and_password_are_decoded() -> None:
    found = read_address("https://us%40er:pa:ss@example.com/", OPTION)
    assert found.authorization == "Basic dXNAZXI6cGE6c3M="


# Proxies


def test_a_proxy() -> None:
    for variables, host, proxy in [
        ({}, "example.com", "None"),
        ({"HTTPS_PROXY": "http://p:3128"}, "example.com", "http://p:3128"),
        ({"HTTPS_PROXY": "p:3128/"}, "example.com", "http://p:3128/"),
        ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:2"}, "h", "http://low:1"),
        ({"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}, "example.com", "None"),
        ({"HTTPS_PROXY": "http://p:1"}, "localhost", "None"),
        ({"HTTPS_PROXY": "http://p:1"}, "127.0.0.9", "None"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, "example.com", "None"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, .Example.com"}, "a.example.com", "None"),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "example.com:443"}, "example.com", "None"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "ample.com,,"}, "example.com", "http://p:1"),
    ]:
        assert str(proxy_for(Address(True, host), variables)) == proxy, variables
    found = proxy_for(Address(True, "example.com"), {"HTTPS_PROXY": "http://a:b@p"})
    assert found == Address(False, "p", authorization="Basic YTpi")


@pytest.mark.parametrize("value", ["https://user:secret@p:1", "socks5://p:1", "http://p:x", "[:"])
def test_an_unusable_proxy_is_refused_at_the_start(value: str) -> None:
    with pytest.raises(UsageError, match=r"^\$HTTPS_PROXY: ") as refused:
        proxy_for(Address(True, "example.com"), {"HTTPS_PROXY": value})
    assert "secret" not in str(refused.value)


# Certificates


def test_certificates_come_from_the_variables(tmp_path: Path) -> None:
    found = verifying_context({"SSL_CERT_FILE": str(CERTIFICATE)})
    assert [each["serialNumber"] for each in found.get_ca_certs()] == ["01"]
    (tmp_path / "any-name").write_bytes(CERTIFICATE.read_bytes())
    (tmp_path / "link").symlink_to("any-name")
    (tmp_path / "README").write_text("no certificate")
    found = verifying_context({"SSL_CERT_DIR": f"/nowhere:{tmp_path}"})
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
        verifying_context({variable: value})


# Responses

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BODY = b'{"killed": true}'
LONG = b"x" * (LONGEST + 1)


def client(url: str) -> Client:
    return Client(read_address(url, OPTION), {}, LONGEST)


@pytest.fixture
def answer_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], bytes]]:
    # The tests themselves may be supervised, and they are what listens.
    monkeypatch.setattr(ListenerCheck, "objection", lambda *_: "")
    server = WebServer(lambda _: None)
    asking = client(server.url)

    def answer_to(data: bytes) -> bytes:
        server.answer = lambda connection: connection.sendall(data)
        return asking.get()

    yield answer_to
    server.close()


def test_an_answer(answer_to: Callable[[bytes], bytes]) -> None:
    for data in (
        OK + b"Content-Length: 16\r\n\r\n" + BODY,
        OK + b"content-length:16\r\n\r\n" + BODY + b" and what follows",
        OK + b"\r\n" + BODY,
        b"HTTP/1.0 200\n\n" + BODY,
        CHUNKED + b"1\r\n{\r\nf;x=y\r\n" + BODY[1:] + b"\r\n0\r\n\r\n",
    ):
        assert answer_to(data) == BODY, data


def test_http_looks_no_name_up() -> None:
    """It would be one that only looks like an address of this machine."""
    with pytest.raises(NoAnswer, match="Name or service not known"):
        client("http://127.999.0.1/").get()


def test_no_answer(answer_to: Callable[[bytes], bytes]) -> None:
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
        with pytest.raises(NoAnswer, match=why):
            answer_to(data)
