"""One GET as bytes. Strict: what isn't plainly an answer is none.

A response is a generator that is sent what arrives, and b"" at the end; so how long that takes, and
from where it comes, is its caller's affair, and no more is kept of it than may be kept.
"""

from __future__ import annotations

import re
from collections.abc import Generator

import sigwrap
from sigwrap.hints import TypeVar
from sigwrap.run.remote_switch.address import Web
from sigwrap.tuples import NamedTuple

LONGEST_BODY = 64 * 1024
_LONGEST_LINE = 8 * 1024
_MOST_LINES = 100
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-5][0-9][0-9])(?: .*)?", re.DOTALL)
_HEADER = re.compile(rb"([!#-'*+.0-9A-Z^-z|~-]+):[ \t]*(.*?)[ \t]*", re.DOTALL)
_TOO_LONG = f"the response is longer than {LONGEST_BODY // 1024} KiB"

_T = TypeVar("_T")
Reading = Generator[None, bytes, _T]


class NoAnswer(Exception):
    """Its text says why."""


class Head(NamedTuple):
    status: int
    headers: dict[bytes, bytes]


def get(address: Web) -> bytes:
    return _request(
        f"GET {address.target} HTTP/1.1",
        f"Host: {address.origin}",
        "Accept: application/json",
        "Connection: close",
        *([f"Authorization: {address.authorization}"] if address.authorization else []),
    )


def connect(address: Web, authorization: str) -> bytes:
    """To a proxy."""
    host = f"[{address.host}]" if ":" in address.host else address.host
    return _request(
        f"CONNECT {host}:{address.port} HTTP/1.1",
        f"Host: {host}:{address.port}",
        *([f"Proxy-Authorization: {authorization}"] if authorization else []),
    )


def _request(*lines: str) -> bytes:
    said = (*lines, f"User-Agent: sigwrap/{sigwrap.__version__}", "", "")
    return "\r\n".join(said).encode("ascii")


def response() -> Reading[bytes]:
    """Returns the body. Raises NoAnswer."""
    arrived = _Arrived()
    head = yield from _head(arrived)
    if head.status != 200:
        followed = " (sigwrap does not follow redirects)" if 300 <= head.status < 400 else ""
        raise NoAnswer(f"status {head.status}{followed}")
    if head.headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise NoAnswer("the response is compressed")
    coding = head.headers.get(b"transfer-encoding", b"").lower()
    length = head.headers.get(b"content-length")
    if coding == b"chunked":
        return (yield from _chunks(arrived))
    if coding:
        raise NoAnswer("the response has an unknown transfer coding")
    if length is None:
        return (yield from arrived.rest())
    if not re.fullmatch(rb"[0-9]{1,18}", length):
        raise NoAnswer("the response's length is not a number")
    if int(length) > LONGEST_BODY:
        raise NoAnswer(_TOO_LONG)
    return (yield from arrived.exactly(int(length)))


def accepted_by_proxy() -> Reading[None]:
    """Raises NoAnswer. Nothing may follow: in TLS the client speaks first."""
    arrived = _Arrived()
    head = yield from _head(arrived)
    if head.status != 200 or arrived.data:
        raise NoAnswer(f"the proxy refused the connection: status {head.status}")


def _head(arrived: _Arrived) -> Reading[Head]:
    """Of the final response; those before it (1xx) are passed over."""
    lines = 0
    while True:
        found = _STATUS_LINE.fullmatch((yield from arrived.line()))
        if found is None or lines > _MOST_LINES:
            raise NoAnswer("not an HTTP response")
        headers: dict[bytes, bytes] = {}
        while line := (yield from arrived.line()):
            lines += 1
            header = _HEADER.fullmatch(line)
            if header is None or lines > _MOST_LINES:
                raise NoAnswer("the response has malformed headers")
            name, value = header[1].lower(), header[2]
            if headers.setdefault(name, value) != value and name == b"content-length":
                raise NoAnswer("the response has two lengths")
        status = int(found[1])
        if status >= 200:
            return Head(status, headers)
        lines += 1


def _chunks(arrived: _Arrived) -> Reading[bytes]:
    body = bytearray()
    while True:
        size = (yield from arrived.line()).partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            raise NoAnswer("a chunk of the response has no size")
        if not int(size, 16):
            return bytes(body)  # whatever trails it
        if len(body) + int(size, 16) > LONGEST_BODY:
            raise NoAnswer(_TOO_LONG)
        body += yield from arrived.exactly(int(size, 16))
        if (yield from arrived.line()):
            raise NoAnswer("a chunk of the response is longer than its size")


class _Arrived:
    def __init__(self) -> None:
        self.data = bytearray()
        self._has_ended = False

    def line(self) -> Reading[bytes]:
        looked_at = 0
        while (end := self.data.find(b"\n", looked_at)) < 0:
            looked_at = len(self.data)
            if looked_at > _LONGEST_LINE:
                raise NoAnswer("a line of the response is too long")
            yield from self._more()
            if self._has_ended:
                raise NoAnswer("the response is incomplete")
        found = bytes(self.data[:end])
        del self.data[: end + 1]
        return found.removesuffix(b"\r")

    def exactly(self, count: int) -> Reading[bytes]:
        while len(self.data) < count:
            yield from self._more()
            if self._has_ended:
                raise NoAnswer("the response is incomplete")
        found = bytes(self.data[:count])
        del self.data[:count]
        return found

    def rest(self) -> Reading[bytes]:
        while not self._has_ended:
            if len(self.data) > LONGEST_BODY:
                raise NoAnswer(_TOO_LONG)
            yield from self._more()
        return bytes(self.data)

    def _more(self) -> Reading[None]:
        data = yield
        self.data += data
        self._has_ended = not data
