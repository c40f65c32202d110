"""Answers of the page, with the headers that every one has."""

from __future__ import annotations

import json

from sigwrap.tuples import NamedTuple

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
