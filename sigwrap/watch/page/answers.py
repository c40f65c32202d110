"""Answers, with the headers that every one has."""

from __future__ import annotations

import json
from typing import Any

from sigwrap.tuples import NamedTuple

Headers = list[tuple[str, str]]

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_ALWAYS = [
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Frame-Options", "DENY"),
    ("Connection", "close"),
]


class Answer(NamedTuple):
    status: int
    kind: str
    body: bytes
    more: tuple[tuple[str, str], ...] = ()
    policy: str = PAGE_POLICY

    @property
    def headers(self) -> Headers:
        length = ("Content-Length", str(len(self.body)))
        return [*headers(self.kind, self.policy), length, *self.more]


def headers(kind: str, policy: str = PAGE_POLICY) -> Headers:
    return [("Content-Type", kind), ("Content-Security-Policy", policy), *_ALWAYS]


def plain(status: int, why: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"sigwrap: {why}.\n".encode())


def said(status: int, sentence: str) -> Answer:
    """What came of an action."""
    return _json(status, {"ok": status == 200, "said": sentence})


def _json(status: int, document: dict[str, Any]) -> Answer:
    return Answer(status, "application/json", json.dumps(document).encode())


def led_on(cookie: str) -> Answer:
    more = (("Location", "/"), ("Set-Cookie", cookie))
    return Answer(303, "text/plain; charset=utf-8", b"", more)
