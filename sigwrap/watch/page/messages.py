"""Requests to the page and its answers. Pure.

The head of a request must have one meaning only. Two readers of one request that disagree about
where it ends are how requests are smuggled, so what HTTP merely tolerates is refused here. No
browser sends any of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from sigwrap.bare import NamedTuple, re
from sigwrap.watch.board import Approve, Deny, Interrupt, KillAll, Lift, Order

HEAD_BYTES = 8 << 10
BODY_BYTES = 16 << 10
_END = b"\r\n\r\n"
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")  # all but the tab
_FIRST_LINE = re.compile(rb"(GET|POST) (/[!-~]*) HTTP/1\.1")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DIGITS = re.compile(r"[0-9]{1,9}")
# Each of these decides something.
_ONCE = frozenset(
    "host origin cookie content-length content-type sec-fetch-site x-sigwrap-token".split()
)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_LONGEST_TEXT = 1_000
_ORDERS: dict[str, Any] = {
    "/approve": Approve,
    "/deny": Deny,
    "/interrupt": Interrupt,
    "/killswitch/on": KillAll,
    "/killswitch/off": Lift,
}


class BadRequest(Exception):
    """Answer with the status and the reason."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Request(NamedTuple):
    method: str
    path: str
    query: str
    fields: Mapping[str, str]  # by their names in lower case
    body: bytes = b""


def head_size(received: bytes | bytearray) -> int:
    """Return where the body begins, or 0 while the head is incomplete; BadRequest if the start is
    wrong already."""
    at = received.find(_END)
    head = received[: at + len(_END)] if at >= 0 else received
    if len(head) > HEAD_BYTES:
        raise BadRequest(431, f"the head is longer than {HEAD_BYTES} bytes")
    if head.count(b"\n") != head.count(b"\r\n"):
        raise BadRequest(400, "a line that ends without CR")
    if _CONTROL.search(head.replace(b"\r\n", b"")[: -1 if head.endswith(b"\r") else None]):
        raise BadRequest(400, "a control character")
    return len(head) if at >= 0 else 0


def read_head(head: bytes) -> tuple[Request, int]:
    """Return the request and the length of its body, of a head that `head_size` has accepted."""
    first, *lines = head[: -len(_END)].split(b"\r\n")
    found = _FIRST_LINE.fullmatch(first)
    if found is None:
        raise BadRequest(400, "not an HTTP/1.1 GET or POST of a path")
    fields: dict[str, str] = {}
    for line in lines:
        name, value = _field(line)
        if name in fields and name in _ONCE:
            raise BadRequest(400, "a repeated header field")
        fields[name] = value
    if "host" not in fields:
        raise BadRequest(400, "no host")
    if "transfer-encoding" in fields:
        raise BadRequest(400, "a body without a length")
    length = fields.get("content-length", "0")
    if not _DIGITS.fullmatch(length):
        raise BadRequest(400, "a length that is not a number")
    if int(length) > BODY_BYTES:
        raise BadRequest(413, f"the body is longer than {BODY_BYTES} bytes")
    path, _, query = found.group(2).decode("ascii").partition("?")
    return Request(found.group(1).decode("ascii"), path, query, fields), int(length)


def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if line[:1] in (b" ", b"\t"):
        raise BadRequest(400, "a folded header line")
    if not colon or not _NAME.fullmatch(name):
        raise BadRequest(400, "a header line without a name and a colon")
    return name.decode("ascii").lower(), value.strip(b" \t").decode("latin-1")


def is_id(found: object) -> bool:
    """Return whether it can only name a session or a request: it is no path and no option."""
    return isinstance(found, str) and _ID.fullmatch(found) is not None


def _is_text(found: object) -> bool:
    return isinstance(found, str) and len(found) <= _LONGEST_TEXT


_CHECKS: dict[str, Callable[[object], bool]] = {
    "session_id": is_id,
    "id": is_id,
    "always": lambda found: isinstance(found, bool),
    "message": _is_text,
    "reason": _is_text,
}


def read_order(path: str, body: bytes) -> Order:
    """Return what a POST asks for; BadRequest if the path or the body is wrong."""
    kind = _ORDERS.get(path)
    if kind is None:
        raise BadRequest(404, "no such action")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, "the body is not JSON") from error
    if not isinstance(asked, dict):
        raise BadRequest(400, "the body is not a JSON object")
    for name in kind._fields:
        if not _CHECKS[name](asked.get(name)):
            raise BadRequest(400, f"{name} is missing or wrong")
    order: Order = kind(*(asked[name] for name in kind._fields))
    return order


PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
TEXT = "text/plain; charset=utf-8"
_ALWAYS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Connection", "close"),
)


class Answer(NamedTuple):
    status: int
    kind: str
    body: bytes | None  # None for a stream, which ends with its connection
    more: tuple[tuple[str, str], ...] = ()
    policy: str = PAGE_POLICY

    @property
    def encoded(self) -> bytes:
        fields = [
            ("Content-Type", self.kind),
            ("Content-Security-Policy", self.policy),
            *_ALWAYS,
            *self.more,
        ]
        if self.body is not None:
            fields.append(("Content-Length", str(len(self.body))))
        head = "".join(f"{name}: {value}\r\n" for name, value in fields)
        return f"HTTP/1.1 {self.status} \r\n{head}\r\n".encode() + (self.body or b"")


def plain(status: int, why: str) -> Answer:
    return Answer(status, TEXT, f"sigwrap: {why}.\n".encode())


def outcome(status: int, sentence: str) -> Answer:
    """Return the answer to an order."""
    document = {"ok": status == 200, "said": sentence}
    return Answer(status, "application/json", json.dumps(document).encode())


def redirect(cookie: str) -> Answer:
    return Answer(303, TEXT, b"", (("Location", "/"), ("Set-Cookie", cookie)))
