"""Signs as RFC 8032 says, for tests: `sigwrap` itself only verifies."""

from __future__ import annotations

import hashlib
from base64 import b64encode, encodebytes
from typing import NamedTuple

from sigwrap.policy import ed25519

ORDER = 2**252 + 27742317777372353535851937790883648493


def times_base(number: int) -> bytes:
    return ed25519._encoded(ed25519._combined(number, ed25519._BASE, 0, ed25519._BASE))


def challenge(commitment: bytes, public: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(commitment + public + message).digest(), "little") % ORDER


class Signer(NamedTuple):
    seed: bytes

    @property
    def scalar(self) -> int:
        low = int.from_bytes(hashlib.sha512(self.seed).digest()[:32], "little")
        return low & (1 << 254) - 8 | 1 << 254

    @property
    def public(self) -> bytes:
        return times_base(self.scalar)

    def sign(self, message: bytes) -> bytes:
        prefix = hashlib.sha512(self.seed).digest()[32:]
        nonce = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % ORDER
        commitment = times_base(nonce)
        answer = nonce + challenge(commitment, self.public, message) * self.scalar
        return commitment + (answer % ORDER).to_bytes(32, "little")

    def signed(self, text: str | bytes) -> bytes:
        data = text.encode() if isinstance(text, str) else text
        return data + b"# signature: " + b64encode(self.sign(data)) + b"\n"


def pem(public: bytes, before: str = "302a300506032b6570032100") -> bytes:
    body = encodebytes(bytes.fromhex(before) + public)
    return b"-----BEGIN PUBLIC KEY-----\n" + body + b"-----END PUBLIC KEY-----\n"


SIGNER = Signer(bytes(range(32)))
