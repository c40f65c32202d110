"""Decides from its text whether a request gets an answer. Its sender is known to be outside all
sessions.

A page of another origin can make the browser send requests here, with our cookie if it is on the
same host: cookies ignore ports, and another server on loopback may belong to a session. A name that
leads to 127.0.0.1 makes any page such a page. So a request must be from our own origin, by Host,
Origin and Sec-Fetch-Site, and a change must carry a token that only our page has. Another server on
this host may receive our cookie. No process in a session can use it: its connections are refused.
"""

from __future__ import annotations

import threading
from _operator import _compare_digest  # hmac's, which imports OpenSSL
from collections.abc import Callable

from sigwrap.bare import NamedTuple
from sigwrap.watch.page.messages import Request

_SECRET_BYTES = 16
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_ENTRY = "/in/"
AGAIN = "restart sigwrap serve and open the address that it prints"


class Refused(NamedTuple):
    status: int
    why: str


class Entered(NamedTuple):
    """The request came with the code, which is now used up."""

    cookie: str  # the value of Set-Cookie


class Gate:
    def __init__(self, port: int | None, secret: Callable[[int], bytes]) -> None:
        """`port`: None for a socket file, which any port may be forwarded to."""
        self._port = port
        self._entering = threading.Lock()
        self._code: str | None = secret(_SECRET_BYTES).hex()
        self._cookie = secret(_SECRET_BYTES).hex()
        self.token = secret(_SECRET_BYTES).hex()
        self._name = f"sigwrap-{port if port is not None else secret(4).hex()}"

    @property
    def entry(self) -> str:
        """Return the path with the code."""
        return f"{_ENTRY}{self._code}"

    def pass_(self, asked: Request) -> Refused | Entered | None:
        """Return None if the request gets what it asks for."""
        return self._objection(asked) or self._by_code(asked) or self._without_cookie(asked)

    def _objection(self, asked: Request) -> Refused | None:
        host = asked.fields.get("host", "")
        if not self._is_ours(host):
            return Refused(403, "this page is served at 127.0.0.1 and localhost only")
        origin = asked.fields.get("origin")
        if origin is not None and origin != f"http://{host}":
            return Refused(403, "refused: a page of another site sent this request")
        if origin is None and asked.method == "POST":
            return Refused(403, "refused: the request has no Origin header")
        if asked.fields.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return Refused(403, "opened from another page: type the address or use a bookmark")
        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if self._port is not None:
            return name in _NAMES and port == str(self._port)
        return host in _NAMES or (name in _NAMES and port.isdigit() and port.isascii())

    def _by_code(self, asked: Request) -> Refused | Entered | None:
        if not asked.path.startswith(_ENTRY):
            return None
        if asked.method != "GET":
            return Refused(405, "only GET is supported")
        with self._entering:
            if self._code is None or not _same(asked.path.removeprefix(_ENTRY), self._code):
                return Refused(
                    403,
                    "this address works once, in one browser, and was used already. That browser "
                    f"can open the address without its last part. For another browser, {AGAIN}",
                )
            self._code = None
        return Entered(f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict")

    def _without_cookie(self, asked: Request) -> Refused | None:
        if not any(_same(each, self._cookie) for each in self._cookies(asked)):
            return Refused(403, f"this browser is not signed in: {AGAIN}")
        if asked.method == "GET":
            return None
        if not _same(asked.fields.get("x-sigwrap-token", ""), self.token):
            return Refused(403, "the request is not from this page: reload the page")
        if asked.fields.get("content-type") != "application/json":
            return Refused(415, "the body is not JSON")
        return None

    def _cookies(self, asked: Request) -> list[str]:
        """Return all values: another server on this host may have set a cookie of our name."""
        pairs = (each.strip().partition("=") for each in asked.fields.get("cookie", "").split(";"))
        return [value for name, _, value in pairs if name == self._name]


def _same(given: str, secret: str) -> bool:
    """Compare in constant time."""
    return _compare_digest(given.encode("utf-8", "surrogateescape"), secret.encode())
